"""Rows of a table, one at a time: .jsonl, .csv, .tsv, .parquet; a row that is wrong is named by its line."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeGuard

from gemel.data.lines import COMPRESSIONS, MAX_LINE_BYTES, decoded_lines, without_end
from gemel.data.parquet import import_pyarrow
from gemel.errors import InvalidInput

# The line of a row (from 1; in parquet its number, from 0) and its values by column.
Row = tuple[int, Mapping[str, Any]]
# Takes the reason and the whole message of a row that is wrong; if it returns, the row is left out.
OnBadRow = Callable[[str, str], None]

TABLE_FORMATS = ("jsonl", "ndjson", "csv", "tsv", "parquet")
_PARQUET_BATCH_ROWS = 1024
_PARQUET_BUFFER_BYTES = 1 << 20


def refuse(reason: str, message: str) -> None:
    """Let no wrong row pass."""
    raise InvalidInput(message)


@dataclass(frozen=True)
class Table:
    """The rows of a file; `columns` is its header, or None in JSON lines, where each row has its own."""

    name: str
    columns: list[str] | None
    read: Callable[[Sequence[str] | None, OnBadRow], Iterator[Row]]
    unit: str = "line"
    has_types: bool = False  # its values are not all texts

    def rows(self, wanted: Sequence[str] | None = None, on_bad_row: OnBadRow = refuse) -> Iterator[Row]:
        """Every row with at least the wanted columns it has; to be read once."""
        return self.read(wanted, on_bad_row)

    def place(self, number: int) -> str:
        """What messages call a row."""
        return f"{self.name}, {self.unit} {number}"


def open_table(stream: IO[bytes], kind: str, name: str, *, bare_column: str | None = None) -> Table:
    """The table in a stream; a bare string in JSON lines is the value of `bare_column`."""
    if kind == "parquet":
        return parquet_table(stream, name)
    lines = decoded_lines(stream, name)
    if kind == "csv":
        return csv_table(lines, name)
    return tab_table(lines, name) if kind == "tsv" else json_table(lines, name, bare_column)


def open_bytes(path: str | os.PathLike[str], expected: str) -> IO[bytes]:
    """The file, opened for reading, or a sentence that says what was expected there."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}; expected {expected}") from error


def split_suffixes(name: str) -> tuple[str, str]:
    """The format and the compression that a name ends in: `a.csv.gz` gives `("csv", "gz")`."""
    stem, _, last = name.lower().rpartition(".")
    return (stem.rpartition(".")[2], last) if last in COMPRESSIONS else (last, "")


def json_table(lines: Iterator[str], name: str, bare_column: str | None = None) -> Table:
    """A table of JSON lines, one object each."""

    def read(wanted: Sequence[str] | None, on_bad_row: OnBadRow) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            if not line.strip(" \t\r\n"):
                continue
            place = f"{name}, line {number}"
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                flaw: object = error
                if isinstance(error, json.JSONDecodeError):
                    flaw = f"{error.msg} at character {error.pos}"
                message = f"{place} is not JSON: {flaw}; expected one object or string a line"
                on_bad_row("not JSON", message)
                continue
            if isinstance(value, str) and bare_column is not None:
                yield number, {bare_column: value}
            elif isinstance(value, dict):
                yield number, value
            else:
                message = f"{place} is {describe(value)}; expected an object with named fields"
                on_bad_row("no object", message)

    return Table(name, None, read, has_types=True)


def csv_table(
    lines: Iterator[str], name: str, *, columns: Sequence[str] | None = None, delimiter: str = ","
) -> Table:
    """A table with commas and quotes, its header given or in the first line."""
    # The csv module's limit is a global one, and its 128 KiB would refuse long texts.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    reader = csv.reader(lines, strict=True, delimiter=delimiter)

    def cells(on_bad_row: OnBadRow) -> Iterator[tuple[int, list[str]]]:
        while True:
            number = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:
                place = f"{name}, line {number}"
                message = f"{place}: the row is not CSV ({error}); expected quotes in pairs"
                on_bad_row("not CSV", message)
                continue
            if row is None:
                return
            yield number, row or [""]

    header = list(columns) if columns is not None else next(cells(refuse), (1, []))[1]
    return Table(
        name, header, lambda wanted, on_bad_row: _read(name, header, cells(on_bad_row), wanted, on_bad_row)
    )


