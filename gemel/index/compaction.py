"""The file of vectors written anew: without those that no longer count, or with some of them mended."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path

import numpy as np

from gemel.data.durable import sync_folder
from gemel.index.checksums import checksum
from gemel.index.segment import RowLayout, Rows, Segment, segment_name
from gemel.index.view import Integers, View

_CHUNK_ROWS = 8_192

Numbered = tuple[Integers, Rows]  # ascending numbers, and the vector of each


def counted_rows(view: View) -> Iterator[Numbered]:
    """The vectors that count, some at a time."""
    slots = np.flatnonzero(view.live)
    for start in range(0, len(slots), _CHUNK_ROWS):
        part = slots[start : start + _CHUNK_ROWS]
        yield view.numbers_of(part), view.rows[part]


def write_generation(
    connection: sqlite3.Connection, folder: Path, layout: RowLayout, numbered: Iterable[Numbered]
) -> None:
    """Write the next generation of the file of vectors, to the disk, and let the transaction point to it."""
    generation = connection.execute("select generation from state").fetchone()[0] + 1
    path = Segment(folder, generation, layout).path
    path.unlink(missing_ok=True)  # what an unfinished compaction has left
    numbers: list[Integers] = [np.zeros(0, np.int64)]
    checksums: dict[int, int] = {}
    n_slots = 0
    with path.open("wb", buffering=0) as file:
        for part, rows in numbered:
            _write_all(file, np.ascontiguousarray(rows, layout.dtype), layout, n_slots, checksums)
            numbers.append(part)
            n_slots += len(part)
        os.fsync(file.fileno())
    sync_folder(folder)
    connection.execute("delete from runs")
    connection.execute("delete from blocks")
    connection.execute("delete from removed")
    connection.executemany("insert into runs values (?, ?, ?)", _runs(np.concatenate(numbers)))
    connection.executemany("insert into blocks values (?, ?)", checksums.items())
    connection.execute(
        "update state set change = change + 1, generation = ?, n_slots = ?", (generation, n_slots)
    )


def remove_other_generations(folder: Path, generation: int) -> None:
    """Remove the files of vectors that no longer count; who still reads one of them keeps it until then."""
    for file in folder.glob(segment_name("*")):
        if file.name != segment_name(generation):
            file.unlink(missing_ok=True)
    sync_folder(folder)


def _write_all(file: FileIO, rows: Rows, layout: RowLayout, n_slots: int, checksums: dict[int, int]) -> None:
    data = rows.data.cast("B") if rows.size else memoryview(b"")
    while data:
        data = data[file.write(data) :]
    start = 0
    while start < len(rows):
        block, within = divmod(n_slots + start, layout.block_rows)
        stop = min(len(rows), start + layout.block_rows - within)
        checksums[block] = checksum(rows[start:stop], checksums.get(block, 0))
        start = stop


def _runs(numbers: Integers) -> Iterator[tuple[int, int, int]]:
    """First slot, first number and length of each stretch of numbers without a gap."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(numbers))
    return zip(starts.tolist(), numbers[starts].tolist(), lengths.tolist(), strict=True)
