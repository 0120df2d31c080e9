"""Vectors prepared for exact comparison at the cost of bytes, by the native sieve: cosine and inner product.

Every row is also kept as whole steps of one byte each, with the length of what the bytes leave out. That
bounds how far a product of bytes can be from the truth: what cannot be among the best is sifted out, and
the rest is scored again as it is. Hence the answer is exact, and the same for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt

from gemel import _native
from gemel.contracts import Hits, Vectors
from gemel.errors import InvalidInput
from gemel.similarity.axes import telling_axes
from gemel.similarity.checks import LONGEST, as_rows, check_dimensions, refuse_row

MEASURES = ("cosine", "dot")
OnProgress = Callable[[int, int], object]
Columns = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]

_MOST_BYTES = 2**30  # of packed rows that are kept; what is beyond them is packed each time it is needed
_PRODUCTS_AT_ONCE = 4e11  # about a second: so often is progress told, and an interrupt heard
_PAIRS_AT_ONCE = 4_000_000

_threads: ContextVar[int | None] = ContextVar("threads of comparing", default=None)


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """Within, so many threads compare vectors, and not as many as there are cores; None changes nothing."""
    if threads is not None and threads < 1:
        raise InvalidInput(f"threads is {threads}; expected at least 1, or None to leave it as it is")
    before = _threads.set(threads or _threads.get())
    try:
        yield
    finally:
        _threads.reset(before)


class PackedRows:
    """Rows (n, dim) that stay where they are, in memory or in a mapped file, ready to be compared."""

    def __init__(
        self,
        vectors: npt.ArrayLike,
        measure: str = "cosine",
        *,
        name: str = "vectors",
        threads: int | None = None,
    ) -> None:
        if measure not in MEASURES:
            raise InvalidInput(f"measure is {measure!r}; rows are packed for {' or '.join(MEASURES)}")
        self.rows: Vectors = np.ascontiguousarray(as_rows(name, vectors))
        self.measure = measure
        is_small = self.rows.size < 200_000  # starting threads would take longer than the work
        self._threads = threads or _threads.get()
        n_threads = threads or (1 if is_small else self._threads or _native.usable_cores())
        self._native = _native.PackedRows(self.rows, measure == "cosine", "", n_threads, _MOST_BYTES)
        unfit = self._native.first_beyond(LONGEST**2)
        if unfit >= 0:
            refuse_row(name, unfit)

    def __len__(self) -> int:
        return len(self.rows)

    def search(
        self,
        queries: npt.ArrayLike,
        k: int,
        *,
        allowed: npt.NDArray[np.bool_] | None = None,
        skip_self: bool = False,
    ) -> Hits:
        """The k most similar rows for each query, best first, equal scores by lower index: of those that are
        allowed (n,), and with skip_self, where queries are these rows, other than the query itself."""
        asked = PackedRows(queries, self.measure, name="queries", threads=1).rows
        check_dimensions(("queries", "corpus"), asked, self.rows)
        ids = np.empty((len(asked), k), dtype=np.int64)
        scores = np.empty((len(asked), k), dtype=np.float32)
        mask = None if allowed is None else np.ascontiguousarray(allowed, dtype=np.uint8)
        step = self._rows_at_once()
        for begin in range(0, len(asked), step):
            part = slice(begin, min(begin + step, len(asked)))
            itself = begin if skip_self else -1
            self._native.search(asked[part], mask, itself, ids[part], scores[part])
        return Hits(ids, scores)

    def best_pairs(
        self, others: PackedRows, limit: int, at_least: float, on_progress: OnProgress | None = None
    ) -> Columns:
        """First, second and score of the best pairs, in order; with itself, each pair once."""
        floor = max(at_least, self._likely_floor(others, limit))
        found = self._best(others, limit, floor, on_progress)
        if len(found[0]) < limit and floor > at_least:
            found = self._best(others, limit, at_least, on_progress)
        return found

    def pairs_above(
        self, others: PackedRows, at_least: float, on_progress: OnProgress | None = None
    ) -> Iterator[Columns]:
        """First, second and score of all pairs that score enough, by index, some rows at a time."""
        self._look_along(others, at_least)
        begin, most = 0, max(_PAIRS_AT_ONCE, len(others))
        n_rows = wanted = others._rows_at_once()
        while begin < len(self):
            end = min(begin + n_rows, len(self))
            found = self._native.above(others._native, begin, end, at_least, most)
            if found is None:
                n_rows = max(1, n_rows // 4)
                continue
            if on_progress:
                on_progress(end, len(self))
            yield found
            begin, n_rows = end, min(wanted, n_rows * 2)

    def _best(
        self, others: PackedRows, limit: int, at_least: float, on_progress: OnProgress | None
    ) -> Columns:
        self._look_along(others, at_least, limit)
        best = _native.BestPairs(limit, at_least)
        step = others._rows_at_once()
        for begin in range(0, len(self), step):
            end = min(begin + step, len(self))
            self._native.best(others._native, begin, end, best)
            if on_progress:
                on_progress(end, len(self))
        return best.sorted(self._threads or _native.usable_cores())

    def _likely_floor(self, others: PackedRows, limit: int) -> float:
        """A score that a few more pairs than wanted seem to reach: to begin with it saves scoring many pairs
        exactly only to drop them again; should it turn out too high, the search is done again without it."""
        stride = 128
        if limit < 4096 or len(self) < 16 * stride or len(self) * len(others) < 20 * limit:
            return -np.inf
        sample = PackedRows(self.rows[::stride], self.measure, threads=self._threads)
        # Within one set the sample meets every pair twice, and each of its rows itself.
        expected = limit / stride * (2 if others is self else 1) + (len(sample) if others is self else 0)
        return float(sample._best(others, int(1.3 * expected), -np.inf, None)[2][-1])

    def _look_along(self, others: PackedRows, floor: float, n_wanted: int | None = None) -> None:
        """Let both sides rule out what cannot reach the floor by a few axes, if there are any that tell."""
        is_cosine = self.measure == "cosine"
        axes = telling_axes(self.rows, others.rows, floor, n_wanted=n_wanted, is_cosine=is_cosine)
        for side in (self, others):
            side._native.look_along(axes)

    def _rows_at_once(self) -> int:
        # What is packed again for each of these calls should be worth it.
        least = 512 if self.rows.size < _MOST_BYTES / 2 else 2_048
        return int(np.clip(_PRODUCTS_AT_ONCE / max(1, self.rows.size), least, 65_536))


def scores(
    measure: str, left: Vectors, right: Vectors, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """The exact score of each pair left[first], right[second]."""
    found = np.empty(len(first), dtype=np.float32)
    a = PackedRows(left, measure)
    b = a if right is left else PackedRows(right, measure)
    a._native.score(b._native, np.ascontiguousarray(first), np.ascontiguousarray(second), found)
    return found
