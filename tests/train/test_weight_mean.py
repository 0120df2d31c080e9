"""The mean of the last weights: it is validated and saved, and the run itself does not know of it."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from training_process import examples_for, step_for

from gemel import load_encoder
from gemel.errors import InvalidInput
from gemel.train import TrainConfig, train
from gemel.train.lora import Lora, add_adapters
from gemel.train.weight_mean import WeightMean

Weights = dict[str, torch.Tensor]
PLAIN = TrainConfig(batch_size=6, learning_rate=1e-3, evaluate_every=1)  # 60 examples: 10 steps
AVERAGED = replace(PLAIN, average_last=0.3)  # after steps 8, 9 and 10


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


class Watcher:
    """Notes the weights that each validation sees; the later, the better."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.seen: list[Weights] = []
        self.stop_at = stop_at

    def __call__(self, model: torch.nn.Module) -> float:
        if len(self.seen) == self.stop_at:
            raise KeyboardInterrupt
        self.seen.append({name: value.detach().clone() for name, value in model.named_parameters()})
        return float(len(self.seen))


def run(
    folder: Path, output: Path, config: TrainConfig, watcher: Watcher, *, resume: bool = False
) -> torch.nn.Module:
    step = step_for(folder, "contrastive")
    train(
        step, examples_for("contrastive"), output, config,
        validate=watcher, resume=resume, show_progress=False,
    )  # fmt: skip
    return step


def means(seen: list[Weights]) -> Weights:
    return {name: torch.stack([weights[name] for weights in seen]).mean(dim=0) for name in seen[0]}


def test_a_mean_by_hand() -> None:
    weight = torch.nn.Parameter(torch.zeros(2))
    mean = WeightMean({"weight": weight}, begins_after=1)
    for step, value in enumerate((9.0, 1.0, 2.0, 6.0), start=1):
        weight.data.fill_(value)
        mean.add(step)
        with mean.in_place():
            assert weight.tolist() == [{1: 9.0, 2: 1.0, 3: 1.5, 4: 3.0}[step]] * 2
        assert weight.tolist() == [value] * 2


def test_a_signal_does_not_come_between_the_weights_and_their_mean() -> None:
    weights = {name: torch.nn.Parameter(torch.zeros(1)) for name in ("first", "second")}
    mean = WeightMean(weights, begins_after=0)
    mean.add(1)

    class Interrupting(dict[str, torch.Tensor]):
        """What Ctrl-C in the middle of it comes to."""

        def __setitem__(self, name: str, value: torch.Tensor) -> None:
            super().__setitem__(name, value)
            if name == "first":
                signal.raise_signal(signal.SIGINT)

    mean.values = Interrupting({name: torch.ones(1) for name in weights})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), mean.in_place():
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert [weight.item() for weight in weights.values()] == [0.0, 0.0]


def test_the_mean_is_validated_and_the_run_is_the_same_to_the_bit(tiny_bert: Path, tmp_path: Path) -> None:
    plain, averaged = Watcher(), Watcher()
    run(tiny_bert, tmp_path / "plain", PLAIN, plain)
    run(tiny_bert, tmp_path / "averaged", AVERAGED, averaged)
    assert len(plain.seen) == len(averaged.seen) == 10
    for before, after in zip(plain.seen[:8], averaged.seen[:8], strict=True):
        assert all(torch.equal(before[name], after[name]) for name in before)
    for n in (9, 10):
        for name, value in means(plain.seen[7:n]).items():
            torch.testing.assert_close(averaged.seen[n - 1][name], value, rtol=1e-6, atol=1e-7)
    assert any(not torch.equal(plain.seen[9][name], averaged.seen[9][name]) for name in plain.seen[9])
    for file in ("weights.safetensors", "optimiser.safetensors"):
        places = [tmp_path / which / "last" / file for which in ("plain", "averaged")]
        assert places[0].read_bytes() == places[1].read_bytes()
    assert not (tmp_path / "plain" / "last" / "mean.safetensors").exists()


def test_the_saved_model_is_the_mean(tiny_bert: Path, tmp_path: Path) -> None:
    for name, validate in (("validated", Watcher()), ("not validated", None)):
        config = AVERAGED if validate else replace(AVERAGED, evaluate_every=None)
        step, output = step_for(tiny_bert, "contrastive"), tmp_path / name
        train(step, examples_for("contrastive"), output, config, validate=validate, show_progress=False)
        last = step.model.encode(["the man"])
        mean = load_file(output / "last" / "mean.safetensors")
        step.load_state_dict(mean, strict=False)
        opened = load_encoder(output / "model", precision="float32").encode(["the man"])
        np.testing.assert_allclose(opened, step.model.encode(["the man"]), atol=1e-6)
        assert np.abs(opened - last).max() > 1e-4


@pytest.mark.parametrize("stop_at", [5, 7, 8, 9])
def test_a_run_goes_on_to_the_same_mean(tiny_bert: Path, tmp_path: Path, stop_at: int) -> None:
    run(tiny_bert, tmp_path / "whole", AVERAGED, Watcher())
    with pytest.raises(KeyboardInterrupt):
        run(tiny_bert, tmp_path / "broken", AVERAGED, Watcher(stop_at))
    run(tiny_bert, tmp_path / "broken", AVERAGED, Watcher(), resume=True)
    for file in ("last/mean.safetensors", "last/weights.safetensors"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "broken" / file).read_bytes()
    with pytest.raises(InvalidInput, match=r"average_last = 0\.3 and now it is 0\.5"):
        run(tiny_bert, tmp_path / "whole", replace(AVERAGED, average_last=0.5), Watcher(), resume=True)


def test_the_mean_of_adapters_is_merged_into_the_saved_model(tiny_bert: Path, tmp_path: Path) -> None:
    watcher = Watcher()
    step = run(tiny_bert, tmp_path / "run", replace(AVERAGED, learning_rate=1e-2, lora=Lora(rank=2)), watcher)
    mean = load_file(tmp_path / "run" / "last" / "mean.safetensors")
    assert mean
    assert all(".lora_" in name for name in mean)
    averaged = step_for(tiny_bert, "contrastive")
    add_adapters(averaged.model, Lora(rank=2), seed=0)
    averaged.load_state_dict(mean, strict=False)
    opened = load_encoder(tmp_path / "run" / "model", precision="float32").encode(["the man"])
    np.testing.assert_allclose(opened, averaged.model.encode(["the man"]), atol=1e-5)
    assert np.abs(opened - step.model.encode(["the man"])).max() > 1e-4


@pytest.mark.parametrize("share", [0, 0.0, -0.1, 1.5, "half", True])
def test_a_share_that_is_none_is_told(share: object) -> None:
    with pytest.raises(InvalidInput, match=r"average_last is .*; expected a share of the steps"):
        TrainConfig.from_dict({"average_last": share})


@pytest.mark.parametrize(
    ("share", "n_steps", "n_plain"), [(None, 10, 10), (1.0, 10, 0), (0.25, 10, 8), (0.01, 3, 2)]
)
def test_how_many_steps_are_averaged(share: float | None, n_steps: int, n_plain: int) -> None:
    assert TrainConfig(average_last=share).plain_steps(n_steps) == n_plain
