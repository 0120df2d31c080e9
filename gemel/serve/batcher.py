"""The queue between requests and the engine: token budgets, two lanes, new requests at every step."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gemel.errors import Overloaded

# Tokens of a step for each of the engine's threads.
INTERACTIVE_STEP, SHORTEST_BULK_STEP, LONGEST_BULK_STEP = 512, 64, 1_024
# A query waits for the step before it, so a step of bulk work is short while queries come. It is long (the
# threads wait less for each other) once none has come for a while.
BULK_STEP_SECONDS, QUIET_SECONDS = 0.004, 2.0
INTERACTIVE_TOKENS = 1_024  # a request of at most so many tokens is a query
INTERACTIVE_SHARE = 4  # tokens of queries for each token of bulk work, when there is too much of both


class Runner(Protocol):
    """What computes a step; jobs of one runner share their steps."""

    def run(self, items: Sequence[Any]) -> Any:
        """One result an item, in the order given: an array or a list."""

    def join(self, parts: list[Any]) -> Any:
        """The results of several steps as those of one."""


@dataclass(eq=False)
class Job:
    """One request's items, computed in one or several steps."""

    runner: Runner
    items: Sequence[Any]
    costs: Sequence[int]  # tokens of each item
    future: asyncio.Future[Any]
    n_tokens: int = 0
    n_taken: int = 0  # items that a step has begun with
    parts: list[Any] = field(default_factory=list)
    submitted: float = 0.0
    first_step: float = 0.0

    def __post_init__(self) -> None:
        self.n_tokens = sum(self.costs)


@dataclass(frozen=True)
class Part:
    """Some items of a job, within one step."""

    job: Job
    items: Sequence[Any]
    n_tokens: int
    is_last: bool


class Lane:
    """Jobs that wait; the one that has waited longest comes first."""

    def __init__(self, name: str, max_tokens: int, share: int) -> None:
        self.name = name
        self.max_tokens = max_tokens
        self.jobs: deque[Job] = deque()
        self.n_tokens = 0
        self.served = 0.0  # tokens so far, divided by the lane's share
        self._share = share

    def take(self, budget: int, *, in_turns: bool) -> list[Part]:
        """Items of jobs that share a runner, of about `budget` tokens: at least one item."""
        runner = self.jobs[0].runner
        parts: list[Part] = []
        kept: deque[Job] = deque()
        while self.jobs and budget > 0:
            job = self.jobs.popleft()
            if job.runner is not runner:
                kept.append(job)
                continue
            part = self._part(job, budget, is_first=not parts)
            if part is not None:
                parts.append(part)
                budget -= part.n_tokens
            if part is None or not part.is_last:
                if in_turns:
                    self.jobs.append(job)
                else:
                    self.jobs.appendleft(job)
                break
        self.jobs.extendleft(reversed(kept))
        n_tokens = sum(part.n_tokens for part in parts)
        self.n_tokens -= n_tokens
        self.served += n_tokens / self._share
        return parts

    def _part(self, job: Job, budget: int, *, is_first: bool) -> Part | None:
        """The job's next items that fit; None if not even one does and others are there already."""
        start, n_tokens = job.n_taken, 0
        while job.n_taken < len(job.items):
            cost = job.costs[job.n_taken]
            if n_tokens + cost > budget and not (is_first and job.n_taken == start):
                break
            n_tokens += cost
            job.n_taken += 1
        if job.n_taken == start:
            return None
        return Part(job, job.items[start : job.n_taken], n_tokens, job.n_taken == len(job.items))


