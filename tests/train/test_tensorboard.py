"""Event files hold what metrics.jsonl holds; read back with TensorBoard's own reader."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from stand_ins import sentences

from gemel import load_trainable
from gemel.data.examples import Examples
from gemel.errors import MissingExtra
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.tensorboard import TAGS, EventFiles


def pairs() -> Examples:
    texts = sentences(80, seed=7, max_words=5)
    scores = np.linspace(0, 1, 40, dtype=np.float32)
    return Examples("scored pairs", {"first": texts[:40], "second": texts[40:]}, scores)


def run(tiny_bert: Path, output: Path, *, is_killed: bool = False, resume: bool = False) -> None:
    config = TrainConfig(
        batch_size=2,
        evaluate_every=15,
        checkpoint_every=10,
        max_steps=20,
        tensorboard=str(output / "events"),
    )

    def validate(_: object) -> float:
        if is_killed:
            raise KeyboardInterrupt
        return 0.5

    step = SentenceEncoderStep(
        load_trainable(tiny_bert, device="cpu"), build_objective("cosine", pairs().kind, dim=32)
    )
    train(step, pairs(), output, config, validate=validate, resume=resume)


def events(folder: Path, tag: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(folder))
    reader.Reload()
    return [(event.step, event.value) for event in reader.Scalars(tag)]


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # of tensorboard's own making
def test_event_files_hold_the_metrics_also_after_a_resume(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    with pytest.raises(KeyboardInterrupt):
        run(tiny_bert, tmp_path / "out", is_killed=True)
    run(tiny_bert, tmp_path / "out", resume=True)
    lines = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    for name, tag in TAGS.items():
        expected = [(line["step"], line[name]) for line in lines if name in line]
        found = events(tmp_path / "out" / "events", tag)
        assert [step for step, _ in found] == [step for step, _ in expected]
        np.testing.assert_allclose([value for _, value in found], [value for _, value in expected], rtol=1e-6)


def test_without_tensorboard_it_says_what_to_install_before_training(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtra, match=r"pip install 'gemel\[tensorboard\]'"):
        run(tiny_bert, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # of tensorboard's own making
def test_each_task_of_several_has_a_curve_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    files = EventFiles(tmp_path)
    files.add(10, loss=0.75, loss_by_task={"nli": 0.5, "sts": 1.0})
    files.close()
    assert events(tmp_path, "training/loss") == [(10, 0.75)]
    assert events(tmp_path, "training/loss_of_nli") == [(10, 0.5)]
    assert events(tmp_path, "training/loss_of_sts") == [(10, 1.0)]
