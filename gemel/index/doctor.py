"""A collection examined to the last byte: what is derived is mended, what is lost is named."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gemel.errors import Damaged, MissingExtra, WriteFailed
from gemel.index import ann, compaction, lexical
from gemel.index.checksums import checksum
from gemel.index.database import Database, plain_errors, table_of
from gemel.index.reading import StoredRow, all_rows
from gemel.index.records import Id, Row
from gemel.index.segment import Rows
from gemel.index.settings import Settings
from gemel.index.upkeep import Upkeep
from gemel.index.view import Integers, View
from gemel.index.writing import Encode, Writer, checksum_of, remove_numbers

_WINDOW_TEXTS = 4_096
_SPARE_FLAW = "there are vectors that no record needs, and they are damaged or were not removed"
_NAMED = 20  # findings of one kind that are told one by one


@dataclass(frozen=True)
class Finding:
    """Something that is not as it was written; `is_lost` if neither the collection nor its encoder has it."""

    what: str
    is_lost: bool
    is_repaired: bool


@dataclass(frozen=True)
class Diagnosis:
    """What an examination has found."""

    n_records: int
    findings: tuple[Finding, ...]

    @property
    def is_sound(self) -> bool:
        """Whether everything is as it was written."""
        return not self.findings

    @property
    def lost(self) -> tuple[Finding, ...]:
        """The findings that nothing can mend."""
        return tuple(finding for finding in self.findings if finding.is_lost)


@dataclass
class _Rows:
    """What there is to say of the records, one by one."""

    n_records: int = 0
    damaged: list[StoredRow] = field(default_factory=list)  # text, id or metadata
    without_vector: list[StoredRow] = field(default_factory=list)


class Doctor:
    """Looks at everything; repairs, if asked, under the writers' lock."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        writer: Writer,
        encode: Encode | None,
        upkeep: Upkeep,
    ) -> None:
        self._folder: Path = writer.folder
        self._settings = settings
        self._database = database
        self._writer = writer
        self._encode = encode
        self._upkeep = upkeep
        self._findings: list[Finding] = []

    def examine(self) -> Diagnosis:
        """Look at everything and change nothing."""
        n_records = self._examined(repair=False, drop=False)
        self._examine_index(repair=False)
        return Diagnosis(n_records, tuple(self._findings))

    def repair(self, *, drop: bool) -> Diagnosis:
        """Look at everything, mend what can be mended, and `drop` the records that cannot."""
        with plain_errors(self._folder), self._writer.lock():
            n_records = self._examined(repair=True, drop=drop)
        self._examine_index(repair=True)
        self._upkeep.remove_leftovers()
        return Diagnosis(n_records, tuple(self._findings))

    def _examined(self, *, repair: bool, drop: bool) -> int:
        """How many records there are, once they and what belongs to them have been looked at."""
        rows = _Rows()
        try:
            self._examine_table(repair)
            with self._database.writing() if repair else self._database.reading() as connection:
                view = View(connection, self._folder, self._settings.layout, may_be_short=True)
                self._examine_rows(connection, view, rows)
                if repair:
                    self._mend_rows(connection, view, rows, drop)
                else:
                    self._tell_of_rows(rows, mended=set(), drop=False)
                    if self._has_spare_flaws(view, rows):
                        self._find(_SPARE_FLAW)
            self._examine_full_text(repair)
        except Damaged as error:  # so badly that SQLite cannot go on
            self._find(str(error), is_lost=True)
        return rows.n_records

    def _find(self, what: str, *, is_lost: bool = False, is_repaired: bool = False) -> None:
        self._findings.append(Finding(what, is_lost, is_repaired))

    # The table --------------------------------------------------------------------------------------------

    def _examine_table(self, repair: bool) -> None:
        with self._database.outside() as connection:
            flaws = [flaw for (flaw,) in connection.execute("pragma integrity_check(20)") if flaw != "ok"]
            if flaws and repair:
                connection.execute("reindex")
                left = [flaw for (flaw,) in connection.execute("pragma integrity_check(20)") if flaw != "ok"]
            else:
                left = flaws
        for flaw in flaws:
            is_repaired = repair and flaw not in left
            is_lost = flaw in left and "index" not in flaw
            self._find(f"the table of records: {flaw}", is_lost=is_lost, is_repaired=is_repaired)

    def _examine_full_text(self, repair: bool) -> None:
        for tokenizer in self._settings.text_search:
            try:
                is_consistent = _is_consistent(self._database, tokenizer, in_place=repair)
            except WriteFailed as error:
                self._find(f"the full text by {tokenizer} was not examined: {error}")
                continue
            if is_consistent:
                continue
            if repair:
                with self._database.writing() as connection:
                    lexical.index_anew(connection, [tokenizer])
                    connection.execute("update state set change = change + 1")  # words are found anew
            self._find(f"the full text by {tokenizer} does not fit the records", is_repaired=repair)

    # Records and their vectors ------------------------------------------------------------------------------

    def _examine_rows(self, connection: sqlite3.Connection, view: View, found: _Rows) -> None:
        for window in _windows(all_rows(connection)):
            found.n_records += len(window)
            slots = view.slots_of(np.array([row.number for row in window], np.int64))
            for row, slot in zip(window, slots.tolist(), strict=True):
                if not row.is_whole:
                    found.damaged.append(row)
                is_there = 0 <= slot < len(view.rows) and view.live[slot]
                if not is_there or checksum(view.rows[slot]) != row.vector_checksum:
                    found.without_vector.append(row)

    def _mend_rows(self, connection: sqlite3.Connection, view: View, rows: _Rows, drop: bool) -> None:
        damaged = {row.number for row in rows.damaged}
        lacking = [row for row in rows.without_vector if row.number not in damaged]
        vectors = self._encoded(lacking)
        gone = damaged if drop else set()
        if rows.without_vector or gone:
            lost = {row.number for row in rows.without_vector} - set(vectors)
            remove_numbers(connection, sorted(gone), self._settings.text_search)
            kept = _mended(connection, view, vectors, lost)
            compaction.write_generation(connection, self._folder, self._settings.layout, kept)
            for row in lacking:
                _note_vector(connection, row, vectors.get(row.number))
        elif self._has_spare_flaws(view, rows):
            kept = _mended(connection, view, {}, set())
            compaction.write_generation(connection, self._folder, self._settings.layout, kept)
            self._find(_SPARE_FLAW, is_repaired=True)
        self._tell_of_rows(rows, mended=set(vectors), drop=drop)

    def _has_spare_flaws(self, view: View, rows: _Rows) -> bool:
        """Whether vectors that no record needs are damaged, or there are some that no record has removed."""
        return not rows.without_vector and (view.n_live > rows.n_records or len(view.damaged_slots()) > 0)

    def _encoded(self, rows: list[StoredRow]) -> dict[int, Rows]:
        """The vectors of rows, made again from their texts, where there is an encoder."""
        if self._encode is None:
            return {}
        vectors: dict[int, Rows] = {}
        for start in range(0, len(rows), _WINDOW_TEXTS):
            window = rows[start : start + _WINDOW_TEXTS]
            vectors.update(
                zip([row.number for row in window], self._encode([row.text for row in window]), strict=True)
            )
        return vectors

    def _tell_of_rows(self, rows: _Rows, *, mended: set[int], drop: bool) -> None:
        damaged = {row.number for row in rows.damaged}
        lacking = [row for row in rows.without_vector if row.number not in damaged]
        action = "it is dropped" if drop else "add it again, or drop it"
        flaw = "record {}: text, metadata or id is not what was written; " + action
        self._tell(flaw, rows.damaged, is_lost=True)
        self._tell(
            "record {}: its vector was lost or damaged, and is made again",
            [row for row in lacking if row.number in mended],
            is_repaired=True,
        )
        self._tell(
            "record {}: its vector is lost or damaged; repair with an encoder, or add the text again",
            [row for row in lacking if row.number not in mended],
            is_lost=self._encode is None,
        )

    def _tell(
        self, what: str, rows: list[StoredRow], *, is_lost: bool = False, is_repaired: bool = False
    ) -> None:
        named: list[Id] = [row.id for row in rows]
        for id_ in named[:_NAMED]:
            self._find(what.format(repr(id_)), is_lost=is_lost, is_repaired=is_repaired)
        if len(named) > _NAMED:
            self._find(f"{len(named) - _NAMED:,} more like that", is_lost=is_lost, is_repaired=is_repaired)

    # The index --------------------------------------------------------------------------------------------

    def _examine_index(self, repair: bool) -> None:
        with self._database.reading() as connection:
            base = ann.read_base(connection)
        if base is None:
            return
        try:
            flaw = self._lack_of(base, ann.numbers_in(self._folder / base.file, base))
        except MissingExtra:  # the file is whole, and no search goes by it here
            return
        except Damaged as error:
            flaw = str(error)
        if flaw:
            if repair:
                self._upkeep.build_index()
            self._find(f"the index: {flaw}", is_repaired=repair)

    def _lack_of(self, base: ann.Base, numbers: Integers) -> str:
        """What the index should hold and does not."""
        with suppress(Damaged), self._database.reading() as connection:  # a damaged table is told of already
            view = View(connection, self._folder, self._settings.layout, may_be_short=True)
            lacking = ann.slots_without(view, numbers) < view.first_slot_from(base.before_number)
            if lacking.any():
                return f"{np.count_nonzero(lacking):,} vectors that were made again are not in it"
        return ""


