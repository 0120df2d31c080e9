"""One training at a time in a folder: two would write over each other, and both would call it done."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gemel.errors import InvalidInput

# folder -> the thread that holds it, in which a recipe's stages train, and the descriptor of its lock
_held: dict[Path, tuple[int, int]] = {}


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder, or refuse where another training does; the system lets go when the process ends.

    A folder that was made for this, and in which nothing was left, is taken away again.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file; expected a folder for a training, or a place for a new one")
    place = folder.resolve()
    holder, _ = _held.get(place, (None, None))
    if holder == threading.get_ident():
        yield
        return
    is_new = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    process, descriptor = os.getpid(), os.open(place, os.O_RDONLY)
    try:
        if _is_taken(descriptor):
            raise InvalidInput(
                f"another training is going on in {folder}: wait until it has ended, or name another output"
            )
        _held[place] = (threading.get_ident(), descriptor)
        yield
    finally:
        if os.getpid() == process:  # and no child that was forked meanwhile
            _release(place, descriptor)
            if is_new:
                with suppress(OSError):  # it is not empty
                    place.rmdir()


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # some network drives have no locks for folders: then nobody can tell
        return False
    return False


def _release(place: Path, descriptor: int) -> None:
    _, held = _held.get(place, (None, None))
    if held == descriptor:
        del _held[place]
        with suppress(OSError):  # where there are no locks for folders
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child may not have let go yet
    os.close(descriptor)


def _let_go() -> None:
    """In a child, which would hold its parent's locks for as long as it lives."""
    for _, descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
