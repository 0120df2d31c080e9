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

    name = "triplet"
    kinds = ("triplets",)
    distances = ("euclidean", "cosine", "manhattan")

    def __init__(self, distance: str = "euclidean", margin: float = 1.0) -> None:
        super().__init__()
        self.distance = checked_distance(distance, self.distances)
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


class BatchHardTriplet(Objective):
    """Each text against the farthest of its class and the nearest of the others (Hermans et al., 2017).

    Without a margin the hinge is soft: log(1 + exp(d(farthest alike) - d(nearest other))).
    """

    name = "batch-hard"
    kinds = ("classified texts",)
    min_batch = 2
    n_alike = 4
    distances = ("euclidean", "cosine")

    def __init__(self, distance: str = "euclidean", margin: float | None = None) -> None:
        super().__init__()
        self.distance = checked_distance(distance, self.distances)
        self.margin = margin

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean over the texts that have both; 0 where none has."""
        assert labels is not None
        (vectors,) = columns
        distances = self._between_all(vectors)
        is_alike = labels[:, None] == labels[None]
        is_self = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
        farthest = distances.masked_fill(~is_alike | is_self, -torch.inf).amax(dim=1)
        nearest = distances.masked_fill(is_alike, torch.inf).amin(dim=1)
        has_both = (farthest > -torch.inf) & (nearest < torch.inf)
        wrong = farthest[has_both] - nearest[has_both]
        losses = F.softplus(wrong) if self.margin is None else F.relu(wrong + self.margin)
        return losses.mean() if len(losses) else 0 * vectors.sum()

    def _between_all(self, vectors: Tensor) -> Tensor:
        if self.distance == "cosine":
            vectors = F.normalize(vectors, dim=-1)
            return 1 - vectors @ vectors.T
        # Not by way of products, which are inexact where texts are near: those are what is looked for.
        return torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")


def checked_distance(distance: str, known: Sequence[str]) -> str:
    """The distance, or a sentence that lists the known ones."""
    if distance not in known:
        raise InvalidInput(f"the distance {distance!r} is unknown; choose from {', '.join(known)}")
    return distance
