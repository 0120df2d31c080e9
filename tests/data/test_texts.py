"""Every text arrives as it stands in the file, or the line that is wrong is named."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemel.data.texts import TextRecord, TextSource
from gemel.errors import InvalidInput, MissingExtra

AWKWARD = [
    "plain",
    "",
    "  spaces ",
    "line\u2028paragraph\u2029next\x85form\x0cfeed\x0b\x1c",
    "naïve 日本 🙂",
    "\ufeffmark",
]
COMPRESS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}
# Whatever UTF-8 can hold; hypothesis is told to leave out surrogates only.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WITH_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def read(path: Path | str, **options: str) -> list[TextRecord]:
    return list(TextSource(path, **options).records())


def texts_of(path: Path | str, **options: str) -> list[str]:
    return [record.text for record in read(path, **options)]


def save(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_csv(texts: list[str]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["n", "text"], *enumerate(texts)])
    return file.getvalue()


CONTENT = {
    "txt": "".join(f"{text}\n" for text in AWKWARD),
    "jsonl": "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in AWKWARD),
    "ndjson": "".join(json.dumps(text) + "\n" for text in AWKWARD),
    "csv": as_csv(AWKWARD),
    "tsv": "n\ttext\n" + "".join(f"{n}\t{text}\n" for n, text in enumerate(AWKWARD)),
}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("kind", CONTENT)
def test_every_text_format_reads_the_same_texts_in_any_compression(
    tmp_path: Path, kind: str, compression: str
) -> None:
    path = save(tmp_path / f"texts.{kind}{compression}", COMPRESS[compression](CONTENT[kind].encode()))
    assert read(path) == list(enumerate(AWKWARD))


@pytest.mark.parametrize("kind", CONTENT)
def test_a_last_line_without_an_end_is_a_text(tmp_path: Path, kind: str) -> None:
    path = save(tmp_path / f"texts.{kind}", CONTENT[kind].removesuffix("\n").removesuffix("\r"))
    assert texts_of(path) == AWKWARD


@pytest.mark.parametrize("kind", CONTENT)
def test_crlf_ends_a_line_and_a_byte_order_mark_is_dropped(tmp_path: Path, kind: str) -> None:
    lines = CONTENT[kind].replace("\r\n", "\n").replace("\n", "\r\n")
    assert texts_of(save(tmp_path / f"texts.{kind}", b"\xef\xbb\xbf" + lines.encode())) == AWKWARD


def test_a_carriage_return_within_a_line_belongs_to_the_text(tmp_path: Path) -> None:
    assert texts_of(save(tmp_path / "a.txt", "one\rtwo\r\r\nthree\r")) == ["one\rtwo\r", "three\r"]


def test_blank_lines_of_txt_are_texts_so_that_row_i_is_line_i(tmp_path: Path) -> None:
    assert texts_of(save(tmp_path / "a.txt", "\n\nthird\n\n")) == ["", "", "third", ""]


def test_blank_lines_of_jsonl_are_no_records_yet_count_as_lines(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jsonl", '"one"\n\n \t\r\n"two"\nnope\n')
    with pytest.raises(InvalidInput, match="line 5 is not JSON"):
        read(path)
    assert texts_of(save(path, '"one"\n\n \t\r\n"two"\n')) == ["one", "two"]


def test_blank_lines_of_a_table_are_texts_only_where_they_can_be(tmp_path: Path) -> None:
    for kind, separator in (("csv", ","), ("tsv", "\t")):
        one_column = save(tmp_path / f"one.{kind}", "text\na\n\nb\n")
        two_columns = save(tmp_path / f"two.{kind}", f"id{separator}text\n1{separator}a\n\n2{separator}b\n")
        assert texts_of(one_column) == ["a", "", "b"]
        assert texts_of(two_columns) == ["a", "b"]


@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_an_empty_file_has_no_texts(tmp_path: Path, kind: str) -> None:
    assert read(save(tmp_path / f"a.{kind}", b"")) == []


def test_quoted_newlines_of_csv_stay_as_they_are(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", 'text,n\r\n"one\ntwo\r\nthree ""quoted""",1\r\nfour,2\r\n')
    assert texts_of(path) == ['one\ntwo\r\nthree "quoted"', "four"]


