"""Objectives that pick one text out among the others of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gemel.errors import InvalidInput
from gemel.train.objectives.objective import Objective


class InBatchContrastive(Objective):
    """Pick each anchor's positive among all positives and hard negatives of the batch."""

    kinds = ("pairs", "triplets")
    min_batch = 2  # one example alone has nothing to be told apart from

    def __init__(self, temperature: float = 0.05) -> None:
        super().__init__()
        if temperature <= 0:
            raise InvalidInput(f"temperature is {temperature}; expected more than 0")
        self.temperature = temperature

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        anchors, *candidates = [F.normalize(column, dim=-1) for column in columns]
        scores = anchors @ torch.cat(candidates).T / self.temperature
        return F.cross_entropy(scores, torch.arange(len(anchors), device=scores.device))
