"""Groups around a centre: the row with the most neighbours and these, then the same with what is left.

The graph of neighbours is kept in memory where it is small enough. Where it is not, only the number of
neighbours of each row is: whenever a group is taken away, its rows are compared with the rest once more, and
the numbers go down. That is the same result for about twice the comparisons, in memory for the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import Neighbours, PackedRows, Pairs, normalise, pairs_above, pairwise
from gemel.similarity.packed import OnProgress
from gemel.tasks.distinct import Distinct, distinct, has_length
from gemel.tasks.thresholds import checked_threshold
from gemel.threads import once

Rows = npt.NDArray[np.int64]

MAX_PAIRS = 100_000_000  # kept in memory, at 16 bytes each while the graph is made and 8 then
PAIRS_AT_ONCE = 1_000_000


def communities(
    vectors: npt.ArrayLike,
    *,
    threshold: float = 0.75,
    min_size: int = 3,
    on_progress: OnProgress | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Groups of row numbers, the largest first: a centre, then the rows whose cosine to it is at least the
    threshold, the most similar first; no row is in two groups, and many may be in none."""
    threshold = checked_threshold(threshold)
    if min_size < 1:
        raise InvalidInput(f"min_size is {min_size!r}; expected at least 1: give the least rows of a group")
    rows = np.asarray(vectors)
    normalise(rows[:0])  # refuses what is no (n, dim) of numbers
    if not len(rows):
        return []
    rows = rows.astype(np.float32, copy=False)
    kinds = distinct(rows)
    stars = _Stars(kinds.of(rows), kinds.counts, threshold, on_progress)
    return [_around(rows, kinds, centre, members) for centre, members in stars.taken(min_size)]


def _around(vectors: Vectors, distinct: Distinct, centre: int, kinds: Rows) -> Rows:
    """The members by similarity to the centre, the centre itself before any copy of it."""
    first, members = distinct.firsts[centre], distinct.rows_of(kinds)
    scores = pairwise(vectors[members], np.broadcast_to(vectors[first], (len(members), vectors.shape[1])))
    return members[np.lexsort((members, -scores, members != first))]


@dataclass(frozen=True, eq=False)
class _PairLists:
    """Pairs of rows as they came, each once."""

    firsts: list[npt.NDArray[np.int32]]
    seconds: list[npt.NDArray[np.int32]]

    def graph(self, degrees: Rows) -> Neighbours:
        """The neighbours of each row, itself not included; the lists are used up."""
        offsets = np.zeros(len(degrees) + 1, np.int64)
        np.cumsum(degrees, out=offsets[1:])
        ids, ends = np.empty(offsets[-1], np.int32), offsets[:-1].copy()
        while self.firsts:
            first, second = self.firsts.pop(0), self.seconds.pop(0)
            for here, there in ((first, second), (second, first)):
                order = np.argsort(here, kind="stable")
                here, there = here[order], there[order]
                ids[ends[here] + np.arange(len(here)) - np.searchsorted(here, here)] = there
                ends += np.bincount(here, minlength=len(ends))
        return Neighbours(offsets, ids)


