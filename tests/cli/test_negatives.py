"""`gemel negatives` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from stand_ins import sentences

from gemel.cli import gemel
from gemel.data.example_files import read_examples
from gemel.errors import InvalidInput


def call(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    texts = sentences(60, seed=5, max_words=6)
    rows = [f"{a}\t{b}\t{n % 3 // 2}" for n, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))]
    file = tmp_path / "pairs.tsv"
    file.write_text("anchor\tpositive\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return file


def test_triplets_are_written_that_train_reads(tiny_bert: Path, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(sentences(40, seed=6, max_words=6)), encoding="utf-8")
    output = tmp_path / "triplets.tsv"
    done = call(
        "negatives", pairs, "-m", tiny_bert, "--corpus", tmp_path / "corpus.txt", "-n", 2, "-o", output
    )
    report = json.loads(done.stdout)
    triplets = read_examples(output)
    assert triplets.kind == "triplets"
    assert len(triplets) == report["rows"] == report["negatives"] > 20
    assert report["pairs"] == 30
    assert report["dropped"]["within 0.05 of the positive's score"] > 0


def test_pairs_are_read_where_a_column_says_so(tiny_bert: Path, pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "tuples.parquet"
    options = ("--where", "label=1", "--no-margin", "-n", 3, "--layout", "tuples", "--scores")
    done = call("negatives", pairs, "-m", tiny_bert, *options, "-o", output)
    assert "is read as a positive" not in done.stderr
    report = json.loads(done.stdout)
    table = pyarrow.parquet.read_table(output)
    assert report["pairs"] == report["rows"] == len(table) == 10
    assert table.column_names[:5] == ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
    first = table.to_pylist()[0]
    assert first["negative_1_similarity"] >= first["negative_2_similarity"]


def test_every_condition_on_a_column_counts(tiny_bert: Path, tmp_path: Path) -> None:
    texts = sentences(60, seed=5, max_words=6)
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"anchor": a, "positive": b, "is_duplicate": n % 2 == 0, "source": f"s{n % 3}"}
        for n, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for options, n_pairs in (
        (("--where", "is_duplicate!=false"), 15),
        (("--where", "source!=s0", "--where", "source!=s1"), 10),
        (("--where", "source!=s0", "--where", "is_duplicate!=0", "--where", "source!=s1"), 5),
    ):
        done = call("negatives", file, "-m", tiny_bert, "--no-margin", *options)
        assert len(done.stdout.splitlines()) == n_pairs


def test_without_a_file_triplets_are_json_lines(tiny_bert: Path, pairs: Path) -> None:
    done = call("negatives", pairs, "-m", tiny_bert, "--no-margin")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 30
    assert set(lines[0]) == {"anchor", "positive", "negative"}
    assert '"negatives": 30' in done.stderr
    assert "is read as a positive, whatever its column 'label' says; choose with --where" in done.stderr


def test_no_option_is_advised_that_the_verb_has_not(tiny_bert: Path, pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").touch()
    with pytest.raises(InvalidInput, match=r"an unknown suffix; .*; rename the file$"):
        call("negatives", pairs, "-m", tiny_bert, "--corpus", tmp_path / "a.pdf")


def test_what_cannot_be_is_refused_before_a_model_is_loaded(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot tell a format"):
        call("negatives", pairs, "-m", "./nowhere", "-o", tmp_path / "triplets.xml")
    with pytest.raises(InvalidInput, match="n_negatives is 0"):
        call("negatives", pairs, "-m", "./nowhere", "-n", 0)
    assert call("negatives", pairs, "--margin", 0.1, "--no-margin").exit_code == 2
    assert "x>=0" in call("negatives", pairs, "--seed", -1).stderr
    assert "has no '='" in call("negatives", pairs, "--where", "label").stderr
