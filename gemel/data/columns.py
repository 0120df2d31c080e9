"""One column of a table: what stands beside the examples, such as the sub-file or the topic of a row."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gemel.data.layouts import opened_table


def read_column(path: str | os.PathLike[str], names: str | Sequence[str]) -> list[str] | None:
    """The values of the first of the names that the table has as a column, as texts; None if it has none."""
    wanted = [names] if isinstance(names, str) else list(names)
    with opened_table(path) as table:
        rows = list(table.rows()) if table.columns is None else None
        found = set(rows[0][1] if rows else table.columns or ())
        column = next((name for name in wanted if name in found), None)
        if column is None:
            return None
        values = (row.get(column) for _, row in (table.rows([column]) if rows is None else rows))
        return ["" if value is None else str(value) for value in values]
