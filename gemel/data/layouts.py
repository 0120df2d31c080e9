"""Where the table in a file of examples begins: named columns, and the layouts that official files have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

from gemel.data.lines import decoded_lines, decompressed, without_end
from gemel.data.tables import (
    TABLE_FORMATS,
    Table,
    csv_table,
    finite_number,
    open_bytes,
    open_table,
    split_suffixes,
    tab_table,
    text_table,
)
from gemel.errors import InvalidInput

STSB_COLUMNS = ("genre", "file", "year", "id", "score", "sentence1", "sentence2")


@contextmanager
def opened_table(path: str | os.PathLike[str]) -> Iterator[Table]:
    """The table in a file, in whatever layout it has."""
    if Path(path).is_dir():
        raise InvalidInput(f"{path} is a folder; expected a file of examples")
    kind, compression = split_suffixes(Path(path).name)
    if kind not in ("txt", *TABLE_FORMATS) or (kind == "parquet" and compression):
        raise InvalidInput(
            f"{path} has an unknown suffix; expected .tsv, .csv, .jsonl, .ndjson or .txt "
            "(each also with .gz or .zst) or .parquet"
        )
    with open_bytes(path, "a file of examples") as file:
        yield _table(decompressed(file, compression), kind, str(path))


def _table(stream: IO[bytes], kind: str, name: str) -> Table:
    if kind not in ("csv", "tsv", "txt"):
        return open_table(stream, kind, name)
    lines = decoded_lines(stream, name)
    first = next(lines, None)
    whole = lines if first is None else chain([first], lines)
    if first is not None and _is_stsb_line(first):
        return tab_table(whole, name, columns=STSB_COLUMNS, is_ragged=True)  # two licence columns, at times
    if kind == "txt" and first is not None and "\t" not in first:
        return text_table(whole, name)
    return csv_table(whole, name) if kind == "csv" else tab_table(whole, name, is_ragged=kind == "txt")


def _is_stsb_line(line: str) -> bool:
    """Whether a file begins as the STS benchmark does: no header, tabs for all it is called .csv."""
    cells = without_end(line).split("\t")
    return len(cells) >= len(STSB_COLUMNS) and finite_number(cells[STSB_COLUMNS.index("score")]) is not None


def is_sts(found: Sequence[str]) -> bool:
    """Whether the columns are those of the STS benchmark, in any of its copies: scores are 0 to 5."""
    return {"genre", "year"} <= set(found)
