"""One request on its way: its models, its deadline, what it has cost, and the queue it waits in."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive

from gemel.serve.batcher import Batcher, Runner
from gemel.serve.bodies import BodyRoom
from gemel.serve.keys import Keys
from gemel.serve.library import AnyLibrary, Library, StoreLibrary
from gemel.serve.metrics import Gauge, Metrics
from gemel.serve.models import Models, Shelf
from gemel.serve.refusals import ClientGone, Refusal
from gemel.serve.settings import ServeSettings

# Searches and comparisons at once. They wait for the queue, so threads that the queue needs are not theirs.
# A search is quick and a clustering is not: neither may take the other's threads.
WORKERS, SLOW_WORKERS = 8, 2
# An answer that comes sooner is not worth a task that looks whether the client has gone.
UNWATCHED_SECONDS = 0.02


class Serving:
    """What all requests share."""

    def __init__(self, settings: ServeSettings, shelf: Shelf, keys: Keys) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.shelf = shelf
        self.keys = keys
        self.library = _library(settings)
        self.workers = ThreadPoolExecutor(WORKERS, "gemel-work")
        self.slow_workers = ThreadPoolExecutor(SLOW_WORKERS, "gemel-slow-work")
        self.slow_jobs: set[Future[Any]] = set()  # that wait or run: each leaves when its thread has
        self.metrics = Metrics()
        self.room = BodyRoom(self.limits)
        self.n_requests = 0  # that are being read or answered
        self.is_draining = False
        self.batcher = Batcher(
            n_threads=shelf.current.n_threads,
            max_queue_tokens=self.limits.max_queue_tokens,
            max_interactive_tokens=self.limits.max_interactive_tokens,
            on_step=self.metrics.on_step,
        )
        self.metrics.gauges += [
            Gauge("te_queue_size", "Requests that wait.", lambda: self.batcher.n_jobs),
            Gauge("gemel_queue_tokens", "Tokens that wait.", lambda: self.batcher.n_tokens),
            Gauge(
                "gemel_tokens_per_second", "Tokens a second, lately.", lambda: self.batcher.tokens_per_second
            ),
            Gauge("gemel_requests", "Requests being answered.", lambda: self.n_requests),
            Gauge(
                "gemel_slow_jobs",
                "Minings, deduplications and clusterings that run or wait.",
                lambda: len(self.slow_jobs),
            ),
        ]

    def close(self) -> None:
        """Finish what is queued, and let go of threads and collections."""
        self.workers.shutdown(cancel_futures=True)
        self.slow_workers.shutdown(cancel_futures=True)
        self.batcher.close()
        if self.library is not None:
            self.library.close()

    @property
    def retry_after_seconds(self) -> int:
        """When it makes sense to come again: when about half of the queue will be done."""
        return max(1, math.ceil(self.batcher.seconds_of(self.batcher.n_tokens) / 2))


def _library(settings: ServeSettings) -> AnyLibrary | None:
    if settings.store is not None:
        return StoreLibrary(settings.store)
    return None if settings.collections is None else Library(settings.collections)


@dataclass
class Call:
    """One request: what it began with, and what is told of it afterwards."""

    serving: Serving
    models: Models
    receive: Receive
    deadline: float
    n_inputs: int = 0
    n_tokens: int = 0
    n_truncated: int = 0
    tokenise_seconds: float = 0.0
    queue_seconds: float = 0.0
    compute_seconds: float = 0.0

    async def compute(self, runner: Runner, items: Sequence[Any], costs: Sequence[int]) -> Any:
        """The results of the items, by way of the queue; abandoned when the client or the time has gone."""
        job = self.serving.batcher.submit(runner, items, costs)
        try:
            result = await self.wait_for(job.future)
        except BaseException:
            self.serving.batcher.cancel(job)
            raise
        if job.first_step:
            self.queue_seconds += job.first_step - job.submitted
            self.compute_seconds += time.monotonic() - job.first_step
        return result

    async def wait_for(self, running: asyncio.Future[Any]) -> Any:
        """What comes first: the result, the client's leaving, or the end of the request's time."""
        remaining = self.deadline - time.monotonic()
        await asyncio.wait({running}, timeout=min(remaining, UNWATCHED_SECONDS))
        if running.done():
            return running.result()
        gone = asyncio.ensure_future(self._disconnected())
        try:
            remaining = max(0.0, self.deadline - time.monotonic())
            await asyncio.wait({running, gone}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if running.done():
            return running.result()
        if gone.done():
            raise ClientGone
        limit = self.serving.limits.timeout_seconds
        raise Refusal("late", f"the answer was not ready within the {limit:g} seconds of timeout_seconds")

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