def test_quotes_of_tsv_mean_nothing(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tsv", 'text\tn\n"open\t1\nin "mid" dle\t2\n')
    assert texts_of(path) == ['"open', 'in "mid" dle']


def test_long_texts_are_read_whole(tmp_path: Path) -> None:
    long = "word " * 100_000
    assert texts_of(save(tmp_path / "a.csv", as_csv([long]))) == [long]
    assert texts_of(save(tmp_path / "a.txt", long)) == [long]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemel.data.lines.MAX_LINE_BYTES", 1000)
    with pytest.raises(InvalidInput, match=r"line 2 has 1,000 bytes or more"):
        read(save(tmp_path / "a.txt", "short\n" + "x" * 5000))


@given(texts=st.lists(ANY_TEXT, max_size=8))
@WITH_FOLDER
def test_any_texts_survive_jsonl_and_csv(tmp_path: Path, texts: list[str]) -> None:
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    assert texts_of(save(tmp_path / "a.jsonl", "".join(f"{line}\n" for line in lines))) == texts
    if sys.version_info >= (3, 11) or not any("\0" in text for text in texts):
        assert texts_of(save(tmp_path / "a.csv", as_csv(texts))) == texts


@given(texts=st.lists(ANY_TEXT.filter(lambda text: not set(text) & {"\n", "\r", "\t"}), max_size=8))
@WITH_FOLDER
def test_texts_of_one_line_survive_txt_and_tsv(tmp_path: Path, texts: list[str]) -> None:
    assert texts_of(save(tmp_path / "a.tsv", "text\n" + "".join(f"{text}\n" for text in texts))) == texts
    marked = [
        f".{text}" for text in texts
    ]  # a text that starts the file with a byte-order mark would lose it
    assert texts_of(save(tmp_path / "a.txt", "".join(f"{text}\n" for text in marked))) == marked


def test_ids_are_kept_as_they_are(tmp_path: Path) -> None:
    records = [{"key": 7, "body": "a"}, {"key": "007", "body": "b"}]
    path = save(tmp_path / "a.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    assert read(path, column="body", id_column="key") == [(7, "a"), ("007", "b")]
    path = save(tmp_path / "a.csv", "key,text\n007,a\n")
    assert read(path, id_column="key") == [("007", "a")]


@pytest.mark.parametrize("text_type", [pyarrow.string(), pyarrow.large_string()])
def test_parquet_is_read_in_batches_with_ids_of_either_kind(
    tmp_path: Path, text_type: pyarrow.DataType
) -> None:
    texts, path = [f"{text}{n}" for n in range(500) for text in AWKWARD], tmp_path / "a.parquet"
    columns = {
        "text": pyarrow.array(texts, text_type),
        "n": range(3000),
        "key": [f"k{n}" for n in range(3000)],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=1300)
    assert read(path) == list(enumerate(texts))
    assert read(path, id_column="n") == list(enumerate(texts))
    assert read(path, id_column="key") == [(f"k{n}", text) for n, text in enumerate(texts)]
    assert read(path, column="key", id_column="key")[:2] == [("k0", "k0"), ("k1", "k1")]


def test_parquet_that_is_not_as_expected_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", None], "x": [0.5, 1.5]}), path)
    with pytest.raises(InvalidInput, match=r"a\.parquet, row 1: the text is null"):
        read(path)
    with pytest.raises(InvalidInput, match=r"row 0: the id is of type float; expected string or integer"):
        read(path, id_column="x")
    with pytest.raises(InvalidInput, match=r"no column 'body' \(found: text, x\).*--column"):
        read(path, column="body")
    with pytest.raises(InvalidInput, match=r"a\.parquet: cannot read beyond row 0"):
        read(save(path, path.read_bytes()[:-20]))


def test_parquet_that_python_cannot_hold_is_refused_by_its_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts, days = pyarrow.array(["a"]), pyarrow.array([10**7], pyarrow.date32())
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "day": days}), path)
    assert read(path) == [(0, "a")]
    with pytest.raises(
        InvalidInput, match=r"row 0 on the column 'day' holds date32\[day\] that Python has no value for"
    ):
        list(TextSource(path, other_columns=None).rows())
    pyarrow.parquet.write_table(pyarrow.table([texts, days, days], names=["text", "day", "day"]), path)
    assert read(path) == [(0, "a")]
    with pytest.raises(InvalidInput, match=r"more than one column 'day' \(found: text, day, day\)"):
        list(TextSource(path, other_columns=None).rows())


