"""`gemel encode -o FOLDER/`, and what takes such a folder; with --runner ray in test_ray."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from stand_ins import sentences

from gemel.cli import gemel
from gemel.data.stored_vectors import open_vectors
from gemel.errors import InvalidInput
from gemel.scale.manifest import NAME, part_name


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, [str(argument) for argument in arguments])


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    lines = sentences(40, seed=8, max_words=7)
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "texts.txt"


def test_a_folder_of_parts_stands_for_a_file_of_vectors(tiny_bert: Path, texts: Path, tmp_path: Path) -> None:
    folder = f"{tmp_path / 'vectors'}/"
    made = invoke("encode", texts, "-m", tiny_bert, "-o", folder, "--part-rows", 15)
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)
    assert (told["rows"], told["parts"], told["resumed_rows"]) == (40, 3, 0)
    invoke("encode", texts, "-m", tiny_bert, "-o", tmp_path / "plain.parquet")
    plain, parts = open_vectors(tmp_path / "plain.parquet"), open_vectors(folder)
    assert parts.ids == plain.ids
    assert np.array_equal(parts.vectors, plain.vectors)
    results = [
        invoke("mine", texts, "-n", 9, "--vectors", vectors).stdout
        for vectors in (folder, tmp_path / "plain.parquet")
    ]
    assert results[0] == results[1] != ""
    again = invoke("encode", texts, "-m", tiny_bert, "-o", folder, "--part-rows", 15)
    assert json.loads(again.stdout)["resumed_rows"] == 40
    assert "continuing after the 40 rows of an earlier run" in again.stderr


def test_several_inputs_make_one_folder(tiny_bert: Path, texts: Path, tmp_path: Path) -> None:
    made = invoke("encode", texts, texts.with_name("*.txt"), "-m", tiny_bert, "-o", f"{tmp_path}/out/")
    assert json.loads(made.stdout)["rows"] == 40  # a file that two patterns name is read once
    (tmp_path / "more.txt").write_text("the man\n", encoding="utf-8")
    made = invoke("encode", texts, tmp_path / "more.txt", "-m", tiny_bert, "-o", f"{tmp_path}/both/")
    assert json.loads(made.stdout)["rows"] == 41


def test_a_folder_that_is_not_whole_is_no_file_of_vectors(
    tiny_bert: Path, texts: Path, tmp_path: Path
) -> None:
    invoke("encode", texts, "-m", tiny_bert, "-o", f"{tmp_path}/out/", "--part-rows", 15)
    (tmp_path / "out" / part_name(1)).unlink()
    with pytest.raises(InvalidInput, match=r"out has 25 rows; expected 40 by its manifest\.json"):
        open_vectors(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / NAME).read_text())
    (tmp_path / "out" / NAME).write_text(json.dumps({**manifest, "is_complete": False}))
    with pytest.raises(InvalidInput, match="out is not complete"):
        open_vectors(tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="empty is no folder of vectors"):
        open_vectors(tmp_path / "empty")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["encode", "a.txt", "b.txt", "-o", "v.npy"], "give a folder as -o FOLDER/"),
        (["encode", "a.txt", "--runner", "ray"], "give a folder as -o FOLDER/"),
        (["encode", "a.txt", "-o", "v.npy", "--part-rows", "5"], "go with -o FOLDER/"),
        (["encode", "-", "-o", "v/"], "standard input can be read only once"),
        (["encode", "a.txt", "-o", "v/", "--dtype", "float16"], "go with -o FILE"),
        (["mine", "a.txt", "--runner", "ray", "-k", "3"], "-k does not go with it"),
        (["mine", "a.txt", "--ray-address", "x:1"], "--ray-address goes with --runner ray"),
        (["dedupe", "a.txt", "--runner", "ray", "--rerank", "m"], "--rerank does not go with it"),
    ],
)
def test_what_does_not_go_together_is_told(arguments: list[str], message: str) -> None:
    told = invoke(*arguments)
    assert told.exit_code == 2
    assert message in told.stderr
