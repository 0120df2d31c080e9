"""How alike vectors are, and which are most alike: four measures and three exact searches over them.

Larger is always more similar. The searches look at blocks of rough float32 scores, keep whatever could
still win given the rounding error, and score that again row by row as `pairwise` does: so a result does
not depend on the size of a block, and its scores are those of `pairwise` to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits, Vectors
from gemel.errors import InvalidInput

Integers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_Floats = TypeVar("_Floats", Scores, _Doubles)

_BLOCK_ROWS = 1024  # a block of scores is then 4 MB: large enough for BLAS, small enough for the cache
_LONGEST = 1e18  # rows up to this length cannot overflow float32 in any measure
_WORST = np.float32(-3e38)  # below every score that two rows of that length can have


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, first < second, the most similar pair first."""

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


def normalise(vectors: npt.ArrayLike) -> Vectors:
    """The rows (n, dim) at unit length; a row of zeros stays zero."""
    return _unit(_checked("vectors", vectors))


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The cosine of every row of a with every row of b (n, m); 0 where a row is zero."""
    return np.clip(_Comparison("cosine", a=a, b=b).matrix(), -1, 1)


def dot(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The inner product of every row of a with every row of b (n, m)."""
    return _Comparison("dot", a=a, b=b).matrix()


def euclidean(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The negated Euclidean distance of every row of a to every row of b (n, m)."""
    return _Comparison("euclidean", a=a, b=b).matrix()


def manhattan(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The negated Manhattan distance of every row of a to every row of b (n, m)."""
    return _Comparison("manhattan", a=a, b=b).matrix()


MEASURES: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Scores]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


def pairwise(a: npt.ArrayLike, b: npt.ArrayLike, measure: str = "cosine") -> Scores:
    """The similarity of each row of a to the same row of b (n,): equal rows are exactly alike."""
    compared = _Comparison(measure, a=a, b=b)
    if len(compared.left) != len(compared.right):
        raise InvalidInput(
            f"pairwise was given {len(compared.left)} and {len(compared.right)} rows; expected as many: "
            f"use gemel.similarity.{measure} to compare every row with every other"
        )
    rows = np.arange(len(compared.left))
    return compared.exact(rows, rows)


def top_k(queries: npt.ArrayLike, corpus: npt.ArrayLike, k: int, measure: str = "cosine") -> Hits:
    """The k most similar rows of the corpus for each query, best first; equal scores by lower index."""
    k = _checked_count("k", k)
    compared = _Comparison(measure, queries=queries, corpus=corpus)
    ids = np.full((len(compared.left), k), -1, dtype=np.int64)
    scores = np.full((len(compared.left), k), -np.inf, dtype=np.float32)
    for asked in _slices(len(compared.left), size=max(1, _BLOCK_ROWS // 8)):
        _search(compared, asked, ids[asked], scores[asked])
    return Hits(ids, scores)


def top_pairs(
    vectors: npt.ArrayLike, n_pairs: int, *, measure: str = "cosine", at_least: float | None = None
) -> Pairs:
    """The n_pairs most similar pairs of rows, fewer if fewer score at_least; equal scores by lower index."""
    n_pairs = _checked_count("n_pairs", n_pairs)
    floor = _WORST if at_least is None else _checked_bound("at_least", at_least)
    compared = _Comparison(measure, vectors=vectors)
    pool = _Pool(compared, n_pairs, floor)
    for above in _slices(len(compared.left)):
        for beside in _slices(len(compared.left), start=above.start):
            rough = compared.rough(above, beside)
            if above == beside:
                rough[np.tri(len(rough), dtype=np.bool_)] = -np.inf
            pool.add(rough, above.start, beside.start)
    return pool.settle()


def neighbours(vectors: npt.ArrayLike, at_least: float, *, measure: str = "cosine") -> Neighbours:
    """For each row all rows that score at_least with it, itself included."""
    floor = _checked_bound("at_least", at_least)
    compared = _Comparison(measure, vectors=vectors)
    counts, ids = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int32)]
    for above in _slices(len(compared.left)):
        firsts, seconds = [], []
        for beside in _slices(len(compared.left)):
            rough, slack = compared.rough(above, beside), compared.slack[above]
            first, second = np.nonzero(rough >= floor - slack)
            enough = rough[first, second] >= floor + slack[first, 0]
            unsure = np.flatnonzero(~enough)
            enough[unsure] = (
                compared.exact(above.start + first[unsure], beside.start + second[unsure]) >= floor
            )
            firsts.append(first[enough])
            seconds.append((beside.start + second[enough]).astype(np.int32))
        first = np.concatenate(firsts)
        ids.append(np.concatenate(seconds)[np.argsort(first, kind="stable")])
        counts.append(np.bincount(first, minlength=above.stop - above.start))
    return Neighbours(np.cumsum(np.concatenate(counts)), np.concatenate(ids))


