"""Search by vector: the view of each commit, and how it is searched."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from gemel.contracts import Hits, Vectors
from gemel.errors import Damaged
from gemel.index import reading
from gemel.index.database import Database
from gemel.index.filters import Filter
from gemel.index.scan import scan
from gemel.index.segment import segment_name
from gemel.index.settings import Settings
from gemel.index.view import View

_ATTEMPTS = 20


@dataclass(frozen=True)
class Plan:
    """How a search is answered: exactly, or by the index and exact scores of what it proposes."""

    method: Literal["exact", "approximate"]
    n_rows: int
    reason: str


class DenseSearch:
    """Finds records by their vectors, in whatever state the collection is when it is asked."""

    def __init__(self, folder: Path, database: Database, settings: Settings) -> None:
        self.folder = folder
        self.database = database
        self.settings = settings
        self._lock = threading.Lock()
        self._view: View | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, View]]:
        """A connection and the view of the vectors that belongs to its commit."""
        for _ in range(_ATTEMPTS):
            with self.database.reading() as connection:
                try:
                    view = self._current(connection)
                except FileNotFoundError:  # compacted away since the transaction began
                    continue
                yield connection, view
                return
        raise Damaged(
            f"{self.folder / segment_name(view_generation(self.database))} is missing; bring back a copy, "
            "or let the collection's doctor encode the texts again"
        )

    def search(
        self, connection: sqlite3.Connection, view: View, queries: Vectors, k: int, filter_: Filter | None
    ) -> Hits:
        """The numbers of the k records most like each query."""
        allowed = view.allowed(connection, filter_)
        reading.check_blocks(connection, view, None, self.folder)
        hits = scan(queries, view.rows, allowed, k, self.settings.measure)
        found = hits.ids >= 0
        numbers = hits.ids.copy()
        numbers[found] = view.numbers_of(hits.ids[found])
        return Hits(numbers, hits.scores)

    def plan(self, connection: sqlite3.Connection, view: View, filter_: Filter | None) -> Plan:
        """How a search with this filter would be answered."""
        n_allowed = int(np.count_nonzero(view.allowed(connection, filter_)))
        return Plan("exact", n_allowed, "there is no index yet")

    def _current(self, connection: sqlite3.Connection) -> View:
        change = connection.execute("select change from state").fetchone()[0]
        with self._lock:
            before = self._view
        if before is not None and before.change == change:
            return before
        view = View(connection, self.folder, self.settings.layout, before)
        with self._lock:
            if self._view is None or self._view.change < view.change:
                self._view = view
        return view


def view_generation(database: Database) -> int:
    """The generation of the file of vectors that counts."""
    with database.reading() as connection:
        return int(connection.execute("select generation from state").fetchone()[0])
