"""Connections to one SQLite file: kept while they are idle, and closed before a fork."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gemel.errors import InvalidInput
from gemel.index.gated import Connection, close_before_forks, identity_of, was_used_at_fork

State = tuple[int, int, bool]  # of a file


class Connections:
    """Hands out connections, as many at once as there are users, and keeps them for the next ones.

    Without a lock, which a fork could find held: a list is changed by one step at a time.
    """

    def __init__(self, path: Path, connect: Callable[[], Connection], *, is_fixed: bool) -> None:
        self.path, self._connect = path, connect
        self._is_fixed = is_fixed  # SQLite was told that nobody writes to the file, so that we have to look
        self._idle: list[tuple[Connection, State | None]] = []  # with the state that they can see
        self._is_closed = False
        self._identity = identity_of(path)
        close_before_forks(self._close_idle)

    @contextmanager
    def one(self, *, keep: bool = True) -> Iterator[Connection]:
        """A connection for one user; one that an error has gone through is not used again."""
        self._check_place()
        state = self._state()
        connection = (self._kept(state) if keep else None) or self._new()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if keep and not connection.is_of_parent and connection.close_cursors():
            self._idle.append((connection, state))
            if self._is_closed:  # meanwhile
                self._close_idle()
        else:
            connection.close()

    @property
    def is_in_use_by_parent(self) -> bool:
        """Whether this process was forked while a thread of its parent used the file."""
        return was_used_at_fork(self._identity)

    def close(self) -> None:
        """Close what is idle now, and the others when they come back."""
        self._is_closed = True
        self._close_idle()

    def _kept(self, state: State | None) -> Connection | None:
        while taken := self._take_idle():
            connection, seen = taken
            if seen == state and not connection.is_of_parent:
                return connection
            connection.close()  # from before a change that it cannot see, or before a fork
        return None

    def _new(self) -> Connection:
        if self._is_closed:
            raise InvalidInput(f"{self.path.parent} has been closed; open it again to use it")
        return self._connect()

    def _take_idle(self) -> tuple[Connection, State | None] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _close_idle(self) -> None:
        while taken := self._take_idle():
            taken[0].close()

    def _check_place(self) -> None:
        """Refuse to go on where the path has come to mean another file: all but SQLite would use that one."""
        folder = self.path.parent
        try:
            identity = identity_of(self.path)
        except FileNotFoundError:
            raise InvalidInput(
                f"{folder} was removed or renamed since it was opened; open it where it is now"
            ) from None
        if identity != self._identity:
            raise InvalidInput(
                f"{folder} was replaced by another collection since it was opened; open it again"
            )

    def _state(self) -> State | None:
        if not self._is_fixed:
            return None
        found = self.path.stat()
        return found.st_size, found.st_mtime_ns, has_log(self.path)


def has_log(path: Path) -> bool:
    """Whether there is something that was committed and is not in the file yet."""
    return path.with_name(f"{path.name}-wal").exists()
