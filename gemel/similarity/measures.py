"""How alike vectors are: cosine, inner product, and two negated distances; larger is always more similar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import checks, packed
from gemel.similarity.checks import finite_rows, slices
from gemel.threads import once

Integers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_Floats = TypeVar("_Floats", Scores, _Doubles)


def normalise(vectors: npt.ArrayLike) -> Vectors:
    """The rows (n, dim) at unit length; a row of zeros stays zero."""
    return _unit(finite_rows("vectors", vectors))


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The cosine of every row of a with every row of b (n, m); 0 where a row is zero."""
    return np.clip(Comparison("cosine", a=a, b=b).matrix(), -1, 1)


def dot(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The inner product of every row of a with every row of b (n, m)."""
    return Comparison("dot", a=a, b=b).matrix()


def euclidean(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The negated Euclidean distance of every row of a to every row of b (n, m)."""
    return Comparison("euclidean", a=a, b=b).matrix()


def manhattan(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """The negated Manhattan distance of every row of a to every row of b (n, m)."""
    return Comparison("manhattan", a=a, b=b).matrix()


MEASURES: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Scores]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


def pairwise(a: npt.ArrayLike, b: npt.ArrayLike, measure: str = "cosine") -> Scores:
    """The similarity of each row of a to the same row of b (n,): equal rows are exactly alike."""
    compared = Comparison(measure, a=a, b=b)
    if len(compared.left) != len(compared.right):
        raise InvalidInput(
            f"pairwise was given {len(compared.left)} and {len(compared.right)} rows; expected as many: "
            f"use gemel.similarity.{measure} to compare every row with every other"
        )
    rows = np.arange(len(compared.left))
    return compared.exact(rows, rows)


def paired(
    a: npt.ArrayLike, b: npt.ArrayLike, first: Integers, second: Integers, measure: str = "cosine"
) -> Scores:
    """The similarity of the row a[first] to the row b[second] of each pair (n,): as `pairwise` has it."""
    return Comparison(measure, a=a, b=b).exact(first, second)


# The four measures -----------------------------------------------------------------------------------


def _unit(vectors: Vectors) -> Vectors:
    units = np.empty_like(vectors)
    for part in slices(len(vectors)):
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
    for part in slices(len(first)):
        i, j = first[part], second[part]
        distances[i, j] = -_exact_euclidean(left[i], right[j])
    return 0 - distances.astype(np.float32)


def _rough_manhattan(a: Vectors, b: Vectors) -> Scores:
    scores = np.empty((len(a), len(b)), dtype=np.float32)
    for part in slices(len(b)):
        gaps = np.empty_like(b[part])
        for row, out in zip(a, scores[:, part], strict=True):
            np.abs(np.subtract(b[part], row, out=gaps), out=gaps).sum(axis=1, out=out)
    return 0 - scores


def _exact_euclidean(a: _Doubles, b: _Doubles) -> _Doubles:
    return 0 - np.sqrt(_row_dots(a - b, a - b))


def _exact_manhattan(a: _Doubles, b: _Doubles) -> _Doubles:
    distances: _Doubles = np.abs(a - b).sum(axis=1)
    return 0 - distances


@dataclass(frozen=True)
class Measure:
    """One measure, roughly for many pairs and exactly for some."""

    rough: Callable[[Vectors, Vectors], Scores]  # prepared (n, dim), (m, dim) -> (n, m), quickly
    reach: Callable[[Scores, np.float32, int], Scores]  # lengths, longest, dim -> no score is larger
    ceiling: float  # no exact score is higher
    exact: Callable[[_Doubles, _Doubles], _Doubles] | None = (
        None  # (n, dim), (n, dim) -> (n,); None: natively
    )
    prepare: Callable[[Vectors], Vectors] = lambda rows: rows  # once for each set of rows


_MEASURES = {
    "cosine": Measure(_rough_dot, lambda a, b, dim: np.ones_like(a), 1, prepare=_unit),
    "dot": Measure(_rough_dot, lambda a, b, dim: a * b, np.inf),
    "euclidean": Measure(_rough_euclidean, lambda a, b, dim: a + b, 0, _exact_euclidean),
    "manhattan": Measure(_rough_manhattan, lambda a, b, dim: (a + b) * dim**0.5, 0, _exact_manhattan),
}


def check_measure(measure: str) -> None:
    """Refuse a measure that is not known."""
    if measure not in _MEASURES:
        raise InvalidInput(f"measure is {measure!r}; expected a known one: choose {', '.join(_MEASURES)}")


class Comparison:
    """Two named sets of rows, or one with itself, and how alike they are by one measure."""

    def __init__(self, measure: str, **sets: npt.ArrayLike) -> None:
        check_measure(measure)
        self.name, self.measure = measure, _MEASURES[measure]
        checked = [finite_rows(name, rows) for name, rows in sets.items()]
        self.left, self.right = checked[0], checked[-1]
        # One set, each of whose pairs is looked at once; two may be the same array and are two all the same.
        self.is_half = len(checked) == 1
        self.dim = self.left.shape[1]
        checks.check_dimensions(tuple(sets), self.left, self.right)

    @once
    def _prepared(self) -> tuple[Vectors, Vectors]:
        left = self.measure.prepare(self.left)
        return left, left if self.right is self.left else self.measure.prepare(self.right)

    def rough(self, above: slice, beside: slice) -> Scores:
        """The scores of a block of left rows with a block of right rows, off by the slack at most."""
        left, right = self._prepared
        return self.measure.rough(left[above], right[beside])

    @once
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
        if self.measure.exact is None:
            return packed.scores(self.name, self.left, self.right, first, second)
        scores = np.empty(len(first), dtype=np.float32)
        for part in slices(len(first), size=256):
            left = self.left[first[part]].astype(np.float64, order="C")
            right = self.right[second[part]].astype(np.float64, order="C")
            scores[part] = self.measure.exact(left, right)
        return scores

    def matrix(self) -> Scores:
        """The rough scores of all left rows with all right rows."""
        scores = np.empty((len(self.left), len(self.right)), dtype=np.float32)
        for above in slices(len(self.left)):
            for beside in slices(len(self.right)):
                scores[above, beside] = self.rough(above, beside)
        return scores
