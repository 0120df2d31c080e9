"""Child processes that are forked while a thread of their parent is busy."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable

N_CHILDREN = 5


def assert_children_go_on(keep_busy: Callable[[], object], do_once: Callable[[], object]) -> None:
    """Fork while another thread does the one thing again and again; each child does the other and ends."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.is_set():
            keep_busy()

    busy = threading.Thread(target=repeat)
    busy.start()
    children = [multiprocessing.get_context("fork").Process(target=do_once) for _ in range(N_CHILDREN)]
    try:
        for child in children:
            child.start()
            child.join(120)
        assert [child.exitcode for child in children] == [0] * N_CHILDREN
    finally:
        is_over.set()
        busy.join()
        for child in children:
            child.kill()
