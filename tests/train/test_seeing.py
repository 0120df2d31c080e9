"""What a run leaves to look at: curves and a model card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemel import load_trainable, read_examples
from gemel.data.examples import Examples
from gemel.reproduce.sources import parse_source
from gemel.train import SentenceEncoderStep, TrainConfig, TrainResult, build_objective, train
from gemel.train.card import CardFacts, base_name, format_card, write_card
from gemel.train.curves import draw_curves
from gemel.train.metrics import MetricsFile


def test_curves_are_drawn_as_png_and_svg(tmp_path: Path) -> None:
    metrics = [{"step": step, "loss": 1 / (step + 1)} for step in range(0, 200, 10)]
    metrics += [{"step": step, "validation": 0.7 + step / 1000} for step in (50, 100, 150)]
    files = draw_curves(metrics, "a run", tmp_path / "curves")
    assert [file.suffix for file in files] == [".png", ".svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    svg = files[1].read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "0.8500 at its best, at step 150" in svg


def test_curves_of_a_run_without_validation_and_of_an_empty_one(tmp_path: Path) -> None:
    assert all(file.is_file() for file in draw_curves([{"step": 10, "loss": 0.5}], "x", tmp_path / "a"))
    assert all(file.is_file() for file in draw_curves([], "x", tmp_path / "b"))


def test_the_card_tells_data_recipe_and_scores(tmp_path: Path) -> None:
    facts = CardFacts(
        name="tiny",
        base_model="some/base",
        objective="softmax",
        n_examples=1234,
        data="nli.tsv",
        settings={"batch_size": 16, "patience": None},
        scores={"stsb-dev spearman": 0.81234},
        labels=("contradiction", "entailment", "neutral"),
    )
    write_card(tmp_path, facts)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card == format_card(facts)
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    for part in (
        "loss:softmax",
        "dataset_size:1234",
        "batch_size: 16",
        "| stsb-dev spearman | 0.8123 |",
        "neutral",
    ):
        assert part in card
    assert "patience" not in card


def test_a_run_from_python_leaves_a_card_and_can_be_drawn(tiny_bert: Path, tmp_path: Path) -> None:
    rows = "".join(f"the man {n}\ta woman {n}\t{n % 5}\n" for n in range(20))
    (tmp_path / "pairs.tsv").write_text(f"sentence1\tsentence2\tscore\n{rows}", encoding="utf-8")
    examples = read_examples(tmp_path / "pairs.tsv", score_range=(0, 5))
    step = SentenceEncoderStep(load_trainable(tiny_bert), build_objective(None, examples.kind, dim=32))
    config = TrainConfig(batch_size=8, weight_decay=0.5)
    result = train(step, examples, tmp_path / "mine", config, validate=lambda encoder: 0.25)
    card = (result.model / "README.md").read_text(encoding="utf-8")
    for part in (
        f"# mine\n\n## Training\n\n- started from: `{tiny_bert.name}`\n",
        "- data: pairs.tsv (first = sentence1, second = sentence2, score = score), 20 examples\n",
        "- objective: cosine\n- steps: 3\n- pooling: mean\n",
        "- weight_decay: 0.5\n",
        "| validation | 0.2500 |",
    ):
        assert part in card
    assert str(tmp_path) not in card
    assert "base_model" not in card  # which nobody finds by the name of a folder
    assert result.draw_curves() == [tmp_path / "mine" / name for name in ("curves.png", "curves.svg")]
    assert "mine" in (tmp_path / "mine" / "curves.svg").read_text(encoding="utf-8")


def test_a_run_that_ended_early_says_so() -> None:
    def told(**values: Any) -> str:
        return TrainResult(Path("model"), best_score=0.5, seconds=1.0, **values).course

    assert told(steps=1_200, best_step=1_200, stopped_early=False, planned_steps=1_200) == "1,200"
    assert told(steps=20, best_step=10, stopped_early=False) == "20; the best was step 10"
    early: dict[str, Any] = {"steps": 20, "is_complete": False, "planned_steps": 50}
    assert told(best_step=20, stopped_early=False, **early) == "20 of 50, then time was up"
    stopped = told(best_step=5, stopped_early=True, **early)
    assert stopped == "20 of 50, then it got no better; the best was step 5"


def test_the_card_tells_what_other_programs_read_otherwise(tiny_bert: Path, tmp_path: Path) -> None:
    model = load_trainable(tiny_bert)
    pooling = replace(model.spec.pooling, include_special_tokens=False)
    model.folder = model.folder.with_spec(replace(model.spec, pooling=pooling))
    examples = Examples("pairs", {"first": ["a man", "a cat"] * 4, "second": ["men", "cats"] * 4})
    step = SentenceEncoderStep(model, build_objective(None, examples.kind, dim=32))
    config = TrainConfig(batch_size=2, max_steps=1)
    card = (train(step, examples, tmp_path / "run", config).model / "README.md").read_text(encoding="utf-8")
    assert "\n\nThe mean leaves out the special tokens: only gemel reads that setting" in card


@pytest.mark.parametrize(
    ("base", "is_told"), [("some/base", True), ("bert-base-uncased", True), ("infersent", False)]
)
def test_the_base_is_told_where_hubs_know_it(base: str, is_told: bool) -> None:
    facts = CardFacts(base, base, "softmax", n_examples=1, data="x.tsv", settings={})
    assert ("base_model:" in format_card(facts)) == is_told


def test_a_card_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    assert base_name(str(tmp_path / "base")) == "base"
    assert base_name("some/base") == "some/base"
    assert base_name("infersent:/home/ada/glove.txt") == "infersent:glove.txt"
    for path, expected in (
        ("/home/ada/pairs.tsv", "pairs.tsv"),
        ("~/pairs.tsv", "pairs.tsv"),
        ("../ada/pairs.tsv", "pairs.tsv"),
        ("nli/pairs.tsv", "nli/pairs.tsv"),
    ):
        assert parse_source({"path": path}, "x").name == expected
    files = [{"path": "/home/ada/a.txt"}, {"path": "b.txt"}]
    assert parse_source({"files": files}, "x").name == "a.txt + b.txt"


def test_metrics_forget_what_a_resumed_run_writes_again(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.jsonl")
    for step in (10, 20, 30):
        metrics.add(step=step, loss=1.0)
    with metrics.path.open("a", encoding="utf-8") as file:
        file.write('{"step": 40, "lo')
    assert [line["step"] for line in metrics.read()] == [10, 20, 30]
    metrics.forget_after(20, -1)
    assert [line["step"] for line in metrics.read()] == [10, 20]
