"""One loss at several lengths of the vectors, so that their beginnings can stand alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gemel.errors import InvalidInput
from gemel.train.objectives.objective import Objective


class Matryoshka(Objective):
    """The weighted sum of an objective over the first 64, 128, ... numbers of each vector (Kusupati et al.).

    `make` gives the objective for a number of dimensions: one that owns a head has another head for each.
    """

    def __init__(
        self,
        make: Callable[[int], Objective],
        dim: int,
        dimensions: Sequence[int],
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.dimensions = _checked_dimensions(dimensions, dim)
        self.weights = _checked_weights(weights, self.dimensions)
        made = [make(dimension) for dimension in self.dimensions]
        self.parts = nn.ModuleList(made)
        self.min_batch, self.n_alike = made[0].min_batch, made[0].n_alike

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The sum over all dimensions."""
        return torch.stack([
            weight * part([column[:, :dimension] for column in columns], labels)
            for dimension, weight, part in zip(self.dimensions, self.weights, self.parts, strict=True)
        ]).sum()  # fmt: skip

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """Guessed anew for each dimension."""
        return sum(self.weights) * self.part(0).loss_of_guessing(columns)

    def losses(self) -> tuple[str, ...]:
        """Itself and what is inside."""
        return (type(self).__name__, *self.part(0).losses())

    def describe(self) -> str:
        """What is inside, and at which lengths."""
        return f"{self.part(0).describe()} at {', '.join(map(str, self.dimensions))} dimensions"

    def asking(self) -> Objective:
        """The objective inside."""
        return self.part(0).asking()

    def truncations(self) -> tuple[int, ...]:
        """Its dimensions, the largest first."""
        return tuple(sorted(self.dimensions, reverse=True))

    def part(self, place: int) -> Objective:
        """The objective of the dimension at this place."""
        part = self.parts[place]
        assert isinstance(part, Objective)
        return part

    @property
    def whole(self) -> Objective | None:
        """The objective of the whole vectors, if they are among the dimensions."""
        return self.part(self.dimensions.index(self.dim)) if self.dim in self.dimensions else None


def _checked_dimensions(dimensions: Sequence[object], dim: int) -> tuple[int, ...]:
    chosen = tuple(one for one in dimensions if isinstance(one, int) and 1 <= one <= dim)
    if not chosen or len(set(chosen)) < len(dimensions):
        raise InvalidInput(
            f"the dimensions of matryoshka are {list(dimensions)}; expected different numbers "
            f"from 1 to {dim}, which the model's vectors have"
        )
    return chosen


def _checked_weights(weights: Sequence[float] | None, dimensions: Sequence[int]) -> tuple[float, ...]:
    if weights is None:
        return (1.0,) * len(dimensions)
    if len(weights) != len(dimensions) or not all(weight > 0 for weight in weights):
        raise InvalidInput(
            f"the weights of matryoshka are {list(weights)}; expected a number above 0 for each of the "
            f"{len(dimensions)} dimensions"
        )
    return tuple(map(float, weights))
