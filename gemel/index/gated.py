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
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakMethod, ref

from gemel.errors import InvalidInput
from gemel.index.gate import Gate

Identity = tuple[int, int]  # device and inode
Result = TypeVar("Result")

GATE = Gate()
STATEMENT_SECONDS = 10.0  # that a fork waits for statements to end
_BLOCK_ROWS = 256
_NEVER = object()

# Dictionaries and lists, each step of which is whole, whoever comes in between: no locks at a fork.
_OPEN: dict[int, tuple[ref[Connection], Identity | None]] = {}  # until they are closed
_IDLE: dict[int, WeakMethod[Callable[[], object]]] = {}  # what closes the idle connections of a pool
_DROPPED: list[Connection | Cursor] = []  # by the collector of garbage, while the gate was shut
_USED_AT_FORK: set[Identity] = set()
_process = os.getpid()  # for which the following is known
_is_unsafe_here = False


class Cursor(sqlite3.Cursor):
    """A cursor whose every step goes through the gate."""

    def __init__(self, connection: Connection) -> None:
        self.owner = connection
        super().__init__(connection)
        connection.cursors[id(self)] = ref(self)

    def execute(self, *arguments: Any) -> Cursor:
        self.owner.through(super().execute, *arguments)
        return self

    def executemany(self, *arguments: Any) -> Cursor:
        self.owner.through(super().executemany, *arguments)
        return self

    def executescript(self, script: str) -> Cursor:
        self.owner.through(super().executescript, script)
        return self

    def fetchone(self) -> Any:
        return self.owner.through(super().fetchone)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return self.owner.through(super().fetchmany, self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        return self.owner.through(super().fetchall)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # sqlite3's is the cursor itself
        """The rows, fetched in blocks: going through the gate for each would cost more than the row."""
        steps = iter(super().__next__, _NEVER)
        while True:
            rows: list[Any] = []
            try:
                self.owner.through(rows.extend, islice(steps, _BLOCK_ROWS))
            except sqlite3.Error:
                yield from rows
                raise
            yield from rows
            if len(rows) < _BLOCK_ROWS:
                return

    def __next__(self) -> Any:
        return self.owner.through(super().__next__)

    def close(self) -> None:
        if self.owner.is_of_parent:
            _leave_alone(self)
        else:
            GATE.through(self._close)

    def _close(self) -> None:
        try:
            super().close()
        finally:
            self.owner.forget(self)

    def __del__(self) -> None:
        _let_go(self)


class Connection(sqlite3.Connection):
    """A connection whose every step goes through the gate."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.cursors: dict[int, ref[Cursor]] = {}  # until they are closed, also in the collector's hands
        self._is_closing = False
        self._process = os.getpid()
        super().__init__(*arguments, **options)

    @property
    def is_of_parent(self) -> bool:
        """Whether it was opened before this process was forked."""
        return self._process != os.getpid()

    def through(self, step: Callable[..., Result], *arguments: Any) -> Result:
        """Do a step inside; a child is not let in with a connection of its parent's."""
        if self.is_of_parent:
            raise InvalidInput(
                "this was begun before the process was forked and cannot go on in the child; begin anew there"
            )
        return GATE.through(step, *arguments)

    def cursor(self, factory: Any = Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, *arguments: Any) -> Cursor:
        return Cursor(self).execute(*arguments)

    def executemany(self, *arguments: Any) -> Cursor:
        return Cursor(self).executemany(*arguments)

    def executescript(self, script: str) -> Cursor:
        return Cursor(self).executescript(script)

    def commit(self) -> None:
        self.through(super().commit)

    def rollback(self) -> None:
        """Undo what was not committed; in a child that is its parent's business."""
        if not self.is_of_parent:
            GATE.through(super().rollback)

    def close(self) -> None:
        """Close it with its cursors: SQLite keeps the file for as long as one of them is not at its end."""
        if self.is_of_parent:
            _leave_alone(self)
        else:
            GATE.through(self._close)

    def _close(self) -> None:
        self._is_closing = not self.close_cursors()  # the last of them will do it
        if not self._is_closing:
            super().close()
            _OPEN.pop(id(self), None)

    def close_cursors(self) -> bool:
        """Close what was not read to its end; whether nothing is left, for the collector may be at it."""
        for each in list(self.cursors.values()):
            cursor = each()
            if cursor is not None:
                cursor.close()
        return not self.cursors

    def forget(self, cursor: Cursor) -> None:
        """A cursor has been closed."""
        self.cursors.pop(id(cursor), None)
        if self._is_closing and not self.cursors:
            self.close()

    def __del__(self) -> None:
        _let_go(self)


def connect(database: str | Path, *, file: Path | None = None, **options: Any) -> Connection:
    """As sqlite3.connect, behind the gate; `file` is what the database is kept in, if it is a file."""
    _notice_fork()
    if _is_unsafe_here:
        raise InvalidInput(
            f"{database if file is None else file.parent} cannot be used: a thread was in the middle of a "
            f"statement for more than {STATEMENT_SECONDS:g} seconds when this process was forked; start "
            "processes by spawn"
        )
    _close_dropped()
    return GATE.through(_connected, database, file, options)


def _connected(database: str | Path, file: Path | None, options: dict[str, Any]) -> Connection:
    connection: Connection = sqlite3.connect(database, factory=Connection, **options)
    _OPEN[id(connection)] = ref(connection), None if file is None else identity_of(file)
    return connection


def identity_of(path: Path) -> Identity:
    """What a file is, whatever it is called."""
    found = path.stat()
    return found.st_dev, found.st_ino


def was_used_at_fork(file: Identity) -> bool:
    """Whether this process was forked while a thread of its parent used the file."""
    _notice_fork()
    return file in _USED_AT_FORK


def close_before_forks(close_idle: Callable[[], object]) -> None:
    """Have a method called before each fork, for as long as its object lives."""
    key = id(close_idle.__self__)  # type: ignore[attr-defined]
    _IDLE[key] = WeakMethod(close_idle, lambda _: _IDLE.pop(key, None))


def _let_go(dropped: Connection | Cursor) -> None:
    """What nobody holds any more is closed, and by the collector of garbage only where it need not wait."""
    if _is_unsafe_here:
        _leave_alone(dropped)
    elif GATE.is_shut:
        _DROPPED.append(dropped)
    else:
        with suppress(sqlite3.ProgrammingError, AttributeError):  # closed before, or never opened
            dropped.close()


def _close_dropped() -> None:
    for _ in range(len(_DROPPED)):
        with suppress(IndexError, sqlite3.ProgrammingError, AttributeError):
            _DROPPED.pop().close()


def _leave_alone(inherited: object) -> None:
    """Keep what belongs to a parent for ever: its end would close it, also at the end of the process."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


# Forks ----------------------------------------------------------------------------------------------------


def _before_fork() -> None:
    GATE.shut(STATEMENT_SECONDS)
    _close_dropped()
    for key in list(_IDLE):
        idle = _IDLE.get(key)
        close_idle = None if idle is None else idle()
        if close_idle is not None:
            close_idle()


def _after_fork_in_parent() -> None:
    GATE.open()
    _close_dropped()


def _notice_fork() -> None:
    """In a child, once; here, too, for Ctrl-C may have ended the handler of the fork."""
    global _is_unsafe_here, _process
    if _process == os.getpid():
        return
    _is_unsafe_here = _is_unsafe_here or GATE.is_busy
    for key in list(_OPEN):
        connection, file = _OPEN[key]
        inherited = connection()
        if inherited is not None:
            _leave_alone(inherited)
        if file is not None:
            _USED_AT_FORK.add(file)
        del _OPEN[key]
    while _DROPPED:
        _leave_alone(_DROPPED.pop())
    GATE.start_anew()
    _process = os.getpid()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_notice_fork)
