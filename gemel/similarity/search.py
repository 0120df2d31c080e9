"""Which vectors are most alike: exact searches, whose scores are those of `pairwise` to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits
from gemel.similarity import blocks, packed
from gemel.similarity.checks import WORST, check_dimensions, checked_bound, checked_count
from gemel.similarity.measures import Comparison, Integers, Scores, check_measure
from gemel.similarity.packed import OnProgress, PackedRows


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows and how alike they are; within one set first < second."""

    first: Integers  # (n,)
    second: Integers  # (n,)
    scores: Scores  # (n,)

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class Neighbours:
    """For each row the rows that are similar enough to it, in ascending order."""

    offsets: Integers  # (n + 1,)
    ids: npt.NDArray[np.int32]  # (offsets[n],)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, row: int) -> Integers:
        """The neighbours of one row."""
        return self.ids[self.offsets[row] : self.offsets[row + 1]].astype(np.int64)


def top_k(queries: npt.ArrayLike, corpus: npt.ArrayLike, k: int, measure: str = "cosine") -> Hits:
    """The k most similar rows of the corpus for each query, best first; equal scores by lower index."""
    k = checked_count("k", k)
    check_measure(measure)
    if measure not in packed.MEASURES:
        return Hits(*blocks.search(Comparison(measure, queries=queries, corpus=corpus), k))
    return PackedRows(corpus, measure, name="corpus").search(queries, k)


def top_pairs(
    vectors: npt.ArrayLike,
    n_pairs: int,
    *,
    others: npt.ArrayLike | None = None,
    measure: str = "cosine",
    at_least: float | None = None,
    on_progress: OnProgress | None = None,
) -> Pairs:
    """The n_pairs most similar pairs of rows, best first, fewer if fewer score at_least; equal scores by
    lower index. With others, pairs of a row of vectors and a row of them."""
    limit = checked_count("n_pairs", n_pairs)
    floor = WORST if at_least is None else checked_bound("at_least", at_least)
    check_measure(measure)
    if measure not in packed.MEASURES:
        compared = _comparison(measure, vectors, others)
        return Pairs(*blocks.best_pairs(compared, limit, floor, on_progress))
    left, right = _packed(measure, vectors, others)
    most = len(left) * (len(left) - 1) // 2 if right is left else len(left) * len(right)
    return Pairs(*left.best_pairs(right, max(1, min(limit, most)), float(floor), on_progress))


def pairs_above(
    vectors: npt.ArrayLike,
    at_least: float,
    *,
    others: npt.ArrayLike | None = None,
    measure: str = "cosine",
    on_progress: OnProgress | None = None,
) -> Iterator[Pairs]:
    """All pairs of rows that score at_least, however many, in ascending order of their indices, some millions
    at a time. With others, pairs of a row of vectors and a row of them. on_progress hears of the rows that
    are done and of how many there are."""
    floor = checked_bound("at_least", at_least)
    check_measure(measure)
    if measure not in packed.MEASURES:
        found = blocks.pairs_above(_comparison(measure, vectors, others), floor, on_progress)
    else:
        left, right = _packed(measure, vectors, others)
        found = left.pairs_above(right, float(floor), on_progress)
    return (Pairs(*columns) for columns in found)


def neighbours(vectors: npt.ArrayLike, at_least: float, *, measure: str = "cosine") -> Neighbours:
    """For each row all rows that score at_least with it, itself included."""
    compared = Comparison(measure, vectors=vectors)
    n = len(compared.left)
    rows = np.arange(n)
    itself = compared.exact(rows, rows) >= np.float32(at_least)
    found = [*pairs_above(compared.left, at_least, measure=measure)]
    empty = [np.zeros(0, dtype=np.int32)]
    first = np.concatenate([pairs.first.astype(np.int32) for pairs in found] or empty)
    second = np.concatenate([pairs.second.astype(np.int32) for pairs in found] or empty)
    # The pairs come by first and then by second, so that a stable sort leaves the ids of each row ascending.
    lower = np.argsort(second, kind="stable")
    own = np.flatnonzero(itself).astype(np.int32)
    rows_of = np.concatenate([second[lower], own, first])
    ids = np.concatenate([first[lower], own, second])
    order = np.argsort(rows_of, kind="stable")
    counts = np.bincount(rows_of, minlength=n)
    return Neighbours(np.concatenate([[0], np.cumsum(counts)]), ids[order])


def _comparison(measure: str, vectors: npt.ArrayLike, others: npt.ArrayLike | None) -> Comparison:
    if others is None:
        return Comparison(measure, vectors=vectors)
    return Comparison(measure, vectors=vectors, others=others)


def _packed(
    measure: str, vectors: npt.ArrayLike, others: npt.ArrayLike | None
) -> tuple[PackedRows, PackedRows]:
    left = PackedRows(vectors, measure)
    if others is None:
        return left, left
    right = PackedRows(others, measure, name="others")
    check_dimensions(("vectors", "others"), left.rows, right.rows)
    return left, right
