"""Dropout of a training: in place of the model's own, everywhere, and no longer than the training."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from stand_ins import read_json, sentences, write_json
from torch import nn
from training_process import examples_for, examples_of, step_for
from transformers import T5Config, T5EncoderModel

from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import InferSent, SentenceEncoder
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.dropout import dropout_of

CONFIG = TrainConfig(batch_size=6, max_steps=4, learning_rate=1e-3)
ARCHITECTURES = ["bert", "distilbert", "roberta", "mpnet", "electra"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def trained_weights(folder: Path, output: Path, dropout: float | None) -> dict[str, torch.Tensor]:
    config = TrainConfig.from_dict({**CONFIG.to_dict(), "dropout": dropout})
    train(step_for(folder, "contrastive"), examples_for("contrastive"), output, config, show_progress=False)
    return load_file(output / "model" / "model.safetensors")


def with_config(folder: Path, copy: Path, **values: Any) -> Path:
    shutil.copytree(folder, copy)
    write_json(copy / "config.json", {**read_json(copy / "config.json"), **values})
    return copy


def is_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_it_is_what_a_model_with_that_dropout_would_do(tiny_bert: Path, tmp_path: Path, share: float) -> None:
    settings = {"hidden_dropout_prob": share, "attention_probs_dropout_prob": share}
    other = with_config(tiny_bert, tmp_path / "other", **settings)
    as_asked = trained_weights(tiny_bert, tmp_path / "asked", share)
    assert is_same(as_asked, trained_weights(other, tmp_path / "configured", None))
    assert not is_same(as_asked, trained_weights(tiny_bert, tmp_path / "own", None))
    saved = read_json(tmp_path / "asked" / "model" / "config.json")
    assert saved["hidden_dropout_prob"] == read_json(tiny_bert / "config.json")["hidden_dropout_prob"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_place_is_reached_and_put_back(tiny_model: Callable[..., Path], architecture: str) -> None:
    encoder = SentenceEncoder(read_encoder_folder(tiny_model(architecture)), device="cpu").train()
    batch = encoder.batch(encoder.tokenizer.pieces(sentences(5), "", "ignore").ids)

    def is_repeatable() -> bool:
        return torch.equal(encoder(batch), encoder(batch))

    before = is_repeatable()
    with dropout_of(encoder, 0.0):
        assert is_repeatable()
    with dropout_of(encoder, 0.5):
        assert not is_repeatable()
    assert is_repeatable() == before


def test_a_number_that_attention_is_given_is_a_place_too() -> None:
    model = T5EncoderModel(T5Config(vocab_size=20, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2))
    attention = model.encoder.block[0].layer[0].SelfAttention
    with dropout_of(model, 0.4):
        assert attention.dropout == 0.4
    assert attention.dropout == 0.1


def test_texts_alone_can_be_learnt_from_where_the_model_has_none(tiny_bert: Path, tmp_path: Path) -> None:
    settings = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    still = with_config(tiny_bert, tmp_path / "still", **settings)
    texts = examples_of("texts")
    with pytest.raises(InvalidInput, match=r"no dropout.*set dropout = 0\.1"):
        train(step_for(still, "contrastive"), texts, tmp_path / "none", CONFIG, show_progress=False)
    config = TrainConfig.from_dict({**CONFIG.to_dict(), "dropout": 0.1})
    result = train(step_for(still, "contrastive"), texts, tmp_path / "some", config, show_progress=False)
    assert result.steps == 4


def test_a_model_without_any_place_for_it_is_told() -> None:
    with pytest.raises(InvalidInput, match="has no dropout to set"), dropout_of(nn.Linear(2, 2), 0.1):
        pass
    with dropout_of(nn.Linear(2, 2), 0.0):
        pass


@pytest.mark.parametrize("share", [1.0, -0.1, "much", False, float("nan")])
def test_what_is_no_share(share: object) -> None:
    with pytest.raises(InvalidInput, match=r"dropout is .*; expected a share of the activations"):
        TrainConfig.from_dict({"dropout": share})


def test_an_lstm_of_one_layer_has_no_place_for_it(tmp_path: Path) -> None:
    words = np.eye(4, dtype=np.float32)
    model = InferSent(["a", "man", "woman", "plays"], words, 8, device="cpu")
    with pytest.raises(InvalidInput, match="has no dropout to set"), dropout_of(model, 0.1):
        pass
    texts = Examples("texts", {"text": ["a man", "a woman plays"] * 4})
    step = SentenceEncoderStep(model, build_objective("contrastive", "texts", dim=model.dim))
    with pytest.raises(InvalidInput, match="nothing can be learnt from texts alone: train on pairs"):
        train(step, texts, tmp_path / "run", CONFIG, show_progress=False)
