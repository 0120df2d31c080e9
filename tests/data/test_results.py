"""Rows of results reach their file whole, and what is broken off says so."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemel.data import results
from gemel.data.results import ROWS_AT_ONCE, ResultWriter
from gemel.data.tables import open_table
from gemel.data.texts import TextSource
from gemel.errors import InvalidInput, WriteFailed

COLUMNS = {"id": int, "text": str, "score": float}
ROWS = [
    (0, "plain", 0.5),
    (1, 'quotes " and, commas', -1.0),
    (2, "two\nlines\rthree\r\n", None),
    (3, "", 0.25),
]
TEXTS = st.text(st.characters(exclude_categories=("Cs",)))


def save(path: Path, rows: Any = ROWS, **options: Any) -> Path:
    with ResultWriter(path, COLUMNS, **options) as results:
        results.write(rows)
    return path


def test_json_lines_are_read_back_as_they_were(tmp_path: Path) -> None:
    lines = save(tmp_path / "out.jsonl").read_text().splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == ROWS
    assert list(json.loads(lines[0])) == list(COLUMNS)


def test_json_lines_hold_null_for_what_is_no_number(tmp_path: Path) -> None:
    nan, infinity = float("nan"), float("inf")
    lines = save(tmp_path / "out.jsonl", [(0, "a", nan), (1, "b", [infinity, {"x": -infinity}])])
    assert lines.read_text() == (
        '{"id": 0, "text": "a", "score": null}\n{"id": 1, "text": "b", "score": [null, {"x": null}]}\n'
    )


def test_parquet_is_read_back_as_it_was(tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(save(tmp_path / "out.parquet"))
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS
    assert [str(kind) for kind in table.schema.types] == ["int64", "string", "double"]


@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_csv_brings_back_any_text(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "out.csv"
    save(path, [(row, text, 0.0) for row, text in enumerate(texts)])
    assert [record.text for record in TextSource(path).records()] == texts


@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_tsv_changes_only_tabs_and_line_breaks(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tsv") / "out.tsv"
    save(path, [(row, text, 0.0) for row, text in enumerate(texts)])
    blank = str.maketrans("\t\r\n", "   ")
    assert [record.text for record in TextSource(path).records()] == [text.translate(blank) for text in texts]


def test_a_gz_file_holds_the_same_bytes_compressed(tmp_path: Path) -> None:
    rows = [(row, "text " * 20, 0.0) for row in range(10_000)]
    plain = save(tmp_path / "out.csv", rows).read_bytes()
    assert gzip.decompress(save(tmp_path / "out.csv.gz", rows).read_bytes()) == plain


def test_rows_that_come_one_by_one_are_written_in_large_blocks(tmp_path: Path) -> None:
    for name in ("out.parquet", "out.jsonl.gz"):
        with ResultWriter(tmp_path / name, COLUMNS) as results:
            for row in range(ROWS_AT_ONCE + 5):
                results.write([(row, "text", 0.5)])
        assert results.n_rows == ROWS_AT_ONCE + 5
    assert pyarrow.parquet.ParquetFile(tmp_path / "out.parquet").metadata.num_row_groups == 2
    packed = (tmp_path / "out.jsonl.gz").read_bytes()
    assert gzip.decompress(packed).count(b"\n") == ROWS_AT_ONCE + 5
    assert packed.count(b"\x1f\x8b\x08") == 2  # what each gzip member begins with


@pytest.mark.parametrize("name", ["out.parquet", "out.csv.gz"])
def test_an_error_between_two_writes_keeps_the_rows_before_it(tmp_path: Path, name: str) -> None:
    results = ResultWriter(tmp_path / name, COLUMNS)
    results.write(ROWS)
    with pytest.raises(KeyboardInterrupt), results:
        raise KeyboardInterrupt
    assert results.kept == f"the 4 rows before are kept in {tmp_path / name}.partial"
    assert (tmp_path / f"{name}.partial").exists()


def test_no_rows_make_a_file_with_a_header_alone(tmp_path: Path) -> None:
    assert save(tmp_path / "out.tsv", []).read_text() == "id\ttext\tscore\n"
    assert save(tmp_path / "out.jsonl", []).read_text() == ""
    assert not list(tmp_path.glob("*.partial"))


def test_standard_output_gets_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with ResultWriter(None, COLUMNS) as results:
        results.write([(0, "é", 1.0)])
    assert capsys.readouterr().out == '{"id": 0, "text": "é", "score": 1.0}\n'


def test_a_file_that_exists_is_replaced_only_if_told(tmp_path: Path) -> None:
    path = save(tmp_path / "out.jsonl")
    with pytest.raises(InvalidInput, match="exists already; name another file, or replace it"):
        ResultWriter(path, COLUMNS)
    assert len(save(path, ROWS[:1], overwrite=True).read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", "cannot tell a format from .*expected .jsonl, .csv or .tsv"),
        ("out.parquet.gz", "parquet compresses by itself"),
        ("missing/out.csv", "expected a file name in a folder that exists"),
    ],
)
def test_an_output_that_cannot_be_is_refused_at_once(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ResultWriter(tmp_path / name, COLUMNS)
    assert not list(tmp_path.iterdir())


def broken_off(n_rows: int) -> Iterator[tuple[int, str, float]]:
    yield from ((row, "text", 0.0) for row in range(n_rows))
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv", "out.csv.gz", "out.tsv", "out.parquet"])
def test_what_an_interrupt_breaks_off_is_kept_as_partial(tmp_path: Path, name: str) -> None:
    results = ResultWriter(tmp_path / name, COLUMNS)
    with pytest.raises(KeyboardInterrupt), results:
        results.write(broken_off(5))
    partial = tmp_path / f"{name}.partial"
    assert results.kept == f"the 5 rows before are kept in {partial}"
    assert [path.name for path in tmp_path.iterdir()] == [partial.name]
    data = gzip.decompress(partial.read_bytes()) if ".gz" in name else partial.read_bytes()
    (tmp_path / "copy").write_bytes(data)
    with (tmp_path / "copy").open("rb") as file:
        rows = list(open_table(file, name.split(".")[1], name).rows())
    assert [int(row["id"]) for _, row in rows] == [0, 1, 2, 3, 4]


FILL = """
import resource, sys
from gemel.data.results import ResultWriter
from gemel.errors import WriteFailed
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with ResultWriter(sys.argv[1], {"id": int, "text": str}) as results:
        for start in range(0, 100_000, 100):
            results.write((row, f"text {row * 7919 % 100003} " * 5) for row in range(start, start + 100))
