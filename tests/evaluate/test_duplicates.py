"""Pairs that mean the same, among pairs that do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from by_heart import TableEncoder
from stand_ins import ToyEncoder

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.duplicates import evaluate_duplicates

PLACES = {"x": [1, 0], "same": [1, 0], "near": [1, 1], "far": [30, 40], "against": [-1, 0.0]}


def pairs_of(rows: dict[str, int], names: tuple[str, ...] = ("0", "1")) -> Examples:
    columns = {"first": ["x"] * len(rows), "second": list(rows)}
    return Examples("classified pairs", columns, np.array(list(rows.values()), np.int64), names)


def test_figures_are_those_worked_out_by_hand() -> None:
    # By cosine: same 1 (yes), near .707 (no), far .6 (yes), against -1 (no).
    encoder = TableEncoder(PLACES)
    scores = evaluate_duplicates(encoder, pairs_of({"same": 1, "near": 0, "far": 1, "against": 0}))
    assert scores.score == pytest.approx((1 + 2 / 3) / 2)
    assert scores.metrics["f1_cosine"] == pytest.approx(4 / 5)
    assert scores.metrics["f1_threshold_cosine"] == pytest.approx((0.6 - 1) / 2)
    assert scores.metrics["accuracy_cosine"] == pytest.approx(3 / 4)
    assert scores.metrics["accuracy_threshold_cosine"] == pytest.approx((1 + 0.5**0.5) / 2)
    # By dot product: far 30 (yes), same 1 (yes), near 1 (no), against -1 (no): same and near are one level.
    assert scores.metrics["average_precision_dot"] == pytest.approx((1 + 2 / 3) / 2)
    # By distance: same 0 (yes), near -1 (no), against -2 (no), far (yes).
    for measure in ("euclidean", "manhattan"):
        assert scores.metrics[f"average_precision_{measure}"] == pytest.approx((1 + 2 / 4) / 2)
    assert sorted(encoder.seen) == sorted(PLACES)
    assert scores.interval is not None
    assert scores.interval[0] <= scores.score <= scores.interval[1]


def test_the_protocol_warns_of_thresholds_that_were_chosen_on_the_pairs() -> None:
    scores = evaluate_duplicates(TableEncoder(PLACES), pairs_of({"same": 1, "near": 0}))
    assert "1 of 2 pairs are '1'" in scores.protocol
    assert "which flatters" in scores.protocol


def test_other_names_of_the_positive_class_are_said() -> None:
    pairs = pairs_of({"same": 0, "near": 1}, ("entailment", "neutral"))
    assert evaluate_duplicates(TableEncoder(PLACES), pairs, positive="entailment").score == 1
    with pytest.raises(
        InvalidInput, match=r"the labels entailment, neutral and none '1'; say with positive="
    ):
        evaluate_duplicates(TableEncoder(PLACES), pairs)


def test_one_class_alone_and_other_examples_are_refused() -> None:
    with pytest.raises(InvalidInput, match="duplicates: 2 of 2 pairs are '1'; expected some that are"):
        evaluate_duplicates(TableEncoder(PLACES), pairs_of({"same": 1, "near": 1}))
    with pytest.raises(InvalidInput, match="holds pairs; expected classified pairs"):
        evaluate_duplicates(TableEncoder(PLACES), Examples("pairs", {"first": ["x"], "second": ["near"]}))


def test_shared_words_tell_quora_duplicates_from_chance_but_not_paws(
    real_data: Path, toy_encoder: ToyEncoder
) -> None:
    quora = read_examples(real_data / "quora_pairs_sample" / "sample.tsv", limit=1_500)
    found = evaluate_duplicates(toy_encoder, quora)
    assert found.score > quora.labels.mean() + 0.1
    paws = read_examples(real_data / "paws_wiki_sample" / "sample.tsv", limit=1_500)
    assert evaluate_duplicates(toy_encoder, paws).score < paws.labels.mean() + 0.1  # the words are the same
