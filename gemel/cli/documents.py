"""Files of texts as documents for a collection: ids, and metadata out of their other columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.data.texts import Id, TextSource
    from gemel.index import Record


def source_of(file: str, choices: Mapping[str, Any]) -> TextSource:
    """A file of texts, as the options of a command describe it."""
    from gemel.data.texts import TextSource

    asked = [name.partition(":")[0].strip() for name in choices["metadata"].split(",") if name.strip()]
    return TextSource(
        file,
        format=choices["input_format"],
        column=choices["column"],
        id_column=choices["id_column"],
        other_columns=None if asked == ["*"] else tuple(asked),
    )


def number_columns(metadata: str) -> set[str]:
    """The columns whose cells are to be read as numbers."""
    numbers = set()
    for asked in metadata.split(","):
        name, _, kind = asked.partition(":")
        if kind.strip() not in ("", "number", "text"):
            raise InvalidInput(f"--metadata has {asked.strip()!r}; expected NAME, NAME:number or NAME:text")
        if kind.strip() == "number":
            numbers.add(name.strip())
    return numbers


def count_rows(texts: Iterable[TextSource]) -> int | None:
    """How many texts there are in all; None where some can be read only once. Ids that repeat are refused."""
    seen: set[Id] = set()
    n_rows, is_known = 0, True
    for source in texts:
        if source.is_stdin or not Path(source.path).is_file():
            is_known = False
            continue
        for row, record in enumerate(source.records()):
            n_rows += 1
            if source.id_column is None:
                continue
            if record.id in seen:
                raise InvalidInput(
                    f"row {row:,} of {source.name} has the id {record.id!r}, as an earlier one has; expected "
                    "ids that differ: name another column, or leave out --id-column"
                )
            seen.add(record.id)
    return n_rows if is_known else None


class Documents:
    """The records of all files; texts without ids are known by their content, and each is taken once.

    A row whose text came before with other metadata is left out, and counted: a stream cannot be taken back.
    """

    def __init__(self, texts: Iterable[TextSource], numbers: set[str]) -> None:
        self.n_left_out = 0
        self._texts, self._numbers = texts, numbers
        self._first_left_out = ""
        self._seen: dict[bytes, bytes] = {}  # the hash of a text -> that of its metadata

    def __iter__(self) -> Iterator[Record]:
        from gemel.index import Record

        for source in self._texts:
            for row, ((id_, text), others) in enumerate(source.rows()):
                kept = {name: self._value(value, name, source) for name, value in others.items()}
                if source.id_column is not None:
                    yield Record(id_, text, kept)
                elif content := self._content_if_new(text, kept, f"row {row:,} of {source.name}"):
                    yield Record(content, text, kept)

    @property
    def loss(self) -> str:
        """What was left out and how to keep it, in one sentence; empty where nothing was."""
        if not self.n_left_out:
            return ""
        rows = "1 row was" if self.n_left_out == 1 else f"{self.n_left_out:,} rows were"
        return (
            f"{rows} left out, {self._first_left_out} the first: an earlier row has the same text and other "
            "metadata, and rows without ids are known by their text; name the column of their ids with "
            "--id-column to keep each"
        )

    def _content_if_new(self, text: str, kept: Mapping[str, Any], place: str) -> str | None:
        from gemel.index.checksums import content_hash

        content = content_hash(text)
        metadata = content_hash(json.dumps(kept, sort_keys=True, default=str)) if kept else b""
        if content not in self._seen:
            self._seen[content] = metadata
            return content.hex()
        if self._seen[content] != metadata:
            self._first_left_out = self._first_left_out or place
            self.n_left_out += 1
        return None

    def _value(self, value: Any, name: str, source: TextSource) -> Any:
        return _read(value, name, source) if name in self._numbers else _plain(value, name, source)


def lone_file(given: Sequence[str]) -> str | None:
    """The one file that was given, `-` for standard input; None where only texts were."""
    files = [name for name in given if name == "-" or names_file(name)]
    if files and len(given) > 1:
        raise click.UsageError(
            f"{files[0]!r} names a file, and is one of {len(given)} inputs; give one file, or texts alone (a "
            "text that reads as the name of a file can come from standard input)"
        )
    return files[0] if files else None


def names_file(name: str) -> bool:
    """Whether a name is that of a file, or can only be meant as one that is not there."""
    from gemel.data.tables import TABLE_FORMATS, split_suffixes

    return (split_suffixes(name)[0] in ("txt", *TABLE_FORMATS) and " " not in name) or _is_file(name)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # a text can be longer than any name
        return False


def _read(value: Any, name: str, source: TextSource) -> int | float | None:
    from gemel.data.tables import finite_number

    if value is None or value == "":
        return None
    number = finite_number(value)
    if number is None:
        raise InvalidInput(f"{source.name}: the column {name!r} holds {value!r}; expected a number")
    if re.fullmatch(r"\s*[+-]?[0-9]+\s*", str(value)):
        return int(value)  # not by way of a float, which has 53 bits
    return int(number) if number.is_integer() and "." not in str(value) else number


def _plain(value: Any, name: str, source: TextSource) -> Any:
    """A value as a collection can keep it: days and times as ISO 8601, which sorts as they do."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | Decimal | timedelta) or (isinstance(value, float) and not isfinite(value)):
        raise InvalidInput(
            f"{source.name}: the column {name!r} holds {value!r}; expected what JSON can hold: name other "
            "columns with --metadata"
        )
    return value