class _Stars:
    """Rows, each of which stands for some copies, and how large a group around each would be now."""

    def __init__(
        self, rows: Vectors, weights: Rows, threshold: float, on_progress: OnProgress | None
    ) -> None:
        self.rows, self.weights, self.threshold = rows, weights, threshold
        self.is_free = np.ones(len(rows), np.bool_)
        # A row of zeros is not even like itself.
        self.sizes = np.where(has_length(rows) | (threshold <= 0), weights, 0)
        self.degrees = np.zeros(len(rows), np.int64)  # neighbours that are free, itself not counted
        self._kept = self._gather(on_progress)

    def taken(self, min_size: int) -> Iterator[tuple[int, Rows]]:
        """The groups, largest first, as centre and members, of which each is in one group at most."""
        while self._kept is None:
            centre = int(np.where(self.is_free, self.sizes, -1).argmax())
            if not self.is_free[centre] or self.sizes[centre] < min_size:
                return
            yield centre, self._take(centre)
            if self.degrees[self.is_free].sum() // 2 <= MAX_PAIRS:
                yield from self._rest().taken_over(self, min_size)
                return
        yield from self._popped(self._kept.graph(self.degrees), min_size)

    def taken_over(self, whole: _Stars, min_size: int) -> Iterator[tuple[int, Rows]]:
        """The groups of these rows by the row numbers that they have in the whole."""
        numbers = np.flatnonzero(whole.is_free)
        for centre, members in self.taken(min_size):
            yield int(numbers[centre]), numbers[members]

    def _rest(self) -> _Stars:
        return _Stars(self.rows[self.is_free], self.weights[self.is_free], self.threshold, None)

    def _gather(self, on_progress: OnProgress | None) -> _PairLists | None:
        """Count all neighbours, and keep the pairs unless there are too many."""
        kept: _PairLists | None = _PairLists([], [])
        n_pairs = 0
        for pairs in in_large_blocks(pairs_above(self.rows, self.threshold, on_progress=on_progress)):
            for here, there in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
                self._count(here, self.weights[there], 1)
            n_pairs += len(pairs)
            if n_pairs > MAX_PAIRS:
                kept = None
            if kept is not None:
                kept.firsts.append(pairs.first.astype(np.int32))
                kept.seconds.append(pairs.second.astype(np.int32))
        return kept

    def _count(self, rows: Rows, weights: Rows, sign: int) -> None:
        n = len(self.rows)
        self.degrees += sign * np.bincount(rows, minlength=n)
        self.sizes += sign * np.bincount(rows, weights, minlength=n).astype(np.int64)  # exact below 2**53

    def _take(self, centre: int) -> Rows:
        """The free rows around a centre, which are then no longer free and nobody's neighbours."""
        near: Rows = np.concatenate([pairs.second for pairs in self._near(np.array([centre]))])
        members = near[self.is_free[near]]
        self.is_free[members] = False
        for pairs in in_large_blocks(self._near(members)):
            gone = members[pairs.first]
            differ = gone != pairs.second
            self._count(pairs.second[differ], self.weights[gone[differ]], -1)
        return members

    def _near(self, rows: Rows) -> Iterator[Pairs]:
        """Some rows, by their place among these, with whatever is similar enough to each."""
        floor = float(np.float32(self.threshold))
        found = PackedRows(self.rows[rows]).pairs_above(self._packed, floor)
        return (Pairs(*columns) for columns in found)

    @once
    def _packed(self) -> PackedRows:
        return PackedRows(self.rows)

    def _popped(self, near: Neighbours, min_size: int) -> Iterator[tuple[int, Rows]]:
        free, weights = self.is_free, self.weights
        heap = [(-int(self.sizes[row]), int(row)) for row in np.flatnonzero(self.sizes >= min_size)]
        heapify(heap)
        while heap:
            minus_size, centre = heappop(heap)
            if not free[centre]:
                continue
            members = np.append(near.of(centre), centre)
            members = members[free[members]]
            size = int(weights[members].sum())
            if size == -minus_size:
                free[members] = False
                yield centre, members
            elif size >= min_size:
                # Sizes only shrink: what is still the largest after a recount is the largest of all.
                heappush(heap, (-size, centre))


def in_large_blocks(blocks: Iterable[Pairs]) -> Iterator[Pairs]:
    """The same pairs in fewer blocks, for work that costs something a block and little a pair."""
    waiting: list[Pairs] = []
    n_waiting = 0
    for block in blocks:
        waiting.append(block)
        n_waiting += len(block)
        if n_waiting >= PAIRS_AT_ONCE:
            yield _joined(waiting)
            waiting, n_waiting = [], 0
    if n_waiting:
        yield _joined(waiting)


def _joined(blocks: list[Pairs]) -> Pairs:
    if len(blocks) == 1:
        return blocks[0]
    columns = ([getattr(block, name) for block in blocks] for name in ("first", "second", "scores"))
    return Pairs(*map(np.concatenate, columns))
