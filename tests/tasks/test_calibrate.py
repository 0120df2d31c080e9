"""A threshold and a probability from labelled pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.errors import InvalidInput, ModelMismatch
from gemel.tasks.calibrate import Calibration, calibrate, fit_logistic_curve, load_calibration


class AngleEncoder:
    """Reads a text as an angle in degrees."""

    dim = 2
    fingerprint = "angles"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        radians = np.radians([float(text) for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32).reshape(-1, 2)


def pairs_of(degrees: Sequence[float], labels: Sequence[int]) -> Examples:
    columns = {"first": ["0"] * len(degrees), "second": [str(each) for each in degrees]}
    return Examples("classified pairs", columns, np.array(labels, np.int64), ("0", "1"))


def noisy_pairs(n_pairs: int, seed: int = 0) -> Examples:
    random = np.random.default_rng(seed)
    degrees = random.uniform(0, 90, n_pairs)
    return pairs_of(degrees, (random.random(n_pairs) < 1 / (1 + np.exp((degrees - 40) / 12))).astype(int))


def scores_of(pairs: Examples) -> np.ndarray:
    return np.cos(np.radians([float(text) for text in pairs.columns["second"]]))


CLEAR = pairs_of([0, 10, 20, 70, 80, 90], [1, 1, 1, 0, 0, 0])


def test_a_clear_case_is_divided_in_the_middle() -> None:
    found = calibrate(AngleEncoder(), CLEAR)
    assert found.threshold == pytest.approx((np.cos(np.radians(20)) + np.cos(np.radians(70))) / 2, abs=1e-6)
    assert (found.precision, found.recall, found.n_pairs, found.n_positive) == (1, 1, 6, 3)
    assert (found.held_out_precision, found.held_out_recall) == (None, None)
    assert (found.fingerprint, found.aim) == ("angles", "best F1")


def test_a_wanted_precision_is_reached_and_no_lower_threshold_reaches_it() -> None:
    pairs = noisy_pairs(400)
    found = calibrate(AngleEncoder(), pairs, precision=0.9)
    scores, labels = scores_of(pairs), pairs.labels
    assert found.precision == pytest.approx(precision_score(labels, scores >= found.threshold))
    assert found.recall == pytest.approx(recall_score(labels, scores >= found.threshold))
    assert found.precision >= 0.9
    lower = [level for level in scores if level < found.threshold]
    assert all(precision_score(labels, scores >= level) < 0.9 for level in lower)


def test_figures_on_other_pairs_are_near_those_of_fresh_ones() -> None:
    found = calibrate(AngleEncoder(), noisy_pairs(400), precision=0.85)
    fresh = noisy_pairs(4_000, seed=1)
    takes = scores_of(fresh) >= found.threshold
    assert found.held_out_precision == pytest.approx(precision_score(fresh.labels, takes), abs=0.06)
    assert found.held_out_recall == pytest.approx(recall_score(fresh.labels, takes), abs=0.06)


samples = st.lists(
    st.tuples(st.integers(-10, 10).map(lambda value: value / 10), st.booleans()), min_size=2, max_size=40
).filter(lambda rows: 0 < sum(positive for _, positive in rows) < len(rows))


@given(samples)
def test_the_curve_is_the_likeliest_one(rows: list[tuple[float, bool]]) -> None:
    scores, positive = np.array([score for score, _ in rows]), np.array([each for _, each in rows])
    n_positive, n_negative = positive.sum(), (~positive).sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(parameters: Any) -> float:
        logits = parameters[0] * scores + parameters[1]
        return float((np.logaddexp(0, logits) - targets * logits).sum())

    best = minimize(loss, [0.0, 0.0], method="BFGS").fun
    assert loss(fit_logistic_curve(scores, positive)) <= best + 1e-6


def test_the_curve_of_many_pairs_is_that_of_scikit_learn() -> None:
    pairs = noisy_pairs(20_000)
    scores, labels = scores_of(pairs), np.asarray(pairs.labels)
    expected = LogisticRegression(C=np.inf, tol=1e-8).fit(scores[:, None], labels)
    slope, intercept = fit_logistic_curve(scores, labels == 1)
    assert slope == pytest.approx(expected.coef_[0, 0], rel=0.01)
    assert intercept == pytest.approx(expected.intercept_[0], rel=0.02)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=20))
def test_a_higher_similarity_is_never_less_likely(scores: list[float]) -> None:
    likely = calibrate(AngleEncoder(), CLEAR).probability(sorted(scores))
    assert (np.diff(likely) >= 0).all()
    assert ((likely >= 0) & (likely <= 1)).all()


def test_a_calibration_comes_back_from_its_file(tmp_path: Path) -> None:
    found = calibrate(AngleEncoder(), noisy_pairs(100))
    found.save(tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json") == found
    with pytest.raises(InvalidInput, match="exists already"):
        found.save(tmp_path / "c.json")
    found.save(tmp_path / "c.json", overwrite=True)


def test_another_model_may_not_use_it() -> None:
    found = calibrate(AngleEncoder(), CLEAR)
    found.check_model("angles")
    with pytest.raises(ModelMismatch, match="made for the model angles, and this one is another; calibrate"):
        found.check_model("another")


def test_another_precision_may_not_use_it(tmp_path: Path) -> None:
    class Rounded(AngleEncoder):
        precision = "int8"

    class Exact(AngleEncoder):
        precision = "float32"

    calibrate(Rounded(), CLEAR).save(tmp_path / "c.json")
    found = load_calibration(tmp_path / "c.json")
    assert found.computed_in == "int8"
    found.check_precision(Rounded())
    found.check_precision(AngleEncoder())  # which does not say how it computes
    with pytest.raises(ModelMismatch, match="was made in int8, and this encoder computes in float32"):
        found.check_precision(Exact())
    calibrate(AngleEncoder(), CLEAR).check_precision(Exact())


def test_a_file_of_a_version_that_kept_no_precision_is_read(tmp_path: Path) -> None:
    found = calibrate(AngleEncoder(), CLEAR)
    older = {name: value for name, value in asdict(found).items() if name != "computed_in"}
    (tmp_path / "c.json").write_text(json.dumps(older))
    assert load_calibration(tmp_path / "c.json") == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "colour; expected fingerprint, threshold"),
        ({"threshold": "high"}, "threshold is 'high'; expected float"),
        ({"n_pairs": 1.5}, "n_pairs is 1.5; expected int"),
        ({"slope": -1}, "a slope above 0"),
        ({"threshold": None}, "threshold is None"),
        ({"computed_in": 8}, "computed_in is 8; expected str"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    calibrate(AngleEncoder(), CLEAR).save(tmp_path / "c.json")
    saved = json.loads((tmp_path / "c.json").read_text()) | change
    (tmp_path / "c.json").write_text(json.dumps(saved))
    with pytest.raises(InvalidInput, match=message):
        load_calibration(tmp_path / "c.json")


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"c\.json"):
        load_calibration(tmp_path / "c.json")
    with pytest.raises(InvalidInput, match="No such file"):
        load_calibration(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("pairs", "choices", "message"),
    [
        (CLEAR, {"precision": 1.5}, "precision is 1.5; expected a share"),
        (CLEAR, {"positive": "yes"}, "labels 0, 1 and none 'yes'"),
        (CLEAR, {"positive": "0"}, "not more similar than the others"),
        (pairs_of([10, 10, 10], [0, 1, 0]), {}, "not more similar than the others"),
        (pairs_of([0, 10], [1, 1]), {}, "2 of 2 pairs are '1'; expected some that are and some that are not"),
        (pairs_of([0, 10, 20], [0, 1, 0]), {"precision": 0.9}, "the best is 0.500"),
        (Examples("pairs", {"a": ["0"], "b": ["1"]}), {}, "holds pairs; expected classified pairs"),
    ],
)
def test_pairs_that_cannot_be_told_apart_are_refused(
    pairs: Examples, choices: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        calibrate(AngleEncoder(), pairs, **choices)


@pytest.mark.usefixtures("default_weights")
def test_real_questions_give_a_threshold_that_holds_on_others(real_data: Path) -> None:
    from gemel import load_encoder

    pairs = read_examples(real_data / "quora_pairs_sample/sample.tsv")
    encoder = load_encoder()
    found = calibrate(encoder, pairs[:1_000], precision=0.8)
    assert 0.7 < found.threshold < 0.95
    others = calibrate(encoder, pairs[1_000:2_000], precision=0.8)
    assert found.threshold == pytest.approx(others.threshold, abs=0.08)
    assert isinstance(found, Calibration)
    assert found.held_out_precision == pytest.approx(0.8, abs=0.05)
