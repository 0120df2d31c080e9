"""The queue: order, sharing, fairness, bounds, cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemel.errors import Overloaded
from gemel.serve.batcher import INTERACTIVE_TOKENS, LONGEST_BULK_STEP, Batcher

BULK = INTERACTIVE_TOKENS + 1


class Doubling:
    """Doubles its items, remembers its steps, and waits at its gate."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.steps: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()
        self._seconds = seconds

    def run(self, items: Sequence[int]) -> list[int]:
        self.gate.wait(10)
        time.sleep(self._seconds)
        if 13 in items:
            raise ValueError("thirteen")
        self.steps.append(list(items))
        return [2 * item for item in items]

    def join(self, parts: list[list[int]]) -> list[int]:
        return [item for part in parts for item in part]


class Noting(Doubling):
    """Notes at its last step how many steps another has made, which goes on at once."""

    def __init__(self, other: Doubling) -> None:
        super().__init__()
        self._other = other
        self.n_others = 0

    def run(self, items: Sequence[int]) -> list[int]:
        self.n_others = len(self._other.steps)
        return super().run(items)


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    made = Batcher(n_threads=1, max_queue_tokens=100_000, max_interactive_tokens=4_000)
    yield made
    made.close()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came true")


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.tuples(st.integers(20, 99), st.integers(1, 3_000)), max_size=30), max_size=12),
)
def test_every_job_gets_the_results_of_its_own_items_in_order(jobs: list[list[tuple[int, int]]]) -> None:
    async def scenario() -> None:
        batcher = Batcher(n_threads=1, max_queue_tokens=10**9, max_interactive_tokens=10**9)
        runners = Doubling(), Doubling()
        submitted = [
            batcher.submit(runners[number % 2], [item for item, _ in job], [cost for _, cost in job])
            for number, job in enumerate(jobs)
        ]
        for job, sent in zip(submitted, jobs, strict=True):
            assert await asyncio.wait_for(job.future, 20) == [2 * item for item, _ in sent]
        assert batcher.n_tokens == batcher.n_jobs == 0
        batcher.close()

    asyncio.run(scenario())


def test_jobs_of_one_runner_share_a_step_and_those_of_another_do_not(batcher: Batcher) -> None:
    async def scenario() -> None:
        one, other = Doubling(), Doubling()
        one.gate.clear()
        first = batcher.submit(one, [0], [5])
        await until(lambda: batcher.n_jobs == 0)  # the first step has begun
        jobs = [
            batcher.submit(runner, [number], [5])
            for number, runner in enumerate((one, other, one, other, one))
        ]
        one.gate.set()
        for job in (first, *jobs):
            await asyncio.wait_for(job.future, 10)
        assert one.steps == [[0], [0, 2, 4]]
        assert other.steps == [[1, 3]]

    asyncio.run(scenario())


def test_a_query_waits_for_one_step_of_bulk_work_not_for_the_job(batcher: Batcher) -> None:
    async def scenario() -> None:
        bulk = Doubling(seconds=0.02)
        query = Noting(bulk)
        large = batcher.submit(bulk, list(range(20, 420)), [LONGEST_BULK_STEP] * 400)
        await until(lambda: len(bulk.steps) >= 2)
        n_before = len(bulk.steps)
        small = batcher.submit(query, [7], [5])
        assert await asyncio.wait_for(small.future, 10) == [14]
        assert query.n_others <= n_before + 2
        assert not large.future.done()
        batcher.cancel(large)

    asyncio.run(scenario())


def test_many_queries_before_give_bulk_work_no_claim(batcher: Batcher) -> None:
    async def scenario() -> None:
        bulk = Doubling()
        query = Noting(bulk)
        for _ in range(100):
            await batcher.submit(query, [1], [1_000]).future
        large = batcher.submit(bulk, list(range(20, 420)), [LONGEST_BULK_STEP] * 400)
        await until(lambda: len(bulk.steps) >= 2)
        bulk.gate.clear()
        await asyncio.sleep(0.02)  # the step that has begun waits at the gate
        n_before = len(bulk.steps)
        small = batcher.submit(query, [7], [5])
        bulk.gate.set()
        await asyncio.wait_for(small.future, 10)
        assert query.n_others <= n_before + 2
        batcher.cancel(large)

    asyncio.run(scenario())