# The four measures -----------------------------------------------------------------------------------


def _unit(vectors: Vectors) -> Vectors:
    units = np.empty_like(vectors)
    for part in _slices(len(vectors)):
        rows = vectors[part]
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
        np.divide(rows, np.where(lengths > 0, lengths, 1), out=units[part], casting="same_kind")
    return units


def _row_dots(a: _Floats, b: _Floats) -> _Floats:
    dots: _Floats = np.einsum("ij,ij->i", a, b)
    return dots


def _products(a: _Floats, b: _Floats) -> _Floats:
    # The rows are finite; BLAS may still flag what it computes in the unused lanes of a register.
    with np.errstate(all="ignore"):
        products: _Floats = a @ b.T
    return products


def _rough_dot(a: Vectors, b: Vectors) -> Scores:
    scores: Scores = _products(a, b)
    return scores


def _rough_euclidean(a: Vectors, b: Vectors) -> Scores:
    left, right = a.astype(np.float64), b.astype(np.float64)
    scale = _row_dots(left, left)[:, None] + _row_dots(right, right)
    squares = scale - 2 * _products(left, right)
    distances = np.sqrt(np.maximum(squares, 0))
    # Close rows cancel to noise, below zero even: there the differences themselves are summed.
    first, second = np.nonzero(squares <= 1e-7 * scale)
    for part in _slices(len(first)):
        i, j = first[part], second[part]
        distances[i, j] = -_exact_euclidean(left[i], right[j])
    return 0 - distances.astype(np.float32)


def _rough_manhattan(a: Vectors, b: Vectors) -> Scores:
    scores = np.empty((len(a), len(b)), dtype=np.float32)
    for part in _slices(len(b)):
        gaps = np.empty_like(b[part])
        for row, out in zip(a, scores[:, part], strict=True):
            np.abs(np.subtract(b[part], row, out=gaps), out=gaps).sum(axis=1, out=out)
    return 0 - scores


def _exact_cosine(a: _Doubles, b: _Doubles) -> _Doubles:
    # x / sqrt(x * x) is exactly 1, so equal rows score 1.
    lengths = np.sqrt(_row_dots(a, a) * _row_dots(b, b))
    return np.clip(np.divide(_row_dots(a, b), lengths, out=np.zeros_like(lengths), where=lengths > 0), -1, 1)


def _exact_euclidean(a: _Doubles, b: _Doubles) -> _Doubles:
    return 0 - np.sqrt(_row_dots(a - b, a - b))


def _exact_manhattan(a: _Doubles, b: _Doubles) -> _Doubles:
    distances: _Doubles = np.abs(a - b).sum(axis=1)
    return 0 - distances


@dataclass(frozen=True)
class _Measure:
    rough: Callable[[Vectors, Vectors], Scores]  # prepared (n, dim), (m, dim) -> (n, m), quickly
    exact: Callable[[_Doubles, _Doubles], _Doubles]  # unprepared (n, dim), (n, dim) -> (n,), carefully
    reach: Callable[[Scores, np.float32, int], Scores]  # lengths, longest, dim -> no score is larger
    ceiling: float  # no exact score is higher
    prepare: Callable[[Vectors], Vectors] = lambda rows: rows  # once for each set of rows


