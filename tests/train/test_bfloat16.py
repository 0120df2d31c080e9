"""bfloat16 is used where a trial, in a process that may die of it, has shown it right and faster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from training_process import examples_of, step_for

import gemel.train.bfloat16
from gemel.errors import InvalidInput
from gemel.train import TrainConfig, train
from gemel.train.bfloat16 import decide, forward_in_bfloat16, try_bfloat16

CPU = torch.device("cpu")
TRAPS = "import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another machine's trial in the place of ours."""

    def put(program: str) -> None:
        (tmp_path / "trial.py").write_text(program, encoding="utf-8")
        monkeypatch.setattr(gemel.train.bfloat16, "TRIAL", tmp_path / "trial.py")
        try_bfloat16.cache_clear()

    yield put  # type: ignore[misc]
    try_bfloat16.cache_clear()


def finds(cosine: float, speedup: float) -> str:
    return f"print({json.dumps(json.dumps({'cosine': cosine, 'speedup': speedup}))})"


def test_off_tries_nothing(machine: Callable[[str], None]) -> None:
    machine(TRAPS)
    assert not decide("off", CPU)
    assert try_bfloat16.cache_info().currsize == 0


def test_a_machine_that_traps_is_found_out_without_harm(machine: Callable[[str], None]) -> None:
    machine(TRAPS)
    assert not decide("auto", CPU)
    with pytest.raises(InvalidInput, match=r"does not compute it right .*ended with signal 4"):
        decide("on", CPU)


@pytest.mark.parametrize(
    ("cosine", "speedup", "auto", "on"),
    [(0.9999, 1.8, True, True), (0.9999, 0.6, False, True), (0.2, 1.8, False, False)],
)
def test_auto_asks_for_right_and_faster_and_on_for_right(
    machine: Callable[[str], None], cosine: float, speedup: float, auto: bool, on: bool
) -> None:
    machine(finds(cosine, speedup))
    assert decide("auto", CPU) is auto
    if on:
        assert decide("on", CPU)
    else:
        with pytest.raises(InvalidInput, match="use 'auto' or 'off'"):
            decide("on", CPU)


def test_the_trial_of_this_machine_ends_and_says_how_it_went() -> None:
    trial = try_bfloat16("cpu")
    assert "cpu" in trial.reason
    assert trial.speedup > 0 or not trial.is_right
    assert not try_bfloat16("no-such-device").is_right


def test_the_forward_pass_is_rough_and_the_objective_is_not(tiny_bert: Path) -> None:
    if not try_bfloat16("cpu").is_right:
        pytest.skip("this machine does not compute bfloat16 right")
    step = step_for(tiny_bert, "contrastive").eval()
    examples, rows = examples_of("triplets"), np.arange(8)
    seen = []
    step.objective.register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    exact, _ = step.loss(examples, rows)
    with forward_in_bfloat16(step.model):
        rough, _ = step.loss(examples, rows)
    again, _ = step.loss(examples, rows)
    assert [columns.dtype for columns in seen] == [torch.float32] * 3
    assert not torch.equal(seen[0], seen[1])
    assert float(rough.detach()) == pytest.approx(float(exact.detach()), rel=0.05)
    assert torch.equal(again, exact)
    assert not torch.is_autocast_enabled("cpu")


def test_a_run_in_bfloat16_keeps_to_what_it_found_when_it_is_resumed(
    tiny_bert: Path, tmp_path: Path, machine: Callable[[str], None]
) -> None:
    if not try_bfloat16("cpu").is_right:
        pytest.skip("this machine does not compute bfloat16 right")
    config = TrainConfig(batch_size=10, learning_rate=1e-3, bf16="auto", max_steps=4, checkpoint_every=2)
    examples = examples_of("triplets")

    def run(output: str, config: TrainConfig) -> dict[str, np.ndarray]:
        result = train(
            step_for(tiny_bert, "contrastive"), examples, tmp_path / output, config,
            resume=True, show_progress=False,
        )  # fmt: skip
        return load_file(result.model / "model.safetensors")

    machine(finds(0.9999, 1.8))
    rough = run("rough", config)
    exact = run("exact", replace(config, bf16="off"))
    assert any(not np.array_equal(rough[name], exact[name]) for name in exact)
    machine(finds(0.9999, 0.9))  # a busier hour: what was found first stays
    state = json.loads((tmp_path / "rough" / "last" / "state.json").read_text())
    assert state["state"]["uses_bfloat16"] is True
    again = run("rough", config)
    assert all(np.array_equal(rough[name], again[name]) for name in rough)
    with pytest.raises(InvalidInput, match="was made with bf16 = 'auto' and now it is 'off'"):
        run("rough", replace(config, bf16="off"))


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="bf16 is 'yes'; expected one of auto, on, off"):
        TrainConfig(bf16="yes")