def test_nanoseconds_without_pandas_are_refused_by_their_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = pyarrow.array([2_001], pyarrow.timestamp("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "at": times}), path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from gemel.data.texts import TextSource\n"
        "from gemel.errors import InvalidInput\n"
        "try:\n    list(TextSource(sys.argv[1], other_columns=None).rows())\n"
        "except InvalidInput as error:\n    print(error)\n"
    )
    (tmp_path / "pandas.py").write_text("raise ImportError('absent')")
    done = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path], capture_output=True, text=True, check=True
    )
    assert "the column 'at' holds timestamp[ns] that Python has no value for" in done.stdout


BAD_ROWS = {
    "undecodable bytes": ("a.txt", b"fine\nna\xefve\n", "line 2: .* at byte 2; expected UTF-8"),
    "latin-1 in csv": ("a.csv", b"text\nfine\n\xe9t\xe9\n", "line 3: .*expected UTF-8"),
    "malformed JSON": (
        "a.jsonl",
        b'{"text": "a"}\n{"text": \n',
        "line 2 is not JSON: Expecting value at character 10",
    ),
    "deep JSON": ("a.jsonl", b"[" * 200_000 + b"\n", "line 1 is not JSON"),
    "number for a record": ("a.jsonl", b"12\n", "line 1 is of type int; expected an object"),
    "number for a text": (
        "a.jsonl",
        b'"a"\n{"text": 3}\n',
        "line 2: the text is of type int; expected a string",
    ),
    "null for a text": ("a.jsonl", b'{"text": null}\n', "line 1: the text is null; expected a string"),
    "half a surrogate": ("a.jsonl", b'{"text": "\\ud83d"}\n', "line 1: the text is half a surrogate pair"),
    "other fields": (
        "a.jsonl",
        b'{"body": "a", "n": 1}\n',
        r"line 1 has no column 'text' \(found: body, n\)",
    ),
    "too few columns": (
        "a.csv",
        b'n,text\n1,"a\nb"\n2\n',
        "line 4: the row has 1 .*expected 2 as in .* n, text",
    ),
    "too many columns": ("a.tsv", b"n\ttext\n1\ta\tb\n", "line 2: the row has 3 .*expected 2 as in"),
    "unclosed quote": ("a.csv", b'n,text\n1,a\n2,"b\nc\n', "line 3: the row is not CSV"),
    "text after a quote": ("a.csv", b'text\n"a"b\n', "line 2: the row is not CSV"),
    "no such column": ("a.csv", b"id,body\n1,a\n", r"no column 'text' \(found: id, body\); name .* --column"),
    "twice one column": ("a.tsv", b"text\ttext\n1\ta\n", "more than one column 'text'"),
    "no header": ("a.csv", b"", r"no column 'text' \(found: none\)"),
}


