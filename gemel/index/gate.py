"""A gate that any number of threads go through at once, and nobody while the process forks."""

from __future__ import annotations

import threading
from weakref import WeakSet


class _Mark:
    """How deep one thread is inside; who is inside may always go deeper."""

    def __init__(self) -> None:
        self.depth = 0


class Gate:
    """Shutting it keeps other threads out and waits until all have left.

    Who finds it open takes no lock: each thread makes its own mark, and only then looks whether the gate has
    been shut; who shuts it does so first, and then looks at the marks.
    """

    def __init__(self) -> None:
        # Reentrant: the collector of garbage may end a cursor, which goes through the gate, at any point.
        self._moved = threading.Condition(threading.RLock())
        self._is_shut = False
        self._shut_by: _Mark | None = None
        self._own = threading.local()
        self._marks: WeakSet[_Mark] = WeakSet()

    def __enter__(self) -> None:
        mark = self._mark()
        mark.depth += 1
        if self._is_shut and mark.depth == 1:
            self._enter_later(mark)

    def __exit__(self, *_: object) -> None:
        mark: _Mark = self._own.mark
        mark.depth -= 1
        if self._is_shut and not mark.depth:
            with self._moved:
                self._moved.notify_all()

    def shut(self, timeout_seconds: float) -> bool:
        """Keep all others out; whether they had left in time. `open` lets them in again."""
        mark = self._mark()
        with self._moved:
            while self._is_shut:  # by another thread that forks
                self._moved.wait()
            self._is_shut, self._shut_by = True, mark
            mark.depth += 1  # what the collector ends meanwhile does not wait for ourselves
            others = [each for each in self._marks if each is not mark]
            return self._moved.wait_for(lambda: not any(each.depth for each in others), timeout_seconds)

    def open(self) -> None:
        """Let the others in again, if it was this thread that has shut them out."""
        mark = self._mark()
        if self._shut_by is mark:
            mark.depth -= 1
            with self._moved:
                self._is_shut, self._shut_by = False, None
                self._moved.notify_all()

    def start_anew(self) -> None:
        """In the child of a fork, to which only the thread that forked has come along."""
        self._moved = threading.Condition(threading.RLock())
        mark = self._mark()
        if self._shut_by is mark:
            mark.depth -= 1
        self._is_shut, self._shut_by = False, None
        self._marks = WeakSet([mark])

    def _mark(self) -> _Mark:
        try:
            mark: _Mark = self._own.mark
        except AttributeError:
            mark = _Mark()
            with self._moved:
                self._marks.add(mark)
            self._own.mark = mark
        return mark

    def _enter_later(self, mark: _Mark) -> None:
        mark.depth = 0
        with self._moved:
            self._moved.notify_all()
            while self._is_shut:
                self._moved.wait()
            mark.depth = 1
