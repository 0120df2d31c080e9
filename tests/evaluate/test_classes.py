"""Predicted classes against true ones, as scikit-learn counts them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, recall_score

from gemel.errors import InvalidInput
from gemel.evaluate.classes import Confusion


def test_every_figure_is_that_of_scikit_learn() -> None:
    random = np.random.default_rng(0)
    truth, predicted = random.integers(0, 4, (2, 200))
    found = Confusion.of(truth, predicted, "abcd")
    assert found.accuracy() == pytest.approx(accuracy_score(truth, predicted), abs=1e-12)
    assert found.recalls() == pytest.approx(recall_score(truth, predicted, average=None), abs=1e-12)
    assert found.f1() == pytest.approx(f1_score(truth, predicted, average=None), abs=1e-12)
    assert found.macro_f1() == pytest.approx(f1_score(truth, predicted, average="macro"), abs=1e-12)


def test_classes_that_never_occur_count_for_nothing() -> None:
    found = Confusion.of([0, 0, 1], [0, 1, 1], ("a", "b", "absent"))
    assert np.isnan(found.recalls()[2])
    assert found.macro_f1() == pytest.approx(2 / 3)


def test_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"classes of shapes \(1,\) and \(2,\)"):
        Confusion.of([0], [0, 1], "ab")
    with pytest.raises(InvalidInput, match="n at least 1"):
        Confusion.of([], [], "ab")
