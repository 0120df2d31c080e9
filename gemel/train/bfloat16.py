"""Mixed precision where it pays: forward passes in bfloat16, if a trial has shown it right and faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gemel.errors import InvalidInput

TRIAL = Path(__file__).with_name("bfloat16_trial.py")
TRIAL_SECONDS = 300  # importing torch on a busy machine takes long
LOWEST_COSINE = 0.99  # between gradients in bfloat16 and in float32; 0.9999 where it works
WORTH_IT = 1.1  # times as fast


@dataclass(frozen=True)
class Trial:
    """What a device made of bfloat16."""

    is_right: bool
    speedup: float
    reason: str  # in words, for a person who has asked for it


@cache
def try_bfloat16(device: str) -> Trial:
    """Train a small layer in a process of its own, because an instruction that traps ends the process."""
    # Not by `python FILE`, which would put our folder first among the places that modules come from.
    program = f"import runpy, sys; runpy.run_path({str(TRIAL)!r}, run_name='__main__')"
    command = [sys.executable, "-c", program, device]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(False, 0.0, f"a trial on {device} did not end in {TRIAL_SECONDS} s")
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or ["nothing was said"])[-1]
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else last
        return Trial(False, 0.0, f"a trial on {device} ended with {how}")
    found = json.loads(ended.stdout)
    told = (
        f"on {device} it is {found['speedup']:.2f} times as fast, cosine of gradients {found['cosine']:.5f}"
    )
    return Trial(found["cosine"] >= LOWEST_COSINE, found["speedup"], told)


def decide(choice: str, device: torch.device) -> bool:
    """Whether to compute in bfloat16: "auto" if it is right and faster here, "on" if it is right."""
    if choice == "off":
        return False
    trial = try_bfloat16(str(device))
    if choice == "on" and not trial.is_right:
        raise InvalidInput(
            f"bf16 is 'on' and this machine does not compute it right ({trial.reason}); use 'auto' or 'off'"
        )
    return trial.is_right and (choice == "on" or trial.speedup >= WORTH_IT)


def check_bfloat16(device: torch.device) -> None:
    """Refuse to go on in bfloat16 where this machine does not compute it right: an instruction may trap."""
    trial = try_bfloat16(str(device))
    if not trial.is_right:
        raise InvalidInput(
            f"the run was begun in bfloat16, and this machine does not compute it right ({trial.reason}); "
            "resume it where it was begun, or begin anew elsewhere"
        )


def is_apt_for_bfloat16(step: Any, choice: str) -> bool:
    """Whether a step can be computed in bfloat16 at all; one that is asked to and cannot is refused."""
    if getattr(step, "is_float32", False) and choice == "on":
        told = step.objective.describe()
        raise InvalidInput(f"bf16 is 'on', and {told} is trained in float32 alone; leave bf16 out")
    return not getattr(step, "is_float32", False)


@contextmanager
def forward_in_bfloat16(model: nn.Module) -> Iterator[None]:
    """While it lasts, the model computes its forward passes in bfloat16 and gives float32."""
    kind = next(model.parameters()).device.type
    entered: list[ExitStack] = []  # hooks, because a context cannot be put around a call that others make

    def enter(module: nn.Module, given: Any) -> None:
        entered.append(ExitStack())
        entered[-1].enter_context(torch.autocast(kind, torch.bfloat16))

    def leave(module: nn.Module, given: Any, output: Any) -> Any:
        entered.pop().close()
        return output.float() if isinstance(output, Tensor) else output

    hooks = [model.register_forward_pre_hook(enter), model.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
