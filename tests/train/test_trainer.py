"""The loop: everything that should move moves, and a killed run goes on to the same bits."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from stand_ins import read_json, write_json
from training_process import CONFIG, KINDS, examples_for, examples_of, run, step_for
from transformers import BertConfig, BertModel, T5Config, T5EncoderModel

from gemel import load_encoder, load_pair_classifier, load_trainable
from gemel.checkpoint import Pooling, read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput, InvalidModel, WriteFailed
from gemel.model import SentenceEncoder
from gemel.train import SentenceEncoderStep, TrainConfig, TrainResult, build_objective, train
from gemel.train.metrics import MetricsFile
from gemel.train.objectives import InBatchContrastive
from gemel.train.state import RunState
from gemel.train.steps import module_of
from gemel.train.trained import trained_parts


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def step_without_dropout(folder: Path, name: str) -> torch.nn.Module:
    """A step whose loss has no noise but that of the batches."""
    step = step_for(folder, name)
    for module in step.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return step


def snapshot(step: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in step.named_parameters()}


@pytest.mark.parametrize("name", KINDS)
def test_every_trainable_part_of_every_objective_moves(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    step = step_for(tiny_bert, name)
    before = snapshot(step)
    config = TrainConfig(batch_size=16, learning_rate=1e-2)
    train(step, examples_for(name), tmp_path / "run", config, show_progress=False)
    still = [
        parameter for parameter, value in step.named_parameters() if torch.equal(value, before[parameter])
    ]
    unused = [parameter for parameter in still if ".pooler." in parameter and not name.startswith("pair-")]
    assert still == unused


def test_frozen_parts_stay_as_they_are(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "softmax")
    before = snapshot(step)
    config = TrainConfig(batch_size=16, learning_rate=1e-2, freeze=("backbone.embeddings", "objective"))
    train(step, examples_of("classified pairs"), tmp_path / "run", config, show_progress=False)
    moved = {name for name, value in step.named_parameters() if not torch.equal(value, before[name])}
    assert moved
    assert not any(name.startswith(("model.backbone.embeddings", "objective")) for name in moved)
    config = TrainConfig(freeze=("backbone.embedings",))
    with pytest.raises(InvalidInput, match=r"nothing is named 'backbone\.embedings'"):
        train(step, examples_of("classified pairs"), tmp_path / "other", config, show_progress=False)
    config = TrainConfig.from_dict({"freeze": ["backbone", "objective"]})
    with pytest.raises(InvalidInput, match="freeze is backbone, objective and leaves nothing to train"):
        train(step, examples_of("classified pairs"), tmp_path / "other", config, show_progress=False)


def test_training_lowers_the_loss(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_without_dropout(tiny_bert, "contrastive")
    config = TrainConfig(epochs=40, batch_size=15, learning_rate=3e-3)
    train(step, examples_of("triplets"), tmp_path / "run", config, show_progress=False)
    losses = [line["loss"] for line in MetricsFile(tmp_path / "run" / "metrics.jsonl").read()]
    assert losses[-1] < losses[0] / 2


def test_the_learning_rate_warms_up_and_decays() -> None:
    config = TrainConfig(learning_rate=1.0, warmup=0.2)
    rates = [config.learning_rate_at(step, 10) for step in range(10)]
    assert rates == pytest.approx([0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125])


def test_accumulated_batches_are_one_large_batch(tiny_bert: Path, tmp_path: Path) -> None:
    weights = []
    for batch_size, accumulate in ((12, 1), (3, 4)):
        step = step_without_dropout(tiny_bert, "cosine")
        config = TrainConfig(batch_size=batch_size, accumulate=accumulate, max_steps=3, learning_rate=1e-3)
        output = tmp_path / f"run-{accumulate}"
        train(step, examples_of("scored pairs"), output, config, show_progress=False)
        weights.append(load_file(output / "model" / "model.safetensors"))
    for name, value in weights[0].items():
        # The bias of the keys cancels in the softmax: its gradient is rounding noise, which Adam scales up.
        if not name.endswith("key.bias"):
            np.testing.assert_allclose(value, weights[1][name], rtol=1e-3, atol=5e-4)


def test_the_best_model_is_kept_and_patience_ends_the_run(tiny_bert: Path, tmp_path: Path) -> None:
    scores = iter([0.2, 0.9, 0.5, 0.4, 0.8, 0.1])
    config = TrainConfig(epochs=9, batch_size=10, evaluate_every=2, patience=2, learning_rate=1e-3)
    step = step_for(tiny_bert, "cosine")
    seen: list[np.ndarray] = []

    def validate(encoder: torch.nn.Module) -> float:
        assert not encoder.training
        seen.append(encoder.encode(["the man"]))  # type: ignore[operator]
        return next(scores)

    result = train(
        step, examples_of("scored pairs"), tmp_path / "run", config, validate=validate, show_progress=False
    )
    assert (result.best_step, result.best_score, result.steps) == (4, 0.9, 8)
    assert result.stopped_early
    np.testing.assert_allclose(
        load_encoder(result.model, precision="float32").encode(["the man"]), seen[1], atol=1e-6
    )


def start(folder: Path, output: Path, name: str, *extra: str) -> subprocess.Popen[bytes]:
    here = Path(__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, here / "training_process.py", folder, output, name, *extra],
        env={**os.environ, "PYTHONPATH": str(here), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )


def wait_for_step(output: Path, process: subprocess.Popen[bytes], n_lines: int) -> None:
    while process.poll() is None:
        if len(MetricsFile(output / "metrics.jsonl").read()) >= n_lines:
            return
        time.sleep(0.001)


@pytest.mark.parametrize("name", ["softmax", "pair-regression"])
def test_a_run_killed_several_times_ends_in_the_same_bits(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    expected = run(tiny_bert, whole, name)
    generator = random.Random(name)
    kills = 0
    for _ in range(3):
        with start(tiny_bert, broken, name, "resume") as process:
            wait_for_step(broken, process, generator.randint(1, 4))
            time.sleep(generator.random() * 0.05)
            if process.poll() is None:
                process.kill()
                kills += 1
    assert kills >= 2
    result = run(tiny_bert, broken, name, resume=True)
    assert (result.steps, result.best_step, result.best_score) == (
        expected.steps, expected.best_step, expected.best_score,
    )  # fmt: skip
    files = ("weights", "optimiser", "mean")
    for file in ("model/model.safetensors", *(f"last/{name}.safetensors" for name in files)):
        assert (whole / file).read_bytes() == (broken / file).read_bytes()
    lines = [MetricsFile(output / "metrics.jsonl").read() for output in (whole, broken)]
    assert [line["step"] for line in lines[0]] == [line["step"] for line in lines[1]]
    assert [line.get("loss") for line in lines[0]] == [line.get("loss") for line in lines[1]]


def test_without_a_word_of_checkpoints_there_is_one_at_every_evaluation(
    tiny_bert: Path, tmp_path: Path
) -> None:
    config = TrainConfig(epochs=9, batch_size=10, evaluate_every=2, max_steps=6, learning_rate=1e-3)
    kept: list[bool] = []

    def validate(encoder: torch.nn.Module) -> float:
        kept.append((tmp_path / "run" / "last").is_dir())
        return 0.5

    examples = examples_of("scored pairs")
    train(
        step_for(tiny_bert, "cosine"), examples, tmp_path / "run", config,
        validate=validate, show_progress=False,
    )  # fmt: skip
    assert kept == [False, True, True]
    shutil.rmtree(tmp_path / "run" / "last")
    with pytest.raises(InvalidInput, match="has a model and no checkpoint to go on from, and training anew"):
        train(
            step_for(tiny_bert, "cosine"), examples, tmp_path / "run", config, validate=validate, resume=True
        )
    shutil.rmtree(tmp_path / "run" / "model")  # as if it had been killed before the first
    result = train(
        step_for(tiny_bert, "cosine"), examples, tmp_path / "run", config,
        validate=validate, resume=True, show_progress=False,
    )  # fmt: skip
    assert result.steps == 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_until_the_step_is_counted(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    config = TrainConfig(batch_size=10, max_steps=3, learning_rate=1e-3)
    examples, step = examples_of("scored pairs"), step_for(tiny_bert, "cosine")
    whole = train(step, examples, tmp_path / "whole", config, show_progress=False)
    steps = iter([False, True, False])
    plain = torch.optim.AdamW.step

    def interrupted(self: torch.optim.AdamW) -> None:
        plain(self)
        if next(steps, False):
            signal.raise_signal(number)

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupted)
    before = signal.signal(number, signal.default_int_handler)  # jobs in the background ignore SIGINT
    try:
        with pytest.raises(KeyboardInterrupt):
            train(step_for(tiny_bert, "cosine"), examples, tmp_path / "broken", config, show_progress=False)
    finally:
        signal.signal(number, before)
        monkeypatch.undo()
    result = train(
        step_for(tiny_bert, "cosine"), examples, tmp_path / "broken", config, resume=True, show_progress=False
    )
    weights = [(run.model / "model.safetensors").read_bytes() for run in (whole, result)]
    assert weights[0] == weights[1]


def test_more_patience_lets_a_run_go_on(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=10, evaluate_every=1, patience=1, max_steps=4, epochs=9)
    examples = examples_of("scored pairs")

    def ends_at(patience: int) -> int:
        scores = iter([0.9, 0.8, 0.7, 0.6])
        return train(
            step_for(tiny_bert, "cosine"), examples, tmp_path / "run", replace(config, patience=patience),
            validate=lambda encoder: next(scores), resume=True, show_progress=False,
        ).steps  # fmt: skip

    assert [ends_at(1), ends_at(2), ends_at(9)] == [2, 3, 4]


def test_another_recipe_cannot_continue_a_run(tiny_bert: Path, tmp_path: Path) -> None:
    run(tiny_bert, tmp_path / "run", "cosine")
    step = step_for(tiny_bert, "cosine")
    examples = examples_of("scored pairs")
    other = TrainConfig.from_dict({**CONFIG.to_dict(), "batch_size": 5, "evaluate_every": None})
    with pytest.raises(InvalidInput, match="was made with batch_size = 4 and now it is 5"):
        train(step, examples, tmp_path / "run", other, resume=True, show_progress=False)
    with pytest.raises(InvalidInput, match="holds a run already"):
        train(step, examples, tmp_path / "run", other, show_progress=False)


def test_another_concatenation_cannot_continue_a_run(tiny_bert: Path, tmp_path: Path) -> None:
    examples = examples_of("classified pairs")

    def step(*parts: str) -> SentenceEncoderStep:
        encoder = load_trainable(tiny_bert)
        settings = {"dim": encoder.dim, "n_labels": 3, "concatenation": parts}
        objective = build_objective("softmax", examples.kind, **settings)  # type: ignore[arg-type]
        return SentenceEncoderStep(encoder, objective, examples.label_names)

    config = replace(CONFIG, evaluate_every=None)
    train(step("u", "v"), examples, tmp_path / "run", config, show_progress=False)
    with pytest.raises(InvalidInput, match=r"was made by softmax .*'u', 'v'.* and now it is softmax .*u\*v"):
        train(step("u*v", "|u-v|"), examples, tmp_path / "run", config, resume=True, show_progress=False)


def test_a_run_whose_checkpoint_tells_less_of_its_objective_goes_on(tiny_bert: Path, tmp_path: Path) -> None:
    run(tiny_bert, tmp_path / "run", "softmax")
    file = tmp_path / "run" / "last" / "state.json"
    saved = read_json(file)
    assert saved["objective"] == "softmax (concatenation = ('u', 'v', '|u-v|'))"
    write_json(file, {**saved, "objective": "softmax"})  # as an older program wrote it
    assert run(tiny_bert, tmp_path / "run", "softmax", resume=True).is_complete
    write_json(file, {**saved, "objective": "softmax (concatenation = ('u', 'v'))"})
    with pytest.raises(InvalidInput, match="was made by softmax"):
        run(tiny_bert, tmp_path / "run", "softmax", resume=True)


def test_the_pace_of_a_resumed_run_counts_the_time_before(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=4, epochs=2, max_steps=12, evaluate_every=9)
    examples, metrics = examples_of("scored pairs"), MetricsFile(tmp_path / "run" / "metrics.jsonl")

    def go(tell: Callable[[str], None] | None = None) -> None:
        step = step_for(tiny_bert, "cosine")
        train(
            step, examples, tmp_path / "run", config,
            validate=lambda model: 0.5, resume=True, show_progress=False, tell=tell,
        )  # fmt: skip

    def broken_off(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(broken_off)
    file = tmp_path / "run" / "last" / "state.json"
    values = read_json(file)
    assert values["state"]["step"] == 9
    assert values["state"]["unlogged_seconds"] > 0
    values["state"]["unlogged_seconds"] = 1e6  # as if these nine steps had taken days
    write_json(file, values)
    go()
    (first, *_) = [line for line in metrics.read() if "pairs_per_second" in line]
    assert (first["step"], first["pairs_per_second"] < 1) == (10, True)


def test_a_disk_that_fills_during_a_checkpoint_leaves_the_last_good_one(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gemel.train.state

    whole = tmp_path / "whole"
    run(tiny_bert, whole, "cosine")
    real, calls = gemel.train.state.save_file, []

    def fill_up(*arguments: object) -> None:
        calls.append(1)
        if len(calls) > 5:
            raise OSError(28, "No space left on device")
        real(*arguments)

    monkeypatch.setattr(gemel.train.state, "save_file", fill_up)
    with pytest.raises(WriteFailed, match=r"last could not be written .*No space left on device"):
        run(tiny_bert, tmp_path / "run", "cosine")
    monkeypatch.undo()
    run(tiny_bert, tmp_path / "run", "cosine", resume=True)
    file = Path("model/model.safetensors")
    assert (tmp_path / "run" / file).read_bytes() == (whole / file).read_bytes()


def test_the_softmax_head_is_saved_and_usable(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_without_dropout(tiny_bert, "softmax")
    config = TrainConfig(epochs=30, batch_size=12, learning_rate=5e-3)
    examples = examples_of("classified pairs", n=24)
    result = train(step, examples, tmp_path / "run", config, show_progress=False)
    classifier = load_pair_classifier(result.model)
    pairs = list(zip(*examples.columns.values(), strict=True))
    assert examples.labels is not None
    truth = [examples.label_names[label] for label in examples.labels]
    predicted = classifier.predict(pairs)
    assert sum(map(str.__eq__, predicted, truth)) >= 20
    np.testing.assert_allclose(classifier.probabilities(pairs).sum(axis=1), 1, rtol=1e-5)
    assert classifier.predict([]) == []
    with pytest.raises(InvalidModel, match="has no classifier"):
        load_pair_classifier(tiny_bert)


def test_bad_batches_and_losses_are_told(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "contrastive")
    with pytest.raises(InvalidInput, match="the objective contrastive needs at least 2 examples a batch"):
        train(step, examples_of("triplets"), tmp_path / "a", TrainConfig(batch_size=1), show_progress=False)
    with pytest.raises(InvalidInput, match="1 examples are too few"):
        train(step, examples_of("triplets", 1), tmp_path / "b", show_progress=False)
    step = step_for(tiny_bert, "cosine")
    config = TrainConfig(learning_rate=1e30, epochs=30, clip_norm=1e30)
    with pytest.raises(InvalidInput, match=r"the loss became nan at step \d+"):
        train(step, examples_of("scored pairs"), tmp_path / "c", config, show_progress=False)


def test_a_last_batch_of_one_is_left_out_for_in_batch_objectives(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "contrastive")
    examples: Examples = examples_of("triplets", 9)
    result = train(step, examples, tmp_path / "run", TrainConfig(batch_size=4), show_progress=False)
    assert result.steps == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batchsize": 3}, "train has the unknown key 'batchsize'; the known keys are epochs, batch_size"),
        ({"batch_size": 0}, "batch_size is 0; expected a whole number, at least 1"),
        ({"batch_size": "8"}, "batch_size is '8'; expected a whole number, at least 1"),
        ({"max_steps": 2.5}, "max_steps is 2.5; expected a whole number, at least 1"),
        ({"seed": -1}, "seed is -1; expected a whole number, 0 to 1,099"),
        ({"lora": 8}, "lora is 8; expected a table, such as { rank = 8 }"),
        ({"warmup": "a"}, "warmup in the settings of a training is 'a'; expected a number"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0; expected more than 0"),
        ({"warmup": 2}, "warmup is 2; expected a share of the steps"),
    ],
)
def test_settings_are_checked(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TrainConfig.from_dict(values)
    assert TrainConfig.from_dict({"freeze": "backbone"}).freeze == ("backbone",)


def test_a_name_to_freeze_is_a_whole_name(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    shutil.copytree(tiny_bert, folder)
    BertModel(BertConfig.from_pretrained(folder, num_hidden_layers=12)).save_pretrained(folder)
    layers = "backbone.encoder.layer"
    config = TrainConfig(freeze=(f"{layers}.1", f"{layers}.2.output.dense.bias"))
    parts = set(trained_parts(step_for(folder, "contrastive"), config))
    assert {int(name.split(".")[4]) for name in parts if ".layer." in name} == set(range(12)) - {1}
    assert f"model.{layers}.2.output.dense.weight" in parts
    assert f"model.{layers}.2.output.dense.bias" not in parts


def test_no_batch_of_several_epochs_is_lost_to_accumulation() -> None:
    assert TrainConfig(epochs=4, accumulate=4).steps_in_all(7) == 7  # 28 batches
    assert TrainConfig(accumulate=9).steps_in_all(7) == 1
    uneven = TrainConfig(accumulate=4)
    assert uneven.steps_in_all(10) == 3
    seen = [batch for step in range(3) for batch in uneven.batches_of(step, 10)]
    assert seen == list(range(10))


def test_a_gradient_that_is_no_number_moves_no_weight(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "contrastive")
    parameter = next(module_of(step).parameters())
    parameter.register_hook(lambda gradient: gradient * float("nan"))
    before = parameter.detach().clone()
    with pytest.raises(InvalidInput, match="the gradient's length became nan at step 0"):
        train(step, examples_for("contrastive"), tmp_path / "run", show_progress=False)
    assert torch.equal(parameter, before)
    assert not (tmp_path / "run" / "last").exists()


def test_weights_that_are_no_numbers_are_not_saved(tiny_bert: Path, tmp_path: Path) -> None:
    step, config = step_for(tiny_bert, "contrastive"), TrainConfig(learning_rate=1e38, max_steps=1)
    with pytest.raises(
        InvalidInput, match=r"became infinite or no number by step 1: lower the learning rate"
    ):
        train(step, examples_for("contrastive"), tmp_path / "run", config, show_progress=False)
    assert not (tmp_path / "run" / "model").exists()


def test_a_run_goes_on_by_the_same_objective_only(tiny_bert: Path, tmp_path: Path) -> None:
    place, examples = tmp_path / "run", examples_for("contrastive")
    train(step_for(tiny_bert, "contrastive"), examples, place, TrainConfig(max_steps=2), show_progress=False)
    with pytest.raises(InvalidInput, match=r"was made by .*contrastive.* and now it is .*triplet"):
        train(
            step_for(tiny_bert, "triplet"), examples, place, TrainConfig(max_steps=2),
            resume=True, show_progress=False,
        )  # fmt: skip
    warmer = SentenceEncoderStep(
        step_for(tiny_bert, "contrastive").model, InBatchContrastive(temperature=0.1)
    )
    with pytest.raises(InvalidInput, match=r"temperature = 0\.05.* and now it is .*temperature = 0\.1"):
        train(warmer, examples, place, TrainConfig(max_steps=2), resume=True, show_progress=False)


def test_an_evaluation_for_want_of_time_tries_nobodys_patience() -> None:
    state, config = RunState(), TrainConfig(evaluate_every=4, patience=1)

    def evaluated(step: int, score: float) -> tuple[float | None, int, bool]:
        state.step = step
        state.take_score(score, config)
        return state.best_score, state.n_worse, state.stopped_early

    assert evaluated(4, 0.5) == (0.5, 0, False)
    assert evaluated(5, 0.4) == (0.5, 0, False)
    assert evaluated(7, 0.9) == (0.9, 0, False)  # the best so far, and no bar for those that count
    assert evaluated(8, 0.6) == (0.9, 0, False)
    assert evaluated(12, 0.5) == (0.9, 1, True)


def test_a_validation_that_gives_no_number_is_told(tiny_bert: Path, tmp_path: Path) -> None:
    step, config = step_for(tiny_bert, "contrastive"), TrainConfig(evaluate_every=1)
    with pytest.raises(InvalidInput, match="validation gave nan at step 1"):
        train(
            step, examples_for("contrastive"), tmp_path / "run", config,
            validate=lambda model: float("nan"), show_progress=False,
        )  # fmt: skip


def test_other_examples_cannot_continue_a_run(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=6, max_minutes=1e-9, checkpoint_every=1)
    place, examples = tmp_path / "run", examples_for("contrastive")
    train(step_for(tiny_bert, "contrastive"), examples, place, config, show_progress=False)
    config = replace(config, max_minutes=None)
    with pytest.raises(InvalidInput, match="was made with other examples"):
        train(step_for(tiny_bert, "contrastive"), examples[:30], place, config, resume=True)
    result = train(step_for(tiny_bert, "contrastive"), examples, place, config, resume=True)
    assert result.steps == 10


def test_a_checkpoint_that_was_being_replaced_is_found(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=6, max_steps=4)
    place, examples = tmp_path / "run", examples_for("contrastive")
    train(step_for(tiny_bert, "contrastive"), examples, place, config, show_progress=False)
    old = place / ".last.abc.old"
    old.mkdir()
    (place / "last").rename(old / "model")  # killed before the new one was there
    (place / ".last.def.unfinished").mkdir()
    (place / ".model.ghi.unfinished").mkdir()
    result = train(step_for(tiny_bert, "contrastive"), examples, place, config, resume=True)
    assert result.steps == 4
    lines = MetricsFile(place / "metrics.jsonl").read()
    assert len(lines) == 1  # it went on from step 4, and did not begin anew
    assert not [path.name for path in place.iterdir() if path.name.startswith(".")]


def test_a_model_whose_weights_have_two_names_is_trained_and_resumed(tiny_bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "t5"
    shutil.copytree(tiny_bert, folder)
    (folder / "model.safetensors").unlink()
    n_tokens = load_encoder(tiny_bert).folder.config["vocab_size"]
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    torch.manual_seed(0)
    T5EncoderModel(T5Config(vocab_size=n_tokens, **sizes)).save_pretrained(folder)
    config = TrainConfig(batch_size=20, checkpoint_every=1)
    examples, place = examples_for("contrastive"), tmp_path / "run"
    short = replace(config, max_minutes=1e-9)
    train(step_for(folder, "contrastive"), examples, place, short, show_progress=False)
    result = train(step_for(folder, "contrastive"), examples, place, config, resume=True, show_progress=False)
    assert result.steps == 3
    assert load_encoder(result.model).encode(["a man"]).shape == (1, 16)


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_validation_that_fails_loses_nothing(tiny_bert: Path, tmp_path: Path, fails_at: int) -> None:
    n_asked = iter(range(1, 10))

    def validate(model: object) -> float:
        if next(n_asked) == fails_at:
            raise OSError("no such dev set")
        return 0.5

    config = TrainConfig(batch_size=10, evaluate_every=2, checkpoint_every=5)
    step, examples = step_for(tiny_bert, "contrastive"), examples_of("triplets")
    with pytest.raises(OSError, match="no such dev set"):
        train(step, examples, tmp_path / "run", config, validate=validate)
    assert read_json(tmp_path / "run" / "last" / "state.json")["state"]["step"] == 2 * fails_at
    step = step_for(tiny_bert, "contrastive")
    result = train(step, examples, tmp_path / "run", config, validate=validate, resume=True)
    assert (result.steps, result.is_complete) == (6, True)


def test_a_best_model_and_what_is_told_of_it_belong_together_after_a_kill(
    tiny_bert: Path, tmp_path: Path
) -> None:
    scores = {2: 0.1, 4: 0.9}
    config = TrainConfig(batch_size=10, learning_rate=1e-2, evaluate_every=2, checkpoint_every=3)

    class Killed(BaseException):
        pass

    def run(config: TrainConfig, killed_at: int = 0, resume: bool = False) -> TrainResult:
        step, n_losses = step_for(tiny_bert, "contrastive"), iter(range(0 if not resume else 4, 100))
        loss = step.loss

        def counted(*arguments: Any) -> Any:
            if next(n_losses) + 1 == killed_at:
                raise Killed
            return loss(*arguments)

        step.loss = counted  # type: ignore[method-assign]
        return train(
            step, examples_of("triplets"), tmp_path / "run", config, resume=resume,
            validate=lambda model: scores.get(next(n_evaluated) * 2, 0.2), show_progress=False,
        )  # fmt: skip

    n_evaluated = iter(range(1, 10))
    with pytest.raises(Killed):
        run(config, killed_at=5)
    n_evaluated = iter(range(2, 10))  # that of step 4 is made again
    result = run(replace(config, max_minutes=1e-9), resume=True)
    assert (result.steps, result.best_step, result.best_score) == (4, 4, 0.9)
    lines = MetricsFile(tmp_path / "run" / "metrics.jsonl").read()
    assert [(line["step"], line["validation"]) for line in lines if "validation" in line] == [
        (2, 0.1),
        (4, 0.9),
    ]


def test_a_small_last_batch_weighs_as_its_rows_do(tiny_bert: Path, tmp_path: Path) -> None:
    examples = examples_of("scored pairs", 7)
    ends = []
    for name, config in {"split": {"batch_size": 6, "accumulate": 2}, "whole": {"batch_size": 7}}.items():
        step = step_without_dropout(tiny_bert, "cosine")
        train(step, examples, tmp_path / name, TrainConfig(learning_rate=1e-3, **config))  # type: ignore[arg-type]
        ends.append(load_file(tmp_path / name / "last" / "optimiser.safetensors"))
    split, whole = ends
    for name, value in whole.items():
        np.testing.assert_allclose(split[name], value, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pooling": Pooling(("cls",))}, r"pooling = .*mean.* and now it is .*cls"),
        ({"max_tokens": 16}, r"max_tokens = \d+ and now it is 16"),
    ],
)
def test_a_model_that_reads_otherwise_cannot_continue_a_run(
    tiny_bert: Path, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    folder, examples = read_encoder_folder(tiny_bert), examples_of("triplets")
    for spec, resume in ((folder.spec, False), (replace(folder.spec, **change), True)):
        step = SentenceEncoderStep(
            SentenceEncoder(folder.with_spec(spec), device="cpu"), InBatchContrastive()
        )
        if not resume:
            train(step, examples, tmp_path / "run", TrainConfig(max_steps=2))
            continue
        with pytest.raises(InvalidInput, match=told):
            train(step, examples, tmp_path / "run", TrainConfig(max_steps=2), resume=True)


@pytest.mark.parametrize("cut", ["optimiser.safetensors", "weights.safetensors", "state.json", "fields"])
def test_a_damaged_checkpoint_is_told_as_such(tiny_bert: Path, tmp_path: Path, cut: str) -> None:
    run(tiny_bert, tmp_path / "run", "contrastive")
    last = tmp_path / "run" / "last"
    if cut == "fields":
        write_json(last / "state.json", {"state": {"strange": 1}, "config": {}})
    else:
        (last / cut).write_bytes((last / cut).read_bytes()[:100])
    with pytest.raises(
        InvalidModel, match=r"the checkpoint .*last cannot be read \(.*delete it to begin anew"
    ):
        run(tiny_bert, tmp_path / "run", "contrastive", resume=True)


@pytest.mark.parametrize("given", [{"spearman": 0.5}, None, float("inf")])
def test_a_validation_that_gives_something_else_is_told(tiny_bert: Path, tmp_path: Path, given: Any) -> None:
    step = step_for(tiny_bert, "contrastive")
    with pytest.raises(InvalidInput, match=r"validation gave .* at step \d+; expected a finite number"):
        train(step, examples_of("triplets"), tmp_path / "run", validate=lambda model: given)


def test_a_second_interrupt_waits_for_the_checkpoint(tiny_bert: Path, tmp_path: Path) -> None:
    step, told = step_for(tiny_bert, "contrastive"), []
    loss, n_losses = step.loss, iter(range(100))

    def interrupted(*arguments: Any) -> Any:
        if next(n_losses) == 3:
            signal.raise_signal(signal.SIGINT)
        return loss(*arguments)

    def tell(line: str) -> None:
        told.append(line)
        signal.raise_signal(signal.SIGINT)

    step.loss = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        train(step, examples_of("triplets"), tmp_path / "run", TrainConfig(batch_size=10), tell=tell)
    assert told == ["stopping after step 3: a checkpoint is being written"]
    assert read_json(tmp_path / "run" / "last" / "state.json")["state"]["step"] == 3


def test_a_run_without_time_says_so(tiny_bert: Path, tmp_path: Path) -> None:
    told: list[str] = []
    config = TrainConfig(batch_size=10, max_minutes=1e-9)
    for resume in (False, True):
        step = step_for(tiny_bert, "contrastive")
        train(step, examples_of("triplets"), tmp_path / "run", config, resume=resume, tell=told.append)
    assert told == ["no time is left at step 0 of 6: raise max_minutes to go on"] * 2


def test_patience_of_an_older_program_goes_on(tiny_bert: Path, tmp_path: Path) -> None:
    step, examples = step_for(tiny_bert, "contrastive"), examples_of("triplets")
    config = TrainConfig(batch_size=10, evaluate_every=2, patience=2, max_minutes=1e-9)
    train(step, examples, tmp_path / "run", config, validate=lambda model: 0.8)
    file = tmp_path / "run" / "last" / "state.json"
    saved = read_json(file)
    older = {key: value for key, value in saved["state"].items() if key not in ("best_in_turn", "logged_at")}
    write_json(file, {**saved, "state": older})
    goes_on, step = replace(config, max_minutes=None), step_for(tiny_bert, "contrastive")
    result = train(step, examples, tmp_path / "run", goes_on, validate=lambda model: 0.1, resume=True)
    assert (result.steps, result.stopped_early, result.best_score) == (4, True, 0.8)
