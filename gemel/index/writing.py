"""Changing a collection: records in, records out, each change one commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.index import lexical
from gemel.index.checksums import row_checksum
from gemel.index.database import Database, in_parts
from gemel.index.lock import locked
from gemel.index.planning import Changes, changes_for
from gemel.index.reading import StoredRow, known_rows, rows_numbered
from gemel.index.records import Added, Id, Row
from gemel.index.segment import Rows, Segment
from gemel.index.settings import Settings

LOCK_NAME = "writer.lock"

Encode = Callable[[list[str]], Rows]  # texts -> vectors as they are stored


class Writer:
    """Everything that changes records, under the writers' lock."""

    def __init__(self, folder: Path, database: Database, settings: Settings, timeout_seconds: float) -> None:
        self.folder = folder
        self.database = database
        self.layout = settings.layout
        self._tokenizers = settings.text_search
        self._timeout_seconds = timeout_seconds

    def lock(self) -> AbstractContextManager[None]:
        """The writers' lock, to be held around every change."""
        return locked(self.folder / LOCK_NAME, self._timeout_seconds)

    def upsert(self, rows: Sequence[Row], encode: Encode) -> Added:
        """Store the rows under their ids, encoding those whose text is not there yet: one commit."""
        vectors: dict[bytes, Any] = {}
        with self.database.reading() as connection:
            plan = _planned(connection, rows)
        while True:
            missing = {row.content: row.text for row in plan.inserted if row.content not in vectors}
            if missing:  # outside of the lock: it may take minutes
                vectors.update(zip(missing, encode(list(missing.values())), strict=True))
            with self.lock(), self.database.writing() as connection:
                plan = _planned(connection, rows)  # again, for another writer may have been here
                if all(row.content in vectors for row in plan.inserted):
                    self._apply(connection, plan, lambda row: vectors[row.content])
                    return plan.added(len(plan.inserted))

    def upsert_vectors(self, rows: Sequence[Row], stored: Rows) -> Added:
        """Store the rows with vectors that are made already: one commit."""
        with self.lock(), self.database.writing() as connection:
            by_id = {row.id: vector for row, vector in zip(rows, stored, strict=True)}
            plan = _planned(connection, rows)
            self._apply(connection, plan, lambda row: by_id[row.id])
            return plan.added(0)

    def remove(self, ids: Sequence[Id]) -> int:
        """Remove the records with these ids: one commit."""
        with self.lock(), self.database.writing() as connection:
            found = list(in_parts(connection, "select number from records where id in (?*)", ids))
            numbers = [number for (number,) in found]
            if numbers:
                remove_numbers(connection, numbers, self._tokenizers)
                connection.execute("update state set change = change + 1")
            return len(numbers)

    def _apply(
        self,
        connection: sqlite3.Connection,
        plan: Changes[StoredRow],
        vector_of: Callable[[Row], npt.NDArray[Any]],
    ) -> None:
        if not plan:
            return
        remove_numbers(connection, [known.number for known in plan.replaced], self._tokenizers)
        if plan.inserted:
            self._insert(connection, plan.inserted, np.stack([vector_of(row) for row in plan.inserted]))
        connection.executemany(
            "update records set metadata = ?, checksum = ? where number = ?",
            [
                (row.metadata, checksum_of(known.number, row, known.vector_checksum), known.number)
                for row, known in plan.relabelled
            ],
        )
        connection.execute("update state set change = change + 1")

    def _insert(self, connection: sqlite3.Connection, rows: Sequence[Row], stored: Rows) -> None:
        """Vectors to the disk first, then their records into the transaction."""
        generation, n_slots, number = connection.execute(
            "select generation, n_slots, next_number from state"
        ).fetchone()
        segment = Segment(self.folder, generation, self.layout)
        last = connection.execute(
            "select checksum from blocks where block = ?", (n_slots // self.layout.block_rows,)
        ).fetchone()
        appended = segment.append(stored, n_slots, last[0] if last else 0)
        connection.executemany(
            "insert or replace into blocks values (?, ?)", appended.block_checksums.items()
        )
        connection.executemany(
            "insert into records values (?, ?, ?, ?, ?, ?, ?)",
            [
                (at, row.id, row.text, row.metadata, row.content, crc, checksum_of(at, row, crc))
                for at, (row, crc) in enumerate(zip(rows, appended.row_checksums, strict=True), number)
            ],
        )
        lexical.index_texts(connection, self._tokenizers, number)
        _extend_runs(connection, n_slots, number, len(rows))
        connection.execute(
            "update state set n_slots = ?, next_number = ?", (n_slots + len(rows), number + len(rows))
        )


def remove_numbers(connection: sqlite3.Connection, numbers: Sequence[int], tokenizers: Sequence[str]) -> None:
    """Take records out of the table and the full text, and their vectors out of every search."""
    # What a damaged text was indexed by is no longer known, and could not be taken out term by term.
    is_known = all(row.is_whole for row in rows_numbered(connection, numbers))
    if is_known:
        lexical.forget_texts(connection, tokenizers, numbers)
    one_each = [(number,) for number in numbers]
    connection.executemany("delete from records where number = ?", one_each)
    connection.executemany("insert into removed (number) values (?)", one_each)
    if not is_known:
        lexical.index_anew(connection, tokenizers)


def _planned(connection: sqlite3.Connection, rows: Sequence[Row]) -> Changes[StoredRow]:
    return changes_for(rows, known_rows(connection, [row.id for row in rows]))


def checksum_of(number: int, row: Row, vector_checksum: int | None) -> int:
    return row_checksum((number, row.id, row.text, row.metadata, row.content, vector_checksum))


def _extend_runs(connection: sqlite3.Connection, slot: int, number: int, n_rows: int) -> None:
    """Note that these numbers lie in these slots, as part of the last run where they follow it."""
    grown = connection.execute(
        "update runs set n_rows = n_rows + ? where first_slot + n_rows = ? and first_number + n_rows = ?",
        (n_rows, slot, number),
    )
    if not grown.rowcount:
        connection.execute("insert into runs values (?, ?, ?)", (slot, number, n_rows))
