"""What a reader of official files gives: named parts of a set, each a table of cleaned texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gemel.data.official.files import OfficialFiles
from gemel.data.tables import Table, finite_number
from gemel.errors import InvalidInput

_BREAKS = re.compile(r"[\t\r\n]+")


class Part(NamedTuple):
    """One table of a set: `test` becomes `test.tsv`."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Sequence[str]]


Reader = Callable[[OfficialFiles], Iterator[Part]]


def clean(text: str) -> str:
    """The text as it is, but on one line and without blanks around it."""
    return _BREAKS.sub(" ", text).strip()


def cells(table: Table, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The place and the cells of each row, in the order of the columns asked for."""
    if table.columns is not None:
        missing = [column for column in columns if column not in table.columns]
        if missing:
            raise InvalidInput(
                f"{table.name} has the columns {', '.join(table.columns) or 'none'}; "
                f"expected {', '.join(missing)} as well: is it the official file?"
            )
    for number, row in table.rows(columns):
        absent = next((column for column in columns if row.get(column) is None), None)
        if absent is not None:
            raise InvalidInput(f"{table.place(number)}: the row has no {absent}; expected the official file")
        yield table.place(number), [str(row[column]) for column in columns]


def checked_score(score: str, lowest: float, highest: float, place: str) -> str:
    """The score as it is written, if it is a number on the scale."""
    value = finite_number(score)
    if value is None or not lowest <= value <= highest:
        raise InvalidInput(
            f"{place}: the score is {score!r}; expected a number from {lowest:g} to {highest:g}: "
            "is it the official file?"
        )
    return score.strip()
