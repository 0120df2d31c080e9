"""The native sieve against brute force: exact for any rows, any instruction set, any number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from forking import assert_children_go_on

from gemel import _native
from gemel.errors import InvalidInput
from gemel.similarity import PackedRows, pairs_above, pairwise, top_k, top_pairs, using_threads
from gemel.similarity.blocks import best_pairs
from gemel.similarity.measures import Comparison
from gemel.tasks.ahead import Ahead

Array = npt.NDArray[Any]
both = pytest.mark.parametrize("measure", ["cosine", "dot"])


def hard_rows(n: int, dim: int, seed: int = 0) -> Array:
    """Random rows, and among them copies, near copies, opposites, zeros, and rows tiny and huge."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, dim)).astype(np.float32)
    rows[1::10] = rows[0]
    rows[2::10] = rows[0] * (1 + 1e-6 * rng.standard_normal((len(rows[2::10]), dim)))
    rows[3::10] = -rows[0]
    rows[4::20] = 0
    rows[5::20] *= 1e-42
    rows[6::20] *= 1e12
    rows[7::20, 1:] = 0
    return rows


def true_pairs(rows: Array, measure: str) -> tuple[Array, Array, Array]:
    first, second = np.triu_indices(len(rows), 1)
    return first, second, pairwise(rows[first], rows[second], measure)


