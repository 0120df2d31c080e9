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
from gemel.train import TrainConfig, train
from gemel.train.condenser import CondenserStep
from gemel.train.denoising import DenoisingStep
from gemel.train.distillation import DistillationStep
from gemel.train.imitation import VectorImitation
from gemel.train.lora import Lora
from gemel.train.steps import Step

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
