"""What threads share does not keep a forked process waiting."""

from __future__ import annotations

import threading

import pytest
from forking import assert_children_go_on

from gemel.threads import once, thread_lock

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_a_lock_keeps_threads_apart() -> None:
    lock, n = thread_lock(), [0]

    def count() -> None:
        for _ in range(2_000):
            with lock:
                before = n[0]
                threading.Event().wait(0)
                n[0] = before + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n == [8_000]


def test_a_lock_that_another_thread_holds_is_free_in_a_forked_child() -> None:
    lock = thread_lock()

    def hold() -> None:
        with lock:
            threading.Event().wait(0.01)

    def take_and_leave() -> None:
        for _ in range(2):
            with lock:
                pass

    assert_children_go_on(hold, take_and_leave)


def test_a_lock_that_the_forking_thread_holds_stays_held_in_the_child() -> None:
    lock = thread_lock()

    def leave_and_take() -> None:
        lock.__exit__(None, None, None)
        with lock:
            pass

    with lock:
        assert_children_go_on(lambda: None, leave_and_take)


class Slow:
    def __init__(self) -> None:
        self.n_computed = 0

    @once
    def value(self) -> list[int]:
        """Computed slowly."""
        self.n_computed += 1
        threading.Event().wait(0.01)
        return [self.n_computed]


def test_once_computes_and_keeps() -> None:
    slow = Slow()
    assert slow.value is slow.value
    assert slow.n_computed == 1
    assert Slow().value == [1]
    assert Slow.value.__doc__ == "Computed slowly."


def test_once_gives_all_threads_the_same() -> None:
    slow, seen = Slow(), []
    threads = [threading.Thread(target=lambda: seen.append(slow.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(value) for value in seen}) == 1


def test_once_keeps_no_forked_child_waiting() -> None:
    assert_children_go_on(lambda: Slow().value, lambda: Slow().value)
