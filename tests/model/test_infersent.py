"""InferSent in torch: its own backward pass is that of torch, and what it saves is what it encodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from encoders.made import write_glove
from stand_ins import WORDS, sentences
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from gemel import load_encoder, load_pair_classifier, load_trainable
from gemel.data.examples import Examples
from gemel.errors import InvalidInput, UnknownWordsWarning
from gemel.model import InferSent
from gemel.model.infersent import InferSentSettings
from gemel.model.lstm import max_over_states
from gemel.reproduce.recipe import parse_recipe
from gemel.reproduce.step_builder import StepBuilder
from gemel.reproduce.teaching import Lesson
from gemel.train import MixedExamples, SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.bfloat16 import forward_in_bfloat16
from gemel.train.lora import Lora, add_adapters

TEXTS = sentences(30, seed=2, max_words=9)
LABELS = ("contradiction", "entailment", "neutral")


@pytest.fixture
def fresh(tmp_path: Path) -> InferSent:
    write_glove(tmp_path / "glove.txt")
    torch.manual_seed(0)
    return InferSent.new(
        f"infersent:{tmp_path / 'glove.txt'}", TEXTS, InferSentSettings(hidden_size=7), device="cpu"
    )


def nli() -> Examples:
    labels = np.arange(30, dtype=np.int64) % 3
    return Examples("classified pairs", {"first": TEXTS, "second": TEXTS[::-1]}, labels, LABELS)


@pytest.mark.parametrize("lengths", [[1], [3, 3], [6, 4, 4, 1], [9, 1, 1]])
def test_maxima_and_gradients_are_those_of_torch(lengths: list[int]) -> None:
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(5, 7, batch_first=True, dtype=torch.float64)
    texts = torch.randn(len(lengths), lengths[0], 5, dtype=torch.float64)
    packed = pack_padded_sequence(texts, torch.tensor(lengths), batch_first=True)
    states, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    is_padding = torch.arange(lengths[0]) >= torch.tensor(lengths)[:, None]
    expected = states.masked_fill(is_padding[..., None], -torch.inf).amax(dim=1)
    upper = torch.randn_like(expected)
    (expected * upper).sum().backward()
    gradients = [parameter.grad.clone() for parameter in lstm.parameters()]  # type: ignore[union-attr]
    lstm.zero_grad()
    maxima = max_over_states(packed.data, packed.batch_sizes.tolist(), lstm, "")
    (maxima * upper).sum().backward()
    torch.testing.assert_close(maxima, expected)
    for parameter, gradient in zip(lstm.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_mixed_precision_leaves_its_gradients_as_they_are(fresh: InferSent) -> None:
    batch = fresh.batch(fresh.tokenizer.pieces(TEXTS[:4], None, "ignore").ids)
    weights = [parameter for parameter in fresh.parameters() if parameter.requires_grad]
    exact = torch.autograd.grad(fresh(batch).sum(), weights)
    with forward_in_bfloat16(fresh):
        rough = torch.autograd.grad(fresh(batch).sum(), weights)
    for one, other in zip(rough, exact, strict=True):
        torch.testing.assert_close(one, other)


def test_what_a_transformer_alone_can_have_is_refused(fresh: InferSent, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="and InferSent has none; leave lora out"):
        add_adapters(fresh, Lora(), seed=0)
    fresh.save(tmp_path / "infersent")
    task = {"data": {"path": "nli.tsv"}}
    tasks = {"task": [{"name": "a", **task}, {"name": "b", **task}]}
    for kind, stage, examples in (
        ("encoder", tasks, MixedExamples({"a": nli(), "b": nli()})),
        ("cross-encoder", task, nli()),
    ):
        values = {"model": str(tmp_path / "infersent"), "kind": kind, "stage": [stage]}
        recipe = parse_recipe(values, "nli")
        with pytest.raises(InvalidInput, match="which transformers alone can be"):
            StepBuilder(recipe, "cpu").build(recipe.stages[0], recipe.model, Lesson(examples), tmp_path)


@pytest.mark.filterwarnings("ignore::gemel.errors.UnknownWordsWarning")
def test_the_forward_pass_agrees_with_numpy(fresh: InferSent) -> None:
    texts = [*TEXTS, "xqzzv", ""]
    with torch.inference_mode():
        vectors = fresh(fresh.batch(fresh.tokenizer.pieces(texts).ids)).numpy()
    np.testing.assert_allclose(fresh.encode(texts), vectors, atol=1e-6)
    assert not vectors[-2:].any()


def test_only_the_lstm_is_trained_and_the_folder_has_the_classifier(fresh: InferSent, tmp_path: Path) -> None:
    words = fresh.words.clone()
    before = fresh.encode(TEXTS)
    step = SentenceEncoderStep(
        fresh, build_objective("softmax", nli().kind, dim=fresh.dim, n_labels=3), LABELS
    )
    config = TrainConfig(batch_size=6, learning_rate=1e-2, epochs=4)
    result = train(step, nli(), tmp_path / "out", config)
    trained = load_encoder(result.model)
    assert torch.equal(fresh.words, words)
    assert np.abs(trained.encode(TEXTS) - before).max() > 0.01
    np.testing.assert_array_equal(trained.encode(TEXTS), fresh.encode(TEXTS))
    assert trained.fingerprint == fresh.fingerprint
    assert load_pair_classifier(result.model).labels == LABELS
    losses = (tmp_path / "out" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(losses) == 2


def test_a_killed_run_ends_in_the_same_bits(fresh: InferSent, tmp_path: Path) -> None:
    start = tmp_path / "start"
    fresh.save(start)

    def run(name: str, *, is_killed: bool = False, resume: bool = False) -> Path:
        torch.manual_seed(3)
        encoder = load_trainable(start, device="cpu")
        step = SentenceEncoderStep(
            encoder, build_objective("softmax", nli().kind, dim=encoder.dim, n_labels=3), LABELS
        )
        config = TrainConfig(batch_size=6, learning_rate=1e-2, epochs=2, checkpoint_every=4, evaluate_every=6)
        scores = iter((0.1, 0.2))

        def validate(_: object) -> float:
            if is_killed:
                raise KeyboardInterrupt
            return next(scores)

        return train(step, nli(), tmp_path / name, config, validate=validate, resume=resume).model

    whole = load_encoder(run("whole"))
    with pytest.raises(KeyboardInterrupt):
        run("killed", is_killed=True)
    assert load_encoder(run("killed", resume=True)).fingerprint == whole.fingerprint


def test_it_is_opened_to_be_trained_further(fresh: InferSent, tmp_path: Path) -> None:
    fresh.save(tmp_path / "model")
    again = load_trainable(tmp_path / "model", device="cpu")
    assert isinstance(again, InferSent)
    np.testing.assert_array_equal(again.encode(TEXTS), fresh.encode(TEXTS))
    assert again.with_dim(5).encode(TEXTS).shape == (30, 5)
    assert "InferSent(dim=14" in repr(again)


def test_words_without_a_vector_are_not_known(fresh: InferSent) -> None:
    assert set(fresh.tokenizer.words) == {word for word in WORDS if word.isalnum()}
    with pytest.warns(UnknownWordsWarning):
        fresh.encode(["xqzzv"])


def test_a_size_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="hidden_size is 0; expected a whole number"):
        InferSentSettings(hidden_size=0)
