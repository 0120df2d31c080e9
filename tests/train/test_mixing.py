"""Several tasks on one encoder: their losses, their heads, and a run that goes on to the same bits."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from training_process import examples_of

from gemel import load_encoder, load_pair_classifier
from gemel.checkpoint import read_encoder_folder, read_head
from gemel.data.examples import Examples
from gemel.errors import InvalidModel
from gemel.model import SentenceEncoder
from gemel.train import MixedExamples, MixedObjective, MultiTaskStep, TrainConfig, build_objective, train
from gemel.train.metrics import MetricsFile
from gemel.train.mixing import digest_of
from gemel.train.objectives import CosineRegression, Softmax

TASKS = {
    "nli": ("softmax", examples_of("classified pairs", 24)),
    "sts": ("regression", examples_of("scored pairs", 16)),
    "twins": (
        "softmax",
        Examples(
            "classified pairs",
            examples_of("pairs", 12).columns,
            np.arange(12) % 2,
            ("different", "same"),
        ),
    ),
    "topics": ("batch-hard", examples_of("classified texts", 20)),
    "plain": ("contrastive", examples_of("texts", 20)),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def mixed(mixing: str) -> MixedExamples:
    return MixedExamples({name: examples for name, (_, examples) in TASKS.items()}, mixing)


def step_of(folder: Path) -> MultiTaskStep:
    torch.manual_seed(1)
    model = SentenceEncoder(read_encoder_folder(folder), device="cpu")
    objectives = {
        name: build_objective(objective, part.kind, dim=model.dim, n_labels=len(part.label_names))
        for name, (objective, part) in TASKS.items()
    }
    labels = {name: part.label_names for name, (_, part) in TASKS.items()}
    return MultiTaskStep(model, MixedObjective(objectives), labels)


def test_a_loss_is_weighted_and_divided_by_that_of_guessing() -> None:
    u, v = torch.randn(2, 5, 4)
    classes, scores = torch.tensor([0, 1, 2, 2, 0]), torch.rand(5)
    softmax = Softmax(4, 3)
    objective = MixedObjective({"nli": softmax, "sts": CosineRegression()}, {"nli": 2.0})
    assert objective([u, v], classes, "nli").item() == pytest.approx(
        2 * softmax([u, v], classes).item() / math.log(3)
    )
    assert objective([u, v], scores, "sts").item() == CosineRegression()([u, v], scores).item()
    plain = MixedObjective({"nli": softmax, "sts": CosineRegression()}, scale_by_guessing=False)
    assert plain([u, v], classes, "nli").item() == softmax([u, v], classes).item()


def test_tasks_share_the_lengths_that_all_of_them_have_trained() -> None:
    objectives = {
        name: build_objective(None, kind, dim=8, n_labels=3, matryoshka={"dimensions": dimensions})
        for name, kind, dimensions in (("a", "scored pairs", [8, 4, 2]), ("b", "classified pairs", [2, 8]))
    }
    mixed = MixedObjective(objectives)
    assert mixed.truncations() == (8, 2)
    assert mixed.losses() == ("Matryoshka", "CosineRegression", "Softmax")
    assert mixed.describe().startswith("a: cosine at 8, 4, 2 dimensions; b: softmax at 2, 8")


def test_every_trainable_part_of_every_task_moves(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_of(tiny_bert)
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    config = TrainConfig(batch_size=4, learning_rate=1e-2)
    train(step, mixed("proportional"), tmp_path / "run", config, show_progress=False)
    still = [name for name, value in step.named_parameters() if torch.equal(value, before[name])]
    assert all(".pooler." in name for name in still)


class _Stopped(MultiTaskStep):
    """Someone presses Ctrl-C in the middle of a step."""

    stop_at = 10
    n_batches = 0

    def loss(self, examples: MixedExamples, rows: np.ndarray) -> tuple[torch.Tensor, int]:
        self.n_batches += 1
        if self.n_batches == self.stop_at:
            raise KeyboardInterrupt
        return super().loss(examples, rows)


@pytest.mark.parametrize("mixing", ["proportional", "round-robin"])
def test_an_interrupted_run_of_several_tasks_ends_in_the_same_bits(
    tiny_bert: Path, tmp_path: Path, mixing: str
) -> None:
    config = TrainConfig(batch_size=4, learning_rate=1e-3, max_steps=14, accumulate=2, cache_chunk=3)
    train(step_of(tiny_bert), mixed(mixing), tmp_path / "whole", config, show_progress=False)
    stopped = step_of(tiny_bert)
    stopped.__class__ = _Stopped
    with pytest.raises(KeyboardInterrupt):
        train(stopped, mixed(mixing), tmp_path / "broken", config, show_progress=False)
    step = step_of(tiny_bert)
    train(step, mixed(mixing), tmp_path / "broken", config, resume=True, show_progress=False)
    for file in ("model/model.safetensors", "last/weights.safetensors", "last/optimiser.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "broken" / file).read_bytes()
    whole, broken = (MetricsFile(tmp_path / run / "metrics.jsonl").read() for run in ("whole", "broken"))
    assert [line["loss"] for line in whole] == [line["loss"] for line in broken]
    assert [line["loss_by_task"] for line in whole] == [line["loss_by_task"] for line in broken]
    assert set().union(*(line["loss_by_task"] for line in whole)) == set(TASKS)


def test_the_heads_of_all_tasks_are_saved_and_usable(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_of(tiny_bert)
    step.save(tmp_path / "model")
    assert load_encoder(tmp_path / "model").dim == 32
    assert load_pair_classifier(tmp_path / "model").labels == TASKS["nli"][1].label_names
    twins = load_pair_classifier(tmp_path / "model", task="twins")
    assert twins.labels == ("different", "same")
    (probabilities,) = twins.probabilities([("the man", "a dog")])
    with torch.no_grad():
        u, v = (torch.from_numpy(step.model.encode([text])) for text in ("the man", "a dog"))
        classifier = step.objective.part("twins").classifier
        expected = classifier(torch.cat([u, v, (u - v).abs()], dim=-1)).softmax(dim=-1)[0]
    np.testing.assert_allclose(probabilities, expected.numpy(), atol=0.02)
    head = read_head(tmp_path / "model", "sts")
    assert head is not None
    assert head.kind == "regression"
    with pytest.raises(InvalidModel, match=r"no head for the task 'topics'; it has nli, sts, twins"):
        load_pair_classifier(tmp_path / "model", task="topics")
    with pytest.raises(InvalidModel, match="has no classifier"):
        load_pair_classifier(tmp_path / "model", task="sts")


def test_the_digest_of_examples_sees_where_texts_end_and_what_classes_are_called() -> None:
    def classified(texts: list[str], names: tuple[str, ...] = ("x", "y")) -> Examples:
        return Examples("classified texts", {"text": texts}, np.array([0, 1]), names)

    def mixed(mixing: str) -> MixedExamples:
        return MixedExamples({"a": classified(["a", "b"]), "b": classified(["c", "d"])}, mixing)

    digests = [
        *map(
            digest_of, (classified(["ab", "c"]), classified(["a", "bc"]), classified(["ab", "c"], ("y", "x")))
        ),
        *map(digest_of, (mixed("proportional"), mixed("round-robin"))),
    ]
    assert len(set(digests)) == len(digests)
    assert digest_of(classified(["ab", "c"])) == digests[0]
