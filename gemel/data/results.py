"""Rows of results as JSON lines, CSV, TSV or parquet: streamed, and a file appears whole or as partial.

Rows gather in `NAME.partial`, which takes the name `NAME` once all are there. Where the disk is full or the
run is interrupted, the whole rows that were written stay in `NAME.partial`, and a sentence says so.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from gemel.data.parquet import import_pyarrow
from gemel.data.tables import split_suffixes
from gemel.errors import InvalidInput, WriteFailed

# column -> str, int, float or bool; only parquet has to know
Columns = Mapping[str, type]
Values = Sequence[Any]  # one a column; None where there is none

ROWS_AT_ONCE = 4_096
LONGEST_SECONDS = 30.0  # that rows wait for others: so much work is lost by who is killed
_EXPECTED = "expected .jsonl, .csv or .tsv (each also with .gz) or .parquet"
_NO_LINE_BREAKS = str.maketrans("\t\n\r", "   ")


def id_type(ids: Iterable[int | str]) -> type:
    """The type of a column of ids: int where all are, else str."""
    return int if all(type(id_) is int and abs(id_) < 1 << 63 for id_ in ids) else str


def format_of_results(output: str | os.PathLike[str]) -> tuple[str, str]:
    """The format and the compression that a file name asks for: `a.csv.gz` gives `("csv", "gz")`."""
    kind, compression = split_suffixes(Path(output).name)
    kind = "jsonl" if kind == "ndjson" else kind
    if kind not in (*_TEXT_FORMATS, "parquet") or compression not in ("", "gz"):
        raise InvalidInput(f"cannot tell a format from {os.fspath(output)}; {_EXPECTED}")
    if kind == "parquet" and compression:
        raise InvalidInput(f"{os.fspath(output)}: parquet compresses by itself; leave out .{compression}")
    return kind, compression


def check_output(path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Refuse a file that cannot be written, before the work and not after it."""
    file = Path(path)
    if file.is_dir() or not file.parent.is_dir():
        raise InvalidInput(f"cannot write {file}: expected a file name in a folder that exists")
    if file.exists() and not overwrite:
        raise InvalidInput(f"{file} exists already; name another file, or replace it with --overwrite")
    if not os.access(file.parent, os.W_OK):
        raise InvalidInput(f"cannot write {file}: its folder takes no new files; name another folder")


class ResultWriter:
    """Where rows of results go: a file by its ending, or JSON lines on standard output for None or `-`."""

    def __init__(
        self, output: str | os.PathLike[str] | None, columns: Columns, *, overwrite: bool = False
    ) -> None:
        self.columns = dict(columns)
        self.n_rows = 0
        self._files = ExitStack()
        self._file: OutputFile | None = None
        self._block: list[Values] = []
        self._due = time.monotonic() + LONGEST_SECONDS
        self._keeps_block = False
        if output is None or os.fspath(output) == "-":
            self._append: Callable[[list[Values]], None] = self._print
            return
        kind, compression = format_of_results(output)
        if kind == "parquet":
            import_pyarrow()
        self._file = self._files.enter_context(OutputFile(output, overwrite=overwrite))
        if kind == "parquet":
            rows = _ParquetRows(self._file, self.columns)
            self._files.callback(rows.close)
            self._append = rows.append
        else:
            self._append = _TextRows(self._file, list(self.columns), kind, compression).append
        # A block is a row group or a gzip member: many small ones are large, and slow to read.
        self._keeps_block = kind == "parquet" or compression != ""
        self._files.callback(self._write_block)

    @property
    def kept(self) -> str:
        """What is left of the rows where writing has ended too early, as a part of a sentence."""
        return "" if self._file is None else self._file.kept

    def write(self, rows: Iterable[Values]) -> None:
        """Add rows, whose values are in the order of the columns; an error among them keeps those before."""
        try:
            for row in rows:
                self._block.append(row)
                if len(self._block) == ROWS_AT_ONCE or time.monotonic() > self._due:
                    self._write_block()
        finally:
            if not self._keeps_block:
                self._write_block()

    def _write_block(self) -> None:
        block, self._block = self._block, []
        self._due = time.monotonic() + LONGEST_SECONDS
        try:
            self._write_rows(block)
        except ValueError:  # of a row that the format cannot hold: those before it can be kept
            for row in block:
                self._write_rows([row])

    def _write_rows(self, rows: list[Values]) -> None:
        if rows:
            self._append(rows)
            self.n_rows += len(rows)

    def __enter__(self) -> ResultWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, traceback)

    def _print(self, rows: list[Values]) -> None:
        sys.stdout.write(_json_lines(list(self.columns), rows))
        sys.stdout.flush()


