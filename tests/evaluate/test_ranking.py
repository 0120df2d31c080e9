"""Figures of ranked lists: worked out by hand, and as scikit-learn has them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from gemel.evaluate import ranking

# The first query finds grades 0 2 1 and misses one of grade 3; the second finds nothing.
RANKED = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
JUDGED = np.array([[3.0, 2.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
LOG2_3 = np.log2(3)


def test_the_gain_of_ndcg_is_the_grade_itself() -> None:
    found = ranking.ndcg(RANKED, JUDGED, 3)
    assert found.tolist() == pytest.approx([(2 / LOG2_3 + 1 / 2) / (3 + 2 / LOG2_3 + 1 / 2), 0])
    assert ranking.ndcg(RANKED, JUDGED, 2)[0] == pytest.approx((2 / LOG2_3) / (3 + 2 / LOG2_3))


def test_the_other_figures_are_those_worked_out_by_hand() -> None:
    assert ranking.reciprocal_rank(RANKED, 3).tolist() == [0.5, 0]
    assert ranking.reciprocal_rank(RANKED, 1).tolist() == [0, 0]
    assert ranking.recall(RANKED, JUDGED, 2).tolist() == pytest.approx([1 / 3, 0])
    assert ranking.precision(RANKED, 2).tolist() == [0.5, 0]
    assert ranking.precision(RANKED, 10).tolist() == [0.2, 0]
    assert ranking.average_precision(RANKED, JUDGED).tolist() == pytest.approx([(1 / 2 + 2 / 3) / 3, 0])


def test_grades_below_zero_gain_nothing() -> None:
    found = ranking.ndcg(np.array([[-1.0, 1.0]]), np.array([[1.0, -1.0]]), 2)
    assert found.tolist() == pytest.approx([1 / LOG2_3])


def test_whole_lists_agree_with_scikit_learn() -> None:
    random = np.random.default_rng(0)
    scores = random.random((50, 30))
    grades = random.integers(0, 4, (50, 30)).astype(float) * (random.random((50, 30)) < 0.3)
    grades[:, 0] = 1
    ranked = np.take_along_axis(grades, np.argsort(-scores, axis=1), axis=1)
    judged = -np.sort(-grades, axis=1)
    assert ranking.ndcg(ranked, judged, 10).mean() == pytest.approx(
        ndcg_score(grades, scores, k=10), abs=1e-9
    )
    expected = [average_precision_score(row > 0, by) for row, by in zip(grades, scores, strict=True)]
    assert ranking.average_precision(ranked, judged) == pytest.approx(expected, abs=1e-9)
