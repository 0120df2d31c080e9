"""Who does the work: this process, or the workers of a Ray cluster; both give the same results."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeVar

from gemel.errors import GemelError, InvalidInput, MissingExtra, ProcessLost

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_THREADS = 8  # of a worker, unless told: more workers with fewer threads wait less for each other
KNOCK_SECONDS = 10
ATTEMPTS = 10  # at a piece of work whose machine is lost
WAITING = 2  # pieces of work for each worker, so that none waits for the next one to be sent


class Runner(Protocol):
    """Does the same work on many items, in whatever order."""

    def threads(self) -> int | None:
        """How many threads one piece of work may use; None for all cores."""

    def run(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results as they come; items are taken as they are needed."""

    def share(self, value: Any) -> Any:
        """A value that many items refer to, such as a block of vectors, where each worker finds it."""


def shared(value: Any) -> Any:
    """What `Runner.share` was given, within a piece of work."""
    if type(value).__name__ != "ObjectRef":
        return value
    return _import_ray().get(value)


@dataclass(frozen=True)
class LocalRunner:
    """This process, one item after the other, each with all cores."""

    n_threads: int | None = None

    def threads(self) -> int | None:
        """How many threads one piece of work may use."""
        return self.n_threads

    def run(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results, in order."""
        return map(work, items)

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value


class RayRunner:
    """The workers of a Ray cluster; what a lost machine was at is done again by another."""

    def __init__(self, address: str | None = None, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidInput(f"threads is {threads}; expected at least 1")
        self._ray = _import_ray()
        if not self._ray.is_initialized():
            address = address or os.environ.get("RAY_ADDRESS")
            try:
                _knock(address)
                self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (OSError, ValueError, RuntimeError) as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise ProcessLost(
                    f"no Ray cluster answers at {address or 'this machine'} ({reason}); start one with "
                    "`ray start --head`, or name the address of its head"
                ) from None
        self._threads = threads or self._default_threads()
        if self._threads > max(self._cores(), default=0):
            raise InvalidInput(
                f"a worker was to have {self._threads} threads and the largest machine of the cluster has "
                f"{int(max(self._cores(), default=0))} cores; ask for fewer threads, or add machines"
            )

    def threads(self) -> int | None:
        """How many threads, and cores, one piece of work has."""
        return self._threads

    def run(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results as they come, at most a few items ahead of the workers."""
        ray = self._ray
        options = {"num_cpus": self._threads, "max_retries": ATTEMPTS, "scheduling_strategy": "SPREAD"}
        remote = ray.remote(**options)(_do)
        under_way: set[Any] = set()
        for item in items:
            while len(under_way) >= WAITING * self.n_workers():
                yield self._next(under_way)
            under_way.add(remote.remote(work, item))
        while under_way:
            yield self._next(under_way)

    def share(self, value: Any) -> Any:
        """A reference to a copy in the cluster's memory."""
        return self._ray.put(value)

    def n_workers(self) -> int:
        """How many pieces of work the cluster can do at a time, at least one."""
        return max(1, sum(int(cores) // self._threads for cores in self._cores()))

    def _next(self, under_way: set[Any]) -> Any:
        (done,), _ = self._ray.wait(list(under_way), num_returns=1)
        under_way.remove(done)
        try:
            return self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise _own_error(error) from error
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise ProcessLost(
                f"a piece of work was lost {ATTEMPTS} times ({reason}); see to the cluster's machines and "
                "give the same command again: what is done is kept"
            ) from error

    def _cores(self) -> list[float]:
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return [resources["CPU"] for resources in nodes if resources.get("CPU", 0) >= 1]

    def _default_threads(self) -> int:
        return int(min([MOST_THREADS, *self._cores()]))


def make_runner(name: str, *, address: str | None = None, threads: int | None = None) -> Runner:
    """The runner of that name: `local` or `ray`."""
    if name == "local":
        return LocalRunner(threads)
    if name == "ray":
        return RayRunner(address, threads=threads)
    raise InvalidInput(f"the runner {name!r} is unknown; choose local or ray")


def _knock(address: str | None) -> None:
    """Raise at once where nobody listens: Ray would try again for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()


def _do(work: Callable[[Item], Result], item: Item) -> Result:
    return work(item)


def _own_error(error: Any) -> Exception:
    """What the work itself has raised, where it is ours to explain."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, GemelError):
        return cause
    reason = (str(cause or error).strip() or type(error).__name__).splitlines()[-1]
    return ProcessLost(f"a worker has failed: {reason}; see the logs of the Ray cluster")


def _import_ray() -> Any:
    try:
        import_module("ray.exceptions")
        return import_module("ray")
    except ImportError as error:
        raise MissingExtra("running on Ray", "ray") from error
