"""Lists of positives and negatives become rows of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from gemel.data.example_files import read_examples
from gemel.errors import InvalidInput

ROWS: list[dict[str, Any]] = [
    {"query": "q1", "pos": ["p1", "p2"], "neg": ["n1", "n2"], "lang": "en"},
    {"query": "q2", "pos": ["p3"], "neg": ["n3", "n4", "n5"], "lang": "de"},
]


def saved(tmp_path: Path, rows: list[Any], suffix: str = "jsonl") -> Path:
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_each_positive_is_a_triplet_with_the_negatives_that_all_have(tmp_path: Path, suffix: str) -> None:
    examples = read_examples(saved(tmp_path, ROWS, suffix))
    assert examples.kind == "triplets"
    assert dict(examples.columns) == {
        "anchor": ["q1", "q1", "q2"],
        "positive": ["p1", "p2", "p3"],
        "negative_1": ["n1", "n1", "n3"],
        "negative_2": ["n2", "n2", "n4"],
    }
    assert examples.unused == ("lang", "neg beyond the first 2")
    assert "not used: lang, neg beyond the first 2" in examples.describe()


def test_lists_of_positives_alone_are_pairs(tmp_path: Path) -> None:
    rows = [{"query": "q", "pos": ["a", "b"]}, {"query": "r", "pos": ["c"]}]
    examples = read_examples(saved(tmp_path, rows))
    assert examples.kind == "pairs"
    assert dict(examples.columns) == {"first": ["q", "q", "r"], "second": ["a", "b", "c"]}


def test_lists_under_the_usual_names(tmp_path: Path) -> None:
    rows = [{"anchor": "q", "positive": ["a"], "negatives": ["b"]}]
    examples = read_examples(saved(tmp_path, rows))
    assert dict(examples.columns) == {"anchor": ["q"], "positive": ["a"], "negative_1": ["b"]}


def test_the_other_columns_can_be_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, ROWS)
    assert read_examples(path, where={"lang": "de"}).columns["anchor"] == ["q2"]
    assert dict(read_examples(path, columns={"first": "lang"}, kind="pairs").columns) == {
        "first": ["en", "en", "de"],
        "second": ["p1", "p2", "p3"],
    }


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_texts_under_these_names_stay_texts(tmp_path: Path, suffix: str) -> None:
    rows = [{"anchor": "q", "positive": "a", "negative": "b", "other": 1}]
    assert dict(read_examples(saved(tmp_path, rows, suffix)).columns) == {
        "anchor": ["q"],
        "positive": ["a"],
        "negative_1": ["b"],
    }


@pytest.mark.parametrize(
    ("row", "flaw"),
    [
        (
            {"query": "q", "pos": [], "neg": ["n", "n"]},
            r"line 121: 'pos' holds 0 text\(s\); expected 1 or more",
        ),
        (
            {"query": "q", "pos": ["p"], "neg": ["n"]},
            r"line 121: 'neg' holds 1 text\(s\); expected 2 or more",
        ),
        (
            {"query": "q", "pos": 7, "neg": ["n", "n"]},
            "line 121: 'pos' is of type int; expected a list of texts",
        ),
        ({"query": "q", "pos": ["p"]}, "line 121: 'neg' is null; expected a list of texts"),
        ({"query": "q", "pos": [1], "neg": ["n", "n"]}, "line 121: a text of 'pos' is of type int"),
        ({"pos": ["p"], "neg": ["n", "n"]}, "line 121: the row has no 'query'"),
    ],
)
def test_a_row_whose_lists_do_not_fit_is_named_or_counted(
    tmp_path: Path, row: dict[str, Any], flaw: str
) -> None:
    path = saved(tmp_path, [*ROWS * 60, row])
    with pytest.raises(InvalidInput, match=flaw):
        read_examples(path)
    examples = read_examples(path, skip_bad_rows=True)
    assert len(examples) == 180
    assert sum(examples.left_out.values()) == 1


def test_a_file_that_has_more_negatives_later_says_so(tmp_path: Path) -> None:
    few, many = ({"query": "q", "pos": ["p"], "neg": ["n"] * n} for n in (1, 15))
    examples = read_examples(saved(tmp_path, [few] * 100 + [many] * 20))
    assert list(examples.columns) == ["anchor", "positive", "negative_1"]
    assert examples.unused == ("neg beyond the first 1",)


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows_that_are_not_asked_for_neither_count_nor_spoil(tmp_path: Path, suffix: str) -> None:
    rows = [{"query": "a", "pos": [], "neg": ["n"], "type": "a"}, *[ROWS[0] | {"type": "b"}] * 3]
    examples = read_examples(saved(tmp_path, rows, suffix), where={"type": "b"})
    assert list(examples.columns) == ["anchor", "positive", "negative_1", "negative_2"]
    assert (len(examples), examples.left_out) == (6, {"excluded by where": 1})


def test_lists_of_other_names_can_be_named(tmp_path: Path) -> None:
    path = saved(tmp_path, [{"q": "q", "docs": ["a", "b"], "wrong": ["c"]}])
    examples = read_examples(path, columns={"anchor": "q", "positive": "docs", "negative": "wrong"})
    assert dict(examples.columns) == {"anchor": ["q"] * 2, "positive": ["a", "b"], "negative_1": ["c"] * 2}
    again = read_examples(saved(tmp_path, ROWS), columns={"positive": "pos"}, kind="pairs")
    assert again.columns["second"] == ["p1", "p2", "p3"]


@pytest.mark.parametrize("positive", ["pos", "positive", "answer"])
@pytest.mark.parametrize("negatives", ["neg", "hard_negatives"])
def test_a_lone_positive_beside_a_list_of_negatives(tmp_path: Path, positive: str, negatives: str) -> None:
    examples = read_examples(saved(tmp_path, [{"query": "q", positive: "a", negatives: ["b", "c"]}]))
    assert [texts[0] for texts in examples.columns.values()] == ["q", "a", "b", "c"]


def test_a_parquet_file_is_not_read_for_lists_that_it_has_not(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    names = ["anchor", "positive", "x", "x"]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays([["a"], ["b"], [1], [2]], names=names), path)
    assert dict(read_examples(path).columns) == {"first": ["a"], "second": ["b"]}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_lists_that_are_not_wanted_multiply_no_rows(tmp_path: Path, suffix: str) -> None:
    tags = [["DT", "NN"], [], ["VB"]]
    rows = [{"text": f"t{place}", "label": place % 2, "pos": found} for place, found in enumerate(tags)]
    path = saved(tmp_path, rows, suffix)
    examples = read_examples(path, kind="classified texts")
    assert examples.columns == {"text": ["t0", "t1", "t2"]}
    assert read_examples(path, kind="classified texts", limit=2).columns == {"text": ["t0", "t1"]}
    assert read_examples(path, kind="texts").unused == ("label", "pos")


def test_pairs_want_nothing_of_the_negatives(tmp_path: Path) -> None:
    rows = [{"query": "q", "pos": ["a", "b"], "neg": ["c"]}, {"query": "r", "pos": ["d"], "neg": []}]
    examples = read_examples(saved(tmp_path, rows), kind="pairs")
    assert dict(examples.columns) == {"first": ["q", "q", "r"], "second": ["a", "b", "d"]}
    assert examples.unused == ("neg",)
