"""Stands in for the native pair search until that has landed: the same signatures, the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gemel.similarity import MEASURES, Pairs, pairwise

_BLOCK_ROWS = 1_024
_SLACK = 1e-3


def pairs_above(
    vectors: npt.ArrayLike,
    at_least: float,
    *,
    others: npt.ArrayLike | None = None,
    measure: str = "cosine",
    on_progress: Callable[[int, int], object] | None = None,
) -> Iterator[Pairs]:
    """All pairs that score at least that, in blocks."""
    left = np.asarray(vectors)
    right = left if others is None else np.asarray(others)
    n_blocks = -(-len(left) // _BLOCK_ROWS)
    for number, start in enumerate(range(0, len(left), _BLOCK_ROWS), 1):
        block = left[start : start + _BLOCK_ROWS]
        rough = MEASURES[measure](block, right)
        if others is None:
            rough[np.tri(len(block), len(right), start, dtype=np.bool_)] = -np.inf
        slack = _SLACK * np.maximum(1, np.abs(np.where(np.isfinite(rough), rough, 0)))
        first, second = np.nonzero(rough >= at_least - slack)
        scores = pairwise(block[first], right[second], measure)
        enough = scores >= np.float32(at_least)
        yield Pairs(start + first[enough], second[enough], scores[enough])
        if on_progress is not None:
            on_progress(number, n_blocks)


def top_pairs(
    vectors: npt.ArrayLike,
    n_pairs: int,
    *,
    others: npt.ArrayLike | None = None,
    measure: str = "cosine",
    at_least: float | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Pairs:
    """The n_pairs most similar pairs."""
    floor = -3e38 if at_least is None else at_least
    best = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    for block in pairs_above(vectors, floor, others=others, measure=measure, on_progress=on_progress):
        first = np.concatenate([best.first, block.first])
        second = np.concatenate([best.second, block.second])
        scores = np.concatenate([best.scores, block.scores])
        order = np.lexsort((second, first, -scores))[:n_pairs]
        best = Pairs(first[order], second[order], scores[order])
    return best
