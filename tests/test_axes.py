"""Pairs that are ruled out by a few axes: none of them would have been found."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemel import _native
from gemel.similarity import PackedRows, axes, pairs_above, top_pairs

Array = npt.NDArray[Any]
both = pytest.mark.parametrize("measure", ["cosine", "dot"])


def telling_rows(n: int, dim: int, seed: int = 0) -> Array:
    """Rows of which most lies along a few directions."""
    strengths = np.exp(-np.arange(dim) / (dim / 6))
    rows = np.random.default_rng(seed).standard_normal((n, dim)) * strengths @ random_axes(dim, dim, seed)
    return rows.astype(np.float32)


def hard_rows(n: int, dim: int, seed: int = 0) -> Array:
    """The same, and among them copies, near copies, opposites, zeros, and rows tiny and huge."""
    rng = np.random.default_rng(seed)
    rows = telling_rows(n, dim, seed) * np.exp(rng.standard_normal((n, 1)))
    rows[1::9] = rows[0]
    rows[2::9] = rows[0] * (1 + 1e-5 * rng.standard_normal((len(rows[2::9]), dim)))
    rows[3::27] = -rows[0]
    rows[4::50] = 0
    rows[5::50] *= 1e-9
    rows[6::50] *= 1e9
    rows[7::20] = rows[8] + 0.1 * rng.standard_normal((len(rows[7::20]), dim))
    return rows.astype(np.float32)


def random_axes(n: int, dim: int, seed: int = 0) -> Array:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0][:n].astype(np.float32)


def packed(rows: Array, measure: str, instruction_set: str = "", kept: int = 2**30) -> _native.PackedRows:
    return _native.PackedRows(rows, measure == "cosine", instruction_set, 2, kept)


def above(rows: _native.PackedRows, others: _native.PackedRows, n: int, floor: float) -> Any:
    found = rows.above(others, 0, n, floor, 2**40)
    assert found is not None
    return found


def assert_same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@both
@pytest.mark.parametrize("instruction_set", _native.instruction_sets())
@pytest.mark.parametrize(("dim", "n_axes"), [(96, 32), (100, 1), (37, 5), (64, 64), (384, 130)])
def test_the_same_pairs_as_without_axes(measure: str, instruction_set: str, dim: int, n_axes: int) -> None:
    rows = hard_rows(900, dim, seed=dim)
    plain, looking = (packed(rows, measure, instruction_set) for _ in range(2))
    best = _native.BestPairs(3_000, -np.inf)
    plain.best(plain, 0, len(rows), best)
    scores = best.sorted()[2]
    for chosen in (random_axes(n_axes, dim), axes.principal_axes(rows[:300])[:n_axes]):
        looking.look_along(_native.Axes(np.ascontiguousarray(chosen)))
        # Floors that pairs just reach, floors between pairs, and one that all pairs reach.
        for floor in (*scores[[0, 10, 500, -1]].tolist(), float(scores[700]) * (1 + 1e-6), 0.0, -3e38):
            assert_same(above(looking, looking, 900, floor), above(plain, plain, 900, floor))
        again = _native.BestPairs(3_000, -np.inf)
        looking.best(looking, 0, len(rows), again)
        assert_same(again.sorted(), best.sorted())


@both
def test_rows_that_lie_wholly_along_the_axes_or_wholly_beside_them(measure: str) -> None:
    directions = random_axes(96, 96)
    rng = np.random.default_rng(1)
    along, beside = (
        rng.standard_normal((200, 24)) @ directions[:24],
        rng.standard_normal((200, 72)) @ directions[24:],
    )
    rows = np.concatenate([along, beside, beside + 1e-20 * along]).astype(np.float32)
    plain, looking = packed(rows, measure), packed(rows, measure)
    looking.look_along(_native.Axes(directions[:24].copy()))
    for floor in (0.999, 0.5, 0.1, 1e-7, -0.2):
        assert_same(above(looking, looking, 600, floor), above(plain, plain, 600, floor))


@both
def test_two_sets_use_axes_only_if_both_look_along_the_same(measure: str) -> None:
    left, right = hard_rows(300, 80, seed=1), hard_rows(500, 80, seed=2)
    wanted = above(packed(left, measure), packed(right, measure), 300, 0.4)
    one, other = (_native.Axes(random_axes(16, 80, seed)) for seed in (1, 2))
    for left_axes, right_axes in ((one, one), (one, other), (None, one), (one, None)):
        asked, asking = packed(right, measure, kept=0), packed(left, measure)
        asking.look_along(left_axes)
        asked.look_along(right_axes)
        assert_same(above(asking, asked, 300, 0.4), wanted)


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_rows_whose_squares_float32_cannot_hold_are_compared_without_axes(size: float) -> None:
    rows = hard_rows(200, 64)
    rows[17] = rows[0] / np.linalg.norm(rows[0]) * size
    plain, looking = packed(rows, "cosine"), packed(rows, "cosine")
    looking.look_along(_native.Axes(random_axes(8, 64)))
    assert_same(above(looking, looking, 200, 0.7), above(plain, plain, 200, 0.7))


def test_queries_that_float32_cannot_square_are_compared_without_axes() -> None:
    rows = np.full((8_300, 64), -1, np.float32)
    rows[0, :32] = 1
    rows[4_100] = 1
    looking = packed(rows, "cosine")
    looking.look_along(_native.Axes(np.full((1, 64), 1 / 8, np.float32)))
    for size in (1.4e-45, 1e-42, 1e-30, 1.0):
        ids, scores = np.empty((1, 1), np.int64), np.empty((1, 1), np.float32)
        looking.search(np.full((1, 64), size, np.float32), None, -1, ids, scores)
        assert (ids.item(), scores.item()) == (4_100, 1.0)


def test_rows_of_many_numbers_are_compared_without_looking_for_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(axes, "principal_axes", lambda rows: pytest.fail("that would take minutes"))
    wide = np.ones((50, 20_000), np.float32)
    assert axes.telling_axes(wide, wide, 0.9, is_cosine=True) is None


def test_rows_of_zeros_have_no_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(axes, "LEAST_PRODUCTS", 0)
    zeros = np.zeros((40_000, 128), np.float32)
    assert axes.telling_axes(zeros, zeros, 0.9, is_cosine=True) is None


def test_axes_that_are_none_are_refused() -> None:
    for bad in (np.ones((2, 8)), np.eye(8)[:2] * 1.01, np.eye(8)[[0, 0]]):
        with pytest.raises(ValueError, match="right angles"):
            _native.Axes(bad.astype(np.float32))
    with pytest.raises(ValueError, match="not finite"):
        _native.Axes(np.full((1, 8), np.nan, np.float32))
    for bad in (np.zeros((0, 8)), np.zeros((9, 8)), np.zeros((1, 0))):
        with pytest.raises(ValueError, match="axes must be"):
            _native.Axes(bad.astype(np.float32))
    rows = packed(hard_rows(10, 9), "cosine")
    with pytest.raises(ValueError, match="dimension"):
        rows.look_along(_native.Axes(np.eye(8, dtype=np.float32)[:2].copy()))


@both
def test_searches_that_are_large_enough_look_along_axes(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = telling_rows(3_000, 128)
    floor = 0.8 if measure == "cosine" else 12.0
    plain = [*pairs_above(rows, floor, measure=measure)], top_pairs(rows, 5_000, measure=measure)
    chosen: list[_native.Axes | None] = []
    choose = axes.telling_axes

    def noted(*given: Any, **options: Any) -> _native.Axes | None:
        chosen.append(choose(*given, **options))
        return chosen[-1]

    monkeypatch.setattr(axes, "LEAST_PRODUCTS", 0)
    monkeypatch.setattr(axes, "LEAST_SHARE", 0)
    monkeypatch.setattr("gemel.similarity.packed.telling_axes", noted)
    for found, wanted in zip(pairs_above(rows, floor, measure=measure), plain[0], strict=True):
        assert_same((found.first, found.second, found.scores), (wanted.first, wanted.second, wanted.scores))
    best = top_pairs(rows, 5_000, measure=measure)
    assert_same((best.first, best.second, best.scores), (plain[1].first, plain[1].second, plain[1].scores))
    assert any(each is not None for each in chosen)


def test_axes_are_chosen_where_they_tell() -> None:
    few, even = telling_rows(20_000, 128), np.random.default_rng(0).standard_normal((80_000, 128))
    many = np.concatenate([few] * 4)
    found = axes.telling_axes(many, many, 0.9, is_cosine=True)
    assert found is not None
    assert len(found) <= 64
    for rows, floor in (
        (few, 0.9),
        (many, -1.0),
        (even.astype(np.float32), 0.1),
    ):  # few; low; nothing in common
        assert axes.telling_axes(rows, rows, floor, is_cosine=True) is None


def test_a_floor_is_guessed_where_only_the_best_are_wanted() -> None:
    rows = np.concatenate([telling_rows(20_000, 128, seed) for seed in range(4)])
    assert axes.telling_axes(rows, rows, -np.inf, is_cosine=True) is None
    assert axes.telling_axes(rows, rows, -np.inf, n_wanted=1_000, is_cosine=True) is not None


def test_packed_rows_can_be_asked_with_and_without_axes_in_turn() -> None:
    rows = hard_rows(600, 96)
    plain, turns = PackedRows(rows), PackedRows(rows)
    hits, pairs = plain.search(rows[:20], 3), above(plain._native, plain._native, 600, 0.8)
    for chosen in (_native.Axes(random_axes(16, 96)), None, _native.Axes(random_axes(8, 96, 1))):
        turns._native.look_along(chosen)
        assert_same(above(turns._native, turns._native, 600, 0.8), pairs)
        found = turns.search(rows[:20], 3)
        assert_same((found.ids, found.scores), (hits.ids, hits.scores))
