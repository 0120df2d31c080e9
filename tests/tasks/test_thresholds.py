"""Two classes told apart by a score: by hand, and as scikit-learn has it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, f1_score

from gemel.errors import InvalidInput
from gemel.evaluate.bootstrap import resample
from gemel.tasks.thresholds import Separation

examples = st.lists(
    st.tuples(st.integers(-4, 4).map(lambda value: value / 3), st.booleans()), min_size=2, max_size=30
).filter(lambda rows: 0 < sum(positive for _, positive in rows) < len(rows))


@given(examples)
def test_average_precision_is_that_of_scikit_learn_ties_included(rows: list[tuple[float, bool]]) -> None:
    scores, positive = zip(*rows, strict=True)
    expected = average_precision_score(positive, scores)
    assert Separation(scores, positive).average_precision() == pytest.approx(expected, abs=1e-9)


@given(examples)
def test_no_threshold_is_better_and_the_one_found_gives_what_it_says(rows: list[tuple[float, bool]]) -> None:
    scores, positive = np.array([score for score, _ in rows]), np.array([each for _, each in rows])
    separation = Separation(scores, positive)
    candidates = [*np.unique(scores), 99.0]
    for found, figure in (
        (separation.best_f1(), f1_score),
        (separation.best_accuracy(), accuracy_score),
    ):
        assert figure(positive, scores >= found.threshold) == pytest.approx(found.value, abs=1e-9)
        assert found.value == pytest.approx(max(figure(positive, scores >= each) for each in candidates))


def test_a_threshold_stands_midway_between_what_it_takes_and_what_it_does_not() -> None:
    separation = Separation([0.9, 0.8, 0.4, 0.1], [True, True, False, False])
    assert separation.best_f1().threshold == pytest.approx(0.6)
    assert (separation.best_accuracy().threshold, separation.best_accuracy().value) == (pytest.approx(0.6), 1)


def test_neighbouring_floats_are_still_split() -> None:
    low, high = 1.0, np.nextafter(1.0, 2)
    assert Separation([high, low], [True, False]).best_f1().threshold == high


def test_the_average_precision_of_a_resample_is_that_of_its_examples() -> None:
    random = np.random.default_rng(0)
    scores, positive = random.integers(0, 8, 30) / 8, random.random(30) < 0.4
    found = resample(Separation(scores, positive).average_precisions, 30, 100, seed=5)
    rows = np.random.default_rng(5).integers(0, 30, (100, 30))
    expected = [average_precision_score(positive[drawn], scores[drawn]) for drawn in rows]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_resample_without_positives_has_no_average_precision() -> None:
    found = Separation([0.9, 0.1], [True, False]).average_precisions(np.array([[0.0, 2.0], [1.0, 1.0]]))
    assert np.isnan(found[0])
    assert found[1] == 1


@pytest.mark.parametrize(
    ("scores", "positive", "message"),
    [
        ([], [], "0 of 0 examples are positive"),
        ([0.1, 0.2], [True, True], "2 of 2 examples are positive; expected both classes"),
        ([0.1, np.nan], [True, False], "NaN or infinite"),
        ([0.1], [True, False], "expected one class a score"),
    ],
)
def test_what_cannot_be_split_is_refused(scores: list[float], positive: list[bool], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Separation(scores, positive)
