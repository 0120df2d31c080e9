"""One writer at a time, across threads and processes; whoever waits too long is told for whom."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gemel.errors import Busy, WriteFailed

_POLL_SECONDS = 0.01


@contextmanager
def locked(path: Path, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock file; the system lets go of it when the process ends, however it ends."""
    deadline = time.monotonic() + timeout_seconds
    # A descriptor of its own for each holder: only then does the lock keep threads apart, too.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise WriteFailed(f"{path.parent} cannot be locked ({error}); nothing was changed") from error
    process = os.getpid()
    try:
        while not _is_taken(descriptor):
            if time.monotonic() >= deadline:
                raise Busy(
                    f"{path.parent} is being written to by {_holder(descriptor)}; it was waited for "
                    f"{timeout_seconds:g} seconds: try again, or wait longer with timeout_seconds"
                )
            time.sleep(_POLL_SECONDS)
        with suppress(OSError):  # a courtesy to those who wait; a full disk is no reason to hold no lock
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _introduction(), 0)
        yield
    finally:
        if os.getpid() == process:  # a child that was forked meanwhile shares the lock, and may live for long
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _introduction() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    command = " ".join(sys.argv)[:200]
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "command": command, "since": since}
    return json.dumps(holder).encode()


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']} on {holder['host']} ({holder['command']}) since {holder['since']}"
    except (ValueError, KeyError, TypeError):  # it has just taken the lock and not yet introduced itself
        return "another process"
