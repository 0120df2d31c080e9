"""Texts with classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from gemel.data.example_files import read_examples
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.errors import InvalidInput


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_names_are_ordered_and_labels_are_their_positions(tmp_path: Path) -> None:
    data = read_labelled(write(tmp_path / "a.tsv", "text\tlabel", "x\tNUM", "y\tABBR", "z\tNUM"))
    assert (data.texts, data.label_names) == (["x", "y", "z"], ("ABBR", "NUM"))
    assert data.labels.tolist() == [1, 0, 1]


def test_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "text\tlabel", "x\t10", "y\t9", "z\t-1", "u\t1.0")
    assert read_labelled(path).label_names == read_examples(path).label_names == ("-1", "1.0", "9", "10")


def test_what_only_looks_like_a_number_is_a_name(tmp_path: Path) -> None:
    data = read_labelled(write(tmp_path / "a.tsv", "text\tlabel", "x\t²", "y\t10", "z\t9"))
    assert data.label_names == ("9", "10", "²")


def test_blanks_around_a_label_make_no_other_class(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "text,label", " x,yes", "y, yes", "z,no ")
    assert (data := read_labelled(path)).label_names == ("no", "yes")
    assert (data.texts[0], data.labels.tolist()) == (" x", [1, 1, 0])
    assert read_labelled(path, label_names=["yes", "no"]).labels.tolist() == [0, 0, 1]


def test_json_and_parquet_name_classes_as_examples_do(tmp_path: Path) -> None:
    values = (True, False, 1.0, 0.0, 1, " 0")
    lines = [
        json.dumps({"sentence1": "a", "sentence2": "b", "text": "a", "label": value}) for value in values
    ]
    path = write(tmp_path / "a.jsonl", *lines)
    examples = read_examples(path, kind="classified pairs")
    assert examples.labels is not None
    assert (data := read_labelled(path)).label_names == examples.label_names == ("0", "1")
    assert data.labels.tolist() == examples.labels.tolist() == [1, 0, 1, 0, 1, 0]
    pyarrow.parquet.write_table(
        pyarrow.table({"text": ["a", "b"], "label": [True, False]}), tmp_path / "a.parquet"
    )
    assert read_labelled(tmp_path / "a.parquet").labels.tolist() == [1, 0]
    with pytest.raises(InvalidInput, match="line 1: label is of type float; expected the name or the whole"):
        read_labelled(write(tmp_path / "b.jsonl", '{"text": "a", "label": 0.5}'))


def test_several_columns_become_one_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "title\tdescription\tlabel", "head\tbody\t1")
    assert read_labelled(path, text=["title", "description"]).texts == ["head body"]


def test_the_classes_of_another_file_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "x", "label": "b"}')
    assert read_labelled(path, label_names=["a", "b"]).labels.tolist() == [1]
    with pytest.raises(InvalidInput, match="line 1: the label 'b' is unknown; expected one of a, c"):
        read_labelled(path, label_names=["a", "c"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["text\tlabel"], "holds no labelled texts"),
        (
            ["words\tlabel", "x\t1"],
            "has the columns words, label; expected one of text, sentence, content: "
            "name the column of the text with text=",
        ),
        (["text\tkind", "x\t1"], "expected one of label, class"),
        (["text\tlabel", "x\t"], "line 2: label is empty; expected the name or the whole number of a class"),
        (["text\tlabel", "x\t "], "line 2: label is empty"),
        (["text\tlabel", "\t1"], "line 2: text is empty; expected a text"),
        (["text\tlabel", " \t1"], "line 2: text is empty; expected a text"),
    ],
)
def test_a_bad_file_is_told_in_one_sentence(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_labelled(write(tmp_path / "a.tsv", *lines))


def test_rows_can_be_taken() -> None:
    data = LabelledTexts(["a", "b", "c"], np.array([0, 1, 0]), ("n", "y"))
    assert data.take([2, 1]).texts == ["c", "b"]
    with pytest.raises(InvalidInput, match="classes run from 0 to 2"):
        LabelledTexts(["a", "b"], np.array([0, 2]), ("n", "y"))


@pytest.mark.parametrize(
    ("file", "n_texts", "n_classes"), [("mr/all.tsv", 10_662, 2), ("trec/train.tsv", 5_452, 6)]
)
def test_the_real_sets_are_whole(real_data: Path, file: str, n_texts: int, n_classes: int) -> None:
    data = read_labelled(real_data / file)
    assert (len(data), len(data.label_names)) == (n_texts, n_classes)
