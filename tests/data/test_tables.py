"""A row of a table arrives by the names of its columns, or its line is named."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from gemel.data.tables import Row, Table, finite_number, open_table, split_suffixes, tab_table
from gemel.errors import InvalidInput


def table_of(kind: str, content: str) -> Table:
    return open_table(io.BytesIO(content.encode()), kind, f"a.{kind}")


def rows_of(kind: str, content: str, wanted: list[str] | None = None) -> list[Row]:
    return list(table_of(kind, content).rows(wanted))


def test_every_text_format_gives_the_same_rows() -> None:
    expected = [(2, {"q": "one", "n": "1"}), (3, {"q": 'a "quoted" word', "n": "2"})]
    assert rows_of("tsv", 'q\tn\none\t1\na "quoted" word\t2\n') == expected
    assert rows_of("csv", 'q,n\none,1\n"a ""quoted"" word",2\n') == expected
    lines = '{"q": "one", "n": "1"}\n{"q": "a \\"quoted\\" word", "n": "2"}\n'
    assert [row for _, row in rows_of("jsonl", lines)] == [row for _, row in expected]


def test_a_header_is_known_before_the_rows_and_json_has_none() -> None:
    assert table_of("tsv", "q\tn\n").columns == ["q", "n"]
    assert table_of("csv", "q,n\n").columns == ["q", "n"]
    assert table_of("csv", "").columns == []
    assert table_of("jsonl", '{"q": 1}\n').columns is None


def test_only_the_wanted_columns_are_taken_from_a_table_with_a_header() -> None:
    assert rows_of("csv", "a,b,c\n1,2,3\n", ["c", "a"]) == [(2, {"c": "3", "a": "1"})]


@pytest.mark.parametrize(("kind", "tab"), [("csv", ","), ("tsv", "\t")])
def test_a_column_that_stands_there_twice_is_refused_where_it_is_wanted(kind: str, tab: str) -> None:
    content = "a,b,b\n1,2,3\n".replace(",", tab)
    assert rows_of(kind, content, ["a"]) == [(2, {"a": "1"})]
    for wanted in (["a", "b"], None):
        with pytest.raises(InvalidInput, match=r"has more than one column 'b' \(found: a, b, b\)"):
            rows_of(kind, content, wanted)


def test_a_row_over_several_lines_has_the_number_of_its_first() -> None:
    assert rows_of("csv", 'q,n\n"one\ntwo",1\nthree,2\n') == [
        (2, {"q": "one\ntwo", "n": "1"}),
        (4, {"q": "three", "n": "2"}),
    ]


def test_values_of_json_and_parquet_keep_their_types(tmp_path: Path) -> None:
    assert rows_of("jsonl", '{"n": 1, "x": null, "y": [2]}\n') == [(1, {"n": 1, "x": None, "y": [2]})]
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2], "x": [0.5, None]}), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        table = open_table(file, "parquet", "a.parquet")
        assert table.columns == ["n", "x"]
        assert list(table.rows()) == [(0, {"n": 1, "x": 0.5}), (1, {"n": 2, "x": None})]
        assert list(table.rows(["x"])) == [(0, {"x": 0.5}), (1, {"x": None})]
        assert table.place(1) == "a.parquet, row 1"


def test_a_bare_string_is_a_row_only_where_a_column_is_named_for_it() -> None:
    stream = io.BytesIO(b'"a"\n{"text": "b"}\n')
    table = open_table(stream, "jsonl", "a.jsonl", bare_column="text")
    assert list(table.rows()) == [(1, {"text": "a"}), (2, {"text": "b"})]
    with pytest.raises(InvalidInput, match=r"a\.jsonl, line 1 is of type str; expected an object"):
        rows_of("jsonl", '"a"\n')


BAD_ROWS = {
    "jsonl": ('{"q": "a"}\n{oops\n[1]\n{"q": "b"}\n', ["not JSON", "no object"]),
    "csv": ('q,n\na,1\n1\n"x"y,2\nb,2\n', ["wrong number of columns", "not CSV"]),
    "tsv": ("q\tn\na\t1\n1\n\nx\ty\tz\nb\t2\n", ["wrong number of columns"] * 2),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows_can_be_left_out_one_by_one(kind: str) -> None:
    content, reasons = BAD_ROWS[kind]
    told: list[tuple[str, str]] = []
    rows = list(table_of(kind, content).rows(on_bad_row=lambda *flaw: told.append(flaw)))
    assert [row["q"] for _, row in rows] == ["a", "b"]
    assert [reason for reason, _ in told] == reasons
    assert all(f"a.{kind}, line " in message for _, message in told)
    with pytest.raises(InvalidInput, match=r"line \d"):
        rows_of(kind, content)


def test_a_table_without_header_takes_the_columns_it_is_told() -> None:
    table = tab_table(iter(["1\ta\n", "2\tb\n"]), "x", columns=["n", "q"])
    assert list(table.rows()) == [(1, {"n": "1", "q": "a"}), (2, {"n": "2", "q": "b"})]


def test_rows_of_a_ragged_table_may_be_longer_or_lack_the_last_columns() -> None:
    table = tab_table(iter(["a\tb\tc\n", "1\t2\t3\t4\n", "\n", "5\t6\n"]), "x", is_ragged=True)
    assert list(table.rows()) == [(2, {"a": "1", "b": "2", "c": "3"}), (4, {"a": "5", "b": "6"})]


@pytest.mark.parametrize(
    ("kind", "header", "row"),
    [("tsv", "q\tn\n", "text\t%d\n"), ("csv", "q,n\n", '"text",%d\n'), ("jsonl", "", '{"q": %d}\n')],
)
def test_a_large_table_is_read_in_little_memory(kind: str, header: str, row: str) -> None:
    stream = io.BytesIO((header + "".join(row % n for n in range(100_000))).encode())
    tracemalloc.start()
    try:
        assert sum(1 for _ in open_table(stream, kind, "x").rows()) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 < len(stream.getvalue())
    finally:
        tracemalloc.stop()


def test_a_suffix_tells_format_and_compression() -> None:
    assert split_suffixes("a.b.TSV") == ("tsv", "")
    assert split_suffixes("a.csv.gz") == ("csv", "gz")
    assert split_suffixes("a.jsonl.zst") == ("jsonl", "zst")


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "", "a", "1_0", None, True, [1], 10**400])
def test_what_is_no_finite_number_is_none(value: object) -> None:
    assert finite_number(value) is None


def test_a_number_may_be_spelled() -> None:
    assert [finite_number(value) for value in ("4.750", " 5 ", 3, 0.5, "-1e-3")] == [4.75, 5, 3, 0.5, -0.001]
