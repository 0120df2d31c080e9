"""Every step that is not the usual one, broken off and continued: the same bits as in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import sentences
from training_process import examples_of, step_for

from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.model import SentenceEncoder
from gemel.train import TrainConfig, TrainResult, train
from gemel.train.condenser import CondenserStep
from gemel.train.denoising import DenoisingStep
from gemel.train.distillation import DistillationStep
from gemel.train.imitation import VectorImitation
from gemel.train.lora import Lora
from gemel.train.metrics import MetricsFile
from gemel.train.steps import Step
from gemel.train.trainer import _Run

TEXTS = Examples("texts", {"text": sentences(40, seed=1, max_words=20)})
CONFIG = {"batch_size": 5, "learning_rate": 1e-3, "evaluate_every": 3}


def distillation(model: SentenceEncoder) -> Step:
    targets = np.random.default_rng(0).standard_normal((40, model.dim)).astype(np.float32)
    return DistillationStep(model, VectorImitation(), targets)


MADE: dict[str, Callable[[SentenceEncoder], Step]] = {
    "distillation": distillation,
    "denoising": DenoisingStep,
    "cocondenser": CondenserStep,
}


@pytest.mark.parametrize("name", [*MADE, "lora"])
def test_a_run_that_was_broken_off_ends_in_the_same_bits(name: str, tiny_bert: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    examples = examples_of("triplets", 40) if name == "lora" else TEXTS
    config = TrainConfig(**CONFIG, lora=Lora(rank=2) if name == "lora" else None)

    def step() -> Step:
        if name == "lora":
            return step_for(tiny_bert, "contrastive")
        torch.manual_seed(1)
        return MADE[name](SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu"))

    seen: list[int] = []

    def break_off(model: torch.nn.Module) -> float:
        seen.append(1)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return 0.5

    def validate(model: torch.nn.Module) -> float:
        return 0.5

    train(step(), examples, tmp_path / "whole", config, validate=validate, show_progress=False)
    with pytest.raises(KeyboardInterrupt):
        train(step(), examples, tmp_path / "broken", config, validate=break_off, show_progress=False)
    result = train(
        step(), examples, tmp_path / "broken", config, validate=validate, resume=True, show_progress=False
    )
    assert result.steps == 8
    for file in ("model/model.safetensors", "last/weights.safetensors", "last/optimiser.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "broken" / file).read_bytes()


@pytest.mark.parametrize("lora", [None, Lora(rank=2)])
@pytest.mark.parametrize("broken_at", [1, 2])
def test_a_save_that_was_broken_off_is_made_when_the_run_goes_on(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_at: int, lora: Lora | None
) -> None:
    torch.set_num_threads(1)
    examples, config = examples_of("triplets", 40), TrainConfig(**CONFIG, lora=lora)

    def run(output: str, *scores: float, resume: bool = False) -> TrainResult:
        given, step = iter(scores), step_for(tiny_bert, "contrastive")
        return train(
            step, examples, tmp_path / output, config,
            validate=lambda model: next(given), resume=resume, show_progress=False,
        )  # fmt: skip

    whole = run("whole", 0.1, 0.9, 0.2)
    n_saved, save = iter(range(1, 10)), SentenceEncoder.save

    def break_off(*arguments: object, **settings: object) -> None:
        if next(n_saved) == broken_at:
            raise KeyboardInterrupt
        save(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(SentenceEncoder, "save", break_off)
    with pytest.raises(KeyboardInterrupt):
        run("broken", 0.1, 0.9)
    result = run("broken", *(0.1, 0.9, 0.2)[broken_at - 1 :], resume=True)
    assert (result.best_step, result.best_score) == (whole.best_step, whole.best_score) == (6, 0.9)
    for file in ("model/model.safetensors", "last/weights.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "broken" / file).read_bytes()


def test_a_validation_that_was_broken_off_is_made_when_the_run_goes_on(
    tiny_bert: Path, tmp_path: Path
) -> None:
    examples, config = examples_of("triplets", 40), TrainConfig(**CONFIG)
    scores = iter([0.1, None, 0.9, 0.2])  # the best is that of step 6, which is broken off at first

    def validate(model: torch.nn.Module) -> float:
        score = next(scores)
        if score is None:
            raise KeyboardInterrupt
        return score

    def run(resume: bool) -> TrainResult:
        step = step_for(tiny_bert, "contrastive")
        return train(
            step, examples, tmp_path / "run", config, validate=validate, resume=resume, show_progress=False
        )

    with pytest.raises(KeyboardInterrupt):
        run(resume=False)
    result = run(resume=True)
    assert (result.best_step, result.best_score) == (6, 0.9)
    lines = MetricsFile(tmp_path / "run" / "metrics.jsonl").read()
    assert [line["step"] for line in lines if "validation" in line] == [3, 6, 8]


class Killed(BaseException):
    """As good as SIGKILL: nothing of ours catches it."""


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("after_it", [False, True])
def test_a_kill_at_the_end_changes_nothing(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, validated: bool, after_it: bool
) -> None:
    """A slice of the run ends at step 7, whose model is the best of all."""
    torch.set_num_threads(1)
    examples, scores = examples_of("triplets", 50), {5: 0.5, 7: 0.9, 10: 0.3}
    config = TrainConfig(batch_size=5, learning_rate=1e-3, evaluate_every=5 if validated else None)

    def run(output: str, n_steps: int, resume: bool) -> TrainResult:
        step = step_for(tiny_bert, "contrastive")
        monkeypatch.setattr(_Run, "_out_of_time", lambda run: run.state.step >= n_steps)
        held: list[int] = []
        monkeypatch.setattr(_Run, "_score", lambda run: held.append(1) or scores[run.state.step])
        validate = (lambda model: 0.0) if validated else None
        return train(
            step, examples, tmp_path / output, config, validate=validate, resume=resume, show_progress=False
        )

    run("whole", 7, False)
    whole = run("whole", 99, True)
    save, n_saved = SentenceEncoder.save, iter(range(1, 10))

    def killed(*arguments: object, **settings: object) -> None:
        is_time = next(n_saved) == 1 + validated
        if is_time and not after_it:
            raise Killed
        save(*arguments, **settings)  # type: ignore[arg-type]
        if is_time:
            raise Killed

    monkeypatch.setattr(SentenceEncoder, "save", killed)
    with pytest.raises(Killed):
        run("killed", 7, False)
    monkeypatch.setattr(SentenceEncoder, "save", save)
    result = run("killed", 99, True)
    assert (result.best_step, result.best_score) == (whole.best_step, whole.best_score)
    assert result.best_score == (0.9 if validated else None)
    lines = [MetricsFile(tmp_path / name / "metrics.jsonl").read() for name in ("whole", "killed")]
    kinds = [[(line["step"], "validation" in line) for line in each] for each in lines]
    assert len(kinds[1]) == len(set(kinds[1]))
    if validated:
        assert kinds[0] == kinds[1]
    for file in ("model/model.safetensors", "last/weights.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes()