def assert_columns_equal(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@both
@pytest.mark.parametrize("dim", [*range(1, 20), 63, 64, 65, 100, 127, 128, 384, 500, 513, 768, 1023, 1024])
def test_pairs_are_those_of_brute_force_in_every_dimension(dim: int, measure: str) -> None:
    rows = hard_rows(140, dim, seed=dim)
    first, second, scores = true_pairs(rows, measure)
    order = np.argsort(-scores, kind="stable")[:300]
    best = top_pairs(rows, 300, measure=measure)
    assert_columns_equal((best.first, best.second, best.scores), (first[order], second[order], scores[order]))
    floor = np.float32(np.median(scores))
    blocks = list(pairs_above(rows, float(floor), measure=measure))
    found = [
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("first", "second", "scores")
    ]
    enough = scores >= floor
    assert_columns_equal(found, (first[enough], second[enough], scores[enough]))


def test_the_best_pairs_are_found_in_every_dimension_up_to_1024() -> None:
    for dim in range(1, 1025):
        rows = hard_rows(24, dim, seed=dim)
        first, second, scores = true_pairs(rows, "cosine")
        order = np.argsort(-scores, kind="stable")[:60]
        best = top_pairs(rows, 60)
        assert_columns_equal((best.first, best.second), (first[order], second[order]))


@pytest.mark.parametrize("dim", range(1, 1025, 31))
def test_scores_are_within_a_millionth_of_double_precision(dim: int) -> None:
    rows = np.random.default_rng(dim).standard_normal((40, dim))
    units = rows.astype(np.float32).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    best = top_pairs(rows, 40)
    np.testing.assert_allclose(best.scores, (units[best.first] * units[best.second]).sum(axis=1), atol=1e-6)


@both
@pytest.mark.parametrize("instruction_set", _native.instruction_sets())
def test_all_instruction_sets_and_threads_give_the_same_bits(measure: str, instruction_set: str) -> None:
    rows = hard_rows(700, 96)
    compared = Comparison(measure, vectors=rows)
    expected = best_pairs(compared, 500, np.float32(-3e38))
    hits = top_k(rows[:90], rows, 7, measure)
    for n_threads in (1, 2, 5):
        packed = _native.PackedRows(rows, measure == "cosine", instruction_set, n_threads, 2**20)
        pairs = _native.BestPairs(500, -np.inf)
        packed.best(packed, 0, 700, pairs)
        assert_columns_equal(pairs.sorted(), expected)
        ids, scores = np.empty((90, 7), dtype=np.int64), np.empty((90, 7), dtype=np.float32)
        packed.search(rows[:90], None, -1, ids, scores)
        assert_columns_equal((ids, scores), (hits.ids, hits.scores))


def flat_rows(n: int, dim: int) -> Array:
    """Rows whose numbers are all as large as the largest: no sums of products are larger than theirs."""
    signs = np.random.default_rng(dim).choice([-1.0, 1.0], size=(n, dim)).astype(np.float32)
    signs[::3] = 1
    signs[1::6] = -1
    signs[2::6, ::2] = 1
    signs[5::12] = np.where(np.arange(dim) % 4 < 2, 1, -1)  # all of one sign in every second pair
    return signs * np.linspace(0.5, 2, n, dtype=np.float32)[:, None]


@pytest.mark.parametrize("dim", [31, 32, 33, 64, 65, 384, 1024])
@pytest.mark.parametrize("instruction_set", _native.instruction_sets())
def test_the_largest_sums_that_rows_can_have_do_not_run_over(dim: int, instruction_set: str) -> None:
    rows = flat_rows(150, dim)
    first, second, scores = true_pairs(rows, "cosine")
    for n_pairs in (50, 3_000, len(scores)):
        order = np.argsort(-scores, kind="stable")[:n_pairs]
        packed = _native.PackedRows(rows, True, instruction_set, 1, 2**20)
        pairs = _native.BestPairs(n_pairs, -np.inf)
        packed.best(packed, 0, len(rows), pairs)
        assert_columns_equal(pairs.sorted(), (first[order], second[order], scores[order]))
        # From a floor on nothing is scored for want of better ones: what the sums sift out is gone.
        found = packed.above(packed, 0, len(rows), scores[order[-1]], 2**20)
        enough = scores >= scores[order[-1]]
        assert_columns_equal(found, (first[enough], second[enough], scores[enough]))


def test_hundreds_of_thousands_of_pairs_come_in_order() -> None:
    rows = np.random.default_rng(3).integers(-2, 3, size=(900, 6)).astype(np.float32)  # many scores are equal
    first, second, scores = true_pairs(rows, "dot")
    order = np.argsort(-scores, kind="stable")[:250_000]
    best = top_pairs(rows, 250_000, measure="dot")
    assert_columns_equal((best.first, best.second, best.scores), (first[order], second[order], scores[order]))


def test_a_zero_is_equal_to_a_negative_one() -> None:
    rows = np.array([[0, 0], [1e-30, 0], [-1e-30, 0], [0, 0], [1e-30, 0]], dtype=np.float32)
    best = top_pairs(rows, 10, measure="dot")
    assert not best.scores.any()  # the products are too small for a float
    assert [*zip(best.first.tolist(), best.second.tolist(), strict=True)] == [
        (a, b) for a in range(5) for b in range(a + 1, 5)
    ]


@both
def test_blocks_that_are_not_kept_give_the_same_answer(measure: str) -> None:
    rows = np.random.default_rng(1).standard_normal((20_000, 8)).astype(np.float32)
    kept, passing = (_native.PackedRows(rows, measure == "cosine", "", 2, size) for size in (2**30, 0))
    found = []
    for packed in (kept, passing):
        pairs = _native.BestPairs(5_000, -np.inf)
        packed.best(packed, 0, len(rows), pairs)
        found.append(pairs.sorted())
    assert_columns_equal(*found)


@both
def test_two_sets_are_compared_with_each_other(measure: str) -> None:
    left, right = hard_rows(90, 30, seed=1), hard_rows(120, 30, seed=2)
    first, second = np.divmod(np.arange(90 * 120), 120)
    scores = pairwise(left[first], right[second], measure)
    order = np.argsort(-scores, kind="stable")[:200]
    best = top_pairs(left, 200, others=right, measure=measure)
    assert_columns_equal((best.first, best.second, best.scores), (first[order], second[order], scores[order]))


@pytest.mark.parametrize("measure", ["euclidean", "manhattan"])
def test_distances_are_compared_between_two_sets_and_above_a_floor(measure: str) -> None:
    left, right = np.random.default_rng(3).standard_normal((2, 50, 6)).astype(np.float32)
    first, second = np.divmod(np.arange(2500), 50)
    scores = pairwise(left[first], right[second], measure)
    (found,) = pairs_above(left, -2.5, others=right, measure=measure)
    enough = scores >= -2.5
    assert 0 < enough.sum() < 2500
    assert_columns_equal(
        (found.first, found.second, found.scores), (first[enough], second[enough], scores[enough])
    )


def test_a_first_guess_that_is_too_high_loses_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(4).standard_normal((3_000, 8)).astype(np.float32)
    truth = top_pairs(rows, 5_000)
    monkeypatch.setattr(PackedRows, "_likely_floor", lambda *_: 0.9999)
    again = top_pairs(rows, 5_000)
    assert_columns_equal((again.first, again.second, again.scores), (truth.first, truth.second, truth.scores))


def test_the_first_guess_is_a_little_lower_than_the_last_pair() -> None:
    rows = np.random.default_rng(5).standard_normal((4_000, 16)).astype(np.float32)
    packed = PackedRows(rows)
    guess, last = packed._likely_floor(packed, 20_000), top_pairs(rows, 20_000).scores[-1]
    assert last - 0.1 < guess <= last


def test_more_pairs_than_fit_at_once_come_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemel.similarity.packed._PAIRS_AT_ONCE", 1_000)
    rows = np.ones((300, 4))
    blocks = list(pairs_above(rows, 0.5))
    assert len(blocks) > 10
    assert max(len(block) for block in blocks) <= 1_000
    pairs = [pair for block in blocks for pair in zip(block.first, block.second, strict=True)]
    assert pairs == list(zip(*np.triu_indices(300, 1), strict=True))


def test_progress_ends_with_all_rows() -> None:
    told: list[tuple[int, int]] = []
    top_pairs(np.ones((9, 4)), 3, on_progress=lambda done, rows: told.append((done, rows)))
    list(pairs_above(np.ones((9, 4)), 0.5, on_progress=lambda done, rows: told.append((done, rows))))
    assert told[-1] == (9, 9)
    assert told.count((9, 9)) == 2


def test_only_allowed_rows_are_found_and_no_row_finds_itself() -> None:
    rows = np.random.default_rng(6).standard_normal((200, 12)).astype(np.float32)
    packed = PackedRows(rows)
    allowed = np.arange(200) % 3 == 0
    hits = packed.search(rows, 5, allowed=allowed, skip_self=True)
    truth = np.array([pairwise(np.broadcast_to(row, rows.shape), rows) for row in rows])
    truth[:, ~allowed] = -np.inf
    np.fill_diagonal(truth, -np.inf)
    np.testing.assert_array_equal(hits.ids, np.argsort(-truth, axis=1, kind="stable")[:, :5])


def test_too_few_allowed_rows_are_filled_up() -> None:
    hits = PackedRows(np.eye(4)).search(np.eye(4)[:1], 3, allowed=np.array([False, True, False, False]))
    assert hits.ids.tolist() == [[1, -1, -1]]


def test_vectors_in_a_mapped_file_are_searched_where_they_are(tmp_path: Path) -> None:
    rows = hard_rows(500, 24)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert np.shares_memory(PackedRows(mapped).rows, mapped)
    found, expected = top_pairs(mapped, 50), top_pairs(rows, 50)
    assert_columns_equal((found.first, found.scores), (expected.first, expected.scores))


def test_every_pair_of_ten_thousand_equal_rows_is_not_looked_at_for_a_few() -> None:
    best = top_pairs(np.ones((10_000, 4)), 3)
    assert list(zip(best.first, best.second, strict=True)) == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_a_row_that_is_not_finite_is_named(bad: float) -> None:
    rows = np.ones((50, 3), dtype=np.float32)
    rows[37, 1] = bad
    for call in (lambda: top_pairs(rows, 1), lambda: next(pairs_above(rows, 0.5)), lambda: PackedRows(rows)):
        with pytest.raises(InvalidInput, match=r"vectors has NaN.*row 37"):
            call()
    with pytest.raises(InvalidInput, match=r"others has NaN.*row 37"):
        top_pairs(np.ones((2, 3)), 1, others=rows)


def test_rows_that_were_packed_for_two_instruction_sets_are_not_compared() -> None:
    names = _native.instruction_sets()
    if len(names) == 1:
        pytest.skip("this processor has one instruction set that the engine knows")
    rows = np.eye(3, dtype=np.float32)
    left, right = (_native.PackedRows(rows, True, name, 1, 2**20) for name in (names[0], names[-1]))
    with pytest.raises(ValueError, match="packed for the same instruction set"):
        left.above(right, 0, 3, 0.5, 100)


def test_other_measures_are_not_packed() -> None:
    with pytest.raises(InvalidInput, match="'euclidean'; rows are packed for cosine or dot"):
        PackedRows(np.eye(3), "euclidean")


def test_empty_sets_have_no_pairs() -> None:
    empty, some = np.ones((0, 3)), np.ones((2, 3))
    assert len(top_pairs(empty, 5, others=some)) == len(top_pairs(some, 5, others=empty)) == 0
    assert sum(len(block) for block in pairs_above(some, 0.5, others=empty)) == 0
    assert PackedRows(empty).search(some, 2).ids.tolist() == [[-1, -1], [-1, -1]]


def test_searches_use_as_many_threads_as_they_are_told(threads_of_comparing: list[int]) -> None:
    rows = np.random.default_rng(0).standard_normal((2_100, 100)).astype(np.float32)
    with using_threads(3):
        with using_threads(None):
            top_k(rows[:2], rows, 1)
        top_pairs(rows, 5_000)  # which looks at a sample first
        list(pairs_above(rows, 0.9))
    assert set(threads_of_comparing) == {1, 3}  # queries are packed by one
    threads_of_comparing.clear()
    list(pairs_above(rows, 0.9))
    assert set(threads_of_comparing) == {_native.usable_cores()}
    with pytest.raises(InvalidInput, match="threads is 0; expected at least 1"), using_threads(0):
        pass


def test_work_on_another_thread_keeps_to_them_as_well(threads_of_comparing: list[int]) -> None:
    rows = np.random.default_rng(0).standard_normal((2_100, 100)).astype(np.float32)
    with using_threads(3), Ahead(lambda: list(pairs_above(rows, 0.9))) as ahead:
        ahead.result()
    assert set(threads_of_comparing) == {3}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_searches_goes_on() -> None:
    rows = np.random.default_rng(0).standard_normal((20_000, 32)).astype(np.float32)
    packed = PackedRows(rows, threads=2)
    expected = packed.search(rows[:2], 3).ids

    def search_once() -> None:
        np.testing.assert_array_equal(packed.search(rows[:2], 3).ids, expected)

    assert_children_go_on(lambda: packed.search(rows[:500], 3), search_once)
