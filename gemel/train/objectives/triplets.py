"""Objectives of distances: the positive nearer than the negative."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gemel.errors import InvalidInput
from gemel.train.objectives.objective import Objective


class Triplet(Objective):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), with the paper's margin of 1."""

    kinds = ("triplets",)
    distances = ("euclidean", "cosine", "manhattan")

    def __init__(self, distance: str = "euclidean", margin: float = 1.0) -> None:
        super().__init__()
        if distance not in self.distances:
            raise InvalidInput(
                f"the distance {distance!r} is unknown; choose from {', '.join(self.distances)}"
            )
        self.distance = distance
        self.margin = margin

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean hinge over the batch and over all negatives."""
        anchor, positive, *negatives = columns
        near = self._between(anchor, positive)
        losses = [F.relu(near - self._between(anchor, far) + self.margin) for far in negatives]
        return torch.stack(losses).mean()

    def _between(self, a: Tensor, b: Tensor) -> Tensor:
        if self.distance == "cosine":
            return 1 - F.cosine_similarity(a, b)
        return F.pairwise_distance(a, b, p=2 if self.distance == "euclidean" else 1, eps=1e-12)
