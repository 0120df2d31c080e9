"""SQLite behind a gate: no thread is inside it while the process forks; no connection is used by a child.

It has locks for all connections of a process, around its memory and its files. One that another thread holds
at a fork stays held in the child for ever, whichever file the child opens then. And it keeps count of its
locks on files by process: a child that inherits a connection believes to hold locks that it does not, and
loses what it writes when the others let go of the file. So idle connections are closed before a fork, a child
does not write where one was in use, and does without SQLite where a thread was inside for longer than a fork
waits.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakMethod, WeakSet, ref

from gemel.errors import InvalidInput
from gemel.index.gate import Gate

Identity = tuple[int, int]  # device and inode

GATE = Gate()
STATEMENT_SECONDS = 10.0  # that a fork waits for statements to end
_BLOCK_ROWS = 256

# Dictionaries and lists, each step of which is whole, whoever comes in between: no locks at a fork.
_OPEN: dict[int, ref[Connection]] = {}
_IDLE: dict[int, WeakMethod[Callable[[], object]]] = {}  # what closes the idle connections of a pool
_USED_AT_FORK: set[Identity] = set()
_DROPPED: list[Connection | Cursor] = []  # by the collector of garbage, while the gate was shut
_LEFT_ALONE: list[Connection | Cursor] = []  # of a parent: a child must not even close them
_is_unsafe_here = False


class Cursor(sqlite3.Cursor):
    """A cursor whose every step goes through the gate."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        connection.cursors.add(self)
        self.owner = connection

    def execute(self, *arguments: Any) -> Cursor:
        with self.owner.checked():
            super().execute(*arguments)
        return self

    def executemany(self, *arguments: Any) -> Cursor:
        with self.owner.checked():
            super().executemany(*arguments)
        return self

    def executescript(self, script: str) -> Cursor:
        with self.owner.checked():
            super().executescript(script)
        return self

    def fetchone(self) -> Any:
        with self.owner.checked():
            return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        with self.owner.checked():
            return super().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        with self.owner.checked():
            return super().fetchall()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # sqlite3's is the cursor itself
        """The rows, fetched in blocks: going through the gate for each would cost more than the row."""
        step = super().__next__
        end: Exception | None = None
        while end is None:
            rows = []
            with self.owner.checked():
                try:
                    for _ in range(_BLOCK_ROWS):
                        rows.append(step())
                except (StopIteration, sqlite3.Error) as error:
                    end = error
            yield from rows
        if not isinstance(end, StopIteration):
            raise end

    def __next__(self) -> Any:
        with self.owner.checked():
            return super().__next__()

    def close(self) -> None:
        if self.owner.is_of_parent:
            _LEFT_ALONE.append(self)
            return
        with GATE:
            super().close()

    def __del__(self) -> None:
        _let_go(self)


class Connection(sqlite3.Connection):
    """A connection whose every step goes through the gate."""

    file: Identity | None = None  # what it is kept in, if that is not memory

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.cursors: WeakSet[Cursor] = WeakSet()
        self._process = os.getpid()
        super().__init__(*arguments, **options)

    @property
    def is_of_parent(self) -> bool:
        """Whether it was opened before this process was forked."""
        return self._process != os.getpid()

    def checked(self) -> Gate:
        """The gate; a child is not let through with a connection of its parent's."""
        if self.is_of_parent:
            raise InvalidInput(
                "this was begun before the process was forked and cannot go on in the child; begin anew there"
            )
        return GATE

    def cursor(self, factory: Any = Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, *arguments: Any) -> Cursor:
        return Cursor(self).execute(*arguments)

    def executemany(self, *arguments: Any) -> Cursor:
        return Cursor(self).executemany(*arguments)

    def executescript(self, script: str) -> Cursor:
        return Cursor(self).executescript(script)

    def commit(self) -> None:
        with self.checked():
            super().commit()

    def rollback(self) -> None:
        """Undo what was not committed; in a child that is its parent's business."""
        if not self.is_of_parent:
            with GATE:
                super().rollback()

    def close(self) -> None:
        """Close it with its cursors: SQLite keeps the file for as long as one of them is not at its end."""
        if self.is_of_parent:
            _LEFT_ALONE.append(self)
            return
        with GATE:
            for cursor in list(self.cursors):
                cursor.close()
            super().close()
            _OPEN.pop(id(self), None)

    def __del__(self) -> None:
        _let_go(self)


def connect(database: str | Path, *, file: Path | None = None, **options: Any) -> Connection:
    """As sqlite3.connect, behind the gate; `file` is what the database is kept in, if it is a file."""
    if _is_unsafe_here:
        raise InvalidInput(
            f"{database if file is None else file.parent} cannot be used: a thread was in the middle of a "
            f"statement for more than {STATEMENT_SECONDS:g} seconds when this process was forked; start "
            "processes by spawn"
        )
    with GATE:
        connection: Connection = sqlite3.connect(database, factory=Connection, **options)
        connection.file = None if file is None else identity_of(file)
        _OPEN[id(connection)] = ref(connection)
    return connection


def identity_of(path: Path) -> Identity:
    """What a file is, whatever it is called."""
    found = path.stat()
    return found.st_dev, found.st_ino


def was_used_at_fork(file: Identity) -> bool:
    """Whether this process was forked while a thread of its parent used the file."""
    return file in _USED_AT_FORK


def close_before_forks(close_idle: Callable[[], object]) -> None:
    """Have a method called before each fork, for as long as its object lives."""
    key = id(close_idle.__self__)  # type: ignore[attr-defined]
    _IDLE[key] = WeakMethod(close_idle, lambda _: _IDLE.pop(key, None))


def _let_go(dropped: Connection | Cursor) -> None:
    """What nobody holds any more is closed, and by the collector of garbage only where it need not wait."""
    if _is_unsafe_here:
        _LEFT_ALONE.append(dropped)
    elif GATE.is_shut:
        _DROPPED.append(dropped)
    else:
        with suppress(sqlite3.ProgrammingError, AttributeError):  # closed before, or never opened
            dropped.close()


# Forks ----------------------------------------------------------------------------------------------------


def _before_fork() -> None:
    GATE.shut(STATEMENT_SECONDS)
    for idle in list(_IDLE.values()):
        close_idle = idle()
        if close_idle is not None:
            close_idle()


def _after_fork_in_parent() -> None:
    GATE.open()
    while _DROPPED:
        _let_go(_DROPPED.pop())


def _after_fork_in_child() -> None:
    global _is_unsafe_here
    _is_unsafe_here = GATE.start_anew() or _is_unsafe_here
    inherited = [connection for each in _OPEN.values() if (connection := each()) is not None]
    inherited += [dropped.owner if isinstance(dropped, Cursor) else dropped for dropped in _DROPPED]
    _USED_AT_FORK.update(connection.file for connection in inherited if connection.file is not None)
    _LEFT_ALONE.extend([*inherited, *_DROPPED])
    _OPEN.clear()
    _DROPPED.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
