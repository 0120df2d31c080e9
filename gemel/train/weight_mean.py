"""The mean of the weights of a run's last steps: what they swing around, if they swing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gemel.train.interrupts import held_interrupts


class WeightMean:
    """A running mean of the trained weights from one step on; before it there is none.

    Polyak and Juditsky (1992). It pays where the learning rate is high; weights that are still on their way
    are ahead of their mean.
    """

    def __init__(self, trained: Mapping[str, nn.Parameter], begins_after: int) -> None:
        self.trained, self.begins_after = trained, begins_after
        self.values: dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, step: int) -> None:
        """Take in the weights after that many steps of the run."""
        n = step - self.begins_after
        if n == 1:
            self.values = {name: parameter.detach().clone() for name, parameter in self.trained.items()}
        elif n > 1:
            for name, parameter in self.trained.items():
                self.values[name].lerp_(parameter, 1 / n)

    def put_back(self, values: Mapping[str, Tensor]) -> None:
        """Go on from the mean of a checkpoint."""
        self.values = {name: value.to(self.trained[name].device) for name, value in values.items()}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The mean in place of the weights for a while; then they are as they were, to the bit."""
        try:
            self._swap()  # within, as a signal that was held is heard at its end
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        with held_interrupts():  # half of each would be neither
            for name in self.values:
                parameter = self.trained[name]
                parameter.data, self.values[name] = self.values[name], parameter.data
