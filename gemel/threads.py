"""What the threads of one process share, such that a process forked beside them is not kept waiting.

A child has the one thread that forked. A lock that another held at that moment stays held in the child for
ever, and `functools.cached_property` of Python before 3.12 takes such a lock, one for all objects of a class.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

Value = TypeVar("Value")

_LOCKS: WeakSet[Any] = WeakSet()


def thread_lock() -> AbstractContextManager[object]:
    """A lock for short work, after any step of which a copy of what it guards is of use.

    In a forked child it is free, unless the thread that forked held it. It is reentrant, as the collector of
    garbage may come at any point; and none of ours around one of Python's, which no Ctrl-C can leave held.
    """
    lock = threading.RLock()
    _LOCKS.add(lock)
    return lock


def _after_fork_in_child() -> None:
    for lock in _LOCKS:
        if not lock._is_owned():
            lock._at_fork_reinit()  # as logging does with its own


os.register_at_fork(after_in_child=_after_fork_in_child)


class once(Generic[Value]):  # noqa: N801 (it is used as a decorator)
    """A property that is computed when it is first asked for, and kept; by two threads at once, twice."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> once[Value] | Value:
        if instance is None:
            return self
        # What was first stays: others may hold it.
        value: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