except WriteFailed as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "n_at_once"), [("out.jsonl", 100), ("out.csv", 100), ("out.tsv.gz", ROWS_AT_ONCE)]
)
def test_a_full_disk_leaves_whole_rows_and_says_where(tmp_path: Path, name: str, n_at_once: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FILL, tmp_path / name], capture_output=True, text=True
    )
    assert done.stderr == ""
    partial = tmp_path / f"{name}.partial"
    assert [path.name for path in tmp_path.iterdir()] == [partial.name]
    data = gzip.decompress(partial.read_bytes()) if ".gz" in name else partial.read_bytes()
    n_rows = data.count(b"\n") - (0 if "jsonl" in name else 1)
    assert data.endswith(b"\n")
    assert n_rows > 0
    assert n_rows % n_at_once == 0
    assert done.stdout == (
        f"cannot write {tmp_path / name}: File too large; the {n_rows:,} rows before are kept in {partial}: "
        "make room, or name another file\n"
    )


def test_a_full_disk_leaves_nothing_of_a_parquet_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FILL, tmp_path / "out.parquet"], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert "File too large; nothing was written" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_refused_file_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "out.csv.partial").mkdir()
    with pytest.raises(WriteFailed, match="Is a directory; nothing was written"):
        ResultWriter(tmp_path / "out.csv", COLUMNS)


def test_rows_do_not_wait_long_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "LONGEST_SECONDS", 0.0)
    with ResultWriter(tmp_path / "rows.jsonl.gz", {"id": int}) as writer:
        writer.write([(1,)])
        writer.write([(2,)])
        with gzip.open(tmp_path / "rows.jsonl.gz.partial", "rt") as file:
            assert [json.loads(line)["id"] for line in file] == [1, 2]


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.csv"])
def test_a_row_that_cannot_be_written_leaves_those_before_it(tmp_path: Path, name: str) -> None:
    writer = ResultWriter(tmp_path / name, {"id": int, "text": str})

    def write_each() -> None:
        with writer:
            for row in ((1, "one"), (2, "two"), (3, "\ud800"), (4, "four")):
                writer.write([row])

    with pytest.raises(UnicodeEncodeError):
        write_each()
    assert writer.kept == f"the 2 rows before are kept in {tmp_path / name}.partial"
