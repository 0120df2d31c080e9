"""What a step makes of a batch: texts twice through dropout, chunks with the gradients of the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from training_process import examples_for, examples_of, step_for

from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.objectives import OBJECTIVES, InBatchContrastive
from gemel.train.steps import embed_columns, labels_of


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def simcse_step(folder: Path) -> SentenceEncoderStep:
    return SentenceEncoderStep(
        SentenceEncoder(read_encoder_folder(folder), device="cpu"), InBatchContrastive(0.05)
    )


def without_dropout(step: torch.nn.Module) -> None:
    for module in step.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0


def gradients(step: SentenceEncoderStep, examples: Examples, seed: int = 5) -> dict[str, torch.Tensor]:
    step.zero_grad()
    torch.manual_seed(seed)
    step.loss(examples, np.arange(len(examples)))[0].backward()
    return {name: p.grad.clone() for name, p in step.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", [*OBJECTIVES, "simcse"])
def test_gradients_through_a_whole_model_agree_with_differences(tiny_bert: Path, name: str) -> None:
    step = simcse_step(tiny_bert) if name == "simcse" else step_for(tiny_bert, name)
    step.double().train()
    examples = examples_of("texts", 10) if name == "simcse" else examples_for(name, 10)

    def loss() -> torch.Tensor:
        torch.manual_seed(3)  # the same dropout each time
        return step.loss(examples, np.arange(10))[0]

    loss().backward()
    moved = [parameter for parameter in step.parameters() if parameter.grad is not None]
    generator = torch.Generator().manual_seed(0)
    direction = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in moved]
    slopes = [(p.grad, way) for p, way in zip(moved, direction, strict=True) if p.grad is not None]
    expected = sum(float((gradient * way).sum()) for gradient, way in slopes)
    size, losses = 1e-6, []
    with torch.no_grad():
        for factor in (size, -2 * size):
            for parameter, way in zip(moved, direction, strict=True):
                parameter += factor * way
            losses.append(float(loss()))
    assert (losses[0] - losses[1]) / (2 * size) == pytest.approx(expected, rel=1e-4, abs=1e-7)


# A text alone ----------------------------------------------------------------------------------------


def test_a_text_alone_is_its_own_positive_twice_through_dropout(tiny_bert: Path) -> None:
    step = simcse_step(tiny_bert).train()
    examples = examples_of("texts", 6)
    torch.manual_seed(0)
    (first, second), n_tokens = embed_columns(step.model, examples, np.arange(6))
    assert first.shape == second.shape == (6, 32)
    assert not torch.equal(first, second)
    assert n_tokens % 2 == 0
    torch.manual_seed(0)
    loss, _ = step.loss(examples, np.arange(6))
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=-1) / 0.05
    assert loss.item() == pytest.approx(-torch.log_softmax(cosines, dim=1).diag().mean().item(), rel=1e-4)


def test_a_model_without_dropout_cannot_learn_from_texts_alone(tiny_bert: Path, tmp_path: Path) -> None:
    step = simcse_step(tiny_bert)
    without_dropout(step)
    with pytest.raises(InvalidInput, match="this model has no dropout"):
        train(step, examples_of("texts"), tmp_path / "run", show_progress=False)


def test_every_part_moves_when_texts_alone_are_trained_on(tiny_bert: Path, tmp_path: Path) -> None:
    step = simcse_step(tiny_bert)
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    train(step, examples_of("texts"), tmp_path / "run", TrainConfig(learning_rate=1e-2), show_progress=False)
    still = [name for name, value in step.named_parameters() if torch.equal(value, before[name])]
    assert all(".pooler." in name for name in still)


def test_the_same_text_has_the_same_number_and_others_have_others() -> None:
    pairs = Examples("pairs", {"first": ["a", "b", "c"], "second": ["b", "a", "B"]})
    numbers = labels_of(pairs, np.array([0, 1, 2]), torch.device("cpu"))
    assert numbers is not None
    assert numbers[0].tolist() == numbers[1].flip(0).tolist()
    assert len(numbers.unique()) == 4


def test_repeated_positives_are_no_negatives_of_a_step(tiny_bert: Path) -> None:
    step = simcse_step(tiny_bert)  # in evaluation: no dropout
    pairs = Examples("pairs", {"first": ["the man", "a dog"], "second": ["the man runs", "the man runs"]})
    assert step.loss(pairs, np.array([0, 1]))[0].item() == 0.0  # nothing is left to be told apart


# Chunks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["contrastive", "softmax", "batch-hard"])
def test_chunks_have_the_gradients_of_the_whole_batch(tiny_bert: Path, name: str) -> None:
    step = step_for(tiny_bert, name).double()
    assert isinstance(step, SentenceEncoderStep)
    step.train()
    without_dropout(step)
    examples = examples_for(name)
    whole = gradients(step, examples)
    step.cache_chunk = 7
    chunked = gradients(step, examples)
    assert whole.keys() == chunked.keys()
    for parameter, value in whole.items():
        torch.testing.assert_close(chunked[parameter], value, rtol=1e-9, atol=1e-12)


def test_chunks_have_the_same_gradients_with_dropout_bit_for_bit(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference keeps all activations: the same chunks, and one backward pass through all of them."""
    import gemel.train.steps

    step = simcse_step(tiny_bert).train()
    step.cache_chunk = 5
    examples = examples_of("texts", 12)
    cached = gradients(step, examples)
    monkeypatch.setattr(
        gemel.train.steps, "checkpoint", lambda function, *arguments, use_reentrant: function(*arguments)
    )
    kept = gradients(step, examples)
    assert cached.keys() == kept.keys()
    for parameter, value in kept.items():
        assert torch.equal(cached[parameter], value), parameter
    other = gradients(step, examples, seed=6)
    assert any(not torch.equal(other[parameter], value) for parameter, value in kept.items())


