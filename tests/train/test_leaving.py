"""What a run leaves in memory: a model that gives its vectors, and the caller's own things as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from training_process import examples_for, examples_of, step_for

from gemel import load_encoder, load_trainable
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train import SentenceEncoderStep, TrainConfig, train
from gemel.train.lora import Lora
from gemel.train.objectives import InBatchContrastive


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("lora", [None, Lora(rank=2)])
def test_a_run_that_breaks_off_leaves_an_encoder_that_gives_its_vectors(
    tiny_bert: Path, tmp_path: Path, lora: Lora | None
) -> None:
    model = load_trainable(tiny_bert)
    model.backbone.embeddings.requires_grad_(False)
    could_move = [parameter.requires_grad for parameter in model.parameters()]
    step = SentenceEncoderStep(model, InBatchContrastive())

    def break_off(seen: SentenceEncoder) -> float:
        seen.save(tmp_path / "seen", overwrite=True)
        raise KeyboardInterrupt

    config = TrainConfig(batch_size=4, learning_rate=1e-2, evaluate_every=2, lora=lora)
    with pytest.raises(KeyboardInterrupt):
        train(step, examples_of("triplets"), tmp_path / "run", config, validate=break_off)
    texts = ["the man plays", "a dog"]
    np.testing.assert_array_equal(model.encode(texts), model.encode(texts))
    saved = load_encoder(tmp_path / "seen", precision="float32")
    np.testing.assert_allclose(model.encode(texts), saved.encode(texts), atol=1e-5)
    assert [parameter.requires_grad for parameter in model.parameters()] == could_move


def test_what_somebody_has_frozen_stays(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "softmax")
    step.model.backbone.embeddings.requires_grad_(False)
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    config = TrainConfig(learning_rate=1e-2, max_steps=2)
    train(step, examples_for("softmax"), tmp_path / "run", config)
    moved = [name for name, value in step.named_parameters() if not torch.equal(value, before[name])]
    assert moved
    assert not [name for name in moved if ".embeddings." in name]
    with pytest.raises(InvalidInput, match=r"of a run that moved \d+ tensors, and now \d+ would move"):
        train(step_for(tiny_bert, "softmax"), examples_for("softmax"), tmp_path / "run", config, resume=True)
    step.requires_grad_(False)
    with pytest.raises(InvalidInput, match="every parameter is frozen and leaves nothing to train"):
        train(step, examples_for("softmax"), tmp_path / "x")


def test_random_numbers_of_the_caller_go_on(tiny_bert: Path, tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(2)[1]
    torch.manual_seed(7)
    torch.rand(1)
    step = SentenceEncoderStep(load_trainable(tiny_bert), InBatchContrastive())
    train(step, examples_of("triplets"), tmp_path / "run", TrainConfig(max_steps=2))
    assert torch.rand(1) == expected
