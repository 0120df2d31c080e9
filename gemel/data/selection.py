"""Some rows of a file, as they stand there: every column and, in a file of the same format, every byte."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gemel.data.lines import decoded_lines, decompressed, without_end
from gemel.data.parquet import import_pyarrow
from gemel.data.results import (
    ROWS_AT_ONCE,
    OutputFile,
    ParquetSink,
    ResultWriter,
    packed,
)
from gemel.data.tables import csv_table, json_table, open_table, split_suffixes, tab_table
from gemel.data.texts import TextSource
from gemel.errors import InvalidInput

Flags = npt.NDArray[np.bool_]
Output = str | os.PathLike[str] | None


@contextmanager
def rereadable(source: TextSource) -> Iterator[TextSource]:
    """The same texts from a file that can be read twice: standard input is put into one."""
    if not source.is_stdin:
        yield source
        return
    with tempfile.NamedTemporaryFile() as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        yield replace(source, path=file.name, format=source.format or "txt", label=source.name)


def selection_format(source: TextSource, output: Output) -> tuple[str, str]:
    """The format and compression of the rows in `output`: those of the source, or JSON lines."""
    kind = _plain(source.layout()[0])
    if output is None or os.fspath(output) == "-":
        return ("jsonl" if kind == "parquet" else kind), ""
    wanted, compression = split_suffixes(Path(output).name)
    if _plain(wanted) not in (kind, "jsonl") or compression not in ("", "gz"):
        choices = f".{kind}" if kind in ("jsonl", "parquet") else f".{kind} (also with .gz)"
        others = "" if kind == "jsonl" else " or .jsonl"
        raise InvalidInput(
            f"{os.fspath(output)} cannot take the rows of {source.name} as they stand; "
            f"expected {choices}{others}"
        )
    return _plain(wanted), compression


def copy_rows(source: TextSource, output: Output, is_chosen: Flags, *, overwrite: bool = False) -> None:
    """Write the chosen rows of a source to a file, or to standard output for None or `-`."""
    kind = _plain(source.layout()[0])
    wanted, compression = selection_format(source, output)
    if wanted != kind:
        _copy_as_json(source, kind, output, is_chosen, overwrite)
        return
    file = None if output is None or os.fspath(output) == "-" else OutputFile(output, overwrite=overwrite)
    with file or nullcontext():
        if kind == "parquet":
            assert file is not None
            _copy_parquet(source, file, is_chosen)
        else:
            _copy_lines(source, kind, is_chosen, _line_writer(file, compression))


def _plain(kind: str) -> str:
    return "jsonl" if kind == "ndjson" else kind


def _line_writer(file: OutputFile | None, compression: str) -> Callable[[list[str], int], object]:
    def write(lines: list[str], n_rows: int) -> None:
        text = "".join(lines)
        if file is None:
            sys.stdout.write(text)
        elif text:
            file.append(packed(text, compression), n_rows)

    return write


def _copy_lines(
    source: TextSource, kind: str, is_chosen: Flags, write: Callable[[list[str], int], object]
) -> None:
    with source.opened() as file:
        stream = decompressed(file, source.layout()[1])
        lines = _records(stream, kind, source.name)
        block = [next(lines)]  # the header, or nothing
        write(block, 0)
        block = []
        for chosen, record in zip(is_chosen.tolist(), _as_many(lines, len(is_chosen), source), strict=True):
            if chosen:
                block.append(record)
            if len(block) == ROWS_AT_ONCE:
                write(block, len(block))
                block = []
        write(block, len(block))


def _as_many(records: Iterator[str], n_records: int, source: TextSource) -> Iterator[str]:
    """The records, if they are as many as before."""
    n_read = 0
    for n_read, record in enumerate(records, 1):
        if n_read > n_records:
            break
        yield record
    if n_read != n_records:
        raise InvalidInput(f"{source.name} changed while it was read; expected {n_records:,} rows: run again")


def _records(stream: IO[bytes], kind: str, name: str) -> Iterator[str]:
    """The header of a file, which may be empty, and each record with its line ends, unchanged."""
    taken: list[str] = []

    def recorded() -> Iterator[str]:
        for line in decoded_lines(stream, name):
            taken.append(line)
            yield line

    def gathered() -> str:
        text = "".join(taken)
        taken.clear()
        return text

    if kind == "txt":
        return chain([""], recorded())
    lines = recorded()
    if kind == "jsonl":
        table = json_table(lines, name, bare_column="text")  # a bare string is a text, too
    else:
        table = csv_table(lines, name) if kind == "csv" else tab_table(lines, name)
    return chain([gathered()], (gathered() for _ in table.rows([])))


def _copy_parquet(source: TextSource, file: OutputFile, is_chosen: Flags) -> None:
    pyarrow = import_pyarrow()
    with source.opened() as stream:
        table = pyarrow.parquet.ParquetFile(stream)
        sink = ParquetSink(file)
        file.keeps_parts = False
        start = 0
        with pyarrow.parquet.ParquetWriter(sink, table.schema_arrow) as writer:
            for batch in table.iter_batches(ROWS_AT_ONCE):
                chosen = batch.filter(pyarrow.array(is_chosen[start : start + len(batch)]))
                writer.write_batch(chosen)
                file.n_rows += len(chosen)
                start += len(batch)
        file.keeps_parts = not sink.is_torn


def _copy_as_json(source: TextSource, kind: str, output: Output, is_chosen: Flags, overwrite: bool) -> None:
    with source.opened() as file:
        stream = decompressed(file, source.layout()[1])
        columns, rows = ["text"], _texts(stream, source.name)
        if kind != "txt":
            table = open_table(stream, kind, source.name)
            columns, rows = table.columns or [], (tuple(row.values()) for _, row in table.rows())
        if len(set(columns)) < len(columns):
            raise InvalidInput(
                f"{source.name} has columns of the same name ({', '.join(columns)}), which JSON cannot hold; "
                f"write .{kind} instead"
            )
        with ResultWriter(output, dict.fromkeys(columns, str), overwrite=overwrite) as results:
            results.write(row for chosen, row in zip(is_chosen.tolist(), rows, strict=True) if chosen)


def _texts(stream: IO[bytes], name: str) -> Iterator[tuple[Any, ...]]:
    return ((without_end(line),) for line in decoded_lines(stream, name))
