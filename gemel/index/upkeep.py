"""What a collection needs from time to time: its index built, its files compacted."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import suppress

import numpy as np

from gemel.errors import Busy, Damaged, MissingExtra, SlowSearchWarning, WriteFailed
from gemel.index import ann, compaction, dense, reading
from gemel.index.database import plain_errors, table_of
from gemel.index.dense import DenseSearch
from gemel.index.hnsw import HnswParameters
from gemel.index.settings import Settings
from gemel.index.writing import Writer

# An index is built, or extended, by itself once so many vectors are not in it, and so large a share of all.
UNINDEXED_ROWS = 100_000
UNINDEXED_SHARE = 0.25


class Upkeep:
    """The work behind the records: it loses nothing when it is broken off, and can be done at any time."""

    def __init__(self, search: DenseSearch, writer: Writer, timeout_seconds: float) -> None:
        self._dense = search
        self._writer = writer
        self._builder = ann.Builder(writer.folder, timeout_seconds)

    def build_index(
        self,
        parameters: HnswParameters | None = None,
        on_progress: ann.OnIndexed | None = None,
        *,
        waits: bool = True,
    ) -> None:
        """Build the index of all vectors, or extend the one that is there; only its end holds up writers."""
        chosen = parameters or default_parameters(self._dense.settings)
        with plain_errors(self._writer.folder), self._builder.lock(waits=waits):
            with self._dense.reading() as (connection, view):
                before = ann.read_base(connection)
                reading.check_blocks(connection, view, None, self._writer.folder)
            base = self._builder.build(view, before, chosen, on_progress)
            with self._writer.lock(), self._writer.database.writing() as connection:
                ann.publish(connection, base)
            ann.remove_others(self._writer.folder, base)

    def index_if_worthwhile(self) -> None:
        """Build or extend the index where searches have come to compare many vectors without it."""
        if self._dense.settings.measure == "manhattan":
            return
        with self._dense.reading() as (connection, view):
            base = ann.read_base(connection)
            is_sound = base is not None and self._dense.graphs.is_usable(base)
            first_later = view.first_slot_from(base.before_number) if base is not None and is_sound else 0
            n_unindexed = int(np.count_nonzero(view.live[first_later:]))
        if is_sound or base is None:
            if n_unindexed < max(UNINDEXED_ROWS, UNINDEXED_SHARE * view.n_live):
                return
        elif view.n_live <= dense.EXACT_ROWS:
            return
        # Without usearch, or while another process builds it, searches stay exact.
        with suppress(MissingExtra, Busy):
            try:
                self.build_index(waits=False)
            except (WriteFailed, Damaged) as error:  # what was added is safe all the same
                warnings.warn(SlowSearchWarning(f"the index could not be built: {error}"), stacklevel=4)

    def compact(self, on_progress: ann.OnIndexed | None = None) -> None:
        """Write the files anew without what was removed, and bring the index up to date if there is one."""
        with plain_errors(self._writer.folder), self._writer.lock():
            with self._writer.database.writing() as connection:
                view = self._dense.current(connection)
                if view.n_live < view.n_slots:
                    reading.check_blocks(connection, view, None, self._writer.folder)
                    compaction.write_generation(
                        connection, self._writer.folder, view.layout, compaction.counted_rows(view)
                    )
            self._tidy()
        self.remove_leftovers()
        with self._dense.reading() as (connection, view):
            base = ann.read_base(connection)
        if base is not None and (base.before_number < view.next_number or base.n_vectors != view.n_live):
            self.build_index(on_progress=on_progress)

    def remove_leftovers(self) -> None:
        """Remove files that no longer count, and such as were never finished."""
        folder = self._writer.folder
        with plain_errors(folder):
            with self._writer.lock(), self._writer.database.reading() as connection:
                generation = connection.execute("select generation from state").fetchone()[0]
                compaction.remove_other_generations(folder, generation)
            with suppress(Busy), self._builder.lock(waits=False):  # else there is one in the making
                with self._writer.database.reading() as connection:
                    base = ann.read_base(connection)
                ann.remove_others(folder, base)

    def _tidy(self) -> None:
        """Merge the full text and give unused pages back."""
        for tokenizer in self._dense.settings.text_search:
            with self._writer.database.writing() as connection:
                table = table_of(tokenizer)
                connection.execute(f"insert into {table}({table}) values ('optimize')")
        with self._writer.database.outside() as connection:
            if _is_loose(connection):
                connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")


def default_parameters(settings: Settings) -> HnswParameters:
    """An index in a quarter of the vectors' size where directions suffice, in half of it elsewhere."""
    return HnswParameters(
        settings.dim, settings.measure, "int8" if settings.measure == "cosine" else "float16"
    )


def _is_loose(connection: sqlite3.Connection) -> bool:
    n_free = connection.execute("pragma freelist_count").fetchone()[0]
    return bool(n_free > 0.1 * connection.execute("pragma page_count").fetchone()[0])
