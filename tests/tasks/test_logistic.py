"""Our logistic regression beside scikit-learn's: the same minimum, for all folds, costs and classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gemel.errors import InvalidInput
from gemel.tasks.logistic import Design, fit_logistic

COSTS = [0.25, 1.0, 32.0]


def noisy_classes(n: int, dim: int, n_classes: int, scale: float = 1.0, seed: int = 0) -> tuple:
    """Vectors, far from the origin, whose classes a plane tells apart most of the time."""
    generator = np.random.default_rng(seed)
    vectors = generator.standard_normal((n, dim)) @ np.diag(np.linspace(0.2, 2, dim))
    logits = vectors @ generator.standard_normal((dim, n_classes)) + generator.gumbel(size=(n, n_classes))
    shifted = scale * (vectors + generator.standard_normal(dim))
    return shifted.astype(np.float32), logits.argmax(axis=1)


def referee(vectors: np.ndarray, labels: np.ndarray, cost: float) -> LogisticRegression:
    classifier = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-10, max_iter=1_000)
    return classifier.fit(vectors.astype(np.float64), labels)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_weights_are_those_of_scikit_learn(n_classes: int, scale: float) -> None:
    vectors, labels = noisy_classes(400, 12, n_classes, scale)
    fits = fit_logistic(Design(vectors), labels, COSTS)
    for fit, cost in enumerate(COSTS):
        ours, theirs = fits.classifier(fit), referee(vectors, labels, cost)
        assert ours.weights == pytest.approx(theirs.coef_.T, rel=1e-4, abs=1e-4 * np.abs(theirs.coef_).max())
        assert ours.intercepts == pytest.approx(theirs.intercept_, rel=1e-4, abs=1e-4)
        assert (ours.predict(vectors) == theirs.predict(vectors)).all()


@pytest.mark.parametrize("cost", [1e-6, 1e4])
def test_extreme_costs_are_solved_too(cost: float) -> None:
    vectors, labels = noisy_classes(300, 10, 2)
    ours, theirs = fit_logistic(Design(vectors), labels, [cost]).classifier(0), referee(vectors, labels, cost)
    assert ours.weights == pytest.approx(theirs.coef_.T, rel=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_fewer_rows_than_dimensions_are_solved_in_the_space_they_span(n_classes: int) -> None:
    vectors, labels = noisy_classes(40, 200, n_classes)
    design = Design(vectors)
    assert design.features.shape == (40, 41)
    ours, theirs = fit_logistic(design, labels, [1]).classifier(0), referee(vectors, labels, 1)
    assert ours.weights == pytest.approx(theirs.coef_.T, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_that_are_not_kept_have_no_say(n_classes: int) -> None:
    vectors, labels = noisy_classes(500, 8, n_classes)
    design = Design(vectors)
    kept = np.random.default_rng(1).random((500, 3)) < 0.7
    fits = fit_logistic(design, labels, COSTS, kept)
    for fit, cost in enumerate(COSTS):
        theirs = referee(vectors[kept[:, fit]], labels[kept[:, fit]], cost)
        assert fits.classifier(fit).weights == pytest.approx(theirs.coef_.T, rel=1e-4, abs=1e-4)
        assert (fits.predictions()[:, fit] == theirs.predict(vectors)).all()


def test_where_a_fit_starts_does_not_change_where_it_ends() -> None:
    vectors, labels = noisy_classes(300, 8, 3)
    design = Design(vectors)
    fits = fit_logistic(design, labels, COSTS)
    elsewhere = fits.weights + np.random.default_rng(2).standard_normal(fits.weights.shape)
    again = fit_logistic(design, labels, COSTS, start=elsewhere)
    assert again.weights == pytest.approx(fits.weights, abs=1e-4)


def test_a_far_start_is_brought_back_by_shorter_steps() -> None:
    vectors, labels = noisy_classes(300, 8, 2)
    design = Design(vectors)
    fits = fit_logistic(design, labels, [1.0])
    again = fit_logistic(design, labels, [1.0], start=np.full_like(fits.weights, 50.0))
    assert again.weights == pytest.approx(fits.weights, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_are_certain_from_the_first_steps_on_are_solved(n_classes: int) -> None:
    labels = np.arange(60) % n_classes
    noise = np.random.default_rng(0).standard_normal((60, 4))
    vectors = (noise + 30 * np.eye(n_classes, 4)[labels]).astype(np.float32)
    ours, theirs = fit_logistic(Design(vectors), labels, [8]).classifier(0), referee(vectors, labels, 8)
    assert (ours.predict(vectors) == labels).all()
    assert ours.weights == pytest.approx(theirs.coef_.T, abs=1e-4)


def test_two_points_have_the_solution_that_can_be_worked_out() -> None:
    # x = -1, +1 and C = 1: w is where w = 2 / (1 + exp(w)), which is 0.6748, and the intercept is 0.
    design = Design(np.array([[-1], [1]], np.float32))
    classifier = fit_logistic(design, np.array([0, 1]), [1]).classifier(0)
    (weight,) = classifier.weights[0]
    assert weight == pytest.approx(2 / (1 + np.exp(weight)), abs=1e-6)
    assert weight == pytest.approx(0.6748, abs=1e-4)
    assert classifier.intercepts == pytest.approx(0, abs=1e-9)


def test_vectors_that_say_nothing_leave_the_share_of_the_classes() -> None:
    labels = np.array([0, 0, 0, 1])
    classifier = fit_logistic(Design(np.ones((4, 3), np.float32)), labels, [1]).classifier(0)
    assert classifier.weights == pytest.approx(0)
    assert classifier.intercepts == pytest.approx(np.log(1 / 3))
    assert classifier.predict(np.zeros((2, 3), np.float32)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("vectors", "labels", "costs", "sentence"),
    [
        (np.zeros((0, 3)), [], [1], r"vectors of shape \(0, 3\); expected \(n, dim\)"),
        (np.full((2, 3), np.nan), [0, 1], [1], "NaN or infinity; expected finite vectors"),
        (np.ones((2, 3)), [0, 0], [1], "all labels are class 0; expected two classes"),
        (np.ones((3, 3)), [0, 2, 2], [1], "class 1 has no example in fit 0"),
        (np.ones((2, 3)), [0, 1, 1], [1], r"2 vectors were given labels of shape \(3,\); expected \(2,\)"),
        (np.ones((2, 3)), [0, 1], [0], r"the costs C are \[0\]; expected positive numbers"),
        (np.ones((2, 3)), [0, 1], [], r"the costs C are \[\]; expected positive numbers"),
    ],
)
def test_bad_input_is_named_in_a_sentence(
    vectors: np.ndarray, labels: list[int], costs: list[float], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        fit_logistic(Design(vectors.astype(np.float32)), np.array(labels, np.int64), costs)


def test_what_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, labels = noisy_classes(100, 4, 2)
    monkeypatch.setattr("gemel.tasks.logistic.MAX_STEPS", 1)
    with pytest.raises(InvalidInput, match="C = 32 has not converged in 1 steps, on vectors of length up to"):
        fit_logistic(Design(vectors), labels, [32])