def test_the_activations_of_one_chunk_at_a_time_are_in_memory(tiny_bert: Path) -> None:
    step = step_for(tiny_bert, "contrastive")
    assert isinstance(step, SentenceEncoderStep)
    step.train()
    events: list[str] = []

    def note(_: torch.nn.Module, __: object, output: torch.Tensor) -> None:
        events.append("forward")
        output.register_hook(lambda gradient: events.append("backward"))

    step.model.backbone.embeddings.register_forward_hook(note)
    kept = []
    for chunk in (None, 60):
        step.cache_chunk = chunk
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor, sizes=sizes: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
        ):
            loss, _ = step.loss(examples_of("triplets"), np.arange(60))
        kept.append(sum(sizes))
        loss.backward()
    assert kept[1] < kept[0] / 10  # from the one pass to the other
    assert events == ["forward", "backward", *["forward"] * 3, *["forward", "backward"] * 3]


def test_cross_encoders_have_no_chunks(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "pair-regression")
    with pytest.raises(InvalidInput, match="cache_chunk is 4 and a CrossEncoderStep cannot do with chunks"):
        train(
            step,
            examples_of("scored pairs"),
            tmp_path / "run",
            TrainConfig(cache_chunk=4),
            show_progress=False,
        )
    with pytest.raises(InvalidInput, match="cache_chunk is 0; expected a whole number, at least 1"):
        TrainConfig(cache_chunk=0)


# Matryoshka ------------------------------------------------------------------------------------------


def test_the_head_of_the_whole_vectors_is_the_one_that_is_saved(tiny_bert: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    labels = ("contradiction", "entailment", "neutral")
    for dimensions, shape in (([8, 32], (3, 96)), ([8, 16], None)):
        objective = build_objective(
            "softmax", "classified pairs", dim=32, n_labels=3, matryoshka={"dimensions": dimensions}
        )
        head = SentenceEncoderStep(model, objective, labels).head()
        assert (None if head is None else head.weights["classifier.weight"].shape) == shape
