"""A gate that any number of threads go through at once, and nobody while the process forks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_LOOK_SECONDS = 0.0005  # between two looks at a gate that is shut, or at those who are still inside
_FORK_SECONDS = 30.0  # that a fork takes at the most: a gate that is shut for longer was forgotten


class _Mark:
    """Where one thread is."""

    def __init__(self) -> None:
        self.has_come = False
        self.is_inside = False  # it has found the gate open; who is inside may always go deeper


class Gate:
    """Shutting it keeps other threads out and waits until all have left; neither waits for ever.

    There is no lock that a signal, the collector of garbage or a fork could leave held. Who comes makes a
    mark and only then looks whether the gate is shut; who shuts it does so first and then looks at the marks.
    A child finds the marks as they were at the fork, and knows by them whether somebody was inside.
    """

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}  # of threads: one that has ended leaves its own to the next
        self._shut: dict[int, tuple[float, ...]] = {}  # by threads, in turn: until when, for each time

    def through(self, step: Callable[..., Result], *arguments: object) -> Result:
        """Do a step inside."""
        mark = self._mark()
        had_come, was_inside = mark.has_come, mark.is_inside
        try:
            mark.has_come = True
            if not was_inside:
                if self._shut:
                    self._wait_outside(mark)
                mark.is_inside = True
            return step(*arguments)
        finally:  # without a call, at which Ctrl-C could come in between
            mark.is_inside = was_inside
            mark.has_come = had_come

    @property
    def is_shut(self) -> bool:
        """Whether another thread has shut it; to one that has done so, too, only those before it count."""
        if not self._shut:
            return False
        own, now = threading.get_ident(), time.monotonic()
        for thread in list(self._shut):
            if max(self._shut.get(thread, (0.0,))) > now:
                return thread != own
        return False

    def shut(self, timeout_seconds: float) -> None:
        """Keep others out, and wait until they have left, at most so long; `open` lets them in again."""
        own, now = threading.get_ident(), time.monotonic()
        deadline = now + timeout_seconds
        # A handler of a signal may come in between and fork, too.
        before = tuple(until for until in self._shut.get(own, ()) if until > now)
        if not before:
            self._shut.pop(own, None)  # forgotten: this time it is others' turn first
        self._shut[own] = (*before, deadline + _FORK_SECONDS)
        while (self.is_shut or self._others_are_there()) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def open(self) -> None:
        """Let the others in again, if it was this thread that has shut them out."""
        own = threading.get_ident()
        before = self._shut.get(own, ())[:-1]
        if before:
            self._shut[own] = before
        else:
            self._shut.pop(own, None)

    @property
    def is_busy(self) -> bool:
        """Whether another thread is inside; in a child, whether one was that has not come along."""
        own = threading.get_ident()
        return any(self._marks[thread].is_inside for thread in list(self._marks) if thread != own)

    def start_anew(self) -> None:
        """In the child of a fork."""
        self._marks = {threading.get_ident(): self._mark()}
        self._shut = {}

    def _mark(self) -> _Mark:
        own = threading.get_ident()
        mark = self._marks.get(own)
        return self._marks.setdefault(own, _Mark()) if mark is None else mark

    def _others_are_there(self) -> bool:
        now = time.monotonic()
        forking = {thread for thread in list(self._shut) if max(self._shut.get(thread, (0.0,))) > now}
        return any(self._marks[thread].has_come for thread in list(self._marks) if thread not in forking)

    def _wait_outside(self, mark: _Mark) -> None:
        while self.is_shut:
            mark.has_come = False
            time.sleep(_LOOK_SECONDS)
            mark.has_come = True
