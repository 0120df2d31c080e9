"""Exact searches by the measures that have no native sieve, and for checking the one there is.

They look at blocks of rough float32 scores, keep whatever could still win given the rounding error, and
score that again row by row: so a result does not depend on the size of a block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemel.similarity import checks
from gemel.similarity.checks import WORST, slices
from gemel.similarity.measures import Comparison, Integers, Scores
from gemel.similarity.packed import Columns, OnProgress


def search(compared: Comparison, k: int) -> tuple[Integers, Scores]:
    """The k best right rows of each left row (n, k), and their scores."""
    ids = np.full((len(compared.left), k), -1, dtype=np.int64)
    scores = np.full((len(compared.left), k), -np.inf, dtype=np.float32)
    for asked in slices(len(compared.left), size=max(1, checks.BLOCK_ROWS // 8)):
        _search_some(compared, asked, ids[asked], scores[asked])
    return ids, scores


def best_pairs(
    compared: Comparison, limit: int, at_least: np.float32, on_progress: OnProgress | None = None
) -> Columns:
    """First, second and score of the best pairs, in order; of one set with itself, each pair once."""
    pool = _Pool(compared, limit, at_least)
    for above in slices(len(compared.left)):
        for beside in slices(len(compared.right), start=above.start if compared.is_half else 0):
            pool.add(_upper(compared, above, beside), above.start, beside.start)
        if on_progress:
            on_progress(above.stop, len(compared.left))
    return pool.settle()


def pairs_above(
    compared: Comparison, at_least: np.float32, on_progress: OnProgress | None = None
) -> Iterator[Columns]:
    """First, second and score of all pairs that score enough, by index, some left rows at a time."""
    for above in slices(len(compared.left)):
        firsts, seconds = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for beside in slices(len(compared.right), start=above.start if compared.is_half else 0):
            first, second = np.nonzero(_upper(compared, above, beside) >= at_least - compared.slack[above])
            firsts.append(above.start + first)
            seconds.append(beside.start + second)
        first, second = np.concatenate(firsts), np.concatenate(seconds)
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        scores = compared.exact(first, second)
        enough = scores >= at_least
        yield first[enough], second[enough], scores[enough]
        if on_progress:
            on_progress(above.stop, len(compared.left))


def _upper(compared: Comparison, above: slice, beside: slice) -> Scores:
    """The rough scores of a block, without those of a pair that another block or cell has."""
    rough = compared.rough(above, beside)
    if compared.is_half and above == beside:
        rough[np.tri(len(rough), dtype=np.bool_)] = -np.inf
    return rough


def _search_some(compared: Comparison, asked: slice, best_ids: Integers, best_scores: Scores) -> None:
    """Fill in (n, k) the best of the right rows for each of a block of left rows."""
    n, k = best_ids.shape
    slack, floors = compared.slack[asked], np.full((n, 1), WORST)
    groups = ids = ranks = np.zeros(0, dtype=np.int64)
    scores = np.zeros(0, dtype=np.float32)
    for part in slices(len(compared.right), size=checks.BLOCK_ROWS * 8):
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

    def __init__(self, compared: Comparison, limit: int, at_least: np.float32) -> None:
        self.compared, self.limit, self.n = compared, limit, max(1, len(compared.right))
        self.at_least = self.floor = at_least
        self.slack = compared.slack.max(initial=0)
        self.ids = np.zeros(0, dtype=np.int64)  # first * n + second, which is also the order of ties
        self.scores = np.zeros(0, dtype=np.float32)
        self.end = len(compared.left) * self.n  # ids from here on come too late

    def add(self, rough: Scores, top: int, left: int) -> None:
        """Take in a block of scores that begins at the pair (top, left)."""
        first, second = np.nonzero(rough >= self.floor - self.slack)
        ids = (top + first) * self.n + left + second
        early = ids < self.end
        self.ids = np.concatenate([self.ids, ids[early]])
        self.scores = np.concatenate([self.scores, rough[first, second][early]])
        room = 2 * self.limit + checks.BLOCK_ROWS
        if len(self.ids) > room:
            last = np.partition(self.scores, -self.limit)[-self.limit]
            self.floor = max(self.floor, last - self.slack)
            kept = self.scores >= self.floor - self.slack
            self.ids, self.scores = self.ids[kept], self.scores[kept]
        if len(self.ids) > room:
            self.settle()

    def settle(self) -> Columns:
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
        first, second = np.divmod(self.ids, self.n)
        return first, second, self.scores