@pytest.mark.parametrize("flaw", BAD_ROWS)
def test_a_malformed_row_is_named_by_file_and_line(tmp_path: Path, flaw: str) -> None:
    name, content, message = BAD_ROWS[flaw]
    path = save(tmp_path / name, content)
    with pytest.raises(InvalidInput, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("id_json", ["null", "1.5", "true", "[1]"])
def test_an_id_that_is_neither_string_nor_integer_is_refused(tmp_path: Path, id_json: str) -> None:
    path = save(tmp_path / "a.jsonl", f'{{"id": {id_json}, "text": "a"}}\n')
    with pytest.raises(InvalidInput, match=r"line 1: the id is .*; expected string or integer"):
        read(path, id_column="id")


def test_a_missing_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no column 'id' .*--id-column"):
        read(save(tmp_path / "a.jsonl", '{"text": "a"}\n'), id_column="id")
    with pytest.raises(InvalidInput, match="line 1 is of type str; expected an object"):
        read(save(tmp_path / "a.jsonl", '"a"\n'), id_column="id")


@pytest.mark.parametrize("keep", [0, 1, 10, -9, -1])
@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_cut_off_file_is_refused(tmp_path: Path, compression: str, keep: int) -> None:
    whole = COMPRESS[compression](b"".join(b"text number %d\n" % n for n in range(20_000)))
    with pytest.raises(InvalidInput, match=r"cannot read on .*expected a whole and undamaged file"):
        read(save(tmp_path / f"a.txt{compression}", whole[:keep]))


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_damaged_file_is_refused(tmp_path: Path, compression: str) -> None:
    whole = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(b"abc\n" * 999))
    if compression == ".gz":
        whole = bytearray(gzip.compress(b"abc\n" * 999))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(InvalidInput, match="cannot read on"):
        read(save(tmp_path / f"a.txt{compression}", bytes(whole)))


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_members_that_were_concatenated_are_one_file(tmp_path: Path, compression: str) -> None:
    parts = [COMPRESS[compression](f"{n} a\n{n} ".encode()) for n in range(3000)]
    path = save(tmp_path / f"a.txt{compression}", b"".join(parts) + bytes(10_000))
    assert texts_of(path)[:3] == ["0 a", "0 1 a", "1 2 a"]
    assert len(read(path)) == 3001


def test_what_is_no_file_of_texts_gets_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"cannot read .*a\.txt: No such file or directory; expected a file"
    ):
        read(tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match=r"Is a directory"):
        read(tmp_path)
    for name in ("a.pdf", "readme", "a.gz"):
        with pytest.raises(InvalidInput, match=r"has an unknown suffix; expected \.txt, .* --input-format"):
            read(save(tmp_path / name, "a\n"))
    with pytest.raises(InvalidInput, match="has the unknown format 'xml'"):
        read(save(tmp_path / "a.txt", "a\n"), format="xml")
    with pytest.raises(InvalidInput, match=r"a \.txt file has no columns"):
        read(tmp_path / "a.txt", id_column="id")
    with pytest.raises(InvalidInput, match="parquet is read from plain files only"):
        read(save(tmp_path / "a.parquet.gz", b""))


def test_only_options_that_a_command_takes_are_advised(tmp_path: Path) -> None:
    unknown, plain = save(tmp_path / "a.pdf", "a"), save(tmp_path / "a.txt", "a\n")
    with pytest.raises(InvalidInput, match=r"or \.parquet; rename the file$"):
        list(TextSource(unknown, options=("--column",)).records())
    with pytest.raises(InvalidInput, match=r"has no columns; leave out --column$"):
        list(TextSource(plain, column="x", options=("--column",)).records())
    with pytest.raises(InvalidInput, match=r"has no columns; leave out --column and --id-column$"):
        list(TextSource(plain, column="x").records())


def test_rows_are_counted_where_they_can_be_read_twice(tmp_path: Path) -> None:
    assert TextSource(save(tmp_path / "a.csv", 'text\n"one\nrow"\nanother\n')).count_rows() == 2
    assert TextSource("-").count_rows() is None
    assert TextSource(tmp_path / "missing.txt").count_rows() is None