def _mended(
    connection: sqlite3.Connection, view: View, vectors: dict[int, Rows], lost: set[int]
) -> Iterator[compaction.Numbered]:
    """The vectors of all records that have one, or have one again."""
    for window in _windows(all_rows(connection)):
        kept = [row.number for row in window if row.number not in lost]
        numbers = np.array(kept, np.int64)
        slots = view.slots_of(numbers)
        rows = np.zeros((len(kept), view.layout.dim), view.layout.dtype)
        is_old = np.array([number not in vectors for number in kept], np.bool_)
        rows[is_old] = view.rows[slots[is_old]]
        for place in np.flatnonzero(~is_old).tolist():
            rows[place] = vectors[kept[place]]
        yield numbers, rows


def _note_vector(connection: sqlite3.Connection, row: StoredRow, vector: Rows | None) -> None:
    made = None if vector is None else checksum(vector)
    whole = checksum_of(row.number, Row(row.id, row.text, row.metadata, row.content), made)
    connection.execute(
        "update records set vector_checksum = ?, checksum = ? where number = ?", (made, whole, row.number)
    )


def _is_consistent(database: Database, tokenizer: str, *, in_place: bool) -> bool:
    table = table_of(tokenizer)
    try:
        with database.outside() if in_place else database.beside() as connection:
            # FTS5 takes its own check for a change: who only looks has a copy checked, and keeps nobody out.
            checked = table if in_place else lexical.copied_table(connection, tokenizer)
            connection.execute(f"insert into {checked}({checked}, rank) values ('integrity-check', 1)")
    except Damaged:
        return False
    return True


def _windows(rows: Iterator[StoredRow]) -> Iterator[list[StoredRow]]:
    window: list[StoredRow] = []
    for row in rows:
        window.append(row)
        if len(window) == _WINDOW_TEXTS:
            yield window
            window = []
    if window:
        yield window
