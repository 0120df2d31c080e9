"""Similar pairs of rows, tile by tile: the same pairs in the same order as on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.scale.runners import LocalRunner, Runner, shared
from gemel.similarity import Pairs, pairs_above, top_pairs, using_threads
from gemel.tasks.thresholds import checked_threshold

OnProgress = Callable[[int, int], object]
BLOCK_ROWS = 32_768  # 50 MB at 384 dimensions, and about 2 s of comparing for a core


@dataclass(frozen=True)
class Block:
    """Rows of a corpus, from `start` on, that workers find where the runner has put them."""

    rows: Any
    start: int

    def vectors(self) -> Vectors:
        """The rows themselves."""
        found: Vectors = shared(self.rows)
        return found


class Tile(NamedTuple):
    """Two blocks that are compared, or one with itself; what scores less than the floor does not count."""

    number: int  # of its block of left rows
    left: Block
    right: Block | None
    floor: float | None


def mine(
    vectors: npt.ArrayLike,
    others: npt.ArrayLike | None = None,
    *,
    n_pairs: int | None = None,
    at_least: float | None = None,
    measure: str = "cosine",
    runner: Runner | None = None,
    block_rows: int = BLOCK_ROWS,
    on_progress: OnProgress | None = None,
) -> Iterator[Pairs]:
    """The `n_pairs` most similar pairs, best first, of those that score `at_least` that; or all of these, by
    index.

    Within the vectors, or of their rows with those of the others; what `gemel.mine` gives for the same.
    """
    if n_pairs is None and at_least is None:
        raise InvalidInput("expected a choice of pairs: give n_pairs, or at_least, or both")
    if block_rows < 1 or (n_pairs is not None and n_pairs < 1):
        raise InvalidInput(f"n_pairs is {n_pairs} and block_rows {block_rows}; expected at least 1 of each")
    floor = None if at_least is None else checked_threshold(at_least, measure)
    tiles = _Tiles(runner or LocalRunner(), measure, block_rows, on_progress)
    tiles.cut(vectors, others)
    if n_pairs is not None:
        return tiles.best(n_pairs, floor)
    assert floor is not None
    return tiles.above(floor)


class _Tiles:
    """The tiles of the matrix of all pairs; of one corpus with itself, those on and above the diagonal."""

    def __init__(self, runner: Runner, measure: str, block_rows: int, on_progress: OnProgress | None) -> None:
        self._runner, self._measure, self._block_rows = runner, measure, block_rows
        self._on_progress = on_progress
        self._left: list[Block] = []
        self._right: list[Block] | None = None

    def cut(self, vectors: npt.ArrayLike, others: npt.ArrayLike | None) -> None:
        """Cut the corpora into blocks and put these where workers find them."""
        self._left = self._blocks(vectors, "the corpus")
        self._right = None if others is None else self._blocks(others, "the other corpus")

    def above(self, floor: float) -> Iterator[Pairs]:
        """All pairs that reach the floor, a block of left rows at a time, in order."""
        waiting: dict[int, list[Pairs]] = {number: [] for number in range(len(self._left))}
        next_row = 0
        for number, pairs in self._run(partial(_above, self._measure, self._runner.threads()), lambda: floor):
            waiting[number].append(pairs)
            while next_row in waiting and len(waiting[next_row]) == self._n_tiles(next_row):
                yield _sorted(waiting.pop(next_row), by_score=False)
                next_row += 1

    def best(self, n_pairs: int, at_least: float | None) -> Iterator[Pairs]:
        """The best pairs; what one tile has found raises the floor for those that are sent after it."""
        best = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))

        def floor() -> float | None:
            return float(best.scores[-1]) if len(best) == n_pairs else at_least

        for _, pairs in self._run(partial(_best, self._measure, self._runner.threads(), n_pairs), floor):
            best = _sorted([best, pairs], by_score=True, limit=n_pairs)
        yield best

    def _run(
        self, work: Callable[[Tile], tuple[int, Pairs]], floor: Callable[[], float | None]
    ) -> Iterator[tuple[int, Pairs]]:
        total = sum(self._n_tiles(number) for number in range(len(self._left)))
        for n_done, result in enumerate(self._runner.run(work, self._all(floor)), start=1):
            if self._on_progress is not None:
                self._on_progress(n_done, total)
            yield result

    def _all(self, floor: Callable[[], float | None]) -> Iterator[Tile]:
        for number, left in enumerate(self._left):
            if self._right is None:
                yield Tile(number, left, None, floor())
            for right in self._left[number + 1 :] if self._right is None else self._right:
                yield Tile(number, left, right, floor())

    def _n_tiles(self, number: int) -> int:
        return len(self._left) - number if self._right is None else len(self._right)

    def _blocks(self, vectors: npt.ArrayLike, name: str) -> list[Block]:
        rows = np.asanyarray(vectors)
        if rows.ndim != 2 or not len(rows):
            raise InvalidInput(f"{name} has the shape {rows.shape}; expected at least one row (rows, dim)")
        return [
            Block(self._runner.share(np.ascontiguousarray(rows[start : start + self._block_rows])), start)
            for start in range(0, len(rows), self._block_rows)
        ]


def _above(measure: str, threads: int | None, tile: Tile) -> tuple[int, Pairs]:
    assert tile.floor is not None
    left, right = tile.left.vectors(), None if tile.right is None else tile.right.vectors()
    if right is None and len(left) < 2:
        return tile.number, _placed(tile, [])
    with using_threads(threads):
        return tile.number, _placed(tile, [*pairs_above(left, tile.floor, others=right, measure=measure)])


def _best(measure: str, threads: int | None, n_pairs: int, tile: Tile) -> tuple[int, Pairs]:
    left, right = tile.left.vectors(), None if tile.right is None else tile.right.vectors()
    if right is None and len(left) < 2:
        return tile.number, _placed(tile, [])
    with using_threads(threads):
        found = top_pairs(left, n_pairs, others=right, measure=measure, at_least=tile.floor)
    return tile.number, _placed(tile, [found])


def _placed(tile: Tile, found: list[Pairs]) -> Pairs:
    """The pairs of a tile by the row numbers of the corpora."""
    pairs = _sorted(found, by_score=False)
    right = tile.left if tile.right is None else tile.right
    return Pairs(pairs.first + tile.left.start, pairs.second + right.start, pairs.scores)


def _sorted(blocks: list[Pairs], *, by_score: bool, limit: int | None = None) -> Pairs:
    """Pairs in the order of the searches of one machine: by score and then by index, or by index alone."""
    first = np.concatenate([pairs.first for pairs in blocks] or [np.zeros(0, np.int64)])
    second = np.concatenate([pairs.second for pairs in blocks] or [np.zeros(0, np.int64)])
    scores = np.concatenate([pairs.scores for pairs in blocks] or [np.zeros(0, np.float32)])
    order = np.lexsort((second, first, -scores) if by_score else (second, first))[:limit]
    return Pairs(first[order], second[order], scores[order])
