"""Objectives that draw pairs together and push others apart, among the texts of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gemel.data.class_names import truth_of
from gemel.errors import InvalidInput
from gemel.train.objectives.objective import Objective, check_positive


class InBatchContrastive(Objective):
    """Pick each anchor's positive among all positives and hard negatives of the batch.

    A text alone is its own positive, seen twice through dropout (SimCSE). `symmetric` also picks each
    positive's anchor; with a `margin`, by which the right one must lead, that is LaBSE's translation ranking.
    """

    name = "contrastive"
    kinds = ("pairs", "triplets", "texts")
    min_batch = 2  # one example alone has nothing to be told apart from

    def __init__(self, temperature: float = 0.05, symmetric: bool = False, margin: float = 0.0) -> None:
        super().__init__()
        self.temperature = check_positive("temperature", temperature)
        if not 0 <= margin < 2:
            raise InvalidInput(f"margin is {margin}; expected a difference of cosines, 0 to 2")
        self.symmetric, self.margin = symmetric, margin

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy of the batch."""
        anchors, *candidates = [F.normalize(column, dim=-1) for column in columns]
        n = len(anchors)
        right = torch.arange(n, device=anchors.device)
        cosines = anchors @ torch.cat(candidates).T
        lead = torch.zeros_like(cosines)
        lead[right, right] = self.margin
        scores = (cosines - lead) / self.temperature
        if labels is not None:
            scores = scores.masked_fill(_false_negatives(labels), -torch.inf)
        loss = F.cross_entropy(scores, right)
        return (loss + F.cross_entropy(scores[:, :n].T, right)) / 2 if self.symmetric else loss

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """log n, among n candidates."""
        return math.log(len(columns[0]) * (len(columns) - 1))


def _false_negatives(texts: Tensor) -> Tensor:
    """Numbers of texts (batch, columns) into (batch, candidates): what is no negative, except the positive.

    A text that is the anchor itself or its positive once more, and the positives of the same anchor in
    another row, must not be pushed away.
    """
    n = len(texts)
    anchors, candidates = texts[:, :1], texts[:, 1:].T.reshape(1, -1)
    is_false = (candidates == anchors) | (candidates == texts[:, 1:2])
    is_false[:, :n] |= anchors == anchors.T
    is_false[:, :n].fill_diagonal_(False)
    return is_false


class SupervisedContrastive(Objective):
    """Pick out, for each text of a batch, the others of its class among all others (Khosla et al., 2020)."""

    name = "supervised-contrastive"
    kinds = ("classified texts",)
    min_batch = 2
    n_alike = 2

    def __init__(self, temperature: float = 0.1) -> None:
        super().__init__()
        self.temperature = check_positive("temperature", temperature)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy over the others of a text's class, and over the texts that have some."""
        assert labels is not None
        vectors = F.normalize(torch.cat(list(columns)), dim=-1)
        classes = labels.repeat(len(columns))
        is_self = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        logits = (vectors @ vectors.T / self.temperature).masked_fill(is_self, -torch.inf)
        log_shares = F.log_softmax(logits, dim=-1).masked_fill(is_self, 0)
        is_alike = (classes[:, None] == classes[None]) & ~is_self
        n_alike = is_alike.sum(dim=-1)
        shares = (log_shares * is_alike).sum(dim=-1)[n_alike > 0]
        return -(shares / n_alike[n_alike > 0]).mean() if len(shares) else 0 * vectors.sum()

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """log n, among the n other texts."""
        return math.log(max(2, len(columns) * len(columns[0]) - 1))


class OnlineContrastive(Objective):
    """Draw the pairs of one class together, push those of the other to a margin; only the hard ones count.

    Hard are the positives that are farther than the nearest negative of the batch, and the negatives that are
    nearer than the farthest positive. `positive` is the class whose pairs belong together, by name or place:
    it need not be said of 0 and 1, no and yes, false and true.
    """

    name = "online-contrastive"
    kinds = ("classified pairs",)
    needs = ("n_labels", "label_names")
    min_batch = 2

    def __init__(
        self,
        n_labels: int = 2,
        label_names: Sequence[str] = ("0", "1"),
        margin: float = 0.5,
        positive: str | int | None = None,
    ) -> None:
        super().__init__()
        self.label_names = tuple(label_names) or ("0", "1")
        if n_labels != 2 or len(self.label_names) != 2:
            raise InvalidInput(
                f"online-contrastive tells 2 classes apart and the data has {n_labels}; "
                "expected pairs that belong together (1) or not (0)"
            )
        self.margin = check_positive("margin", margin)
        self.positive = _place_of_positive(positive, self.label_names)

    def describe(self) -> str:
        """A few words for a person."""
        return f"{self.name}, which draws pairs of {self.label_names[self.positive]!r} together"

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The squared distances that are wrong, summed over the hard pairs, for each pair of the batch."""
        assert labels is not None
        distances = 1 - F.cosine_similarity(columns[0], columns[1])
        is_positive = labels == self.positive
        near, far = distances[is_positive], distances[~is_positive]
        # A batch of one class has no bounds: all of its pairs count.
        if len(near) and len(far):
            near, far = near[near > far.min()], far[far < near.max()]
        return (near.square().sum() + F.relu(self.margin - far).square().sum()) / len(labels)


def _place_of_positive(positive: str | int | None, names: tuple[str, ...]) -> int:
    """The place of the class that was named, or of the one that says yes."""
    if str(positive) in names:
        return names.index(str(positive))
    if positive in (0, 1):
        return int(positive)
    said = [place for place, name in enumerate(names) if name.lower() == "yes" or truth_of(name) == 1]
    if positive is None and len(said) == 1:
        return said[0]
    raise InvalidInput(
        f"online-contrastive draws the pairs of one class together, and positive is {positive!r}; "
        f"expected one of the classes, {' or '.join(map(repr, names))}: say positive = {names[0]!r}, perhaps"
    )
