"""Tile by tile, in whatever order tiles come back: the pairs, scores and duplicates of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemel
from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.scale import LocalRunner, dedupe, mine
from gemel.similarity import Pairs
from gemel.tasks.corpus import Corpus
from gemel.tasks.dedupe import Grouping, Keep


class ShuffledRunner(LocalRunner):
    """Gives results as a cluster does: some late, in another order."""

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        waiting: list[Any] = []
        for item in items:
            waiting.append(work(item))
            if len(waiting) > 3:
                yield waiting.pop(1)
        yield from reversed(waiting)


def clustered(n: int, seed: int, dim: int = 8) -> Vectors:
    """Rows around a few centres, some of them equal: with ties, and with chains of similar rows."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(5, dim))
    rows = centres[generator.integers(0, 5, n)] + 0.3 * generator.normal(size=(n, dim))
    rows[n // 2 :: 5] = rows[0]
    return rows.astype(np.float32)


def joined(blocks: Iterable[Pairs]) -> Pairs:
    found = list(blocks)
    columns = [[getattr(pairs, name) for pairs in found] for name in ("first", "second", "scores")]
    return Pairs(*(np.concatenate(column) for column in columns))


def assert_same(found: Iterable[Pairs], expected: Iterable[Pairs]) -> None:
    one, two = joined(found), joined(expected)
    assert len(two)
    for name in ("first", "second", "scores"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


@pytest.mark.parametrize("measure", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("block_rows", [11, 50, 1000])
def test_tiles_give_the_pairs_of_one_machine(measure: str, block_rows: int) -> None:
    vectors, others = np.split(clustered(105, 1), [60])
    floor = {"cosine": 0.9, "dot": 5.0, "euclidean": -1.5}[measure]
    common = {"measure": measure, "runner": ShuffledRunner(), "block_rows": block_rows}
    for right in (None, others):
        assert_same(
            mine(vectors, right, at_least=floor, **common),  # type: ignore[arg-type]
            gemel.mine(vectors, right, at_least=floor, measure=measure),
        )
        for n_pairs, bound in ((1, None), (25, None), (10_000, None), (300, floor)):
            assert_same(
                mine(vectors, right, n_pairs=n_pairs, at_least=bound, **common),  # type: ignore[arg-type]
                gemel.mine(vectors, right, n_pairs=n_pairs, at_least=bound, measure=measure),
            )


@settings(max_examples=40)
@given(
    n=st.integers(2, 60),
    seed=st.integers(0, 99),
    keep=st.sampled_from(["first", "longest", "best-connected"]),
    grouping=st.sampled_from(["star", "connected"]),
    threshold=st.sampled_from([0.8, 0.95]),
)
def test_tiles_keep_what_one_machine_keeps(
    n: int, seed: int, keep: Keep, grouping: Grouping, threshold: float
) -> None:
    texts = ["x" * (1 + (7 * row) % 11) + f" {row % 40}" for row in range(n)]
    corpus = Corpus(texts, list(range(n)), clustered(n, seed), "rows")
    choices = {"threshold": threshold, "keep": keep, "grouping": grouping}
    found = dedupe(corpus, **choices, runner=ShuffledRunner(), block_rows=9)  # type: ignore[arg-type]
    expected = gemel.dedupe(corpus, **choices)  # type: ignore[arg-type]
    assert np.array_equal(found.keepers, expected.keepers)
    assert np.array_equal(found.scores, expected.scores)
    assert np.array_equal(found.is_repeat, expected.is_repeat)


def test_progress_counts_tiles_and_ends_with_all_of_them() -> None:
    told: list[tuple[int, int]] = []
    vectors = clustered(30, 3)
    list(mine(vectors, at_least=0.9, block_rows=10, on_progress=lambda n, total: told.append((n, total))))
    assert told == [(n, 6) for n in range(1, 7)]


def test_what_has_no_pairs_is_refused() -> None:
    vectors = clustered(4, 1)
    with pytest.raises(InvalidInput, match="expected a choice of pairs"):
        mine(vectors)
    with pytest.raises(InvalidInput, match="n_pairs is 0"):
        mine(vectors, n_pairs=0)
    with pytest.raises(InvalidInput, match="expected at least one row"):
        mine(vectors[:0], n_pairs=1)


def test_a_tile_is_compared_by_the_threads_that_its_worker_has(threads_of_comparing: list[int]) -> None:
    vectors = np.random.default_rng(0).standard_normal((1_000, 256)).astype(np.float32)
    for choice in ({"n_pairs": 5}, {"at_least": 0.9}):
        list(mine(vectors, **choice, runner=LocalRunner(3)))  # type: ignore[arg-type]
        assert set(threads_of_comparing) == {3}
        threads_of_comparing.clear()
