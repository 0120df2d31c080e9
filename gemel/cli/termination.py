"""SIGTERM, as schedulers send it before they kill: heard as Ctrl-C is, so that what was done is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Termination:
    """Whether the process was asked to end."""

    was_asked = False


@contextmanager
def heard_as_interrupt() -> Iterator[Termination]:
    """Within the block the first SIGTERM is a KeyboardInterrupt; a second one ends the process at once."""
    told = Termination()
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before is not signal.SIG_DFL:
        yield told  # a program around us has its own way
        return

    def stop(number: int, frame: FrameType | None) -> None:
        told.was_asked = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
