"""SQLite behind a gate: no thread is inside it while the process forks.

It has locks for all connections of a process, around its memory and its files. One that another thread holds
at a fork stays held in the child for ever, whichever file the child opens then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gemel.index.gate import Gate

GATE = Gate()
_BLOCK_ROWS = 256


class Cursor(sqlite3.Cursor):
    """A cursor whose every step goes through the gate."""

    def execute(self, *arguments: Any) -> Cursor:
        with GATE:
            super().execute(*arguments)
        return self

    def executemany(self, *arguments: Any) -> Cursor:
        with GATE:
            super().executemany(*arguments)
        return self

    def executescript(self, script: str) -> Cursor:
        with GATE:
            super().executescript(script)
        return self

    def fetchone(self) -> Any:
        with GATE:
            return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        with GATE:
            return super().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        with GATE:
            return super().fetchall()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # sqlite3's is the cursor itself
        """The rows, fetched in blocks: going through the gate for each would cost more than the row."""
        step = super().__next__
        end: Exception | None = None
        while end is None:
            rows = []
            with GATE:
                try:
                    for _ in range(_BLOCK_ROWS):
                        rows.append(step())
                except (StopIteration, sqlite3.Error) as error:
                    end = error
            yield from rows
        if not isinstance(end, StopIteration):
            raise end

    def __next__(self) -> Any:
        with GATE:
            return super().__next__()

    def close(self) -> None:
        with GATE:
            super().close()

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # its connection was closed before it
            self.close()


class Connection(sqlite3.Connection):
    """A connection whose every step goes through the gate."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        with GATE:
            super().__init__(*arguments, **options)

    def cursor(self, factory: Any = Cursor) -> Any:
        with GATE:
            return super().cursor(factory)

    def execute(self, *arguments: Any) -> Cursor:
        return Cursor(self).execute(*arguments)

    def executemany(self, *arguments: Any) -> Cursor:
        return Cursor(self).executemany(*arguments)

    def executescript(self, script: str) -> Cursor:
        return Cursor(self).executescript(script)

    def commit(self) -> None:
        with GATE:
            super().commit()

    def rollback(self) -> None:
        with GATE:
            super().rollback()

    def close(self) -> None:
        with GATE:
            super().close()

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was never opened
            self.close()


def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    """As sqlite3.connect, behind the gate."""
    return sqlite3.connect(*arguments, factory=Connection, **options)
