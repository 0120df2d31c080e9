"""A call that another thread makes while this one does something else."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Ahead(Generic[Result]):
    """Begun at once; behind the block it is over, whatever has happened there."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._results: list[Result] = []
        self._error: BaseException | None = None
        # A thread of its own, and none of a pool: no pool survives a fork, and to start one is quickly done.
        # In the caller's context, which says how many threads compare vectors.
        self._thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)
        self._thread.start()

    def result(self) -> Result:
        """What the call gives, or raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def __enter__(self) -> Ahead[Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:  # told to who asks for the result
            self._error = error


class Later(Generic[Result]):
    """The same call, made by this thread when its result is asked for."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call

    def result(self) -> Result:
        """What the call gives, or raises."""
        return self._call()

    def __enter__(self) -> Later[Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was begun."""
