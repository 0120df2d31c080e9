"""One training at a time in a folder: two would write over each other, and both would call it done."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gemel.errors import InvalidInput

_held: set[Path] = set()  # by this process, in which a recipe's stages train within its folder


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder, or refuse where another process does; the system lets go when the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder.resolve()
    if place in _held:
        yield
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        if _is_taken(descriptor):
            raise InvalidInput(
                f"another process is training in {folder}: wait until it has ended, or name another output"
            )
        _held.add(place)
        yield
    finally:
        _held.discard(place)
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # some network drives have no locks for folders: then nobody can tell
        return False
    return False