def test_a_named_format_goes_before_the_suffix(tmp_path: Path) -> None:
    assert texts_of(save(tmp_path / "A.CSV", "text\na\n")) == ["a"]
    assert texts_of(save(tmp_path / "a.log", '"a"\n'), format="jsonl") == ["a"]
    assert texts_of(save(tmp_path / "a.log.gz", gzip.compress(b'"a"\n')), format="jsonl") == ["a"]
    assert texts_of(save(tmp_path / "a.bin", gzip.compress(b'"a"\n')), format="jsonl.gz") == ["a"]


@pytest.mark.parametrize(
    ("format", "content"),
    [(None, b"a\n\nb"), ("jsonl", b'"a"\n""\n"b"\n'), ("txt.gz", gzip.compress(b"a\n\nb\n"))],
    ids=["plain", "jsonl", "gzip"],
)
def test_stdin_is_read_as_bytes_in_the_format_that_is_named(
    monkeypatch: pytest.MonkeyPatch, format: str | None, content: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
    assert [record.text for record in TextSource("-", format).records()] == ["a", "", "b"]
    assert not sys.stdin.buffer.closed


def test_stdin_is_named_in_errors_and_holds_no_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n")))
    with pytest.raises(InvalidInput, match="stdin, line 1"):
        read("-")
    with pytest.raises(InvalidInput, match="stdin: parquet is read from plain files only"):
        read("-", format="parquet")


@pytest.mark.parametrize(("module", "suffix"), [("pyarrow", ".parquet"), ("zstandard", ".txt.zst")])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, suffix: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'gemel\["):
        read(save(tmp_path / f"a{suffix}", b""))


def test_importing_the_room_imports_no_extra() -> None:
    check = "import sys, gemel.tasks.encode; assert not {'pyarrow', 'zstandard', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_large_file_is_read_in_little_memory(tmp_path: Path, compression: str) -> None:
    content = b"".join(
        b"text %d of a file that is larger than it may be in memory\n" % n for n in range(100_000)
    )
    path = save(tmp_path / f"a.txt{compression}", COMPRESS[compression](content))
    tracemalloc.start()
    try:
        n_texts = sum(1 for _ in TextSource(path).records())
        assert tracemalloc.get_traced_memory()[1] < 1_000_000 < len(content)
    finally:
        tracemalloc.stop()
    assert n_texts == 100_000


# Other columns ---------------------------------------------------------------------------------------------


def rows(path: Path, *names: str, everything: bool = False, **options: str) -> list[tuple[object, ...]]:
    source = TextSource(path, other_columns=None if everything else names, **options)
    return [(record.id, record.text, dict(others)) for record, others in source.rows()]


def test_other_columns_come_with_their_texts(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", b"key,text,year,lang\nx,one,2019,en\ny,two,,de\n")
    assert rows(path, "year", id_column="key") == [("x", "one", {"year": "2019"}), ("y", "two", {"year": ""})]
    assert rows(path, "key", "lang", id_column="key")[0] == ("x", "one", {"key": "x", "lang": "en"})
    assert rows(path, everything=True, id_column="key")[0][2] == {"year": "2019", "lang": "en"}
    assert rows(path)[1] == (1, "two", {})
    path = save(tmp_path / "a.jsonl", b'{"text": "one", "year": 2019}\n{"text": "two"}\n"three"\n')
    assert rows(path, "year") == [(0, "one", {"year": 2019}), (1, "two", {}), (2, "three", {})]
    path = save(tmp_path / "a.txt", b"one\n")
    assert rows(path, everything=True) == [(0, "one", {})]


def test_a_column_that_no_header_has_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", b"text,year\none,2019\n")
    with pytest.raises(InvalidInput, match=r"has no column 'month' \(found: text, year\)"):
        rows(path, "month")
    with pytest.raises(InvalidInput, match=r"a \.txt file has no columns"):
        rows(save(tmp_path / "a.txt", b"one\n"), "year")
