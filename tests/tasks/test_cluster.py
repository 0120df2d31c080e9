"""Communities against a plain reading of their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemel.errors import InvalidInput
from gemel.similarity import pairwise
from gemel.tasks.cluster import communities

Array = npt.NDArray[Any]


def naive_communities(vectors: Array, threshold: float, min_size: int) -> list[list[int]]:
    """The largest group among the remaining rows, again and again."""
    n = len(vectors)
    scores = pairwise(vectors.repeat(n, axis=0), np.tile(vectors, (n, 1))).reshape(n, n)
    free, groups = set(range(n)), []
    while True:
        candidates = [
            [centre, *sorted(close - {centre}, key=lambda row: (-scores[centre, row], row))]
            for centre in sorted(free)
            if centre in (close := {row for row in free if scores[centre, row] >= np.float32(threshold)})
        ]
        group = max(candidates, key=len, default=[])
        if len(group) < max(min_size, 1):
            return groups
        groups.append(group)
        free -= set(group)


def as_lists(groups: list[npt.NDArray[np.int64]]) -> list[list[int]]:
    return [group.tolist() for group in groups]


def around(angles: list[float]) -> Array:
    turned = np.radians(angles)
    return np.stack([np.cos(turned), np.sin(turned)], axis=1)


def test_groups_of_a_hand_worked_example() -> None:
    # cos 20 degrees is 0.94: rows 0 to 3 stand round row 1, rows 4 to 6 round row 5, row 7 stands alone.
    vectors = around([0, 12, 20, 30, 100, 110, 125, 200])
    assert as_lists(communities(vectors, threshold=0.93)) == [[1, 2, 0, 3], [5, 4, 6]]


def test_a_row_goes_to_the_largest_group_that_claims_it() -> None:
    # Within 10 degrees row 2 has four rows, row 4 three: row 3 is nearer to row 4, but row 2 takes it.
    vectors = around([0, 4, 9, 16, 22, 27])
    assert as_lists(communities(vectors, threshold=0.984, min_size=2)) == [[2, 1, 3, 0], [4, 5]]


def test_sizes_are_those_of_the_rows_that_remain() -> None:
    vectors = around([0, 4, 9, 16, 22, 27])
    assert as_lists(communities(vectors, threshold=0.984, min_size=3)) == [[2, 1, 3, 0]]


def test_of_groups_of_one_size_the_lower_centre_comes_first() -> None:
    vectors = around([90, 91, 92, 0, 1, 2])
    assert as_lists(communities(vectors)) == [[0, 1, 2], [3, 4, 5]]


def test_the_centre_comes_first_also_among_copies() -> None:
    assert as_lists(communities(np.ones((4, 3)))) == [[0, 1, 2, 3]]
    vectors = around([10, 0, 20, 10])
    assert as_lists(communities(vectors, threshold=0.98)) == [[0, 3, 1, 2]]


def test_smaller_groups_are_left_out() -> None:
    vectors = around([0, 1, 90, 91, 92])
    assert as_lists(communities(vectors, min_size=3)) == [[2, 3, 4]]
    assert as_lists(communities(vectors, min_size=4)) == []


def test_a_row_of_zeros_is_in_no_group() -> None:
    assert as_lists(communities([[0, 0], [1, 0], [0, 0]], min_size=1)) == [[1]]


def test_no_rows_have_no_groups() -> None:
    assert communities(np.ones((0, 4))) == []


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 40),
    dim=st.integers(1, 5),
    threshold=st.sampled_from([-1, 0, 0.5, 0.75, 0.9, 1]),
    min_size=st.integers(1, 5),
)
@settings(max_examples=100, deadline=None)
def test_each_group_is_the_largest_that_remains(
    seed: int, n: int, dim: int, threshold: float, min_size: int
) -> None:
    # Small whole numbers: many copies, ties and rows of zeros.
    vectors = np.random.default_rng(seed).integers(-2, 3, (n, dim)).astype(np.float32)
    groups = as_lists(communities(vectors, threshold=threshold, min_size=min_size))
    assert groups == naive_communities(vectors, threshold, min_size)


@pytest.mark.parametrize("threshold", [1.5, -2, np.nan])
def test_a_threshold_that_is_no_cosine_is_refused(threshold: float) -> None:
    with pytest.raises(InvalidInput, match="threshold"):
        communities(np.ones((2, 2)), threshold=threshold)


def test_a_group_of_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="min_size"):
        communities(np.ones((2, 2)), min_size=0)


def test_what_is_not_rows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="shape"):
        communities(np.ones(3))