class OutputFile:
    """A file in the making: whole rows gather in `NAME.partial`, which becomes `NAME` without an error."""

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.partial = self.path.with_name(f"{self.path.name}.partial")
        self.n_rows = 0
        self.keeps_parts = True  # whether a file that was broken off can be read
        self._n_bytes = 0
        check_output(self.path, overwrite=overwrite)
        with self.writing():
            self._file = self.partial.open("wb", buffering=0)

    @property
    def kept(self) -> str:
        """What is left where writing ends too early, as a part of a sentence."""
        if self.n_rows and self.keeps_parts:
            return f"the {self.n_rows:,} rows before are kept in {self.partial}"
        return "nothing was written"

    def append(self, data: bytes, n_rows: int) -> None:
        """Add whole rows; those that do not fit leave no trace."""
        with self.writing():
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[self._file.write(rest) :]
            except BaseException:
                self._file.truncate(self._n_bytes)
                self._file.seek(self._n_bytes)
                raise
        self._n_bytes += len(data)
        self.n_rows += n_rows

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Within, what the system refuses is told in one sentence."""
        try:
            yield
        except WriteFailed:
            raise
        except OSError as error:
            reason = error.strerror or error
            raise WriteFailed(
                f"cannot write {self.path}: {reason}; {self.kept}: make room, or name another file"
            ) from error

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                with self.writing():
                    os.fsync(self._file.fileno())
                    self.partial.replace(self.path)
        finally:
            self._file.close()
            if not (self.n_rows and self.keeps_parts):
                self.partial.unlink(missing_ok=True)


# The formats -----------------------------------------------------------------------------------------


def _json_lines(columns: Sequence[str], rows: Iterable[Values]) -> str:
    return "".join(_json_line(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def _json_line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:  # NaN and infinity, which Python alone would write and read as JSON
        return json.dumps(_without_nan(row), ensure_ascii=False, default=str, allow_nan=False)


def _without_nan(value: Any) -> Any:
    """The value with null in place of what is no number."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv_lines(columns: Sequence[str], rows: Iterable[Values]) -> str:
    text = io.StringIO()
    # Every text in quotes: csv leaves a lone carriage return bare, and then cannot read it.
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    return text.getvalue()


def _tsv_lines(columns: Sequence[str], rows: Iterable[Values]) -> str:
    """Lines without quoting, so that tabs and line breaks in a text become blanks."""
    return "".join("\t".join(_tsv_cell(value) for value in row) + "\n" for row in rows)


def _tsv_cell(value: Any) -> str:
    return "" if value is None else str(value).translate(_NO_LINE_BREAKS)


_TEXT_FORMATS: dict[str, Callable[[Sequence[str], Iterable[Values]], str]] = {
    "jsonl": _json_lines,
    "csv": _csv_lines,
    "tsv": _tsv_lines,
}


class _TextRows:
    def __init__(self, file: OutputFile, columns: list[str], kind: str, compression: str) -> None:
        self._file, self._columns, self._lines = file, columns, _TEXT_FORMATS[kind]
        self._compression = compression
        if kind != "jsonl":
            file.append(packed(self._lines(columns, [columns]), compression), 0)

    def append(self, rows: list[Values]) -> None:
        """Write a block of rows."""
        self._file.append(packed(self._lines(self._columns, rows), self._compression), len(rows))


def packed(text: str, compression: str) -> bytes:
    """The bytes of some lines, compressed or not."""
    # Each block is a gzip member of its own, so that a file that was broken off can be read.
    return gzip.compress(text.encode(), 6, mtime=0) if compression else text.encode()


class _ParquetRows:
    def __init__(self, file: OutputFile, columns: Columns) -> None:
        pyarrow = import_pyarrow()
        types = {
            str: pyarrow.string(),
            int: pyarrow.int64(),
            float: pyarrow.float64(),
            bool: pyarrow.bool_(),
        }
        self._file, self._columns = file, columns
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
        self._batch = pyarrow.record_batch
        file.keeps_parts = False  # its table of contents comes last
        self._sink = ParquetSink(file)
        self._writer = pyarrow.parquet.ParquetWriter(self._sink, self._schema)

    def append(self, rows: list[Values]) -> None:
        """Write a block of rows."""
        columns = [
            [None if value is None else kind(value) for value in values]
            for kind, values in zip(self._columns.values(), zip(*rows, strict=True), strict=True)
        ]
        self._writer.write_batch(self._batch(columns, schema=self._schema))
        self._file.n_rows += len(rows)

    def close(self) -> None:
        """Write the table of contents, without which nothing of the file can be read."""
        self._writer.close()
        self._file.keeps_parts = not self._sink.is_torn


class ParquetSink(io.RawIOBase):
    """What pyarrow writes to: it asks for no count and would take a short write for a whole one."""

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self.is_torn = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.is_torn:  # else this is the end of a file that nobody will read
            self.is_torn = True
            self._file.append(bytes(data), 0)
            self.is_torn = False
        return len(data)
