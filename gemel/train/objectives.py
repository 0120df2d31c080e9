"""What training asks of the vectors: small classes that take embeddings and labels, never the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gemel.errors import InvalidInput

# How two vectors are joined for a classifier; |u-v| is what makes the paper's softmax work (Table 6).
CONCATENATIONS = ("u", "v", "|u-v|", "u*v")
PAPER_CONCATENATION = ("u", "v", "|u-v|")


class Objective(nn.Module):
    """Embeddings of each column (batch, dim) and labels (batch,) into one loss."""

    kinds: ClassVar[tuple[str, ...]]  # of examples that it eats
    min_batch: ClassVar[int] = 1


def concatenate(u: Tensor, v: Tensor, parts: Sequence[str]) -> Tensor:
    """(batch, dim) each into (batch, dim x parts)."""
    made = {"u": lambda: u, "v": lambda: v, "|u-v|": lambda: (u - v).abs(), "u*v": lambda: u * v}
    return torch.cat([made[part]() for part in parts], dim=-1)


def checked_concatenation(parts: Sequence[str]) -> tuple[str, ...]:
    """The parts, or a sentence that lists the known ones."""
    unknown = [part for part in parts if part not in CONCATENATIONS]
    if unknown or not parts:
        raise InvalidInput(
            f"the concatenation {list(parts)!r} is unknown; join any of {', '.join(CONCATENATIONS)}"
        )
    return tuple(parts)


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


class CosineRegression(Objective):
    """(cosine(u, v) - score)^2: the paper's regression objective; scores are 0 to 1."""

    kinds = ("scored pairs",)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared error of the batch."""
        assert labels is not None
        return F.mse_loss(F.cosine_similarity(columns[0], columns[1]), labels)


class FeedForwardRegression(Objective):
    """(sigmoid(MLP(u, v, |u-v|, u*v)) - score)^2: a learned similarity on top of the vectors."""

    kinds = ("scored pairs",)
    concatenation = CONCATENATIONS

    def __init__(self, dim: int, hidden: int = 256) -> None:
        super().__init__()
        self.regressor = nn.Sequential(
            nn.Linear(dim * len(self.concatenation), hidden), nn.Tanh(), nn.Linear(hidden, 1)
        )

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared error of the batch."""
        assert labels is not None
        scores = self.regressor(concatenate(columns[0], columns[1], self.concatenation)).squeeze(-1)
        return F.mse_loss(scores.sigmoid(), labels)


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


class PairRegression(Objective):
    """A cross-encoder's one score against a score or a yes/no, by binary cross-entropy."""

    kinds = ("scored pairs",)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy between sigmoid(score) and the label."""
        assert labels is not None
        (logits,) = columns
        return F.binary_cross_entropy_with_logits(logits.squeeze(-1), labels)


class PairClassification(Objective):
    """A cross-encoder's scores against a class, by cross-entropy."""

    kinds = ("classified pairs",)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        assert labels is not None
        (logits,) = columns
        return F.cross_entropy(logits, labels)


# name -> class; the first that fits a kind of examples is the one inferred for it
OBJECTIVES: dict[str, type[Objective]] = {
    "softmax": Softmax,
    "cosine": CosineRegression,
    "contrastive": InBatchContrastive,
    "triplet": Triplet,
    "regression": FeedForwardRegression,
}
CROSS_OBJECTIVES: dict[str, type[Objective]] = {
    "pair-regression": PairRegression,
    "pair-classification": PairClassification,
}


def fitting(kind: str, objectives: dict[str, type[Objective]]) -> list[str]:
    """The names of the objectives that eat examples of a kind."""
    return [name for name, objective in objectives.items() if kind in objective.kinds]


def build_objective(
    name: str | None, kind: str, *, dim: int, n_labels: int = 0, cross_encoder: bool = False, **settings: Any
) -> Objective:
    """The named objective, or the usual one for this kind of examples."""
    table = CROSS_OBJECTIVES if cross_encoder else OBJECTIVES
    fit = fitting(kind, table)
    if name is None and fit:
        name = fit[0]
    if name not in table:
        raise InvalidInput(f"the objective {name!r} is unknown; choose from {', '.join(table)}")
    if name not in fit:
        raise InvalidInput(
            f"the objective {name!r} eats {' or '.join(table[name].kinds)} and the data holds {kind}; "
            f"for these choose {' or '.join(fit) or 'another kind of model'}"
        )
    if table[name] is Softmax:
        settings = {"dim": dim, "n_labels": n_labels, **settings}
    elif table[name] is FeedForwardRegression:
        settings = {"dim": dim, **settings}
    try:
        return table[name](**settings)
    except TypeError as error:
        raise InvalidInput(f"the objective {name!r} does not take these settings: {error}") from None
