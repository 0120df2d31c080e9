"""Reciprocal-rank fusion, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemel.tasks.fusion import FIRST_DEPTH, RRF_CONSTANT, depth_for, fused, fused_pages, rank_share


def test_the_fused_order_is_the_one_worked_out_by_hand() -> None:
    found = fused([["a", "b", "c"], ["c", "d", "a"]])
    # a 1/61 + 1/63, c 1/63 + 1/61: equal, and equal in their best rank; a is first in the first ranking.
    assert [key for key, _ in found] == ["a", "c", "b", "d"]
    assert dict(found) == pytest.approx(
        {"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62}, rel=1e-12
    )
    assert (RRF_CONSTANT, rank_share(1)) == (60, 1 / 61)


def test_two_middling_ranks_beat_one_first_place() -> None:
    assert fused([["x", "both"], ["y", "both"]])[0] == ("both", pytest.approx(2 / 62))


def test_one_ranking_keeps_its_order_and_none_gives_nothing() -> None:
    assert [key for key, _ in fused([[3, 1, 2]])] == [3, 1, 2]
    assert fused([]) == fused_pages([], 5) == fused_pages([[], []], 5) == []


RANKINGS = st.lists(st.lists(st.integers(0, 400), unique=True, max_size=300), min_size=1, max_size=3)


@given(RANKINGS)
def test_asking_for_more_never_changes_what_came_before(rankings: list[list[int]]) -> None:
    everything = fused_pages(rankings, 10**6)
    assert len({key for key, _ in everything}) == len(everything)
    for n_wanted in (1, FIRST_DEPTH - 1, FIRST_DEPTH, FIRST_DEPTH + 1, 3 * FIRST_DEPTH):
        depth = depth_for(n_wanted)
        known = [ranking[:depth] for ranking in rankings]  # all that a search would have fetched
        assert fused_pages(known, n_wanted) == everything[:n_wanted]


@given(RANKINGS)
def test_the_first_places_are_those_of_a_plain_fusion(rankings: list[list[int]]) -> None:
    plain = fused([ranking[:FIRST_DEPTH] for ranking in rankings])
    assert fused_pages(rankings, FIRST_DEPTH) == plain[:FIRST_DEPTH]
