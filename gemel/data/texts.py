"""Texts from a file or stdin, one record at a time: no text is lost, split or changed on the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeGuard

from gemel.data.lines import decoded_lines, decompressed, without_end
from gemel.data.tables import TABLE_FORMATS, describe, is_text, open_bytes, open_table, split_suffixes
from gemel.errors import InvalidInput

Id = int | str
# The line (from 1; in parquet the row, from 0) of a record, its id and its text, both still unchecked, and
# its other columns.
_Raw = tuple[int, object, object, Mapping[str, Any]]

_EXPECTED = "expected .txt, .jsonl, .ndjson, .csv or .tsv (each also with .gz or .zst) or .parquet"


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
    label: str | None = None  # what messages call it, where that is not its path
    other_columns: tuple[str, ...] | None = ()  # that `rows` gives beside each text; None for all others
    options: tuple[str, ...] = ("--column", "--id-column", "--input-format")  # that messages may advise

    @property
    def name(self) -> str:
        """What messages call this source."""
        return self.label or ("stdin" if self.is_stdin else str(self.path))

    def records(self) -> Iterator[TextRecord]:
        """Every text in the order of the file; one that is not as expected raises, and its line is named."""
        return (record for record, _ in self.rows())

    def rows(self) -> Iterator[tuple[TextRecord, Mapping[str, Any]]]:
        """The same, each with its other columns."""
        with self.opened() as file:
            kind, compression = self.layout()
            where = f"{self.name}, {'row' if kind == 'parquet' else 'line'}"
            stream = decompressed(file, compression)
            for row, (place, id_, text, others) in enumerate(self._raw(kind, stream)):
                if self.id_column is None:
                    id_ = row
                if not is_text(text):
                    raise InvalidInput(f"{where} {place}: the text is {describe(text)}; expected a string")
                if not _is_id(id_):
                    raise InvalidInput(
                        f"{where} {place}: the id is {describe(id_)}; expected string or integer"
                    )
                yield TextRecord(id_, text), others

    def count_rows(self) -> int | None:
        """How many texts there are, found by reading them all; None where they can be read only once."""
        if self.is_stdin or not Path(self.path).is_file():
            return None
        return sum(1 for _ in self.records())

    @property
    def is_stdin(self) -> bool:
        """Whether the texts come from standard input, which can be read only once."""
        return os.fspath(self.path) == "-"

    def opened(self) -> AbstractContextManager[IO[bytes]]:
        """The file, still compressed."""
        if self.is_stdin:
            return nullcontext(sys.stdin.buffer)
        return open_bytes(self.path, "a file of texts, or - for stdin")

    def layout(self) -> tuple[str, str]:
        """The format and the compression; what is named goes before what the suffix says."""
        kind, compression = split_suffixes("txt" if self.is_stdin else Path(self.path).name)
        if self.format is not None:
            kind, named_compression = split_suffixes(self.format)
            compression = named_compression or compression
        if kind not in ("txt", *TABLE_FORMATS):
            unknown = "an unknown suffix" if self.format is None else f"the unknown format {self.format!r}"
            advice = (
                "say which with --input-format" if "--input-format" in self.options else "rename the file"
            )
            raise InvalidInput(f"{self.name} has {unknown}; {_EXPECTED}; {advice}")
        if kind == "parquet" and (compression or self.is_stdin):
            raise InvalidInput(f"{self.name}: parquet is read from plain files only; save it as one first")
        if kind == "txt" and (self.id_column is not None or self.column != "text" or self.other_columns):
            given = " and ".join(option for option in self.options if option.endswith("column"))
            raise InvalidInput(
                f"{self.name}: a .txt file has no columns; leave out {given or 'what names some'}"
            )
        return kind, compression

    def _raw(self, kind: str, stream: IO[bytes]) -> Iterator[_Raw]:
        if kind == "txt":
            for number, line in enumerate(decoded_lines(stream, self.name), 1):
                yield number, None, without_end(line), {}
            return
        bare_column = self.column if self.id_column is None else None
        table = open_table(stream, kind, self.name, bare_column=bare_column)
        if table.columns is not None:
            self._check_columns(table.columns, self.name)
            self._check_others(table.columns)
        wanted = [self.column] if self.id_column is None else [self.column, self.id_column]
        asked = self.other_columns
        for number, row in table.rows(None if asked is None else list(dict.fromkeys([*wanted, *asked]))):
            if table.columns is None:
                self._check_columns(list(row), table.place(number))
            kept = [name for name in row if name not in wanted] if asked is None else asked
            others = {name: row[name] for name in kept if name in row}
            yield number, None if self.id_column is None else row[self.id_column], row[self.column], others

    def _check_columns(self, columns: Sequence[str], where: str) -> None:
        """Refuse columns among which the text or the id does not stand, or stands twice."""
        for name, option in ((self.column, "--column"), (self.id_column, "--id-column")):
            if name is not None and columns.count(name) != 1:
                count = "more than one column" if name in columns else "no column"
                found = ", ".join(columns) or "none"
                raise InvalidInput(
                    f"{where} has {count} {name!r} (found: {found}); name the right one with {option}"
                )

    def _check_others(self, columns: Sequence[str]) -> None:
        """Refuse a header without a column that was asked for; in JSON lines each row may lack some."""
        missing = next((name for name in self.other_columns or () if name not in columns), None)
        if missing is not None:
            found = ", ".join(columns) or "none"
            raise InvalidInput(f"{self.name} has no column {missing!r} (found: {found}); name those it has")


def _is_id(value: object) -> TypeGuard[Id]:
    return type(value) is int or is_text(value)
