"""Chosen rows are copied as they stand."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemel.data.selection import copy_rows, rereadable, selection_format
from gemel.data.texts import TextSource
from gemel.errors import InvalidInput

CHOSEN = np.array([True, False, True])
# format -> a header and three records as they stand in a file
FILES = {
    "txt": ("", ["one\n", "  two \r\n", "three"]),
    "tsv": ("id\ttext\textra\n", ['1\t"one"\ta\n', "2\ttwo\t\n", "3\tthree\tc\n"]),
    "csv": ("id,text\r\n", ['1,"one\ntwo"\r\n', '2,"a ""b"""\r\n', "3,three\r\n"]),
    "jsonl": (
        "",
        [
            '{"text":   "one", "n": 1.50, "deep": {"a": [1]}}\n',
            '{"text": "two"}\n',
            '{"k": 1, "text": "\\u00e9"}\n',
        ],
    ),
}


def save(path: Path, kind: str) -> TextSource:
    header, records = FILES[kind]
    data = (header + "".join(records)).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return TextSource(path)


@pytest.mark.parametrize("kind", list(FILES))
@pytest.mark.parametrize("compression", ["", ".gz"])
def test_rows_of_the_same_format_keep_every_byte(tmp_path: Path, kind: str, compression: str) -> None:
    source = save(tmp_path / f"in.{kind}{compression}", kind)
    header, records = FILES[kind]
    copy_rows(source, tmp_path / f"out.{kind}", CHOSEN)
    expected = (header + records[0] + records[2]).encode()
    assert (tmp_path / f"out.{kind}").read_bytes() == expected
    copy_rows(source, tmp_path / f"out.{kind}.gz", CHOSEN)
    assert gzip.decompress((tmp_path / f"out.{kind}.gz").read_bytes()) == expected


@given(rows=st.lists(st.tuples(st.text(st.characters(exclude_categories=("Cs",))), st.booleans())))
def test_any_csv_is_divided_without_loss(
    rows: list[tuple[str, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    from gemel.data.results import ResultWriter

    folder = tmp_path_factory.mktemp("csv")
    with ResultWriter(folder / "in.csv", {"text": str, "n": int}) as results:
        results.write((text, n) for n, (text, _) in enumerate(rows))
    source, is_chosen = TextSource(folder / "in.csv"), np.array([chosen for _, chosen in rows], np.bool_)
    copy_rows(source, folder / "chosen.csv", is_chosen)
    copy_rows(source, folder / "others.csv", ~is_chosen)
    chosen = [record.text for record in TextSource(folder / "chosen.csv").records()]
    others = [record.text for record in TextSource(folder / "others.csv").records()]
    assert chosen == [text for text, is_in in rows if is_in]
    assert others == [text for text, is_in in rows if not is_in]


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    table = pa.table(
        {"text": ["one", "two", "three"], "when": pa.array([1, 2, 3], pa.date32()), "l": [[1], [], None]}
    )
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    copy_rows(TextSource(tmp_path / "in.parquet"), tmp_path / "out.parquet", CHOSEN)
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").equals(table.take([0, 2]))
    copy_rows(TextSource(tmp_path / "in.parquet"), tmp_path / "out.jsonl", CHOSEN)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[0] == {"text": "one", "when": "1970-01-02", "l": [1]}


@pytest.mark.parametrize("kind", ["txt", "tsv", "csv"])
def test_every_format_can_become_json_lines(tmp_path: Path, kind: str) -> None:
    source = save(tmp_path / f"in.{kind}", kind)
    copy_rows(source, tmp_path / "out.jsonl", CHOSEN)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == [list(source.records())[row].text for row in (0, 2)]
    if kind == "tsv":
        assert lines[0] == {"id": "1", "text": '"one"', "extra": "a"}


def test_standard_output_gets_the_rows_of_the_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_rows(save(tmp_path / "in.tsv", "tsv"), None, CHOSEN)
    assert capsys.readouterr().out == 'id\ttext\textra\n1\t"one"\ta\n3\tthree\tc\n'


def test_another_format_is_refused_with_those_that_fit(tmp_path: Path) -> None:
    source = save(tmp_path / "in.tsv", "tsv")
    with pytest.raises(InvalidInput, match=r"expected \.tsv \(also with \.gz\) or \.jsonl"):
        selection_format(source, tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match=r"in\.jsonl as they stand; expected \.jsonl"):
        selection_format(save(tmp_path / "in.jsonl", "jsonl"), "out.tsv")


def test_columns_of_one_name_cannot_become_json(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("text\ta\ta\none\t1\t2\n")
    with pytest.raises(InvalidInput, match="columns of the same name"):
        copy_rows(TextSource(tmp_path / "in.tsv"), tmp_path / "out.jsonl", CHOSEN[:1])


def test_a_file_that_has_changed_meanwhile_is_told(tmp_path: Path) -> None:
    source = save(tmp_path / "in.txt", "txt")
    for n_rows in (2, 4):
        with pytest.raises(InvalidInput, match="changed while it was read"):
            copy_rows(source, tmp_path / "out.txt", np.ones(n_rows, np.bool_), overwrite=True)
    assert not (tmp_path / "out.txt").exists()


def test_standard_input_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"text\none\ntwo\n")))
    with rereadable(TextSource("-", format="tsv")) as source:
        assert source.name == "stdin"
        for _ in range(2):
            assert [record.text for record in source.records()] == ["one", "two"]
