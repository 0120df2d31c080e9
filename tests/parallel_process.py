"""Training in several processes, for the tests to compare with one.

torchrun --nproc-per-node 2 parallel_process.py many|OBJECTIVE MODEL OUTPUT [resume] [dropout] [0-dies]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from training_process import KINDS, examples_of, step_for

from gemel.train import CrossEncoderStep, SentenceEncoderStep, TrainConfig, TrainResult, join_team, train
from gemel.train.parallel import WholeBatch

# 7 rows are shares of 3, 2 and 2; of 2 rows the third process has none
GRADIENTS = [("contrastive", 7), ("softmax", 7), ("cosine", 2), ("triplet", 6), ("pair-classification", 5)]
RUNS = ("contrastive", "softmax")
N_EXAMPLES = 61  # 5 batches of 12 and one of a single row, for which all but one process have none
CONFIG = TrainConfig(
    epochs=2,
    batch_size=12,
    learning_rate=1e-3,
    checkpoint_every=2,
    evaluate_every=3,
    max_minutes=30,
    average_last=0.4,
)


def quiet_step(folder: Path, name: str, dropout: bool = False) -> SentenceEncoderStep | CrossEncoderStep:
    """A step that gives the same loss again, unless dropout is asked for."""
    torch.set_num_threads(1)
    step = step_for(folder, name)
    for module in step.modules():
        if isinstance(module, torch.nn.Dropout) and not dropout:
            module.p = 0.0
    return step


def die_in_the_fifth_step(step: SentenceEncoderStep | CrossEncoderStep) -> None:
    """Let this process be killed when there are checkpoints, and more to do."""
    calls = count(1)

    def die(*_: object) -> None:
        if next(calls) == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    step.objective.register_forward_pre_hook(die)


def run(folder: Path, output: Path, name: str, *more: str) -> TrainResult:
    def validate(model: torch.nn.Module) -> float:
        return float(sum(parameter.detach().abs().sum() for parameter in model.parameters()))

    step, examples = quiet_step(folder, name, "dropout" in more), examples_of(KINDS[name], N_EXAMPLES)
    if f"{join_team().rank}-dies" in more:
        die_in_the_fifth_step(step)
    resume = "resume" in more
    return train(step, examples, output, CONFIG, validate=validate, resume=resume, show_progress=False)


def gradients(folder: Path, name: str, n_rows: int) -> dict[str, Tensor]:
    """Loss and gradients of one batch; with several processes, they are the mean of theirs."""
    team = join_team()
    step, examples = quiet_step(folder, name), examples_of(KINDS[name], N_EXAMPLES)
    step.double().train()  # so that rounding hides nothing
    whole_batch = WholeBatch(team, step, batch_size=12)
    loss, _ = whole_batch.loss(lambda rows: step.loss(examples, rows), np.arange(n_rows)[::-1].copy())
    torch.autograd.backward(loss)
    (mean_loss,) = team.average(list(step.parameters()), [float(loss.detach())])
    found = {name: value.grad for name, value in step.named_parameters() if value.grad is not None}
    return {"loss": torch.tensor(mean_loss), **found}


def many(folder: Path, output: Path) -> None:
    """Whatever one start of the processes can show."""
    rank = join_team().rank
    for name, n_rows in GRADIENTS:
        save_file(gradients(folder, name, n_rows), output / f"{name}-{n_rows}-{rank}.safetensors")
    for name in RUNS:
        result = run(folder, output / name, name)
        (output / f"{name}-{rank}.json").write_text(json.dumps([result.steps, result.best_step]))


if __name__ == "__main__":
    _, what, folder, output, *more = sys.argv
    if what == "many":
        many(Path(folder), Path(output))
    else:
        run(Path(folder), Path(output), what, *more)