def test_queries_without_end_do_not_stop_bulk_work(batcher: Batcher) -> None:
    async def scenario() -> None:
        bulk, query = Doubling(), Doubling(seconds=0.001)
        large = batcher.submit(bulk, list(range(20, 40)), [200] * 20)
        n_queries = 0
        while not large.future.done():
            waiting = [batcher.submit(query, [n], [400]) for n in (1, 2, 3)]
            n_queries += 3
            assert n_queries < 600
            await asyncio.gather(*(job.future for job in waiting))
        assert large.future.result() == [2 * item for item in range(20, 40)]

    asyncio.run(scenario())


def test_two_bulk_jobs_take_turns(batcher: Batcher) -> None:
    async def scenario() -> None:
        runner = Doubling()
        runner.gate.clear()
        first = batcher.submit(runner, [20] * 6, [LONGEST_BULK_STEP] * 6)
        await until(lambda: first.n_taken == 1)
        second = batcher.submit(runner, [30] * 6, [LONGEST_BULK_STEP] * 6)
        runner.gate.set()
        await asyncio.gather(first.future, second.future)
        assert [step[0] for step in runner.steps[1:11]] == [20, 30] * 5 or [
            step[0] for step in runner.steps[1:11]
        ] == [30, 20] * 5

    asyncio.run(scenario())


def test_a_full_lane_refuses_and_the_other_does_not(batcher: Batcher) -> None:
    async def scenario() -> None:
        runner = Doubling()
        runner.gate.clear()
        batcher.submit(runner, [1], [1])
        await until(lambda: batcher.n_jobs == 0)
        bulk = [batcher.submit(runner, [20], [BULK]) for _ in range(100_000 // BULK)]
        with pytest.raises(Overloaded, match=r"over the limit max_queue_tokens=100,000; try again later"):
            batcher.submit(runner, [21], [BULK])
        queries = [batcher.submit(runner, [n], [1_000]) for n in range(4)]
        with pytest.raises(Overloaded, match=r"max_interactive_tokens=4,000"):
            batcher.submit(runner, [5], [1])
        runner.gate.set()
        await asyncio.gather(*(job.future for job in (*bulk, *queries)))

    asyncio.run(scenario())


def test_what_is_cancelled_is_not_computed_and_frees_its_room(batcher: Batcher) -> None:
    async def scenario() -> None:
        runner = Doubling()
        runner.gate.clear()
        large = batcher.submit(runner, [20] * 50, [LONGEST_BULK_STEP] * 50)
        await until(lambda: large.n_taken == 1)
        waiting = batcher.submit(runner, [30], [10])
        batcher.cancel(large)
        batcher.cancel(waiting)
        assert batcher.n_tokens == batcher.n_jobs == 0
        runner.gate.set()
        last = batcher.submit(runner, [40], [10])
        assert await asyncio.wait_for(last.future, 10) == [80]
        assert runner.steps == [[20], [40]]
        assert large.future.cancelled()

    asyncio.run(scenario())


def test_an_item_that_fails_fails_its_own_job_only(batcher: Batcher) -> None:
    async def scenario() -> None:
        runner = Doubling()
        runner.gate.clear()
        first = batcher.submit(runner, [1], [1])
        await until(lambda: batcher.n_jobs == 0)
        good, bad, also_good = (batcher.submit(runner, [n], [1]) for n in (2, 13, 3))
        runner.gate.set()
        assert await first.future == [2]
        assert await good.future == [4]
        assert await also_good.future == [6]
        with pytest.raises(ValueError, match="thirteen"):
            await bad.future

    asyncio.run(scenario())


def test_a_large_job_that_fails_leaves_nothing_in_the_queue(batcher: Batcher) -> None:
    async def scenario() -> None:
        runner = Doubling()
        job = batcher.submit(runner, [13] * 30, [LONGEST_BULK_STEP] * 30)
        with pytest.raises(ValueError, match="thirteen"):
            await job.future
        assert batcher.n_tokens == batcher.n_jobs == 0

    asyncio.run(scenario())


def test_closing_finishes_what_is_queued_and_takes_no_more() -> None:
    async def scenario() -> None:
        batcher = Batcher(n_threads=1, max_queue_tokens=100_000, max_interactive_tokens=4_000)
        runner = Doubling(seconds=0.01)
        jobs = [batcher.submit(runner, [n], [500]) for n in range(8)]
        await asyncio.get_running_loop().run_in_executor(None, batcher.close)
        assert [(await job.future)[0] for job in jobs] == [2 * n for n in range(8)]
        with pytest.raises(Overloaded, match="the server is stopping"):
            batcher.submit(runner, [1], [1])

    asyncio.run(scenario())