class Batcher:
    """Takes jobs, runs steps of them on a thread of its own, and hands the results back to the event loop."""

    def __init__(
        self,
        *,
        n_threads: int,
        max_queue_tokens: int,
        max_interactive_tokens: int,
        on_step: Callable[[int, int, float], None] = lambda items, tokens, seconds: None,
    ) -> None:
        self._n_threads = n_threads
        self._on_step = on_step
        self._interactive = Lane("max_interactive_tokens", max_interactive_tokens, INTERACTIVE_SHARE)
        self._bulk = Lane("max_queue_tokens", max_queue_tokens, 1)
        self._has_work = threading.Condition()
        self._clock = 0.0  # what the lane that was chosen last had been served before
        self._last_query = -math.inf
        self._tokens_per_second = 10_000.0
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="gemel-batcher", daemon=True)
        self._thread.start()

    @property
    def n_jobs(self) -> int:
        """How many jobs wait."""
        return len(self._interactive.jobs) + len(self._bulk.jobs)

    @property
    def n_tokens(self) -> int:
        """How many tokens wait."""
        return self._interactive.n_tokens + self._bulk.n_tokens

    @property
    def tokens_per_second(self) -> float:
        """How quickly the last steps went."""
        return self._tokens_per_second

    def submit(self, runner: Runner, items: Sequence[Any], costs: Sequence[int]) -> Job:
        """Queue the items; the job's future, of the running event loop, will hold the results."""
        job = Job(runner, items, costs, asyncio.get_running_loop().create_future())
        job.submitted = time.monotonic()
        if not items:
            job.future.set_result(runner.join([runner.run([])]))
            return job
        with self._has_work:
            is_query = job.n_tokens <= INTERACTIVE_TOKENS
            lane = self._interactive if is_query else self._bulk
            self._check_room(lane, job)
            if is_query:
                self._last_query = job.submitted
            if not lane.jobs:  # who was idle has no claim to what it did not use
                lane.served = max(lane.served, self._clock)
            lane.jobs.append(job)
            lane.n_tokens += job.n_tokens
            self._has_work.notify()
        return job

    def cancel(self, job: Job) -> None:
        """Forget what of a job has not been computed yet."""
        job.future.cancel()
        self._forget(job)

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        with self._has_work:
            self._is_closed = True
            self._has_work.notify()
        self._thread.join()

    def seconds_of(self, n_tokens: int) -> float:
        """How long so many tokens take, by the last steps."""
        return n_tokens / self._tokens_per_second

    def _check_room(self, lane: Lane, job: Job) -> None:
        if self._is_closed:
            raise Overloaded("the server is stopping; try again in a moment")
        if lane.jobs and lane.n_tokens + job.n_tokens > lane.max_tokens:
            raise Overloaded(
                f"{lane.n_tokens:,} tokens wait already, and {job.n_tokens:,} more are over the limit "
                f"{lane.name}={lane.max_tokens:,}; try again later"
            )

    def _work(self) -> None:
        while (parts := self._next_step()) is not None:
            began = time.monotonic()
            for part in parts:
                part.job.first_step = part.job.first_step or began
            done = self._run(parts)
            seconds = time.monotonic() - began
            n_tokens = sum(part.n_tokens for part in parts)
            weight = min(1.0, n_tokens / 10_000)
            self._tokens_per_second += weight * (n_tokens / max(seconds, 1e-6) - self._tokens_per_second)
            self._on_step(sum(len(part.items) for part in parts), n_tokens, seconds)
            _deliver(done)

    def _next_step(self) -> list[Part] | None:
        """Waits for jobs; None when all is done and no more will come."""
        with self._has_work:
            while not self._interactive.jobs and not self._bulk.jobs:
                if self._is_closed:
                    return None
                self._has_work.wait()
            queries, bulk = self._interactive, self._bulk
            if queries.jobs and (not bulk.jobs or queries.served <= bulk.served):
                self._clock = queries.served
                return queries.take(INTERACTIVE_STEP * self._n_threads, in_turns=False)
            self._clock = bulk.served
            return bulk.take(self._bulk_step(), in_turns=True)

    def _bulk_step(self) -> int:
        """How many tokens of bulk work go into one step."""
        longest = LONGEST_BULK_STEP * self._n_threads
        if time.monotonic() - self._last_query > QUIET_SECONDS:
            return longest
        wanted = int(BULK_STEP_SECONDS * self._tokens_per_second)
        return min(max(wanted, SHORTEST_BULK_STEP * self._n_threads), longest)

    def _run(self, parts: list[Part]) -> list[tuple[Job, Any]]:
        """Compute a step; the jobs that are complete, each with its results or its error."""
        try:
            results = parts[0].job.runner.run([item for part in parts for item in part.items])
        except Exception as error:
            if len(parts) == 1:
                self._forget(parts[0].job)
                return [(parts[0].job, error)]
            return [outcome for part in parts for outcome in self._run([part])]  # whose fault it is
        done: list[tuple[Job, Any]] = []
        start = 0
        for part in parts:
            part.job.parts.append(results[start : start + len(part.items)])
            start += len(part.items)
            if part.is_last:
                joined = (
                    part.job.parts[0] if len(part.job.parts) == 1 else part.job.runner.join(part.job.parts)
                )
                done.append((part.job, joined))
        return done

    def _forget(self, job: Job) -> None:
        with self._has_work:
            for lane in (self._interactive, self._bulk):
                if job in lane.jobs:
                    lane.jobs.remove(job)
                    lane.n_tokens -= sum(job.costs[job.n_taken :])


def _deliver(done: list[tuple[Job, Any]]) -> None:
    """Wake each event loop once for all of its jobs that are complete."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Job, Any]]] = {}
    for outcome in done:
        by_loop.setdefault(outcome[0].future.get_loop(), []).append(outcome)
    for loop, outcomes in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, outcomes)


def _settle(outcomes: list[tuple[Job, Any]]) -> None:
    for job, result in outcomes:
        if job.future.done():
            continue  # cancelled by its client
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