def tab_table(
    lines: Iterator[str], name: str, *, columns: Sequence[str] | None = None, is_ragged: bool = False
) -> Table:
    """A table split at tabs alone, its header given or in the first line; the rows of a ragged one may be
    shorter, and then lack the last columns, or longer."""
    cells = ((number, without_end(line).split("\t")) for number, line in enumerate(lines, 1))
    header = list(columns) if columns is not None else next(cells, (1, []))[1]
    return Table(
        name,
        header,
        lambda wanted, on_bad_row: _read(name, header, cells, wanted, on_bad_row, is_ragged=is_ragged),
    )


def text_table(lines: Iterator[str], name: str) -> Table:
    """Plain text, a line a row of the one column `text`; blank lines part paragraphs and are no rows."""

    def read(wanted: Sequence[str] | None, on_bad_row: OnBadRow) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            text = without_end(line)
            if text and not text.isspace():
                yield number, {"text": text}

    return Table(name, ["text"], read)


def _read(
    name: str,
    header: Sequence[str],
    cells: Iterator[tuple[int, list[str]]],
    wanted: Sequence[str] | None,
    on_bad_row: OnBadRow,
    *,
    is_ragged: bool = False,
) -> Iterator[Row]:
    columns = _distinct(name, header, wanted)
    places = [(column, header.index(column)) for column in columns]
    for number, row in cells:
        if len(row) == len(header):
            yield number, {column: row[at] for column, at in places}
        elif row == [""]:  # a blank line, which is a record only where there is one column
            continue
        elif is_ragged:
            yield number, {column: row[at] for column, at in places if at < len(row)}
        else:
            message = (
                f"{name}, line {number}: the row has {len(row)} column(s); "
                f"expected {len(header)} as in the header: {', '.join(header)}"
            )
            on_bad_row("wrong number of columns", message)


def _distinct(name: str, header: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The columns to read, each once; one that stands in the header twice has no value of its own."""
    columns = list(dict.fromkeys(header if wanted is None else wanted))
    repeated = next((column for column in columns if header.count(column) > 1), None)
    if repeated is not None:
        raise InvalidInput(
            f"{name} has more than one column {repeated!r} (found: {', '.join(header)}); expected names "
            "that differ: rename one, or name other columns"
        )
    return columns


def parquet_table(stream: IO[bytes], name: str) -> Table:
    """A table of a parquet file, read in batches of rows."""
    pyarrow = import_pyarrow("reading parquet")
    flaws = (pyarrow.ArrowException, OSError, UnicodeDecodeError)

    def damaged(start: int, error: Exception) -> InvalidInput:
        return InvalidInput(
            f"{name}: cannot read beyond row {start} ({error}); expected a whole parquet file"
        )

    def values_of(batch: Any, column: str, start: int) -> list[Any]:
        found = batch.column(column)
        try:
            values: list[Any] = found.to_pylist()
        except flaws:
            raise
        except (OverflowError, ValueError) as error:
            raise InvalidInput(
                f"{name}: from row {start} on the column {column!r} holds {found.type} that Python has no "
                f"value for ({error}); name other columns, or save it as another type"
            ) from error
        return values

    try:
        file = pyarrow.parquet.ParquetFile(stream, buffer_size=_PARQUET_BUFFER_BYTES)
        header: list[str] = file.schema_arrow.names
    except flaws as error:
        raise damaged(0, error) from error

    def read(wanted: Sequence[str] | None, on_bad_row: OnBadRow) -> Iterator[Row]:
        start = 0
        columns = _distinct(name, header, wanted)
        try:
            for batch in file.iter_batches(_PARQUET_BATCH_ROWS, columns=columns):
                values = [values_of(batch, column, start) for column in columns]
                for number, row in enumerate(zip(*values, strict=True), start):
                    yield number, dict(zip(columns, row, strict=True))
                start += len(batch)
        except flaws as error:
            raise damaged(start, error) from error

    return Table(name, header, read, unit="row", has_types=True)


# What a value is -------------------------------------------------------------------------------------


def is_text(value: object) -> TypeGuard[str]:
    """Whether this is a string that UTF-8 can hold: JSON can also spell half a surrogate pair."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def describe(value: object) -> str:
    """What a value is instead of a text."""
    if value is None:
        return "null"
    is_broken = isinstance(value, str) and not is_text(value)
    return "half a surrogate pair" if is_broken else f"of type {type(value).__name__}"


def finite_number(value: object) -> float | None:
    """The finite number that this is or spells, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
