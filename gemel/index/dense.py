"""Search by vector: the view of each commit, how it is best searched, and the search itself."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gemel.contracts import Hits, Vectors
from gemel.errors import Damaged
from gemel.index import reading
from gemel.index.ann import Base, Graphs, read_base
from gemel.index.arguments import Integers
from gemel.index.database import Database
from gemel.index.filters import Filter
from gemel.index.hnsw import HnswIndex
from gemel.index.scan import Scanner, best_of, is_sparse, merged, nothing_found
from gemel.index.segment import segment_name
from gemel.index.settings import Settings
from gemel.index.store import CollectionInfo, Plan
from gemel.index.view import Mask, View
from gemel.threads import thread_lock

EXACT_ROWS = 20_000  # in collections up to this size, comparing with all takes no longer than walking a graph
# Measured on a million vectors of real sentences (384 numbers, int8 index): walks to 96 candidates find 0.977
# of the ten best, 128 0.986, 192 0.991, 256 0.992, in 0.6, 0.8, 1.1 and 1.4 ms.
CANDIDATES = 192  # at least
# The first of them are scored exactly, which makes up for the index's rounding: that moves what is alike by a
# few places, and never from the rest to the front.
SCORED = 64  # at least
SPARE = 4  # of both for each hit, of candidates for each that a filter is expected to let through
# What choices are made by, in microseconds of one core: passing a packed vector, and scoring it for a query;
# gathering and packing a vector that a filter allows, and scoring it; a walk, and each of its candidates.
PASS_COST, SCAN_COST = 0.05, 0.0055
GATHER_COST, COMPARE_COST = 1.1, 0.01
WALK_COST, CANDIDATE_COST = 1_000, 4

_ATTEMPTS = 20


class DenseSearch:
    """Finds records by their vectors, in whatever state the collection is when it is asked."""

    def __init__(self, folder: Path, database: Database, settings: Settings) -> None:
        self.folder = folder
        self.database = database
        self.settings = settings
        self.graphs = Graphs(folder)
        self._scanner = Scanner(settings.measure)
        self._lock = thread_lock()
        self._view: View | None = None

    @contextmanager
    def reading(self) -> Iterator[tuple[sqlite3.Connection, View]]:
        """A connection and the view of the vectors that belongs to its commit."""
        for _ in range(_ATTEMPTS):
            with self.database.reading() as connection:
                try:
                    view = self.current(connection)
                except FileNotFoundError:  # compacted away since the transaction began
                    continue
                if not self._has_its_index(connection) and self._is_outdated(view):
                    continue
                yield connection, view
                return
        raise missing_segment(self.database)

    def current(self, connection: sqlite3.Connection) -> View:
        """The view of the commit that a connection sees, built on the one before it."""
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

    def _has_its_index(self, connection: sqlite3.Connection) -> bool:
        base = read_base(connection)
        return base is None or self.graphs.is_usable(base)

    def _is_outdated(self, view: View) -> bool:
        with self.database.reading() as connection:
            return bool(connection.execute("select change from state").fetchone()[0] != view.change)

    def plan(self, connection: sqlite3.Connection, view: View, filter_: Filter | None) -> Plan:
        """How a search for the ten best of one query is answered under this filter."""
        return self._planned(
            read_base(connection), view, view.allowed(connection, filter_), k=10, n_queries=1
        )

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""
        n_bytes = sum(map(_n_bytes, self.folder.iterdir()))
        with self.reading() as (connection, view):
            n_records = connection.execute("select count(*) from records").fetchone()[0]
            plan = self.plan(connection, view, None)
        return CollectionInfo(
            str(self.folder), self.settings, n_records, view.n_slots - view.n_live, n_bytes, plan
        )

    def search(
        self,
        connection: sqlite3.Connection,
        view: View,
        base: Base | None,
        queries: Vectors,
        k: int,
        filter_: Filter | None,
    ) -> Hits:
        """The numbers of the k records most like each query; `base` is the index of the same commit."""
        allowed = view.allowed(connection, filter_)
        plan = self._planned(base, view, allowed, k=k, n_queries=len(queries))
        graph: HnswIndex | None = None
        if base is not None and plan.method == "approximate":
            graph = self.graphs.get(base, lambda: self._is_outdated(view))
        if base is None or graph is None or not len(graph):
            hits = self._scanned(connection, view, queries, k, allowed)
        else:
            hits = self._walked(connection, view, queries, k, (allowed, base, graph))
        found = hits.ids >= 0
        numbers = hits.ids.copy()
        numbers[found] = view.numbers_of(hits.ids[found])
        return Hits(numbers, hits.scores)

    def _planned(self, base: Base | None, view: View, allowed: Mask, *, k: int, n_queries: int) -> Plan:
        n_allowed = view.n_live if allowed is view.live else int(np.count_nonzero(allowed))
        if _are_few(n_allowed, view.n_slots, k, n_queries):
            reason = f"{n_allowed:,} vectors are compared sooner than an index is asked"
            return Plan("exact", n_allowed, reason)
        if base is None:
            return Plan("exact", n_allowed, "there is no index: build_index() makes one")
        if not self.graphs.is_usable(base):
            return Plan(
                "exact", n_allowed, "the index is lost or damaged: build_index() or doctor() mends it"
            )
        n_later = view.n_slots - view.first_slot_from(base.before_number)
        later = f", and {n_later:,} later vectors exactly" if n_later else ""
        return Plan("approximate", n_allowed, f"by an index of {base.n_vectors:,} vectors{later}")

    def _scanned(
        self, connection: sqlite3.Connection, view: View, queries: Vectors, k: int, allowed: Mask
    ) -> Hits:
        n_allowed = int(np.count_nonzero(allowed))
        touched = np.flatnonzero(allowed) if is_sparse(n_allowed, view.n_slots) else None
        reading.check_blocks(connection, view, touched, self.folder)
        return self._scanner.search(queries, view, allowed, k)

    def _walked(
        self,
        connection: sqlite3.Connection,
        view: View,
        queries: Vectors,
        k: int,
        by: tuple[Mask, Base, HnswIndex],
    ) -> Hits:
        """Candidates from the index, scored exactly; what came later, or too few hits, by scanning."""
        allowed, base, graph = by
        first_later = view.first_slot_from(base.before_number)
        is_all = allowed is view.live and first_later == view.n_slots
        n_early = view.n_live if is_all else int(np.count_nonzero(allowed[:first_later]))
        hits = nothing_found(len(queries), k)
        if n_early:
            n_seen = _n_candidates(k, n_early / len(graph))
            near = graph.search(queries, min(n_seen, len(graph))).ids
            slots = _first(_allowed_slots(view, near, allowed), max(SCORED, SPARE * k))
            reading.check_blocks(connection, view, slots[slots >= 0], self.folder)
            hits = best_of(queries, view.rows, slots, k, self.settings.measure)
            short = np.flatnonzero(np.count_nonzero(hits.ids >= 0, axis=1) < min(k, n_early))
            if len(short):
                early = allowed.copy()
                early[first_later:] = False
                more = self._scanned(connection, view, queries[short], k, early)
                hits.ids[short], hits.scores[short] = more.ids, more.scores
        if first_later < view.n_slots:
            later = np.flatnonzero(allowed[first_later:]) + first_later
            reading.check_blocks(connection, view, later, self.folder)
            hits = merged(hits, self._scanner.search(queries, view, allowed, k, first_later))
        return hits


def _n_candidates(k: int, allowed_share: float) -> int:
    """How many of the nearest to look at, so that the allowed among them are enough."""
    return int(max(CANDIDATES, SPARE * k / allowed_share))


def _are_few(n_allowed: int, n_slots: int, k: int, n_queries: int) -> bool:
    """Whether comparing with all that are allowed is cheaper than walking the graph for some of them."""
    if n_slots <= EXACT_ROWS or not n_allowed:
        return True
    scanned = n_slots * (PASS_COST + n_queries * SCAN_COST)
    gathered = n_allowed * (GATHER_COST + n_queries * COMPARE_COST)
    walked = n_queries * (WALK_COST + CANDIDATE_COST * _n_candidates(k, n_allowed / n_slots))
    return min(scanned, gathered) <= walked


def _n_bytes(file: Path) -> int:
    try:
        found = file.stat()
    except FileNotFoundError:  # another process has compacted, or closed the table, meanwhile
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def missing_segment(database: Database) -> Damaged:
    """The news that the file of vectors is gone."""
    with database.reading() as connection:
        generation = connection.execute("select generation from state").fetchone()[0]
    return Damaged(
        f"{database.path.with_name(segment_name(generation))} is missing; bring back a copy, "
        "or let the collection's doctor encode the texts again"
    )


def _first(slots: Integers, n: int) -> Integers:
    """The first n of each row that are not -1, in their order."""
    if slots.shape[1] <= n:
        return slots
    order = np.argsort(slots < 0, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(slots, order, axis=1)


def _allowed_slots(view: View, numbers: Integers, allowed: Mask) -> Integers:
    """The slots of the numbers that are still there and allowed, -1 for the rest."""
    slots = view.slots_of(numbers.ravel()).reshape(numbers.shape)
    slots[numbers < 0] = -1
    slots[(slots >= 0) & ~allowed[slots]] = -1
    return slots
