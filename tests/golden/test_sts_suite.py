"""The published figures of the default model on the paper's seven sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel import load_encoder
from gemel.evaluate.scores import average_of
from gemel.evaluate.sts import evaluate_sts, read_sts
from gemel.evaluate.sts_sets import SICK_R_ALL

PUBLISHED = {  # all-MiniLM-L6-v2, cosine Spearman x 100; SICK-R on its test split
    "STS12": 72.37,
    "STS13": 80.60,
    "STS14": 75.59,
    "STS15": 85.39,
    "STS16": 78.99,
    "STSb": 82.03,
    "SICK-R": 77.15,
}


@pytest.mark.parametrize(
    ("precision", "tolerance"), [pytest.param("float32", 0.05, marks=pytest.mark.extras), ("int8", 0.15)]
)
def test_the_default_model_scores_what_is_published_on_the_seven_sets(
    real_data: Path, default_weights: Path, precision: str, tolerance: float
) -> None:
    encoder = load_encoder(default_weights, precision=precision, on_truncate="error")
    scores = evaluate_sts(encoder, read_sts(real_data))
    measured = {each.name: 100 * each.score for each in scores}
    assert measured == pytest.approx(PUBLISHED, abs=tolerance)
    assert 100 * average_of(scores).score == pytest.approx(78.87, abs=tolerance / 2)


def test_the_default_model_scores_what_mteb_publishes_on_all_of_sick(
    real_data: Path, default_weights: Path
) -> None:
    encoder = load_encoder(default_weights, on_truncate="error")
    (scores,) = evaluate_sts(encoder, read_sts(real_data, [SICK_R_ALL]))
    assert 100 * scores.score == pytest.approx(77.58, abs=0.15)
    assert scores.interval is not None
    assert scores.interval[0] < scores.score < scores.interval[1]
