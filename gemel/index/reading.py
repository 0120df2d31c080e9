"""Records out of the table, each compared with its checksum before anybody sees it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gemel.contracts import Vectors
from gemel.errors import Damaged
from gemel.index.checksums import checksum, content_hash, row_checksum
from gemel.index.database import in_parts
from gemel.index.records import Id, Record
from gemel.index.view import Integers, View

_COLUMNS = "number, id, text, metadata, content, vector_checksum, checksum"


class StoredRow(NamedTuple):
    """A row of the table of records, as it is there."""

    number: int
    id: Id
    text: str
    metadata: str
    content: bytes
    vector_checksum: int | None
    checksum: int

    @property
    def is_whole(self) -> bool:
        """Whether it is what was written."""
        return row_checksum(self[:6]) == self.checksum and content_hash(self.text) == self.content

    @property
    def is_sound(self) -> bool:
        """Whether it is what was written, and has its vector."""
        return self.vector_checksum is not None and self.is_whole

    def record(self, folder: Path) -> Record:
        """The record, or the news that it is no longer what was written."""
        if not self.is_whole:
            raise Damaged(
                f"record {self.id!r} in {folder} is not what was written there (its checksum is wrong); "
                "add it again, remove it, or see what else is damaged with the collection's doctor"
            )
        return Record(self.id, self.text, json.loads(self.metadata))


def rows_numbered(connection: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[StoredRow]:
    """Those of the rows with these numbers that are there."""
    found = in_parts(connection, f"select {_COLUMNS} from records where number in (?*)", numbers)
    return map(StoredRow._make, found)


def rows_by_number(
    connection: sqlite3.Connection, numbers: Sequence[int], folder: Path
) -> dict[int, StoredRow]:
    """The rows with these numbers, each of which must be there."""
    rows = {row.number: row for row in rows_numbered(connection, numbers)}
    _check_all_there(numbers, rows, folder)
    return rows


def heads_by_number(
    connection: sqlite3.Connection, numbers: Sequence[int], field: str, folder: Path
) -> dict[int, tuple[Id, str | None]]:
    """The id of each row with one of these numbers, and the metadata if they name a field: not verified."""
    columns = "number, id, case when instr(metadata, ?) then metadata end"
    named = json.dumps(field, ensure_ascii=False)
    statement = f"select {columns} from records where number in (?*)"
    heads = {number: (id_, kept) for number, id_, kept in in_parts(connection, statement, numbers, [named])}
    _check_all_there(numbers, heads, folder)
    return heads


def _check_all_there(numbers: Sequence[int], found: Container[int], folder: Path) -> None:
    n_missing = len({number for number in numbers if number not in found})
    if n_missing:
        raise Damaged(
            f"{n_missing} records in {folder} that were found are not in the table; "
            "see what is damaged with the collection's doctor"
        )


def rows_by_id(connection: sqlite3.Connection, ids: Sequence[Id]) -> dict[Id, StoredRow]:
    """The rows with these ids, each under the id that was asked for."""
    # The index knows the id, the table may be damaged: what was asked for is noted, and compared.
    found: dict[Id, StoredRow] = {}
    for id_ in ids:
        row = connection.execute(f"select {_COLUMNS} from records where id = ?", (id_,)).fetchone()
        if row is not None:
            found[id_] = StoredRow._make(row)
    return found


def known_rows(connection: sqlite3.Connection, ids: Sequence[Id]) -> dict[Id, StoredRow]:
    """Those of the rows with these ids that are there, under the id that they have."""
    found = in_parts(connection, f"select {_COLUMNS} from records where id in (?*)", ids)
    return {row[1]: StoredRow._make(row) for row in found}


def all_rows(
    connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()
) -> Iterator[StoredRow]:
    """All rows, in the order in which their texts came."""
    statement = f"select {_COLUMNS} from records where {where} order by number"
    return map(StoredRow._make, connection.execute(statement, tuple(parameters)))


def id_types(connection: sqlite3.Connection, where: str = "1", parameters: Iterable[Any] = ()) -> set[type]:
    """Which types the ids have."""
    kinds = connection.execute(f"select distinct typeof(id) from records where {where}", tuple(parameters))
    return {int if kind == "integer" else str for (kind,) in kinds}


def check_vectors(view: View, rows: Iterable[StoredRow], folder: Path) -> None:
    """See that the vector in each row's place is the one that was written for this row."""
    listed = list(rows)
    slots = view.slots_of(np.array([row.number for row in listed], np.int64))
    for row, slot in zip(listed, slots.tolist(), strict=True):
        if slot < 0 or checksum(view.rows[slot]) != row.vector_checksum:
            raise damaged_vectors(folder, [row.id])


def check_blocks(connection: sqlite3.Connection, view: View, slots: Integers | None, folder: Path) -> None:
    """Verify the blocks that a search is going to read, those that are new to this process."""
    damaged = view.damaged_slots(slots)
    if len(damaged):
        raise damaged_vectors(
            folder, [row.id for row in rows_with_damaged_vectors(connection, view, damaged)]
        )


def rows_with_damaged_vectors(
    connection: sqlite3.Connection, view: View, damaged: Integers
) -> list[StoredRow]:
    """The records in damaged blocks whose own vector is not what was written."""
    counted = damaged[view.live[damaged]]
    numbers = view.numbers_of(counted).tolist()
    found = in_parts(connection, f"select {_COLUMNS} from records where number in (?*)", numbers)
    rows = {row[0]: StoredRow._make(row) for row in found}
    slot_of = dict(zip(numbers, counted.tolist(), strict=True))
    return [
        row
        for number, row in sorted(rows.items())
        if checksum(view.rows[slot_of[number]]) != row.vector_checksum
    ]


def vectors_of(
    connection: sqlite3.Connection, view: View, ids: Sequence[Id] | None, folder: Path
) -> tuple[list[Id], Vectors]:
    """Ids and vectors of the records with these ids, or of all, as far as they have one."""
    if ids is None:
        found = connection.execute("select id, number from records order by number").fetchall()
    else:
        known = known_rows(connection, ids)
        found = [(id_, known[id_].number) for id_ in ids if id_ in known]
    slots = view.slots_of(np.array([number for _, number in found], np.int64))
    is_there = view.counted(slots)
    check_blocks(connection, view, slots[is_there], folder)
    named = [id_ for (id_, _), there in zip(found, is_there.tolist(), strict=True) if there]
    is_whole = view.n_live == view.n_slots == len(named) and ids is None
    rows = view.rows if is_whole else view.rows[slots[is_there]]
    return named, rows.astype(np.float32, copy=False)


def damaged_vectors(folder: Path, ids: Sequence[Id]) -> Damaged:
    """The news that vectors are no longer what was written."""
    named = ", ".join(repr(id_) for id_ in ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    whose = f"the vectors of {named}" if ids else "vectors that no record needs"
    return Damaged(
        f"{whose} in {folder} are not what was written there (a checksum is wrong); "
        "the collection's doctor encodes them again, or takes them out of search"
    )