_MEASURES = {
    "cosine": _Measure(_rough_dot, _exact_cosine, lambda a, b, dim: np.ones_like(a), 1, prepare=_unit),
    "dot": _Measure(_rough_dot, _row_dots, lambda a, b, dim: a * b, np.inf),
    "euclidean": _Measure(_rough_euclidean, _exact_euclidean, lambda a, b, dim: a + b, 0),
    "manhattan": _Measure(_rough_manhattan, _exact_manhattan, lambda a, b, dim: (a + b) * dim**0.5, 0),
}


# The steps of a search -------------------------------------------------------------------------------


class _Comparison:
    """Two named sets of rows, or one with itself, and how alike they are by one measure."""

    def __init__(self, measure: str, **sets: npt.ArrayLike) -> None:
        if measure not in _MEASURES:
            raise InvalidInput(f"measure is {measure!r}; expected a known one: choose {', '.join(_MEASURES)}")
        self.measure = _MEASURES[measure]
        checked = [_checked(name, rows) for name, rows in sets.items()]
        self.left, self.right = checked[0], checked[-1]
        self.dim = self.left.shape[1]
        if self.right.shape[1] != self.dim:
            raise InvalidInput(
                f"{' and '.join(sets)} have {self.dim} and {self.right.shape[1]} dimensions; "
                "expected the same: encode both with one model"
            )

    @cached_property
    def _prepared(self) -> tuple[Vectors, Vectors]:
        left = self.measure.prepare(self.left)
        return left, left if self.right is self.left else self.measure.prepare(self.right)

    def rough(self, above: slice, beside: slice) -> Scores:
        """The scores of a block of left rows with a block of right rows, off by the slack at most."""
        left, right = self._prepared
        return self.measure.rough(left[above], right[beside])

    @cached_property
    def slack(self) -> Scores:
        """How far the rough scores of each left row may be from the exact ones (n, 1)."""
        # A sum of dim rounded products errs by dim roundings at most; 16 more for all that is not the sum,
        # and 1e-33 for squares so small that float32 loses them.
        lengths, others = (
            np.sqrt(_row_dots(rows, rows) + np.float32(1e-33)) for rows in (self.left, self.right)
        )
        reach = self.measure.reach(lengths[:, None], others.max(initial=0), self.dim)
        return reach * np.float32((self.dim + 16) * 2.0**-24) + np.float32(1e-37)

    def exact(self, first: Integers, second: Integers) -> Scores:
        """The score of each pair left[first], right[second]: the same whatever is scored with it."""
        scores = np.empty(len(first), dtype=np.float32)
        for part in _slices(len(first), size=256):
            left = self.left[first[part]].astype(np.float64, order="C")
            right = self.right[second[part]].astype(np.float64, order="C")
            scores[part] = self.measure.exact(left, right)
        return scores

    def matrix(self) -> Scores:
        """The rough scores of all left rows with all right rows."""
        scores = np.empty((len(self.left), len(self.right)), dtype=np.float32)
        for above in _slices(len(self.left)):
            for beside in _slices(len(self.right)):
                scores[above, beside] = self.rough(above, beside)
        return scores


def _search(compared: _Comparison, asked: slice, best_ids: Integers, best_scores: Scores) -> None:
    """Fill in (n, k) the best of the right rows for each of a block of left rows."""
    n, k = best_ids.shape
    slack, floors = compared.slack[asked], np.full((n, 1), _WORST)
    groups = ids = ranks = np.zeros(0, dtype=np.int64)
    scores = np.zeros(0, dtype=np.float32)
    for part in _slices(len(compared.right), size=_BLOCK_ROWS * 8):
        rough = compared.rough(asked, part)
        found = rough >= floors - slack
        if k < rough.shape[1] and np.count_nonzero(found) > k * n:
            last = np.partition(rough, -k, axis=1)[:, -k, None]
            found &= rough >= last - 2 * slack
        rows, columns = np.nonzero(found)
        groups, ids = np.concatenate([groups, rows]), np.concatenate([ids, part.start + columns])
        scores = np.concatenate([scores, compared.exact(asked.start + rows, part.start + columns)])
        order = np.lexsort((ids, -scores, groups))
        ranks = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
        order, ranks = order[ranks < k], ranks[ranks < k]
        groups, ids, scores = groups[order], ids[order], scores[order]
        # Where the k-th can be equalled but not beaten, later rows come too late.
        bars = np.where(scores < compared.measure.ceiling, scores, np.inf)
        floors[groups[ranks == k - 1], 0] = bars[ranks == k - 1]
    best_ids[groups, ranks], best_scores[groups, ranks] = ids, scores


