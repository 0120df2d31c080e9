"""Texts with holes, and the decoder that fills them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pretrained import pretrained
from safetensors.numpy import load_file
from stand_ins import ARCHITECTURES, sentences

from gemel import load_encoder
from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train import TrainConfig, train
from gemel.train.denoising import DenoisingStep, Reconstruction
from gemel.train.metrics import MetricsFile

TEXTS = sentences(40, seed=7, max_words=8)
EXAMPLES = Examples("texts", {"text": TEXTS})


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def step_of(folder: Path) -> DenoisingStep:
    torch.manual_seed(1)
    return DenoisingStep(SentenceEncoder(read_encoder_folder(folder), device="cpu"))


def test_reconstruction_by_hand() -> None:
    decoder = Reconstruction(dim=2, width=4, max_tokens=8).eval()
    with torch.no_grad():  # what is written is (1, 0, 0, 0) everywhere
        decoder.norm.weight.zero_()
        decoder.norm.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0]))
    table = torch.tensor(
        [[0.0, 9.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], [1.0, 0.0, 7.0, 0.0]], requires_grad=True
    )
    ids, mask = torch.tensor([[0, 1, 2], [0, 2, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    # Scores of the three tokens are 0, 2 and 1; the tokens to be written are 1, 2 and 2: the padding is none.
    total = math.log(1 + math.exp(2) + math.exp(1))
    expected = ((total - 2) + (total - 1) + (total - 1)) / 3
    loss = decoder.reconstruct(torch.ones(2, 2), ids, mask, table)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    shares = np.exp([0, 2, 1]) / np.exp([0, 2, 1]).sum()
    assert table.grad is not None
    # Row k is in the output with (share - 1 where it was wanted) x (1, 0, 0, 0), over three tokens.
    wanted = np.array([0, 1 / 3, 2 / 3])
    np.testing.assert_allclose(table.grad[:, 0], shares - wanted, atol=1e-6)


def test_gradients_reach_the_vector_and_are_those_of_the_loss() -> None:
    torch.manual_seed(0)
    decoder = Reconstruction(dim=3, width=4, max_tokens=6).double().eval()
    vectors = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    table = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    ids, mask = torch.tensor([[0, 1, 2, 4], [0, 3, 4, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    assert torch.autograd.gradcheck(lambda v, t: decoder.reconstruct(v, ids, mask, t), (vectors, table))


def test_a_token_is_predicted_from_those_before_it_alone() -> None:
    torch.manual_seed(0)
    decoder = Reconstruction(dim=3, width=4, max_tokens=6).eval()
    vectors, table = torch.randn(1, 3), torch.randn(5, 4)
    losses = [
        decoder.reconstruct(
            vectors, torch.tensor([[0, 1, 2, last]]), torch.tensor([[1, 1, 1, 0]]), table
        ).item()
        for last in (3, 4)
    ]
    assert losses[0] == losses[1]


def test_holes_leave_the_special_tokens_the_order_and_a_word(tiny_bert: Path) -> None:
    step = step_of(tiny_bert)
    whole = step.model.tokenizer.pieces(TEXTS, "", "ignore").ids
    torch.manual_seed(3)
    holed = step.with_holes(whole)
    for before, after in zip(whole, holed, strict=True):
        assert (after[0], after[-1]) == (before[0], before[-1])
        assert len(after) >= 3
        rest = iter(before.tolist())
        assert all(token in rest for token in after.tolist())  # in the same order
    kept = sum(len(ids) - 2 for ids in holed) / sum(len(ids) - 2 for ids in whole)
    assert 0.3 < kept < 0.55  # 40%, and a word of every text
    torch.manual_seed(3)
    assert all(np.array_equal(a, b) for a, b in zip(holed, step.with_holes(whole), strict=True))


def test_a_prompt_has_no_holes(tiny_bert: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    step = DenoisingStep(model.with_prompts({"task": "the woman sees "}, "task"), deletion=0.9)
    n_kept = 1 + step.model.tokenizer.prompt_tokens("the woman sees ")
    assert n_kept > 3
    whole = step.model.tokenizer.pieces([*TEXTS, ""], step.model.prompt, "ignore").ids
    for before, after in zip(whole, step.with_holes(whole), strict=True):
        assert after[:n_kept].tolist() == before[:n_kept].tolist()
        assert after[-1] == before[-1]
        assert min(len(before), n_kept + 2) <= len(after) <= len(before)
    assert len(step.with_holes([whole[0][:3]])[0]) == 3  # a text so short that the prompt is all of it


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_part_moves_and_the_decoder_is_dropped(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_model(architecture)
    step = step_of(folder)
    config = TrainConfig(batch_size=10, learning_rate=1e-2)
    saved, unmoved = pretrained(step, EXAMPLES, tmp_path / "run", config)
    assert unmoved == []
    assert load_file(saved / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    assert load_encoder(saved).dim == 32


def test_the_loss_falls(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=20, epochs=20, learning_rate=3e-3)
    train(step_of(tiny_bert), EXAMPLES, tmp_path / "run", config, show_progress=False)
    losses = [line["loss"] for line in MetricsFile(tmp_path / "run" / "metrics.jsonl").read()]
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("settings", [{"deletion": 1.0}, {"deletion": -0.1}, {"n_layers": 0}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, float], tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        DenoisingStep(SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu"), **settings)  # type: ignore[arg-type]
