"""Exact search through the vectors of a view, or through those of them that a filter allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemel.contracts import Hits, Vectors
from gemel.index.segment import Rows
from gemel.index.view import Integers, Mask, View
from gemel.similarity import PackedRows, top_k
from gemel.similarity.measures import paired
from gemel.threads import thread_lock

# Full parts stay packed when vectors come; only the rest behind the last small one is packed again.
_PART_ROWS, _SMALL_ROWS = 1 << 16, 1 << 13
_PART_PAIRS = 1 << 13
PACKED = ("cosine", "dot")  # what the native sieve can measure
_KEPT_BYTES = 1 << 31  # of vectors in half precision that are kept as float32, too


class Scanner:
    """Exact search in a collection; keeps the vectors packed between searches."""

    def __init__(self, measure: str) -> None:
        self.measure = measure
        self._lock = thread_lock()
        self._generation = -1
        self._parts: dict[tuple[int, int], PackedRows] = {}

    def search(self, queries: Vectors, view: View, allowed: Mask, k: int, first_slot: int = 0) -> Hits:
        """The k slots most like each query among the allowed ones; equal scores by lower slot."""
        n_allowed = int(np.count_nonzero(allowed[first_slot:]))
        if not n_allowed or not len(queries):
            return nothing_found(len(queries), k)
        if is_sparse(n_allowed, view.n_slots) or self.measure not in PACKED:
            return _gathered(
                queries, view.rows, first_slot + np.flatnonzero(allowed[first_slot:]), k, self.measure
            )
        best = nothing_found(len(queries), k)
        for start, stop in _bounds(first_slot, view.n_slots):
            mask = allowed[start:stop]
            if mask.any():
                part = self._part(view, start, stop)
                found = part.search(queries, k, allowed=None if mask.all() else mask)
                best = merged(best, Hits(np.where(found.ids >= 0, found.ids + start, -1), found.scores))
        return best

    def _part(self, view: View, start: int, stop: int) -> PackedRows:
        with self._lock:
            if view.generation > self._generation:
                self._parts, self._generation = {}, view.generation
            known = self._parts.get((start, stop)) if view.generation == self._generation else None
        if known is not None:
            return known
        part = PackedRows(view.rows[start:stop], self.measure)
        is_kept = view.layout.dtype == "float32" or view.n_slots * view.layout.dim * 4 <= _KEPT_BYTES
        with self._lock:
            if is_kept and view.generation == self._generation:
                # What lay within this part, or has grown into it, is not needed any more.
                for key in [key for key in self._parts if start <= key[0] and key[1] <= stop]:
                    del self._parts[key]
                self._parts[start, stop] = part
        return part


def is_sparse(n_allowed: int, n_slots: int) -> bool:
    """Whether so few vectors are better gathered: gathering one costs as much as passing twenty."""
    return 20 * n_allowed < n_slots


def _bounds(start: int, n_slots: int) -> Iterator[tuple[int, int]]:
    """Large parts, then small ones, then the rest: where each begins does not depend on where all end."""
    while start < n_slots:
        large, small = (size - start % size for size in (_PART_ROWS, _SMALL_ROWS))
        size = large if start + large <= n_slots else min(small, n_slots - start)
        yield start, start + size
        start += size


def _gathered(queries: Vectors, rows: Rows, slots: Integers, k: int, measure: str) -> Hits:
    best = nothing_found(len(queries), k)
    for start in range(0, len(slots), _PART_ROWS):
        part = slots[start : start + _PART_ROWS]
        found = top_k(queries, rows[part], k, measure)
        best = merged(best, Hits(np.where(found.ids >= 0, part[found.ids], -1), found.scores))
    return best


def best_of(queries: Vectors, rows: Rows, slots: Integers, k: int, measure: str) -> Hits:
    """The k best of each query's own candidates (queries, n), scored exactly; -1 is no candidate."""
    scores = np.full(slots.shape, -np.inf, np.float32)
    first, second = np.nonzero(slots >= 0)
    for start in range(0, len(first), _PART_PAIRS):
        i, j = first[start : start + _PART_PAIRS], second[start : start + _PART_PAIRS]
        asked = queries[
            i[0] : i[-1] + 1
        ]  # of these pairs alone: with all of many, each part would be packing
        scores[i, j] = paired(asked, rows[slots[i, j]], i - i[0], np.arange(len(i)), measure)
    return merged(Hits(slots, scores), nothing_found(len(queries), k), k)


def merged(first: Hits, second: Hits, k: int | None = None) -> Hits:
    """The best k of two answers to the same queries; of equals those with the lower id."""
    k = k or first.ids.shape[1]
    ids = np.concatenate([first.ids, second.ids], axis=1)
    scores = np.concatenate([first.scores, second.scores], axis=1)
    last = np.iinfo(np.int64).max
    order = np.lexsort((np.where(ids >= 0, ids, last), -scores), axis=1)[:, :k]
    return Hits(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))


def nothing_found(n_queries: int, k: int) -> Hits:
    """An answer without hits."""
    return Hits(
        np.full((n_queries, k), -1, dtype=np.int64), np.full((n_queries, k), -np.inf, dtype=np.float32)
    )
