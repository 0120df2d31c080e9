"""Anchors between a text that belongs to them and one that does not."""

from __future__ import annotations

import numpy as np
import pytest
from by_heart import TableEncoder

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.triplets import evaluate_triplets

PLACES = {"x": [1, 0], "beyond": [9, 0], "beside": [1, 1], "above": [0, 1], "twin": [1, 1.0]}


def triplets_of(*rows: tuple[str, ...]) -> Examples:
    names = ("anchor", "positive", "negative_1", "negative_2")
    return Examples("triplets", dict(zip(names, map(list, zip(*rows, strict=True)), strict=False)))


def test_each_measure_has_its_own_accuracy() -> None:
    # `beyond` has x's direction but is far away: right by cosine and dot product, wrong by distance.
    triplets = triplets_of(("x", "beyond", "beside"), ("x", "beside", "above"))
    encoder = TableEncoder(PLACES)
    scores = evaluate_triplets(encoder, triplets)
    assert scores.metrics == {
        "accuracy_euclidean": 0.5,
        "accuracy_cosine": 1.0,
        "accuracy_manhattan": 0.5,
        "accuracy_dot": 1.0,
    }
    assert scores.primary == "accuracy_euclidean"
    assert sorted(encoder.seen) == ["above", "beside", "beyond", "x"]


def test_a_tie_is_not_correct() -> None:
    scores = evaluate_triplets(TableEncoder(PLACES), triplets_of(("x", "beside", "twin")))
    assert set(scores.metrics.values()) == {0.0}
    assert "a tie is not correct" in scores.protocol


def test_every_negative_must_be_farther_away() -> None:
    scores = evaluate_triplets(
        TableEncoder(PLACES), triplets_of(("x", "beside", "above", "x"), ("x", "x", "above", "beside"))
    )
    assert scores.score == 0.5
    assert "each of 2 negatives" in scores.protocol
    assert "chance is 0.33" in scores.protocol


def test_a_random_encoder_is_at_chance() -> None:
    random = np.random.default_rng(0)
    table = {str(number): random.standard_normal(8).tolist() for number in range(6_000)}
    names = list(table)
    rows = zip(names[::3], names[1::3], names[2::3], strict=True)
    scores = evaluate_triplets(TableEncoder(table), triplets_of(*rows))
    assert scores.score == pytest.approx(0.5, abs=0.04)
    assert scores.interval is not None
    assert scores.interval[0] < 0.5 < scores.interval[1]


def test_pairs_are_no_triplets() -> None:
    with pytest.raises(InvalidInput, match="triplets holds 1 pairs; expected one triplet or more"):
        evaluate_triplets(TableEncoder(PLACES), Examples("pairs", {"first": ["x"], "second": ["above"]}))
