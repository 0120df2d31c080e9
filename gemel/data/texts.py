"""Texts from a file or stdin, one record at a time: no text is lost, split or changed on the way."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, TypeGuard

from gemel.data.lines import COMPRESSIONS, MAX_LINE_BYTES, decoded_lines, decompressed, without_end
from gemel.errors import InvalidInput, MissingExtra

Id = int | str
# The line (from 1; in parquet the row, from 0) of a record, its id and its text, both still unchecked.
_Raw = tuple[int, object, object]

_EXPECTED = "expected .txt, .jsonl, .ndjson, .csv or .tsv (each also with .gz or .zst) or .parquet"
_PARQUET_BATCH_ROWS = 1024
_PARQUET_BUFFER_BYTES = 1 << 20


class TextRecord(NamedTuple):
    """A text and its id: the value of the id column, or else the row number from 0."""

    id: Id
    text: str


@dataclass(frozen=True)
class TextSource:
    """A file of texts, or stdin for `-`; `format` (`csv`, `jsonl.gz`, ...) says what a suffix does not."""

    path: str | os.PathLike[str]
    format: str | None = None
    column: str = "text"
    id_column: str | None = None

    @property
    def name(self) -> str:
        """What messages call this source."""
        return "stdin" if self._is_stdin else str(self.path)

    def records(self) -> Iterator[TextRecord]:
        """Every text in the order of the file; one that is not as expected raises, and its line is named."""
        with self._open() as file:
            kind, compression = self._layout()
            where = f"{self.name}, {'row' if kind == 'parquet' else 'line'}"
            stream = decompressed(file, compression)
            for row, (place, id_, text) in enumerate(_READERS[kind](self, stream)):
                if self.id_column is None:
                    id_ = row
                if not _is_text(text):
                    raise InvalidInput(f"{where} {place}: the text is {_describe(text)}; expected a string")
                if not _is_id(id_):
                    raise InvalidInput(
                        f"{where} {place}: the id is {_describe(id_)}; expected string or integer"
                    )
                yield TextRecord(id_, text)

    def count_rows(self) -> int | None:
        """How many texts there are, found by reading them all; None where they can be read only once."""
        if self._is_stdin or not Path(self.path).is_file():
            return None
        return sum(1 for _ in self.records())

    @property
    def _is_stdin(self) -> bool:
        return os.fspath(self.path) == "-"

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        if self._is_stdin:
            return nullcontext(sys.stdin.buffer)
        try:
            return Path(self.path).open("rb")
        except OSError as error:
            raise InvalidInput(
                f"cannot read {self.name}: {error.strerror}; expected a file of texts, or - for stdin"
            ) from error

    def _layout(self) -> tuple[str, str]:
        """The format and the compression; what is named goes before what the suffix says."""
        kind, compression = _split_suffixes("txt" if self._is_stdin else Path(self.path).name)
        if self.format is not None:
            kind, named_compression = _split_suffixes(self.format)
            compression = named_compression or compression
        if kind not in _READERS:
            unknown = "an unknown suffix" if self.format is None else f"the unknown format {self.format!r}"
            raise InvalidInput(f"{self.name} has {unknown}; {_EXPECTED}; say which with --input-format")
        if kind == "parquet" and (compression or self._is_stdin):
            raise InvalidInput(f"{self.name}: parquet is read from plain files only; save it as one first")
        if kind == "txt" and (self.id_column is not None or self.column != "text"):
            raise InvalidInput(f"{self.name}: a .txt file has no columns; leave out --column and --id-column")
        return kind, compression


def _split_suffixes(name: str) -> tuple[str, str]:
    """The format and the compression that a name ends in: `a.csv.gz` gives `("csv", "gz")`."""
    stem, _, last = name.lower().rpartition(".")
    return (stem.rpartition(".")[2], last) if last in COMPRESSIONS else (last, "")


def _is_text(value: object) -> TypeGuard[str]:
    """Whether this is a string that UTF-8 can hold: JSON can also spell half a surrogate pair."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_id(value: object) -> TypeGuard[Id]:
    return type(value) is int or _is_text(value)