class _Pool:
    """The pairs that may still be among the best: by rough score, by exact score where those do not tell."""

    def __init__(self, compared: _Comparison, limit: int, at_least: np.float32) -> None:
        self.compared, self.limit, self.n = compared, limit, len(compared.left)
        self.at_least = self.floor = at_least
        self.slack = compared.slack.max(initial=0)
        self.ids = np.zeros(0, dtype=np.int64)  # first * n + second, which is also the order of ties
        self.scores = np.zeros(0, dtype=np.float32)
        self.end = self.n**2  # ids from here on come too late

    def add(self, rough: Scores, top: int, left: int) -> None:
        """Take in a block of scores that begins at the pair (top, left)."""
        first, second = np.nonzero(rough >= self.floor - self.slack)
        ids = (top + first) * self.n + left + second
        early = ids < self.end
        self.ids = np.concatenate([self.ids, ids[early]])
        self.scores = np.concatenate([self.scores, rough[first, second][early]])
        room = 2 * self.limit + _BLOCK_ROWS
        if len(self.ids) > room:
            last = np.partition(self.scores, -self.limit)[-self.limit]
            self.floor = max(self.floor, last - self.slack)
            kept = self.scores >= self.floor - self.slack
            self.ids, self.scores = self.ids[kept], self.scores[kept]
        if len(self.ids) > room:
            self.settle()

    def settle(self) -> Pairs:
        """Score exactly and keep the best."""
        exact = self.compared.exact(*np.divmod(self.ids, self.n))
        enough = exact >= self.at_least
        ids, scores = self.ids[enough], exact[enough]
        order = np.lexsort((ids, -scores))[: self.limit]
        self.ids, self.scores = ids[order], scores[order]
        if len(order) == self.limit:
            self.floor = self.scores[-1]
            if self.floor >= self.compared.measure.ceiling:
                self.end = int(self.ids[-1])
        return Pairs(*np.divmod(self.ids, self.n), self.scores)


def _slices(n: int, *, start: int = 0, size: int | None = None) -> Iterator[slice]:
    step = size or _BLOCK_ROWS
    return (slice(at, min(at + step, n)) for at in range(start, n, step))


# What is asked of callers ----------------------------------------------------------------------------


def _checked(name: str, vectors: npt.ArrayLike) -> Vectors:
    array: npt.NDArray[Any] = np.asarray(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput(
            f"{name} has shape {array.shape}; expected (n, dim): make one vector a row with vector[None, :]"
        )
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{name} holds {array.dtype}; expected real numbers: convert it to float32")
    with np.errstate(over="ignore", invalid="ignore"):
        rows: Vectors = array.astype(np.float32, copy=False)
        for part in _slices(len(rows)):
            fits = _row_dots(rows[part], rows[part]) <= _LONGEST**2  # false for NaN, too
            if not fits.all():
                raise InvalidInput(
                    f"{name} has NaN, infinity or a length above {_LONGEST:g}; expected finite numbers: "
                    f"remove or repair row {part.start + fits.argmin()}"
                )
    return rows


def _checked_count(name: str, n: object) -> int:
    if not isinstance(n, int | np.integer) or n < 1:
        raise InvalidInput(f"{name} is {n!r}; expected a whole number, at least 1: ask for one or more")
    return int(n)


def _checked_bound(name: str, bound: float) -> np.float32:
    if not abs(bound) < -_WORST:
        raise InvalidInput(f"{name} is {bound!r}; expected a finite float32: give a score to stay above")
    return np.float32(bound)
