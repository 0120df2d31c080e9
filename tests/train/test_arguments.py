"""What cannot be trained, or trained on, is told in a sentence before anything is read or written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training_process import examples_of, step_for

from gemel import load_encoder, load_pair_classifier, load_trainable
from gemel.errors import InvalidInput
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.objectives import InBatchContrastive, Softmax


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"step": "a model"}, "train was given a str to train; expected a step"),
        (
            {"examples": "pairs.tsv"},
            r"given a str as examples; expected Examples, such as read_examples\(file\)",
        ),
        ({"config": {"epochs": 2}}, r"given a dict as its config; expected a TrainConfig\(\.\.\.\)"),
        (
            {"config": TrainConfig(evaluate_every=2)},
            "evaluate_every is 2 and there is nothing to validate with",
        ),
    ],
)
def test_arguments_that_are_something_else_are_told(
    tiny_bert: Path, tmp_path: Path, wrong: dict[str, Any], told: str
) -> None:
    right = {"step": step_for(tiny_bert, "contrastive"), "examples": examples_of("triplets")}
    with pytest.raises(InvalidInput, match=told):
        train(output=tmp_path / "run", **{**right, **wrong})
    assert not (tmp_path / "run").exists()


def test_an_encoder_that_only_reads_cannot_be_trained(tiny_bert: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"NativeEncoder was given to be trained.* open the model with load_tr"
    ):
        SentenceEncoderStep(load_encoder(tiny_bert), InBatchContrastive())  # type: ignore[arg-type]


def test_scores_beyond_what_an_objective_meets_are_refused(tiny_bert: Path, tmp_path: Path) -> None:
    examples = examples_of("scored pairs")
    assert examples.labels is not None
    fives = replace(examples, labels=np.float32(5) * examples.labels.astype(np.float32))
    for name in ("cosine", "regression", "pair-regression"):
        with pytest.raises(InvalidInput, match=rf"scores run from .* to 4.*the objective {name} meets"):
            train(step_for(tiny_bert, name), fives, tmp_path / "run")
    step = step_for(tiny_bert, "cosent")  # which goes by their order alone
    assert train(step, fives, tmp_path / "run", TrainConfig(max_steps=1)).is_complete


def test_more_classes_than_an_objective_has_are_refused(tiny_bert: Path, tmp_path: Path) -> None:
    model = load_trainable(tiny_bert)
    step = SentenceEncoderStep(model, Softmax(model.dim, n_labels=2))
    with pytest.raises(InvalidInput, match="softmax tells 2 classes apart, and the examples have 3"):
        train(step, examples_of("classified pairs"), tmp_path / "run")


def test_a_head_knows_its_classes_without_being_told(tiny_bert: Path, tmp_path: Path) -> None:
    model = load_trainable(tiny_bert)
    step = SentenceEncoderStep(model, Softmax(model.dim, n_labels=3))
    train(step, examples_of("classified pairs"), tmp_path / "run", TrainConfig(max_steps=1))
    assert load_pair_classifier(tmp_path / "run" / "model").labels == (
        "contradiction",
        "entailment",
        "neutral",
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("cosine", "classified pairs"), ("cosent", "classified pairs"), ("contrastive", "scored pairs"),
     ("text-softmax", "pairs"), ("triplet", "pairs"), ("pair-regression", "classified pairs")],
)  # fmt: skip
def test_examples_that_an_objective_cannot_eat_are_refused(
    tiny_bert: Path, tmp_path: Path, name: str, kind: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"{name} eats .* and was given {kind}"):
        train(step_for(tiny_bert, name), examples_of(kind), tmp_path / "run")


def test_a_step_that_is_used_again_learns_the_names_anew(tiny_bert: Path, tmp_path: Path) -> None:
    model = load_trainable(tiny_bert)
    step, examples = (
        SentenceEncoderStep(model, Softmax(model.dim, n_labels=3)),
        examples_of("classified pairs"),
    )
    for number, names in enumerate([examples.label_names, ("x", "y", "z")]):
        given = replace(examples, label_names=names)
        train(step, given, tmp_path / str(number), TrainConfig(max_steps=1))
        assert load_pair_classifier(tmp_path / str(number) / "model").labels == names


def test_scores_that_float32_has_rounded_are_met(tiny_bert: Path, tmp_path: Path) -> None:
    examples = examples_of("scored pairs")
    assert examples.labels is not None
    rounded = replace(examples, labels=np.where(examples.labels > 0.5, np.float32(1.0000001), 0).astype("f4"))
    assert (
        train(step_for(tiny_bert, "cosine"), rounded, tmp_path / "run", TrainConfig(max_steps=1)).steps == 1
    )


@pytest.mark.parametrize(
    ("name", "kind", "settings", "told"),
    [
        ("softmax", "classified pairs", {"n_labels": 2}, "tells 2 classes apart, and the examples have 3"),
        ("cosine", "scored pairs", {}, "eats scored pairs and was given classified pairs"),
    ],
)
def test_an_objective_at_several_lengths_eats_what_the_one_inside_does(
    tiny_bert: Path, tmp_path: Path, name: str, kind: str, settings: dict[str, int], told: str
) -> None:
    model = load_trainable(tiny_bert)
    lengths = {"dimensions": [model.dim, 8]}
    objective = build_objective(name, kind, dim=model.dim, matryoshka=lengths, **settings)
    with pytest.raises(InvalidInput, match=told):
        train(SentenceEncoderStep(model, objective), examples_of("classified pairs"), tmp_path / "run")