def _describe(value: object) -> str:
    if value is None:
        return "null"
    is_broken = isinstance(value, str) and not _is_text(value)
    return "half a surrogate pair" if is_broken else f"of type {type(value).__name__}"


def _read_txt(source: TextSource, stream: IO[bytes]) -> Iterator[_Raw]:
    for number, line in enumerate(decoded_lines(stream, source.name), 1):
        yield number, None, without_end(line)


def _read_jsonl(source: TextSource, stream: IO[bytes]) -> Iterator[_Raw]:
    for number, line in enumerate(decoded_lines(stream, source.name), 1):
        if not line.strip(" \t\r\n"):
            continue
        where = f"{source.name}, line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            flaw = (
                f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else error
            )
            raise InvalidInput(
                f"{where} is not JSON: {flaw}; expected one object or string a line"
            ) from error
        if isinstance(value, str) and source.id_column is None:
            yield number, None, value
        elif isinstance(value, dict):
            _locate(source, list(value), where)
            yield number, value.get(source.id_column), value[source.column]
        else:
            raise InvalidInput(f"{where} is {_describe(value)}; expected an object with named fields")


def _read_csv(source: TextSource, stream: IO[bytes]) -> Iterator[_Raw]:
    # The csv module's limit is a global one, and its 128 KiB would refuse long texts.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    reader = csv.reader(decoded_lines(stream, source.name), strict=True)

    def rows() -> Iterator[tuple[int, list[str]]]:
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise InvalidInput(
                    f"{source.name}, line {number}: the row is not CSV ({error}); expected quotes in pairs"
                ) from error
            if row is None:
                return
            yield number, row or [""]

    return _read_table(source, rows())


def _read_tsv(source: TextSource, stream: IO[bytes]) -> Iterator[_Raw]:
    lines = enumerate(decoded_lines(stream, source.name), 1)
    return _read_table(source, ((number, without_end(line).split("\t")) for number, line in lines))


def _read_table(source: TextSource, rows: Iterator[tuple[int, list[str]]]) -> Iterator[_Raw]:
    _, header = next(rows, (1, []))
    text_at, id_at = _locate(source, header, source.name)
    for number, row in rows:
        if len(row) == len(header):
            yield number, None if id_at is None else row[id_at], row[text_at]
        elif row != [""]:  # a blank line, which is a record only where there is one column
            raise InvalidInput(
                f"{source.name}, line {number}: the row has {len(row)} column(s); "
                f"expected {len(header)} as in the header: {', '.join(header)}"
            )


def _read_parquet(source: TextSource, stream: IO[bytes]) -> Iterator[_Raw]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading parquet", "parquet") from error
    start = 0
    columns = [source.column] if source.id_column is None else [source.column, source.id_column]
    try:
        table = pyarrow.parquet.ParquetFile(stream, buffer_size=_PARQUET_BUFFER_BYTES)
        _locate(source, table.schema_arrow.names, source.name)
        for batch in table.iter_batches(_PARQUET_BATCH_ROWS, columns=columns):
            texts, ids = batch.column(columns[0]).to_pylist(), batch.column(columns[-1]).to_pylist()
            yield from zip(range(start, start + len(texts)), ids, texts, strict=True)
            start += len(texts)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{source.name}: cannot read beyond row {start} ({error}); expected a whole parquet file"
        ) from error


def _locate(source: TextSource, columns: Sequence[str], where: str) -> tuple[int, int | None]:
    """Where the text and the id stand among the columns."""
    text_at = _index(source.column, columns, where, "--column")
    id_at = None if source.id_column is None else _index(source.id_column, columns, where, "--id-column")
    return text_at, id_at


def _index(name: str, columns: Sequence[str], where: str, option: str) -> int:
    if columns.count(name) == 1:
        return columns.index(name)
    count = "more than one column" if name in columns else "no column"
    found = ", ".join(columns) or "none"
    raise InvalidInput(f"{where} has {count} {name!r} (found: {found}); name the right one with {option}")


_READERS: dict[str, Callable[[TextSource, IO[bytes]], Iterator[_Raw]]] = {
    "txt": _read_txt,
    "jsonl": _read_jsonl,
    "ndjson": _read_jsonl,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
}
