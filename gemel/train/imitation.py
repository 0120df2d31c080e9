"""What a student imitates: its teacher's vectors, their similarities, or a cross-encoder's margins.

These are objectives like all others, with what the teacher said in the place of the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gemel.errors import InvalidInput
from gemel.train.objectives import Objective, fitting
from gemel.train.settings import build_with_settings


class VectorImitation(Objective):
    """|student(text) - teacher(text)|^2; of translated pairs, for the source and for its translation.

    Reimers and Gurevych (2020) have the mean over dimensions; the sum does not fade as vectors grow longer.
    """

    kinds = ("texts", "pairs")

    def __init__(self, normalise: bool = True) -> None:
        super().__init__()
        self.normalise = normalise  # both vectors first, where only directions matter

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared distance to the teacher's vectors (batch, dim)."""
        assert labels is not None
        targets = F.normalize(labels, dim=-1) if self.normalise else labels
        distances = [self._distances(column, targets) for column in columns]
        return torch.stack(distances).mean()

    def _distances(self, column: Tensor, targets: Tensor) -> Tensor:
        if column.shape != targets.shape:
            raise InvalidInput(
                f"the student's vectors have {column.shape[1]} numbers and the teacher's {targets.shape[1]}; "
                "add a projection to the student, or imitate similarities"
            )
        vectors = F.normalize(column, dim=-1) if self.normalise else column
        return (vectors - targets).square().sum(dim=-1)


class SimilarityImitation(Objective):
    """KL divergence between how teacher and student spread a text's similarity over the rest of the batch.

    The vectors may be of different lengths, and may be turned: only what is like what is taught.
    """

    kinds = ("texts",)
    min_batch = 3  # of two texts, each has but one other

    def __init__(self, temperature: float = 0.05) -> None:
        super().__init__()
        if temperature <= 0:
            raise InvalidInput(f"temperature is {temperature}; expected more than 0")
        self.temperature = temperature

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean divergence of the batch from the teacher's vectors (batch, dim)."""
        assert labels is not None
        (column,) = columns
        return F.kl_div(self._spread(column), self._spread(labels), log_target=True, reduction="batchmean")

    def _spread(self, vectors: Tensor) -> Tensor:
        """The logarithm of each text's share in another one's similarities (batch, batch - 1)."""
        unit = F.normalize(vectors, dim=-1)
        n = len(unit)
        scores = unit @ unit.T / self.temperature
        others = scores[~torch.eye(n, dtype=torch.bool, device=scores.device)].view(n, n - 1)
        return others.log_softmax(dim=-1)


class Imitation(Objective):
    """Both together, each with its weight."""

    kinds = ("texts",)
    min_batch = SimilarityImitation.min_batch

    def __init__(self, vectors: float = 1.0, similarities: float = 1.0, temperature: float = 0.05) -> None:
        super().__init__()
        if min(vectors, similarities) < 0 or vectors + similarities == 0:
            raise InvalidInput(
                f"the weights are {vectors} for vectors and {similarities} for similarities; expected "
                "0 or more, and one of them above 0"
            )
        self.weights = (vectors, similarities)
        self.vectors, self.similarities = VectorImitation(), SimilarityImitation(temperature)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The weighted sum of both losses."""
        of_vectors, of_similarities = self.weights
        loss: Tensor = of_similarities * self.similarities(columns, labels)
        return loss + of_vectors * self.vectors(columns, labels) if of_vectors else loss


class MarginImitation(Objective):
    """((u.p - u.n) - (score(u, p) - score(u, n)))^2: MarginMSE of Hofstätter et al. (2020)."""

    kinds = ("triplets",)

    def __init__(self, similarity: str = "cosine", scale: float = 1.0) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise InvalidInput(f"the similarity {similarity!r} is unknown; choose from cosine, dot")
        self.similarity = similarity
        self.scale = scale  # of the student's margins: cosines go no further apart than 2

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean squared error over the batch and all negatives; labels are margins (batch, negatives)."""
        assert labels is not None
        vectors = (
            [F.normalize(column, dim=-1) for column in columns] if self.similarity == "cosine" else columns
        )
        anchor, positive, *negatives = vectors
        found = torch.stack([(anchor * (positive - negative)).sum(dim=-1) for negative in negatives], dim=1)
        return F.mse_loss(self.scale * found, labels)


# name -> class; the first that fits a kind of examples is the one inferred for it
IMITATIONS: dict[str, type[Objective]] = {
    "vector-imitation": VectorImitation,
    "imitation": Imitation,
    "similarity-imitation": SimilarityImitation,
    "margin-imitation": MarginImitation,
}


def build_imitation(name: str | None, kind: str, settings: Mapping[str, Any]) -> Objective:
    """The named way to learn from a teacher, or the usual one for this kind of examples."""
    fit = fitting(kind, IMITATIONS)
    name = name or next(iter(fit), None)
    if name not in IMITATIONS:
        raise InvalidInput(
            f"the objective {name!r} does not learn from a teacher; choose from {', '.join(IMITATIONS)}"
        )
    if name not in fit:
        raise InvalidInput(
            f"the objective {name!r} eats {' or '.join(IMITATIONS[name].kinds)} and the data holds {kind}; "
            f"for these choose {' or '.join(fit) or 'none: another kind of data'}"
        )
    return build_with_settings(name, IMITATIONS[name], settings)
