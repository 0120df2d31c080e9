"""Objectives that meet a score."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from gemel.errors import InvalidInput
from gemel.train.objectives.concatenation import CONCATENATIONS, concatenate
from gemel.train.objectives.objective import Objective
from gemel.train.settings import is_whole


class CosineRegression(Objective):
    """(cosine(u, v) - score)^2: the paper's regression objective; scores are 0 to 1."""

    name = "cosine"
    kinds = ("scored pairs",)
    score_range = (-1.0, 1.0)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared error of the batch."""
        assert labels is not None
        return F.mse_loss(F.cosine_similarity(columns[0], columns[1]), labels)


class FeedForwardRegression(Objective):
    """(sigmoid(MLP(u, v, |u-v|, u*v)) - score)^2: a learned similarity on top of the vectors."""

    name = "regression"
    kinds = ("scored pairs",)
    score_range = (0.0, 1.0)
    needs = ("dim",)
    concatenation = CONCATENATIONS

    def __init__(self, dim: int, hidden: int = 256) -> None:
        super().__init__()
        if not is_whole(hidden, 1):
            raise InvalidInput(f"hidden is {hidden!r}; expected a whole number, at least 1")
        self.regressor = nn.Sequential(
            nn.Linear(dim * len(self.concatenation), hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared error of the batch."""
        assert labels is not None
        scores = self.regressor(concatenate(columns[0], columns[1], self.concatenation)).squeeze(-1)
        return F.mse_loss(scores.sigmoid(), labels)


class PairRegression(Objective):
    """A cross-encoder's one score against a score or a yes/no, by binary cross-entropy."""

    name = "pair-regression"
    kinds = ("scored pairs",)
    score_range = (0.0, 1.0)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy between sigmoid(score) and the label."""
        assert labels is not None
        (logits,) = columns
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), labels)
