"""A call ahead gives and raises what the call does, and is over behind its block."""

from __future__ import annotations

import threading

import pytest

from gemel.tasks.ahead import Ahead, Later


@pytest.mark.parametrize("kind", [Ahead, Later])
def test_the_result_is_that_of_the_call_and_so_is_its_error(kind: type[Ahead[int] | Later[int]]) -> None:
    with kind(lambda: 7) as seven:
        assert seven.result() == 7
    with pytest.raises(ZeroDivisionError), kind(lambda: 1 // 0) as never:
        never.result()


def test_it_is_made_by_another_thread_meanwhile() -> None:
    may_end = threading.Event()

    def wait() -> int:
        assert may_end.wait(10)
        return threading.get_ident()

    with Ahead(wait) as waiting:
        may_end.set()
        assert waiting.result() != threading.get_ident()


def test_behind_the_block_it_is_over_also_after_an_error() -> None:
    done: list[int] = []
    with pytest.raises(KeyError), Ahead(lambda: done.append(1)):
        raise KeyError
    assert done == [1]
