"""The vectors as of one commit: where each is, which still count, and whether they are what was written."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.index.checksums import Checksums, checksum
from gemel.index.database import in_parts
from gemel.index.filters import Filter
from gemel.index.segment import RowLayout, Rows, Segment

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_KEPT_FILTERS = 32


class View:
    """What a reader of one commit sees of the vectors; it never changes, however the collection does."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        folder: Path,
        layout: RowLayout,
        before: View | None = None,
        *,
        may_be_short: bool = False,
    ) -> None:
        state = connection.execute("select change, generation, n_slots, next_number from state").fetchone()
        self.change, self.generation, self.n_slots, self.next_number = state
        self.layout = layout
        same = before if before is not None and self._continues(before) else None
        if same is not None and same.n_slots == self.n_slots:
            self.rows: Rows = same.rows
        else:
            self.rows = Segment(folder, self.generation, layout).mapped(self.n_slots, may_be_short)
        self._runs = self._read_runs(connection, same)
        self.live = self._read_live(connection, same)
        self.n_live = int(np.count_nonzero(self.live))
        self.checksums, self._verified = self._read_blocks(connection, same)
        self._filtered: OrderedDict[tuple[object, ...], Mask] = OrderedDict()

    # Numbers, which last, and slots, which are where a vector lies in this generation ----------------------

    def slots_of(self, numbers: Integers) -> Integers:
        """The slot of each vector; -1 for one that is no longer in the file."""
        if not len(self._runs):
            return np.full(len(numbers), -1, np.int64)
        first_slots, first_numbers, n_rows = self._runs.T
        run = np.maximum(np.searchsorted(first_numbers, numbers, side="right") - 1, 0)
        within = numbers - first_numbers[run]
        return np.where((within >= 0) & (within < n_rows[run]), first_slots[run] + within, -1)

    def numbers_of(self, slots: Integers) -> Integers:
        """The number of the vector in each slot."""
        first_slots, first_numbers, _ = self._runs.T
        run = np.searchsorted(first_slots, slots, side="right") - 1
        numbers: Integers = first_numbers[run] + slots - first_slots[run]
        return numbers

    def first_slot_from(self, number: int) -> int:
        """The first slot whose vector has this number or a later one: numbers ascend with the slots."""
        first_slots, first_numbers, n_rows = self._runs.T
        ends = first_numbers + n_rows
        run = int(np.searchsorted(ends, number, side="right"))
        if run == len(ends):
            return int(self.n_slots)
        return int(first_slots[run]) + max(0, number - int(first_numbers[run]))

    def counted(self, slots: Integers) -> Mask:
        """Which of these slots, of which some may be -1, hold a vector that counts."""
        is_there: Mask = slots >= 0
        is_there[is_there] = self.live[slots[is_there]]
        return is_there

    def allowed(self, connection: sqlite3.Connection, filter_: Filter | None) -> Mask:
        """Which slots hold a vector that counts and passes the filter."""
        if filter_ is None:
            return self.live
        mask = self._filtered.get(filter_.key)
        if mask is None:
            found = connection.execute(f"select number from records where {filter_.sql}", filter_.parameters)
            numbers = np.fromiter((number for (number,) in found), np.int64)
            slots = self.slots_of(numbers)
            mask = np.zeros(self.n_slots, np.bool_)
            mask[slots[slots >= 0]] = True
            mask &= self.live
            self._filtered[filter_.key] = mask
            while len(self._filtered) > _KEPT_FILTERS:
                self._filtered.popitem(last=False)
        return mask

    # Damage ------------------------------------------------------------------------------------------------

    def damaged_slots(self, slots: Integers | None = None) -> Integers:
        """The slots in blocks whose checksum is wrong, among the blocks of these slots, or among all.

        A block is read once; what has been found whole stays so for as long as the process lives.
        """
        block_rows = self.layout.block_rows
        if slots is None:
            blocks = np.flatnonzero(~self._verified)
        else:
            blocks = np.unique(slots // block_rows)
            blocks = blocks[~self._verified[blocks]]
        damaged = [block for block in blocks.tolist() if not self._is_whole(block)]
        return np.array([slot for block in damaged for slot in self._slots_in(block)], np.int64)

    def _is_whole(self, block: int) -> bool:
        within = self._slots_in(block)
        is_whole = checksum(self.rows[within.start : within.stop]) == self.checksums[block]
        self._verified[block] = is_whole
        return bool(is_whole)

    def _slots_in(self, block: int) -> range:
        return range(block * self.layout.block_rows, min((block + 1) * self.layout.block_rows, self.n_slots))

    # Reading what has changed ------------------------------------------------------------------------------

    def _continues(self, before: View) -> bool:
        # Another thread may have seen a newer commit already: nothing can be taken back from its view.
        return bool(before.generation == self.generation and before.change <= self.change)

    def _read_runs(self, connection: sqlite3.Connection, same: View | None) -> Integers:
        # Within a generation only the last run grows, or another one begins behind it.
        known = same._runs[:-1] if same is not None else np.zeros((0, 3), np.int64)
        n_known = int(known[-1, 0] + known[-1, 2]) if len(known) else 0
        found = connection.execute(
            "select first_slot, first_number, n_rows from runs where first_slot >= ? order by first_slot",
            (n_known,),
        ).fetchall()
        return np.concatenate([known, np.array(found, np.int64).reshape(-1, 3)])

    def _read_live(self, connection: sqlite3.Connection, same: View | None) -> Mask:
        live = np.ones(self.n_slots, np.bool_)
        self._last_removed: int = same._last_removed if same is not None else -1
        if same is not None:
            live[: same.n_slots] = same.live
        found = connection.execute(
            "select place, number from removed where place > ? order by place", (self._last_removed,)
        ).fetchall()
        if found:
            removed = np.array(found, np.int64)
            slots = self.slots_of(removed[:, 1])
            live[slots[slots >= 0]] = False
            self._last_removed = int(removed[-1, 0])
        elif same is not None and len(same.live) == len(live):
            live = same.live
        live.flags.writeable = False
        return live

    def _read_blocks(self, connection: sqlite3.Connection, same: View | None) -> tuple[Checksums, Mask]:
        n_blocks = -(-self.n_slots // self.layout.block_rows)
        # The last block of the view before may have grown since: it is read and verified again.
        n_known = same.n_slots // self.layout.block_rows if same is not None else 0
        checksums, verified = np.zeros(n_blocks, np.uint32), np.zeros(n_blocks, np.bool_)
        if same is not None:
            checksums[:n_known], verified[:n_known] = same.checksums[:n_known], same._verified[:n_known]
        found = connection.execute(
            "select block, checksum from blocks where block >= ?", (n_known,)
        ).fetchall()
        if found:
            blocks = np.array(found, np.int64)
            checksums[blocks[:, 0]] = blocks[:, 1]
        return checksums, verified


def numbers_by_id(connection: sqlite3.Connection, ids: Sequence[int | str]) -> dict[int | str, int]:
    """The numbers of the records that are there."""
    return dict(in_parts(connection, "select id, number from records where id in (?*)", ids))
