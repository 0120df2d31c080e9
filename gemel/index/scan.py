"""Exact search through the vectors of a view, or through those of them that a filter allows."""

from __future__ import annotations

import numpy as np

from gemel.contracts import Hits, Vectors
from gemel.index.segment import Rows
from gemel.index.view import Integers, Mask
from gemel.similarity import pairwise, top_k

_PART_ROWS = 1 << 16
_PART_PAIRS = 1 << 13


def scan(queries: Vectors, rows: Rows, allowed: Mask, k: int, measure: str) -> Hits:
    """The k slots most like each query among the allowed ones: exact, equal scores by lower slot."""
    best = nothing_found(len(queries), k)
    for start in range(0, len(rows), _PART_ROWS):
        slots = start + np.flatnonzero(allowed[start : start + _PART_ROWS])
        if len(slots):
            found = top_k(queries, rows[slots], k, measure)
            ids = np.where(found.ids >= 0, slots[found.ids], -1)
            best = merged(best, Hits(ids, found.scores))
    return best


def best_of(queries: Vectors, rows: Rows, slots: Integers, k: int, measure: str) -> Hits:
    """The k best of each query's own candidates (queries, n), scored exactly; -1 is no candidate."""
    scores = np.full(slots.shape, -np.inf, np.float32)
    first, second = np.nonzero(slots >= 0)
    for start in range(0, len(first), _PART_PAIRS):
        i, j = first[start : start + _PART_PAIRS], second[start : start + _PART_PAIRS]
        scores[i, j] = pairwise(queries[i], rows[slots[i, j]], measure)
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
