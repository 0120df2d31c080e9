"""A head that knows opposites, measured with labels in another order than its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from by_heart import TableEncoder

from gemel import load_encoder
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.nli import evaluate_nli
from gemel.tasks.classify import PairClassifier

PLACES = {"up": [1.0], "higher": [1.0], "down": [-1.0], "level": [0.0]}
# On u*v alone: 1 is entailment, -1 is contradiction, 0 is neutral.
HEAD = {"classifier.weight": np.array([[-4.0, 0.0], [0.0, -1.0], [4.0, 0.0]], np.float32)}


def classifier() -> PairClassifier:
    encoder = TableEncoder({text: [value[0], 1.0] for text, value in PLACES.items()})
    return PairClassifier(encoder, HEAD, ["u*v"], ("contradiction", "neutral", "entailment"))


def pairs_of(*rows: tuple[str, str, str]) -> Examples:
    names = ("entailment", "neutral", "contradiction")
    labels = np.array([names.index(label) for _, _, label in rows], np.int64)
    return Examples(
        "classified pairs",
        {"first": [row[0] for row in rows], "second": [row[1] for row in rows]},
        labels,
        names,
    )


def test_labels_are_matched_by_name_and_not_by_number() -> None:
    pairs = pairs_of(
        ("up", "higher", "entailment"), ("up", "down", "contradiction"), ("higher", "down", "contradiction")
    )
    scores = evaluate_nli(classifier(), pairs)
    assert scores.score == 1
    assert scores.metrics["macro_f1"] == 1
    assert "accuracy_neutral" not in scores.metrics  # no example has it
    assert "right in 66.7%" in scores.protocol


def test_figures_by_class_are_those_worked_out_by_hand() -> None:
    pairs = pairs_of(
        *(("up", "higher", "entailment"), ("up", "up", "contradiction")),
        *(("up", "down", "contradiction"), ("down", "up", "neutral")),
    )
    scores = evaluate_nli(classifier(), pairs)
    assert scores.score == 0.5
    assert scores.metrics["accuracy_entailment"] == 1
    assert scores.metrics["accuracy_contradiction"] == 0.5
    assert scores.metrics["accuracy_neutral"] == 0
    assert scores.metrics["macro_f1"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)


def test_every_distinct_text_is_encoded_once() -> None:
    each = classifier()
    evaluate_nli(each, pairs_of(("up", "higher", "entailment"), ("up", "down", "contradiction")))
    assert isinstance(each.encoder, TableEncoder)
    assert sorted(each.encoder.seen) == ["down", "higher", "up"]


def test_labels_that_the_head_does_not_know_are_refused() -> None:
    pairs = Examples(
        "classified pairs", {"first": ["up"], "second": ["down"]}, np.array([0], np.int64), ("0", "1")
    )
    with pytest.raises(InvalidInput, match="nli has the labels 0, 1 and the classifier knows contradiction"):
        evaluate_nli(classifier(), pairs)
    with pytest.raises(InvalidInput, match="holds 1 pairs; expected classified pairs"):
        evaluate_nli(classifier(), Examples("pairs", {"first": ["up"], "second": ["down"]}))


def test_a_random_head_on_real_pairs_is_at_chance(real_data: Path, tiny_bert: Path) -> None:
    encoder = load_encoder(tiny_bert, on_truncate="ignore")
    weights = np.random.default_rng(0).standard_normal((3, 3 * encoder.dim)).astype(np.float32)
    pairs = read_examples(real_data / "snli" / "dev.tsv", limit=1_000)
    head = PairClassifier(encoder, {"classifier.weight": weights}, ["u", "v", "|u-v|"], pairs.label_names)
    assert evaluate_nli(head, pairs).score == pytest.approx(1 / 3, abs=0.08)
