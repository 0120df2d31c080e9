"""`gemel distil` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result
from stand_ins import sentences

from gemel import load_encoder
from gemel.checkpoint import read_encoder_folder
from gemel.cli import gemel
from gemel.data.plain_texts import TextFile
from gemel.reproduce.distillation import DistilPlan
from gemel.reproduce.runner import RecipeRunner
from gemel.train.student import save_student


def call(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, list(map(str, arguments)))


def test_a_corpus_makes_a_tuned_table(tiny_bert: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences(100, seed=1)) + "\n", encoding="utf-8")
    asked = ("--static", "--dim", 8, "--corpus", corpus, "--sentences", 60, "-o", tmp_path / "table")
    line = json.loads(call("distil", tiny_bert, *asked).stdout)
    assert (line["dim"], line["texts"], line["tuned_on"]) == (8, 100, 57)
    assert 0 < line["agreement"] <= 1
    assert load_encoder(tmp_path / "table").fingerprint == line["fingerprint"]
    card = (tmp_path / "table" / "README.md").read_text(encoding="utf-8")
    assert 'base_model: "bert"' in card  # the folder's name, not its place on this machine
    assert str(tmp_path) not in card
    again = call("distil", tmp_path / "no model", *asked)  # told before anything is opened, let alone done
    assert "exists already: choose another name, or replace it with --overwrite" in str(again.exception)
    assert json.loads(call("distil", tiny_bert, *asked, "--overwrite").stdout) | {"seconds": 0} == line | {
        "seconds": 0
    }


def test_without_a_corpus_nothing_is_tuned(tiny_bert: Path, tmp_path: Path) -> None:
    done = call("distil", tiny_bert, "--static", "--dim", 8, "-o", tmp_path / "table")
    line = json.loads(done.stdout)
    assert (line["texts"], line["tuned_on"], line["agreement"]) == (0, 0, None)


def test_a_student_of_fewer_layers_agrees_better_than_the_layers_alone(
    tiny_bert: Path, tmp_path: Path
) -> None:
    corpus, pairs = tmp_path / "corpus.txt", tmp_path / "pairs.tsv"
    texts = sentences(200, seed=1, max_words=8)
    corpus.write_text("\n".join(texts[:100]) + "\n", encoding="utf-8")
    rows = [f"{first}\t{second}" for first, second in zip(texts[100:150], texts[150:], strict=True)]
    pairs.write_text("\n".join(["premise\thypothesis", *rows]) + "\n", encoding="utf-8")
    asked = (
        *("--layers", 1, "--corpus", corpus, "--corpus", f"{pairs}:premise,hypothesis", "--epochs", 8),
        *("--batch-size", 20, "--learning-rate", 3e-3, "-o", tmp_path / "student"),
    )
    done = call("distil", tiny_bert, *asked)
    line = json.loads(done.stdout)
    assert (line["dim"], line["steps"], line["validation"]) == (32, 80, None)
    student = load_encoder(tmp_path / "student")
    assert (student.fingerprint, student.folder.config["num_hidden_layers"]) == (line["fingerprint"], 1)
    assert not (tmp_path / "student.run").exists()
    card = (tmp_path / "student" / "README.md").read_text(encoding="utf-8")
    assert "loss:VectorImitation" in card
    assert f"taught by `{tiny_bert.name}`" in card
    alone = tmp_path / "alone"
    save_student(read_encoder_folder(tiny_bert), alone, 1)
    others = sentences(50, seed=9, max_words=8)
    teacher = load_encoder(tiny_bert).encode(others)
    near, far = (
        mean_cosine(load_encoder(folder).encode(others), teacher) for folder in (tmp_path / "student", alone)
    )
    assert near > far + 0.1


def mean_cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).mean())


def test_a_broken_off_distillation_is_continued_to_the_same_bits(tiny_bert: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences(60, seed=1)) + "\n", encoding="utf-8")
    asked = ("--layers", "0,1", "--corpus", corpus, "--sentences", 60)
    whole = json.loads(call("distil", tiny_bert, *asked, "--batch-size", 10, "-o", tmp_path / "whole").stdout)
    plan = DistilPlan(
        teacher=str(tiny_bert),
        corpus=[TextFile(corpus)],
        layers=(0, 1),
        n_sentences=60,
        training={"batch_size": 10, "seed": 42, "max_minutes": 1e-9},
    )
    place = tmp_path / "student.run"
    RecipeRunner(plan.recipe("student")).run(place)
    (place / "result.json").unlink()  # as if it had been killed before its end
    asked = (*asked, "--batch-size", 10, "-o", tmp_path / "student")
    assert "holds a run already: continue it (--resume, resume=True)" in str(
        call("distil", tiny_bert, *asked).exception
    )
    line = json.loads(call("distil", tiny_bert, *asked, "--resume").stdout)
    assert (line["steps"], line["fingerprint"]) == (6, whole["fingerprint"])
    assert not place.exists()


def test_a_kind_must_be_named_and_learning_needs_sentences(tiny_bert: Path, tmp_path: Path) -> None:
    output = ("-o", tmp_path / "table")
    for asked, said in (
        ((), "--layers N, --student NAME or --static"),
        (("--static", "--layers", 1), "one of them"),
        (("--static", "--tune"), "name a file with --corpus"),
        (("--layers", 1), "--layers needs sentences to learn from"),
        (("--layers", 1, "--dim", 8, "--corpus", "a.txt"), "--dim has no meaning with --layers"),
        (("--static", "--max-minutes", 8), "--max-minutes has no meaning with --static"),
        (("--layers", 1, "--corpus", "a.txt", "--on-truncate", "chunk"), "chunk goes with --static"),
        (("--student", "x", "--corpus", "a.txt", "--on-truncate", "error"), "error goes with --static"),
        (("--layers", "all", "--corpus", "a.txt"), "--layers is 'all'; expected a number"),
    ):
        done = call("distil", tiny_bert, *asked, *output)
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
