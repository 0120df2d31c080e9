"""Objectives that tell classes apart, with a classifier on top of the vectors or scores."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from gemel.errors import InvalidInput
from gemel.train.objectives.concatenation import PAPER_CONCATENATION, checked_concatenation, concatenate
from gemel.train.objectives.objective import Objective


class Softmax(Objective):
    """softmax(W (u, v, |u-v|)) over the classes of a pair, with cross-entropy."""

    kinds = ("classified pairs",)

    def __init__(self, dim: int, n_labels: int, concatenation: Sequence[str] = PAPER_CONCATENATION) -> None:
        super().__init__()
        if n_labels < 2:
            raise InvalidInput(f"softmax needs at least 2 classes and the data has {n_labels}")
        self.concatenation = checked_concatenation(concatenation)
        self.classifier = nn.Linear(dim * len(self.concatenation), n_labels, bias=False)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        return F.cross_entropy(
            self.classifier(concatenate(columns[0], columns[1], self.concatenation)), labels
        )


class PairClassification(Objective):
    """A cross-encoder's scores against a class, by cross-entropy."""

    kinds = ("classified pairs",)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        (logits,) = columns
        return F.cross_entropy(logits, labels)
