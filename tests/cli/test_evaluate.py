"""`gemel evaluate` as a shell sees it."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from encoders.made import write_glove
from safetensors.numpy import load_file, save_file
from stand_ins import sentences
from terminals import GEMEL, shown_on

from gemel.evaluate.sts import STS_SETS
from gemel.evaluate.suite import GROUPS

NAMES = [*(each.name for each in STS_SETS), "average"]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The seven sets in their full size, made of a few nonsense sentences."""
    folder = tmp_path_factory.mktemp("sts")
    texts, chance = sentences(60, max_words=6), random.Random(0)
    for each in STS_SETS:
        low, high = each.score_range
        lines = ["sentence2\tscore\tsentence1\n"]
        for _ in range(each.n_pairs):
            first, second = chance.sample(texts, 2)
            lines.append(f"{second}\t{chance.uniform(low, high):.3f}\t{first}\n")
        (folder / each.file).parent.mkdir(exist_ok=True)
        (folder / each.file).write_text("".join(lines), "utf-8")
    return folder


def run(*arguments: object, check: int = 0, **settings: Any) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "GEMEL_DATA"}
    environment.update(settings.pop("env", {}))
    done = subprocess.run(
        [*GEMEL, "evaluate", *map(str, arguments)],
        **{"capture_output": True, "text": True, "timeout": 300, "env": environment, **settings},
    )
    assert done.returncode == check, done.stderr
    return done


def test_json_lines_have_every_set_and_the_average(sets: Path, tiny_bert: Path) -> None:
    done = run(tiny_bert, "--data", sets)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == NAMES
    assert [line["n_examples"] for line in lines[:-1]] == [each.n_pairs for each in STS_SETS]
    for line in lines:
        assert (line["model"], line["task"], line["engine"]) == (str(tiny_bert), "sts", "native int8")
        assert len(line["metrics"]) == 8
        assert len(line["data_hash"]) == 64
        assert abs(line["metrics"]["spearman_cosine"]) < 0.2
    mean = sum(line["metrics"]["spearman_cosine"] for line in lines[:-1]) / 7
    assert lines[-1]["metrics"]["spearman_cosine"] == pytest.approx(mean)
    assert done.stderr.splitlines()[0] == f"gemel: 1/1 {tiny_bert}: sts"


def test_a_terminal_gets_a_table_with_a_row_a_model(sets: Path, tiny_bert: Path) -> None:
    ours, theirs = pty.openpty()
    run(tiny_bert, tiny_bert, env={"GEMEL_DATA": str(sets)}, capture_output=False, stdout=theirs)
    os.close(theirs)
    title, _, header, line, *rows = shown_on(ours).strip("\n").split("\n")
    assert title.startswith("sts: the paper's seven")
    assert header.split() == ["model", *NAMES]
    assert set(line) <= {"─", " "}
    assert len(rows) == 2
    assert rows[0] == rows[1]
    path, *figures = rows[0].split()
    assert path == str(tiny_bert)
    assert len(figures) == 8
    assert all(abs(float(figure)) < 20 for figure in figures)


