"""Groupings compared: as scikit-learn compares them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, homogeneity_completeness_v_measure

from gemel.errors import InvalidInput
from gemel.evaluate.agreement import Agreement

groupings = st.lists(st.tuples(st.integers(0, 3), st.integers(5, 8)), min_size=1, max_size=30)


@given(groupings)
def test_every_figure_is_that_of_scikit_learn(rows: list[tuple[int, int]]) -> None:
    classes, groups = zip(*rows, strict=True)
    found = Agreement(classes, groups)
    expected = homogeneity_completeness_v_measure(classes, groups)
    assert (found.homogeneity(), found.completeness(), found.v_measure()) == pytest.approx(expected, abs=1e-9)
    assert found.adjusted_rand() == pytest.approx(adjusted_rand_score(classes, groups), abs=1e-9)


def test_groups_may_have_any_names_and_any_order() -> None:
    found = Agreement(["cat", "cat", "dog"], [9, 9, 2])
    assert (found.v_measure(), found.adjusted_rand()) == (1, 1)


def test_halves_of_classes_are_homogeneous_but_not_complete() -> None:
    found = Agreement([0, 0, 1, 1], [0, 1, 2, 3])
    assert found.homogeneity() == pytest.approx(1)
    assert found.completeness() == pytest.approx(0.5)
    assert found.v_measure() == pytest.approx(2 / 3)


def test_nothing_or_too_little_cannot_be_compared() -> None:
    with pytest.raises(InvalidInput, match=r"groupings of shapes \(2,\) and \(3,\)"):
        Agreement([0, 1], [0, 1, 2])
    with pytest.raises(InvalidInput, match="n at least 1"):
        Agreement(np.zeros(0), np.zeros(0))
