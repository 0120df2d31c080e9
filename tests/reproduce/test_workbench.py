"""Tables of the paper, run with tiny models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from encoders.made import write_glove, write_infersent
from stand_ins import make_tiny_model

from gemel.checkpoint import read_encoder_folder
from gemel.data.labelled import read_labelled
from gemel.errors import InvalidInput
from gemel.evaluate.sts import evaluate_sts, read_sts
from gemel.loading import load_encoder
from gemel.model import CrossEncoder
from gemel.reproduce.measures import read_benchmark
from gemel.reproduce.notebook import Notebook
from gemel.reproduce.paper import TABLES
from gemel.reproduce.printing import formatted
from gemel.reproduce.stand_ins import Cast
from gemel.reproduce.workbench import Workbench
from gemel.train import TrainConfig

# A tiny model reads 40 tokens.
pytestmark = pytest.mark.filterwarnings("ignore::gemel.errors.TruncationWarning")
# Baselines that may be installed here are left out: they take their time and are tested elsewhere.
SLOW_ONES = dict.fromkeys(("GloVe average", "mean word vectors", "Universal Sentence Encoder"), "./nowhere")


def bench(
    rows: dict[str, str], data: Path, guests: tuple[str, ...] = (), notebook: Notebook | None = None
) -> tuple[Workbench, list[str]]:
    told: list[str] = []
    rows = {**SLOW_ONES, **rows}
    return Workbench(Cast(rows, guests), data=data, notebook=notebook, tell=told.append), told


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6, 7])
def test_without_data_or_models_no_line_has_a_figure(tmp_path: Path, number: int) -> None:
    lines = bench({}, tmp_path)[0].reproduce(number).lines
    assert [line.name for line in lines] == [row.name for row in TABLES[number].rows]
    assert all(line.missing and not line.figures and line.paper for line in lines)


def test_a_model_that_cannot_be_opened_is_told_in_its_line(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}", "utf-8")
    rows = {"BERT average": str(tmp_path / "broken"), "10-fold: SBERT-AFS-base": "./nowhere"}
    lines = {line.name: line for line in bench(rows, real_data)[0].reproduce(2).lines}
    assert "broken" in lines["BERT average"].missing


def test_there_is_no_eighth_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the paper has no table 8; expected 1 to 7"):
        bench({}, tmp_path)[0].reproduce(8)


def test_table_1_has_the_figures_of_the_evaluation(real_data: Path, tiny_bert: Path) -> None:
    made, told = bench({"BERT average": str(tiny_bert)}, real_data, guests=(str(tiny_bert),))
    reproduction = made.reproduce(1)
    lines = {line.name: line for line in reproduction.lines}
    expected = {
        each.name: 100 * each.score for each in evaluate_sts(load_encoder(tiny_bert), read_sts(real_data))
    }
    measured = dict(lines["BERT average"].figures)
    assert measured.pop("average") == pytest.approx(sum(expected.values()) / 7)
    assert measured == pytest.approx(expected)
    assert lines[tiny_bert.name].figures == lines["BERT average"].figures
    assert len(told) == 1  # the same model is measured once
    assert lines["SBERT-NLI-base"].missing


def test_what_was_measured_is_not_measured_again(real_data: Path, tiny_bert: Path, tmp_path: Path) -> None:
    rows = {"BERT average": str(tiny_bert)}
    first = bench(rows, real_data, notebook=Notebook(tmp_path / "scores.jsonl"))[0].reproduce(2)
    again, told = bench(rows, real_data, notebook=Notebook(tmp_path / "scores.jsonl"))
    assert again.reproduce(2) == first
    assert told == []


def test_seeds_give_a_mean_and_a_deviation(real_data: Path, tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        make_tiny_model("bert", tmp_path / f"seed-{seed}" / "model", seed=seed)
    made, _ = bench({"SBERT-STSb-base": str(tmp_path)}, real_data)
    line = next(line for line in made.reproduce(2).lines if line.name == "SBERT-STSb-base")
    assert len(line.scores) == 3
    figures = [100 * each.score for each in line.scores]
    assert line.figures["STSb"] == pytest.approx(sum(figures) / 3)
    assert line.spread["STSb"] > 0


@pytest.mark.filterwarnings("ignore::gemel.errors.UnknownWordsWarning")
def test_an_infersent_encoder_stands_in_its_line(real_data: Path, tmp_path: Path) -> None:
    folder = write_infersent(
        tmp_path / "infersent", ["a", "the", "man", "woman", "is", "playing", "dog", "in"]
    )
    for compute in ({}, {"precision": "float32", "threads": 1}):  # which it has no use for
        made = Workbench(
            Cast({**SLOW_ONES, "InferSent (GloVe)": str(folder)}), data=real_data, compute=compute
        )
        line = next(line for line in made.reproduce(2).lines if line.name == "InferSent (GloVe)")
        (expected,) = evaluate_sts(load_encoder(folder), read_benchmark(real_data)[0])
        assert line.figures["STSb"] == pytest.approx(100 * expected.score)


def test_a_cross_encoder_is_measured_as_one(real_data: Path, tiny_bert: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu").save(tmp_path / "ce")
    made, _ = bench({"BERT-STSb-base (cross-encoder)": str(tmp_path / "ce")}, real_data)
    line = next(line for line in made.reproduce(2).lines if line.name == "BERT-STSb-base (cross-encoder)")
    assert line.scores[0].protocol.startswith("a cross-encoder reads both texts")
    assert -100 < line.figures["STSb"] < 100


def test_arguments_and_sections_run_on_files_that_the_user_has(tiny_bert: Path, tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    (tmp_path / "afs").mkdir()
    words = ["the man", "a dog", "the dog", "a man", "man man", "dog the", "the the", "dog dog"]
    lines = ["sentence1\tsentence2\tscore\ttopic"]
    for number in range(24):
        first, second = words[number % 8], words[(number * 3 + 1) % 8]
        lines.append(f"{first}\t{second}\t{number % 6}\t{('guns', 'marriage', 'death')[number % 3]}")
    (tmp_path / "afs" / "all.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "wikipedia_sections").mkdir()
    triplets = "anchor\tpositive\tnegative\nthe man\tthe man\ta dog\na dog\ta dog\tthe man\n"
    (tmp_path / "wikipedia_sections" / "test.tsv").write_text(triplets, "utf-8")
    rows = dict.fromkeys(("GloVe average", "mean word vectors"), f"glove:{tmp_path}/glove.txt")
    made, _ = bench(rows, tmp_path)
    arguments = {line.name: line for line in made.reproduce(3).lines}
    assert (
        set(arguments["tf-idf"].figures) == set(arguments["GloVe average"].figures) == {"Pearson", "Spearman"}
    )
    assert "no model to train was named" in arguments["10-fold: SBERT-AFS-base"].missing
    training = Workbench(
        Cast({**rows, "cross-topic: SBERT-AFS-base": str(tiny_bert)}),
        data=tmp_path,
        work=tmp_path / "work",
        training=TrainConfig(batch_size=4, learning_rate=1e-4),
    )
    trained = {line.name: line for line in training.reproduce(3).lines}["cross-topic: SBERT-AFS-base"]
    assert set(trained.figures) == {"Pearson", "Spearman"}
    assert "trained on the other parts" in trained.scores[0].protocol
    assert sorted(path.name for path in (tmp_path / "work").glob("*/*")) == ["part-1", "part-2", "part-3"]
    assert "24 examples, not the paper's 6,000" in trained.note
    sections = {line.name: line for line in made.reproduce(4).lines}
    assert sections["mean word vectors"].figures == {"accuracy": 100.0}
    assert sections["mean word vectors"].note == "in its place; 2 examples, not the paper's 222,957"
    assert len(sections["mean word vectors"].scores[0].data_hash) == 64


def test_what_cannot_be_measured_leaves_the_other_lines(tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    (tmp_path / "afs").mkdir()
    rows = [
        f"the man\ta dog\t{number % 6}\t{'ab'[number % 2]}" for number in range(12)
    ]  # all cosines are the same
    content = "\n".join(["sentence1\tsentence2\tscore\ttopic", *rows])
    (tmp_path / "afs" / "all.tsv").write_text(content + "\n", "utf-8")
    guest = f"glove:{tmp_path}/glove.txt"
    made, _ = bench({}, tmp_path, guests=(guest,))
    table = made.reproduce(3)
    assert table.lines[-1].name == guest
    assert "values are" in table.lines[-1].missing
    assert "values are" in next(line.missing for line in table.lines if line.name == "tf-idf")
    assert guest in formatted(table)
    assert guest in [line.name for line in made.reproduce(4).lines]  # whose data are not there


def test_both_lines_of_sbert_are_missing_with_their_model(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}", "utf-8")
    lines = bench({"SBERT-base": str(tmp_path / "broken")}, real_data)[0].reproduce(7).lines
    assert sorted(line.name for line in lines) == sorted(row.name for row in TABLES[7].rows)
    assert sum("broken" in line.missing for line in lines) == 2


def test_speeds_are_of_both_ways(real_data: Path, tiny_bert: Path) -> None:
    made, told = bench({"SBERT-base": str(tiny_bert)}, real_data, guests=(str(tiny_bert),))
    lines = {line.name: line for line in made.reproduce(7).lines}
    for name in ("SBERT-base, smart batching", "SBERT-base, no smart batching"):
        assert lines[name].figures["CPU"] > 0
        assert "GPU" not in lines[name].figures
    assert lines[f"{tiny_bert.name}, smart batching"].paper is None
    assert len(told) == 3


def test_transfer_runs_on_the_small_tasks(real_data: Path, tiny_bert: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(real_data / "trec", data / "trec")
    assert len(read_labelled(data / "trec" / "test.tsv")) == 500
    lines = bench({"BERT average": str(tiny_bert)}, data)[0].reproduce(5).lines
    assert all("MR was looked for" in line.missing for line in lines)