def test_baselines_and_poolings_are_measured_by_name(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    glove = run(f"glove:{tmp_path}/glove.txt", "--data", sets)
    lines = [json.loads(line) for line in glove.stdout.splitlines()]
    assert [line["name"] for line in lines] == NAMES
    assert {line["engine"] for line in lines} == {"numpy float32"}
    fingerprints = {
        json.loads(run(tiny_bert, "--pooling", mode, "--data", sets).stdout.splitlines()[0])["fingerprint"]
        for mode in ("mean", "cls")
    }
    assert len(fingerprints) == 2
    refused = run(tiny_bert, "glove:nowhere.txt", "--data", sets, check=1)
    assert refused.stderr == "gemel: there is no file 'nowhere.txt' for glove to open\n"


def test_cut_sentences_are_counted_on_standard_error(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    for each in STS_SETS:
        (tmp_path / each.file).parent.mkdir()
        content = (sets / each.file).read_text("utf-8")
        (tmp_path / each.file).write_text(content.replace("\n", "\nthe" + " dog" * 90 + " ", 1), "utf-8")
    done = run(tiny_bert, "--data", tmp_path)
    assert "longer than 40 tokens and cut" in done.stderr


def test_what_is_missing_is_told_in_one_line(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    done = run(tiny_bert, "--data", tmp_path, check=1)
    assert done.stderr.startswith(f"gemel: STS12 was looked for at {tmp_path}/sts12/test.tsv")
    assert done.stderr.count("\n") == 1
    assert "with --data or in GEMEL_DATA" in run(tiny_bert, check=1).stderr
    done = run(tiny_bert, tmp_path / "nowhere", "--data", sets, check=1)
    assert done.stderr.startswith("gemel: there is no model folder")
    assert "name at least one MODEL" in run(check=2).stderr
    assert "'glue' is unknown; choose from sts, " in run(tiny_bert, "--tasks", "sts,glue", check=2).stderr


def test_what_cannot_be_measured_is_found_out_first(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    for name, n_rows in (("snli/dev", 9_842), ("mnli/dev_matched", 9_815)):
        (tmp_path / f"{name}.tsv").parent.mkdir()
        row = "a man\tthe dog\tneutral\n"
        (tmp_path / f"{name}.tsv").write_text("premise\thypothesis\tlabel\n" + row * n_rows, "utf-8")
    for each in STS_SETS:
        (tmp_path / each.file).parent.mkdir(exist_ok=True)
        (tmp_path / each.file).symlink_to(sets / each.file)
    refused = run(tiny_bert, "--tasks", "sts,nli", "--data", tmp_path, check=1)
    assert refused.stdout == ""
    assert refused.stderr.startswith(f"gemel: {tiny_bert} has no classifier")


def test_a_damaged_model_is_found_out_before_others_are_measured(
    sets: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_bert, tmp_path / "short")
    (tmp_path / "short" / "model.safetensors").write_bytes(b"short")
    shutil.copytree(tiny_bert, tmp_path / "torn")
    (tmp_path / "torn" / "config.json").write_text("{", encoding="utf-8")
    for damaged in ("short", "torn"):
        refused = run(tiny_bert, tmp_path / damaged, "--data", sets, check=1)
        assert (refused.stdout, refused.stderr.count("\n")) == ("", 1)
        assert damaged in refused.stderr
    write_glove(tmp_path / "glove.txt")
    refused = run(f"glove:{tmp_path}/glove.txt", tiny_bert, "--pooling", "modal", "--data", sets, check=1)
    assert refused.stdout == ""
    assert refused.stderr.startswith(f"gemel: pooling='modal' does not fit {tiny_bert}: ")
    unknown = tmp_path / "unknown"
    shutil.copytree(tiny_bert, unknown)
    config = json.loads((unknown / "config.json").read_text("utf-8"))
    (unknown / "config.json").write_text(json.dumps({**config, "model_type": "longformer"}), "utf-8")
    refused = run(tiny_bert, unknown, "--precision", "int8", "--data", sets, check=1)
    assert refused.stdout == ""
    assert "does not know the architecture 'longformer'" in refused.stderr


def test_choices_are_for_the_models_that_have_them(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    glove = f"glove:{tmp_path}/glove.txt"
    done = run(tiny_bert, glove, "--threads", 1, "--precision", "int8", "--data", sets)
    engines = [json.loads(line)["engine"] for line in done.stdout.splitlines()]
    assert engines == ["native int8"] * 8 + ["numpy float32"] * 8
    assert "precision='int8' was given" in run(glove, "--precision", "int8", "--data", sets, check=1).stderr


def test_what_was_measured_before_a_failure_is_shown(sets: Path, tiny_bert: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"  # in a way that only opening it finds out
    shutil.copytree(tiny_bert, damaged)
    tensors = load_file(damaged / "model.safetensors")
    del tensors[next(name for name in tensors if "encoder.layer.0" in name)]
    save_file(tensors, damaged / "model.safetensors")
    failed = run(tiny_bert, damaged, "--data", sets, check=1)
    assert [json.loads(line)["model"] for line in failed.stdout.splitlines()] == [str(tiny_bert)] * 8
    ours, theirs = pty.openpty()
    run(tiny_bert, damaged, "--data", sets, check=1, capture_output=False, stdout=theirs)
    os.close(theirs)
    assert str(tiny_bert) in shown_on(ours)


def test_what_can_be_measured_is_listed() -> None:
    lines = [json.loads(line) for line in run("--list").stdout.splitlines()]
    assert {line["name"]: line["what"] for line in lines} == {
        name: group.what for name, group in GROUPS.items()
    }
    ours, theirs = pty.openpty()
    run("--list", capture_output=False, stdout=theirs)
    run("--list", "--json", capture_output=False, stdout=theirs)
    os.close(theirs)
    shown = shown_on(ours).splitlines()
    assert [line.split()[0] for line in shown[2 : len(GROUPS) + 2]] == list(GROUPS)
    assert [json.loads(line) for line in shown[len(GROUPS) + 2 :]] == lines


def test_several_groups_are_measured_with_one_model(real_data: Path, tiny_bert: Path) -> None:
    done = run(tiny_bert, "--tasks", "sts-korean,retrieval", "--data", real_data)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["task"], line["name"]) for line in lines] == [
        ("sts-korean", "KorSTS"),
        ("retrieval", "Cranfield"),
    ]
