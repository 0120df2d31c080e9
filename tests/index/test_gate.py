"""Many go through a gate at once, and nobody while it is shut."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from gemel.index.gate import Gate


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[object]]]:
    """Does something in a thread of its own."""
    with ThreadPoolExecutor(8) as threads:
        yield threads.submit


def test_many_are_inside_at_once(beside: Callable[..., Future[object]]) -> None:
    gate, all_inside = Gate(), threading.Barrier(4, timeout=30)

    def meet() -> None:
        with gate, gate:
            all_inside.wait()

    for visitor in [beside(meet) for _ in range(4)]:
        visitor.result(30)
    assert gate.shut(0)
    gate.open()


def test_shutting_waits_for_who_is_inside_and_keeps_the_others_out(
    beside: Callable[..., Future[object]],
) -> None:
    gate, inside, may_leave, events = Gate(), threading.Event(), threading.Event(), []

    def stay() -> None:
        with gate:
            inside.set()
            may_leave.wait(30)
            with gate:  # who is inside may go deeper, although it is being shut
                events.append("left")

    def come_later() -> None:
        with gate:
            events.append("came")

    staying = beside(stay)
    assert inside.wait(30)
    assert not gate.shut(0.05)
    later = beside(come_later)
    time.sleep(0.05)
    assert events == []
    gate.open()
    later.result(30)
    beside(lambda: (time.sleep(0.05), may_leave.set()))
    assert gate.shut(30)
    assert events == ["came", "left"]
    with gate:  # who has shut it, may go through
        pass
    gate.open()
    staying.result(30)


def test_two_that_shut_it_take_turns(beside: Callable[..., Future[object]]) -> None:
    gate, n_shut = Gate(), [0]

    def shut_and_open() -> None:
        for _ in range(200):
            assert gate.shut(30)
            n_shut[0] += 1
            assert n_shut[0] == 1
            n_shut[0] -= 1
            gate.open()

    def visit() -> None:
        for _ in range(2_000):
            with gate:
                assert n_shut[0] == 0

    for each in [beside(shut_and_open), beside(shut_and_open), beside(visit), beside(visit)]:
        each.result(60)
