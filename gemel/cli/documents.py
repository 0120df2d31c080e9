"""Files of texts as documents for a collection: ids, and metadata out of their other columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def documents_of(texts: Iterable[TextSource], numbers: set[str]) -> Iterator[Record]:
    """The records of all files; texts without ids are known by their content, and each is taken once."""
    from gemel.index import Record
    from gemel.index.checksums import content_hash

    seen: set[bytes] = set()
    for source in texts:
        for (id_, text), others in source.rows():
            kept = {
                name: _read(value, name, source) if name in numbers else _plain(value, name, source)
                for name, value in others.items()
            }
            if source.id_column is not None:
                yield Record(id_, text, kept)
                continue
            content = content_hash(text)
            if content not in seen:
                seen.add(content)
                yield Record(content.hex(), text, kept)


def is_file(name: str) -> bool:
    """Whether there is a file of this name."""
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
