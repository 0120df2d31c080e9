"""Texts in the order in which a cross-encoder puts them for a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Reranker, checked_texts
from gemel.errors import InvalidInput


@dataclass(frozen=True)
class Reranking:
    """A reranker and how much it has to read: `n_candidates` a query, `batch_pairs` at a time."""

    reranker: Reranker
    n_candidates: int = 100
    batch_pairs: int = 1_024

    def __post_init__(self) -> None:
        if not isinstance(self.reranker, Reranker):
            given = type(self.reranker).__name__
            raise InvalidInput(f"the reranker is of type {given}; expected one such as load_reranker gives")
        if min(self.n_candidates, self.batch_pairs) < 1:
            raise InvalidInput(
                f"{self.n_candidates} candidates in batches of {self.batch_pairs} were asked for; "
                "expected at least 1 of each"
            )

    def scores(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """One finite score a pair, larger is better."""
        batches = [
            self._checked(pairs[start : start + self.batch_pairs])
            for start in range(0, len(pairs), self.batch_pairs)
        ]
        return np.concatenate(batches) if batches else np.zeros(0, np.float32)

    def _checked(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        scores = np.asarray(self.reranker.score(pairs), np.float32)
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise InvalidInput(
                f"the reranker gave scores of shape {scores.shape} for {len(pairs)} pairs; "
                "expected one finite score a pair: ranking needs a model with one output"
            )
        return scores


@dataclass(frozen=True)
class Ranked:
    """A text by its place among those given, and how well it fits the query."""

    row: int
    text: str
    score: float


def rerank(
    reranker: Reranker | Reranking, query: str, texts: Sequence[str], k: int | None = None
) -> list[Ranked]:
    """The texts, or the k best of them, best fit for the query first; equal ones in the order given."""
    reading = reranker if isinstance(reranker, Reranking) else Reranking(reranker)
    if not isinstance(query, str):
        raise InvalidInput(f"the query is of type {type(query).__name__}; expected a str")
    if k is not None and k < 1:
        raise InvalidInput(f"k is {k}; expected at least 1")
    checked = checked_texts(texts)
    scores = reading.scores([(query, text) for text in checked])
    order = np.argsort(-scores, kind="stable")[:k].tolist()
    return [Ranked(row, checked[row], float(scores[row])) for row in order]
