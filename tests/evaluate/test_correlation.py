"""Correlations are scipy's, and what has none is refused in words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from gemel.errors import InvalidInput
from gemel.evaluate.correlation import pearson, spearman

# Few distinct values, so that most lists have ties.
TIED = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=2, max_size=30)
SMOOTH = st.lists(st.tuples(*[st.floats(-1e6, 1e6, allow_subnormal=False)] * 2), min_size=3, max_size=30)


def columns_of(rows: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.array(rows, np.float64).T
    assume(np.ptp(first) > 0)
    assume(np.ptp(second) > 0)
    return first, second


def test_pearson_by_hand() -> None:
    # Deviations (-1.5, -0.5, 0.5, 1.5) and (-1, -1, 0, 2): 5 / sqrt(5 * 6).
    assert pearson([1, 2, 3, 4], [0, 0, 1, 3]) == pytest.approx(5 / 30**0.5, abs=1e-15)


def test_spearman_by_hand_with_ties() -> None:
    # Ranks (1, 2.5, 2.5, 4) and (2, 1, 3, 4): deviations (-1.5, 0, 0, 1.5) and (-.5, -1.5, .5, 1.5).
    assert spearman([10, 20, 20, 30], [0.2, 0.1, 0.7, 0.9]) == pytest.approx(3 / (4.5 * 5) ** 0.5, abs=1e-15)


def test_one_order_is_1_and_the_reverse_is_minus_1() -> None:
    values = np.array([3.0, 1.0, 2.0, 8.0])
    assert spearman(values, np.exp(values)) == pytest.approx(1, abs=1e-15)
    assert spearman(values, -(values**3)) == pytest.approx(-1, abs=1e-15)
    assert pearson(values, 2 * values + 1) == pytest.approx(1, abs=1e-15)


@given(rows=TIED)
def test_both_are_those_of_scipy_where_values_are_equal(rows: list[tuple[float, float]]) -> None:
    first, second = columns_of(rows)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)
    assert pearson(first, second) == pytest.approx(stats.pearsonr(first, second).statistic, abs=1e-12)


@given(rows=SMOOTH)
def test_spearman_is_that_of_scipy_for_any_numbers(rows: list[tuple[float, float]]) -> None:
    first, second = columns_of(rows)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


@given(rows=TIED, scale=st.sampled_from([1e-300, 1e-30, 1.0, 1e30, 1e300]))
def test_pearson_does_not_depend_on_the_scale(rows: list[tuple[float, float]], scale: float) -> None:
    first, second = columns_of(rows)
    assert pearson(first * scale, second) == pytest.approx(pearson(first, second), abs=1e-9)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_what_has_no_correlation_is_refused(correlation: Callable[..., float]) -> None:
    with pytest.raises(InvalidInput, match="all 3 values are 2, and what never changes has no correlation"):
        correlation([1, 2, 3], [2, 2, 2])
    with pytest.raises(InvalidInput, match="NaN or infinity; expected finite numbers"):
        correlation([1, np.nan], [1, 2])
    for shapes in (([1], [2]), ([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])):
        with pytest.raises(InvalidInput, match=r"expected \(n,\) twice, n at least 2"):
            correlation(*shapes)
