"""Many go through a gate at once, and nobody while it is shut."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from copy import copy

import pytest

from gemel.index import gate as gates
from gemel.index.gate import Gate

SECONDS = 30  # at most, for what takes none


class Beside:
    """Something that is done in a thread of its own, which keeps nobody waiting when a test fails."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=[work], daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)

    def ended(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        assert self._errors == []


class Visitor:
    """A thread that is inside until it is told to leave."""

    def __init__(self, gate: Gate) -> None:
        self.gate, self.inside, self._may_leave = gate, threading.Event(), threading.Event()
        self._thread = Beside(self._visit)

    def _visit(self) -> None:
        self.gate.through(self._stay)

    def _stay(self) -> None:
        self.inside.set()
        assert self._may_leave.wait(SECONDS)
        self.gate.through(lambda: None)  # who is inside may go deeper, although it is being shut

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.ended()


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    visitor = Visitor(Gate())
    assert visitor.inside.wait(SECONDS)
    yield visitor
    visitor.leave()


def test_many_are_inside_at_once() -> None:
    gate, all_inside = Gate(), threading.Barrier(4, timeout=SECONDS)

    for each in [Beside(lambda: gate.through(gate.through, all_inside.wait)) for _ in range(4)]:
        each.ended()


def test_shutting_waits_for_who_is_inside() -> None:
    visitor = Visitor(Gate())
    assert visitor.inside.wait(SECONDS)
    has_shut = threading.Event()
    shutting = Beside(lambda: (visitor.gate.shut(SECONDS), has_shut.set(), visitor.gate.open()))
    assert not has_shut.wait(0.05)
    visitor.leave()
    assert has_shut.wait(SECONDS)
    shutting.ended()


def test_shutting_does_not_wait_for_ever(visitor: Visitor) -> None:
    began = time.monotonic()
    visitor.gate.shut(0.05)
    assert 0.05 <= time.monotonic() - began < SECONDS
    visitor.gate.open()


def test_who_comes_waits_until_it_is_opened_and_the_one_who_shut_it_does_not() -> None:
    gate, came = Gate(), threading.Event()
    gate.shut(1)
    coming = Beside(lambda: gate.through(came.set))
    assert not came.wait(0.05)
    assert gate.through(lambda: 7) == 7
    gate.open()
    assert came.wait(SECONDS)
    coming.ended()


def test_a_gate_that_was_forgotten_is_open_again_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_FORK_SECONDS", 0.05)
    gate = Gate()
    gate.shut(0)
    Beside(lambda: gate.through(lambda: None)).ended()
    gate.shut(0)  # which is no reason to be shut for twice as long
    gate.open()
    assert gate._shut == {}


def test_who_shuts_it_twice_opens_it_twice() -> None:
    gate, seen = Gate(), []
    gate.shut(0)
    gate.shut(0)  # as the handler of a signal does that comes during a fork
    for _ in range(2):
        Beside(lambda: seen.append(gate.is_shut)).ended()
        gate.open()
    Beside(lambda: seen.append(gate.is_shut)).ended()
    assert seen == [True, True, False]


def test_two_that_shut_it_take_turns() -> None:
    gate, has_shut = Gate(), threading.Event()
    gate.shut(SECONDS)
    second = Beside(lambda: (gate.shut(SECONDS), has_shut.set(), gate.open()))
    assert not has_shut.wait(0.05)
    gate.through(lambda: None)  # what the first one does meanwhile waits for nobody
    gate.open()
    assert has_shut.wait(SECONDS)
    second.ended()


def test_an_error_inside_leaves_no_mark() -> None:
    gate = Gate()
    with pytest.raises(ZeroDivisionError):
        gate.through(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        gate.through(gate.through, lambda: 1 / 0)
    seen: list[bool] = []
    Beside(lambda: (gate.shut(SECONDS), seen.append(gate.is_busy), gate.open())).ended()
    assert seen == [False]


def test_a_child_knows_whether_somebody_was_inside(visitor: Visitor) -> None:
    knocking, empty = Gate(), Gate()
    knocking._marks[0] = gates._Mark()  # of one who was told to wait
    knocking._marks[0].has_come = True
    for gate, was_busy in ((visitor.gate, True), (knocking, False), (empty, False)):
        child = copy(gate)  # as memory is copied at a fork
        assert gate.through(lambda child=child: child.is_busy) == was_busy  # one's own thread is no reason
        child.start_anew()
        assert not child.is_busy


def test_nobody_is_inside_while_one_has_shut_it() -> None:
    gate, is_inside = Gate(), [False, False]

    def shut_and_open() -> None:
        for _ in range(100):
            gate.shut(SECONDS)
            assert not any(is_inside)
            gate.open()

    def stay(number: int) -> None:
        is_inside[number] = True
        is_inside[number] = False

    def visit(number: int) -> None:
        for _ in range(2_000):
            gate.through(stay, number)

    for each in [Beside(shut_and_open), Beside(lambda: visit(0)), Beside(lambda: visit(1))]:
        each.ended()
