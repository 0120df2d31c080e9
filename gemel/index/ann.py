"""The approximate index of a collection: derived from the vectors, mapped, never changed, made anew.

It covers the vectors up to a number; those that came later are searched exactly, and those that went are
dropped from its answers. Numbers outlive compaction, and so does the index.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemel.data.durable import sync_folder
from gemel.errors import Damaged, InvalidInput, MissingExtra, SlowSearchWarning
from gemel.index.hnsw import HnswIndex, HnswParameters, footer_checksum
from gemel.index.lock import locked
from gemel.index.view import Integers, View
from gemel.threads import thread_lock

LOCK_NAME = "index.lock"
PREFIX, SUFFIX = "index-", ".usearch"
_CHUNK_ROWS = 10_000

OnIndexed = Callable[[int, int], object]  # vectors done, vectors in all


class Base(NamedTuple):
    """What the table says of the index: the file, its checksum, and which vectors are in it."""

    file: str
    checksum: int
    before_number: int
    n_vectors: int


def read_base(connection: sqlite3.Connection) -> Base | None:
    """The index that belongs to this commit, where there is one."""
    found = connection.execute("select file, checksum, before_number, n_vectors from ann").fetchone()
    return None if found is None else Base._make(found)


class Graphs:
    """The open index of a collection; one that is lost or damaged is told of once, and done without."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = thread_lock()
        self._opened: tuple[Base, HnswIndex | None] | None = None

    def get(self, base: Base, is_outdated: Callable[[], bool]) -> HnswIndex | None:
        """The index, mapped and verified, or None where it cannot be used.

        `is_outdated` tells whether there is a newer commit: then another index may have taken its place.
        """
        with self._lock:
            if self._opened is None or self._opened[0] != base:
                try:
                    self._opened = base, self._open(base)
                except (Damaged, InvalidInput, MissingExtra) as error:
                    if is_outdated():
                        return None
                    self._opened = base, None
                    warnings.warn(self._warning(error), stacklevel=2)
            return self._opened[1]

    def is_usable(self, base: Base) -> bool:
        """Whether the file is there; and sound, as far as this process has looked at it."""
        with self._lock:
            if self._opened is not None and self._opened[0] == base:
                return self._opened[1] is not None
        return (self.folder / base.file).is_file()

    def _open(self, base: Base) -> HnswIndex:
        path = self.folder / base.file
        check_file(path, base)
        return HnswIndex.open(path, mapped=True)

    def _warning(self, error: Exception) -> SlowSearchWarning:
        return SlowSearchWarning(
            f"searches in {self.folder} look at every vector: {error}; "
            "build_index() or doctor() of the collection mend it"
        )


def check_file(path: Path, base: Base) -> None:
    """See that a file is the one that the table speaks of."""
    if not path.is_file():
        raise Damaged(f"{path} is missing")
    if footer_checksum(path) != base.checksum:
        raise Damaged(f"{path} is not the index that was built last")


def numbers_in(path: Path, base: Base) -> Integers:
    """The numbers of the vectors in the file that the table speaks of, once it is wholly verified."""
    check_file(path, base)
    return HnswIndex.open(path, mapped=True).ids()


class Builder:
    """Makes the index of a view, from the one before it where that is sound."""

    def __init__(self, folder: Path, timeout_seconds: float) -> None:
        self.folder = folder
        self._timeout_seconds = timeout_seconds

    def lock(self, *, waits: bool = True) -> AbstractContextManager[None]:
        """Held while an index is built, so that no two processes build one."""
        return locked(self.folder / LOCK_NAME, self._timeout_seconds if waits else 0)

    def build(
        self, view: View, before: Base | None, parameters: HnswParameters, on_progress: OnIndexed | None
    ) -> Base:
        """Write the index of all vectors that count in the view; the table has still to be told."""
        graph, known = self._begun(view, before, parameters)
        slots = slots_without(view, known)
        for start in range(0, len(slots), _CHUNK_ROWS):
            part = slots[start : start + _CHUNK_ROWS]
            graph.add(view.numbers_of(part), view.rows[part].astype(np.float32))
            if on_progress is not None:
                on_progress(min(start + _CHUNK_ROWS, len(slots)), len(slots))
        file = f"{PREFIX}{view.next_number}-{os.urandom(4).hex()}{SUFFIX}"
        graph.save(self.folder / file)
        return Base(file, footer_checksum(self.folder / file), view.next_number, len(graph))

    def _begun(
        self, view: View, before: Base | None, parameters: HnswParameters
    ) -> tuple[HnswIndex, Integers]:
        """The index to add to, and the numbers that are in it."""
        if before is not None:
            with suppress(Damaged):
                check_file(self.folder / before.file, before)
                graph = HnswIndex.open(self.folder / before.file)
                known = graph.ids()
                is_counted = view.counted(view.slots_of(known))
                gone = known[~is_counted]
                # Holes in a graph make it worse to walk: with many of them it is better made anew.
                if graph.parameters == parameters and len(gone) <= 0.2 * len(graph):
                    graph.remove(gone)
                    return graph, known[is_counted]
        return HnswIndex(parameters), np.zeros(0, np.int64)


def slots_without(view: View, known: Integers) -> Integers:
    """The slots of the vectors that count and are not among the known numbers."""
    # Not only those with later numbers: a vector that was lost and made again has the number it had.
    slots = np.flatnonzero(view.live)
    return slots[~np.isin(view.numbers_of(slots), known)]


def publish(connection: sqlite3.Connection, base: Base) -> None:
    """Tell the table of an index that is on the disk."""
    connection.execute("insert or replace into ann values (0, ?, ?, ?, ?)", base)
    connection.execute("update state set change = change + 1")


def remove_others(folder: Path, base: Base | None) -> None:
    """Remove the files of indexes that no longer count, and of such as were never finished."""
    kept = None if base is None else base.file
    for file in folder.iterdir():
        name = file.name.removeprefix(".").removesuffix(".unfinished")
        if name.startswith(PREFIX) and name.endswith(SUFFIX) and file.name != kept:
            file.unlink(missing_ok=True)
    sync_folder(folder)
