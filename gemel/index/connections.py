"""Connections to one SQLite file: kept while they are idle, and never taken through a fork.

SQLite keeps count of its locks by process. A child that inherits a connection believes to hold locks that it
does not, and loses what it writes when the others let go of the file: so idle connections are closed before a
fork, and a child does not write where a thread of its parent was in the middle of something. Nor does it read
where a thread was in the middle of a statement that took too long to be waited for.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

from gemel.errors import InvalidInput
from gemel.index.gated import GATE

Identity = tuple[int, int]  # device and inode

STATEMENT_SECONDS = 10.0  # that a fork waits for statements to end

_POOLS: WeakSet[Connections] = WeakSet()
# Reentrant, as those of the pools: the collector of garbage may give a connection back at any point.
_POOLS_LOCK = threading.RLock()
_FORKING = threading.local()  # what a thread has to let go of: Ctrl-C ends the handler, and not the fork
_stopped_for: int | None = None  # the thread that forks while nobody is inside SQLite
_is_unsafe_here = False  # SQLite, in a child that did not wait for it
_USED_AT_FORK: set[Identity] = set()
_LEFT_ALONE: list[sqlite3.Connection] = []  # of a parent: a child must not even close them


class Connections:
    """Hands out connections, as many at once as there are users, and keeps them for the next ones."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection], *, is_fixed: bool) -> None:
        self.path, self._connect = path, connect
        self._is_fixed = is_fixed  # SQLite was told that nobody writes to the file, so that we have to look
        self._idle: list[sqlite3.Connection] = []
        self._n_used = 0
        self._lock = threading.RLock()
        self._is_closed = False
        self._identity = _identity(path)
        self._state = self._seen_state()
        with _POOLS_LOCK:
            _POOLS.add(self)

    @contextmanager
    def one(self, *, keep: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection for one user; one that an error has gone through is not used again."""
        if _is_unsafe_here:
            raise InvalidInput(
                f"{self.path.parent} cannot be used: a thread was in the middle of a statement for more than "
                f"{STATEMENT_SECONDS:g} seconds when this process was forked; start processes by spawn"
            )
        process = os.getpid()
        self._check_place()
        state = self._state
        connection = self._taken() if keep else self._counted()
        try:
            yield connection
        except BaseException:
            self._give_back(connection, process, keep=False)
            raise
        # One that was taken before a change it cannot see is of no use to the next.
        self._give_back(connection, process, keep=keep and state == self._state)

    @property
    def is_in_use_by_parent(self) -> bool:
        """Whether this process was forked while a thread of its parent used the file."""
        return self._identity in _USED_AT_FORK

    def close(self) -> None:
        """Close what is idle now, and the others when they come back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # Steps ------------------------------------------------------------------------------------------------

    def _taken(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                self._n_used += 1
                return self._idle.pop()
        return self._counted()

    def _counted(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise InvalidInput(f"{self.path.parent} has been closed; open it again to use it")
            self._n_used += 1  # before there is one: a fork must not come in between
        try:
            return self._connect()
        except BaseException:
            with self._lock:
                self._n_used -= 1
            raise

    def _give_back(self, connection: sqlite3.Connection, process: int, *, keep: bool) -> None:
        if os.getpid() != process:  # the user has forked meanwhile, and this is the child
            _LEFT_ALONE.append(connection)
            return
        with self._lock:
            self._n_used -= 1
            if keep and not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def _check_place(self) -> None:
        """Refuse to go on where the path has come to mean another file: all but SQLite would use that one."""
        folder = self.path.parent
        try:
            identity = _identity(self.path)
        except FileNotFoundError:
            raise InvalidInput(
                f"{folder} was removed or renamed since it was opened; open it where it is now"
            ) from None
        if identity != self._identity:
            raise InvalidInput(
                f"{folder} was replaced by another collection since it was opened; open it again"
            )
        if self._is_fixed:
            self._look_for_changes()

    def _look_for_changes(self) -> None:
        state = self._seen_state()
        with self._lock:
            if state == self._state:
                return
            outdated, self._idle, self._state = self._idle, [], state
        for connection in outdated:
            connection.close()

    def _seen_state(self) -> tuple[int, int, bool] | None:
        if not self._is_fixed:
            return None
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns, has_log(self.path)

    # Forks ------------------------------------------------------------------------------------------------

    def prepare_fork(self, let_go: list[Callable[[], None]]) -> None:
        """Keep others from taking or giving back until that is let go, and hand nothing on that is idle."""
        self._lock.acquire()
        let_go.append(self._lock.release)
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def start_anew(self) -> None:
        """In the child, after a fork."""
        if self._n_used:
            _USED_AT_FORK.add(self._identity)
        _LEFT_ALONE.extend(self._idle)
        self._idle, self._n_used, self._lock = [], 0, threading.RLock()


def has_log(path: Path) -> bool:
    """Whether there is something that was committed and is not in the file yet."""
    return path.with_name(f"{path.name}-wal").exists()


def _identity(path: Path) -> Identity:
    found = path.stat()
    return found.st_dev, found.st_ino


def _before_fork() -> None:
    global _stopped_for
    let_go: list[Callable[[], None]] = []
    _FORKING.let_go = let_go
    _POOLS_LOCK.acquire()
    let_go.append(_POOLS_LOCK.release)
    for pool in list(_POOLS):
        pool.prepare_fork(let_go)
    if GATE.shut(STATEMENT_SECONDS):
        _stopped_for = threading.get_ident()


def _after_fork_in_parent() -> None:
    global _stopped_for
    if _stopped_for == threading.get_ident():
        _stopped_for = None
    GATE.open()
    while _FORKING.let_go:
        _FORKING.let_go.pop()()


def _after_fork_in_child() -> None:
    global _POOLS_LOCK, _is_unsafe_here, _stopped_for
    GATE.start_anew()
    _is_unsafe_here = _is_unsafe_here or _stopped_for != threading.get_ident()
    _stopped_for = None
    _FORKING.let_go = []
    for pool in list(_POOLS):
        pool.start_anew()
    _POOLS_LOCK = threading.RLock()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
