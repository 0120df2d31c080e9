"""Objectives that tell classes apart, with a classifier on top of the vectors or scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from gemel.errors import InvalidInput
from gemel.train.objectives.concatenation import PAPER_CONCATENATION, checked_concatenation, concatenate
from gemel.train.objectives.objective import Objective


class Softmax(Objective):
    """softmax(W (u, v, |u-v|)) over the classes of a pair, with cross-entropy."""

    name = "softmax"
    kinds = ("classified pairs",)
    needs = ("dim", "n_labels")

    def __init__(self, dim: int, n_labels: int, concatenation: Sequence[str] = PAPER_CONCATENATION) -> None:
        super().__init__()
        self.concatenation = checked_concatenation(concatenation)
        n_classes = checked_classes("softmax", n_labels)
        self.classifier = nn.Linear(dim * len(self.concatenation), n_classes, bias=False)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        return F.cross_entropy(
            self.classifier(concatenate(columns[0], columns[1], self.concatenation)), labels
        )

    def n_classes(self) -> int:
        """Those that its classifier has."""
        return self.classifier.out_features

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """log n, among n classes."""
        return math.log(self.classifier.out_features)


class TextSoftmax(Objective):
    """softmax(W u + b) over the classes of a text, with cross-entropy."""

    name = "text-softmax"
    kinds = ("classified texts",)
    needs = ("dim", "n_labels")

    def __init__(self, dim: int, n_labels: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(dim, checked_classes("text-softmax", n_labels))

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        return F.cross_entropy(self.classifier(columns[0]), labels)

    def n_classes(self) -> int:
        """Those that its classifier has."""
        return self.classifier.out_features

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """log n, among n classes."""
        return math.log(self.classifier.out_features)


class PairClassification(Objective):
    """A cross-encoder's scores against a class, by cross-entropy."""

    name = "pair-classification"
    kinds = ("classified pairs",)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        (logits,) = columns
        return F.cross_entropy(logits, labels)


def checked_classes(name: str, n_labels: int) -> int:
    """How many classes, or a sentence that refuses fewer than two."""
    if n_labels < 2:
        raise InvalidInput(f"{name} needs at least 2 classes and the data has {n_labels}")
    return n_labels
