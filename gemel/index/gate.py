"""A gate that any number of threads go through at once, and nobody while the process forks."""

from __future__ import annotations

import threading
import time

_LOOK_SECONDS = 0.0005  # between two looks at a gate that is shut, or at those who are still inside
_FORK_SECONDS = 30.0  # that a fork takes at the most: a gate that is shut for longer was forgotten


class _Mark:
    """Where one thread is."""

    def __init__(self) -> None:
        self.depth = 0  # how often it has come and not left; who is inside may always go deeper
        self.is_inside = False  # it has found the gate open


class Gate:
    """Shutting it keeps other threads out and waits until all have left; neither waits for ever.

    There is no lock that a signal, the collector of garbage or a fork could leave held. Who comes makes a
    mark and only then looks whether the gate is shut; who shuts it does so first and then looks at the marks.
    A child finds the marks as they were at the fork, and knows by them whether somebody was inside.
    """

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}  # of threads: one that has ended leaves its own to the next
        self._shut: dict[int, tuple[int, float]] = {}  # by threads: how often, and until when at the latest

    def __enter__(self) -> None:
        mark = self._mark()
        mark.depth += 1
        if mark.depth == 1:
            if self._shut:
                self._wait_outside(mark)
            mark.is_inside = True

    def __exit__(self, *_: object) -> None:
        mark = self._marks[threading.get_ident()]
        if mark.depth == 1:
            mark.is_inside = False
        mark.depth -= 1

    @property
    def is_shut(self) -> bool:
        """Whether another thread has shut it."""
        return bool(self._forking() - {threading.get_ident()})

    def shut(self, timeout_seconds: float) -> None:
        """Keep others out, and wait until they have left, at most so long; `open` lets them in again."""
        own, deadline = threading.get_ident(), time.monotonic() + timeout_seconds
        n_before = self._shut[own][0] if own in self._forking() else 0  # a signal's handler may fork, too
        self._shut[own] = n_before + 1, deadline + _FORK_SECONDS
        while self._others_are_there() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def open(self) -> None:
        """Let the others in again, if it was this thread that has shut them out."""
        own = threading.get_ident()
        n_times, until = self._shut.pop(own, (0, 0.0))
        if n_times > 1:
            self._shut[own] = n_times - 1, until

    def start_anew(self) -> bool:
        """In the child of a fork: whether a thread was inside, which has not come along."""
        own = threading.get_ident()
        was_busy = any(mark.is_inside for thread, mark in self._marks.items() if thread != own)
        self._marks = {own: self._mark()}
        self._shut = {}
        return was_busy

    def _mark(self) -> _Mark:
        own = threading.get_ident()
        mark = self._marks.get(own)
        if mark is None:
            mark = self._marks.setdefault(own, _Mark())
        return mark

    def _forking(self) -> set[int]:
        now = time.monotonic()
        return {thread for thread, (_, until) in list(self._shut.items()) if until > now}

    def _others_are_there(self) -> bool:
        forking = self._forking()
        return any(mark.depth for thread, mark in list(self._marks.items()) if thread not in forking)

    def _wait_outside(self, mark: _Mark) -> None:
        while self.is_shut:
            mark.depth -= 1
            time.sleep(_LOOK_SECONDS)
            mark.depth += 1
