"""The rows of a table of examples: which columns there are, which rows are kept, lists taken apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from gemel.data.conditions import condition
from gemel.data.layouts import opened_table
from gemel.data.listed import NEGATIVES, POSITIVES, find_lists, is_list_of_texts
from gemel.data.roles import may_matter
from gemel.data.tables import OnBadRow, Row, Table
from gemel.errors import InvalidInput

ROWS_LOOKED_AT = 100  # for the columns of JSON lines, of which one alone may lack some, and for lists


def columns_of(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a file of examples, in whatever layout it has."""
    with opened_table(path) as table:
        return list(ExampleRows(table, {}, {}, lambda reason, message: None).columns)


class ExampleRows:
    """The rows of a table that all conditions keep, to be read once; `named` gives columns by their roles."""

    def __init__(
        self,
        table: Table,
        where: Mapping[str, str | Sequence[str]],
        named: Mapping[str, str],
        on_bad_row: OnBadRow,
    ) -> None:
        self._table, self._on_bad_row = table, on_bad_row
        self.n_excluded = 0
        self.late: dict[str, int] = {}  # columns that may matter, after the rows looked at -> their row
        if table.columns is None:
            rows = table.rows(on_bad_row=on_bad_row)
            first = list(islice(rows, ROWS_LOOKED_AT))
            self._found = list(dict.fromkeys(column for _, row in first for column in row))
            self._read: Callable[[Sequence[str]], Iterator[Row]] = lambda wanted: chain(first, rows)
        else:
            self._found = table.columns
            first = self._looked_at([*named.values(), *POSITIVES, *NEGATIVES, *where])
            self._read = lambda wanted: table.rows(list(dict.fromkeys(wanted)), on_bad_row)
        self._known = set(self._found)
        self._tests = self._conditions(where)
        self._lists = find_lists([row for _, row in first if self._is_kept(row)], self._found, named)
        self.columns = self._lists.columns if self._lists else self._found
        self.named = {role: self._lists.spoken(name) if self._lists else name for role, name in named.items()}

    def rows(self, wanted: Sequence[str]) -> Iterator[Row]:
        """The rows with these columns; those that a condition leaves out are counted."""
        lists = None if self._lists is None else self._lists.that_give(wanted)
        if lists is None:
            return self._kept([*wanted, *self._tests])
        beside = [name for name in (*wanted, *self._tests) if name in lists.others]
        rows = self._kept([*beside, *lists.sources])
        return lists.unfolded(rows, self._table.place, self._on_bad_row)

    def unused(self, used: Sequence[str]) -> list[str]:
        """The columns that nobody asked for; once the rows have been read, also what lists had more of."""
        left = [column for column in self.columns if column not in (*used, *self._tests)]
        if self._lists is None:
            return left
        return list(dict.fromkeys(map(self._lists.source_of, left))) + self._lists.left

    def _kept(self, wanted: Sequence[str]) -> Iterator[Row]:
        for number, row in self._read(wanted):
            if not self._is_kept(row):
                self.n_excluded += 1
                continue
            if self._table.columns is None and not self._known.issuperset(row):
                self._note_late(number, row)
            yield number, row

    def _note_late(self, number: int, row: Mapping[str, Any]) -> None:
        """JSON lines can have a column that the first of them lack, and that would change what they are."""
        for column, value in row.items():
            if column not in self._known and (may_matter(column) or is_list_of_texts(column, value)):
                self.late.setdefault(column, number)
        self._known.update(row)

    def _is_kept(self, row: Mapping[str, Any]) -> bool:
        return all(test(row.get(column)) for column, test in self._tests.items())

    def _looked_at(self, columns: Sequence[str]) -> list[Row]:
        """The first rows, if these columns may hold lists; a table that does can be read again."""
        there = [name for name in dict.fromkeys(columns) if self._found.count(name) == 1]
        if not self._table.has_types or not there:
            return []
        return list(islice(self._table.rows(there), ROWS_LOOKED_AT))

    def _conditions(self, where: Mapping[str, str | Sequence[str]]) -> dict[str, Callable[[Any], bool]]:
        tests: dict[str, Callable[[Any], bool]] = {}
        for column, wanted in where.items():
            if column not in self._found:
                found = ", ".join(self._found) or "none"
                raise InvalidInput(
                    f"where asks for the column {column!r}, and {self._table.name} has only {found}"
                )
            tests[column] = condition(wanted)
        return tests
