"""The records of a collection in PostgreSQL: every change is a transaction, safe once acknowledged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.index.backend import Allowed, Held, Ranked
from gemel.index.filters import Filter
from gemel.index.lexical import all_terms
from gemel.index.planning import Changes, changes_for
from gemel.index.postgres.conditions import condition_for
from gemel.index.postgres.schema import TEXT_COLUMNS, Names, lock_writers
from gemel.index.postgres.searching import COLUMNS, EFFORT, MAX_EFFORT, Searcher, held
from gemel.index.postgres.server import Connection, Server
from gemel.index.postgres.wire import read_vectors, wired_vector, wired_words
from gemel.index.records import Id, Row
from gemel.index.segment import Rows
from gemel.index.settings import Settings
from gemel.index.store import CollectionInfo, Plan

INDEX_NAME = "records_embedding"
INDEX_ROWS = 10_000  # up to so many, looking at all takes no longer than walking a graph
CONNECTIVITY, EFFORT_BUILDING = 16, 128
MAX_ID_BYTES = 2_000  # PostgreSQL's indexes take entries up to 2,704 bytes
BUILD_MEMORY_KB = 1 << 20  # at most; with less than the graph needs, building is many times slower

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON spells it, behind no odd backslash
_BY_ID = "join unnest(%s::text[], %s::boolean[]) as asked(id, id_is_integer) using (id, id_is_integer)"


class PostgresBackend:
    """One collection of a database; any number of processes may use it at once."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.name = str(server.address)
        self.settings = settings
        self._server = server
        self._names = Names(server.address.schema, settings)
        self._searcher = Searcher(self._names, settings)

    # In and out -------------------------------------------------------------------------------------------

    def known(self, ids: Sequence[Id]) -> dict[Id, Held]:
        """Those of the records with these ids that are there."""
        return self._server.run(lambda connection: self._known(connection, ids))

    def store(self, rows: Sequence[Row], vectors: Mapping[Id, Rows]) -> Changes[Held] | None:
        """Store the rows in one transaction; None, and nothing is done, where a vector is missing."""
        _check_storable(rows)

        def work(connection: Connection) -> Changes[Held] | None:
            lock_writers(connection, self._server.address)
            changes = changes_for(rows, self._known(connection, [row.id for row in rows]))
            if any(row.id not in vectors for row in changes.inserted):
                return None
            self._delete(connection, [before.id for before in changes.replaced])
            if changes.inserted:
                self._insert(connection, changes.inserted, vectors)
            self._relabel(connection, [row for row, _ in changes.relabelled])
            return changes

        return self._server.run(work, lock_timeout=self._lock_timeout)

    def remove(self, ids: Sequence[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""

        def work(connection: Connection) -> int:
            lock_writers(connection, self._server.address)
            return self._delete(connection, ids)

        return self._server.run(work, lock_timeout=self._lock_timeout)

    def count(self, filter_: Filter | None) -> int:
        """How many records pass a filter."""
        condition = condition_for(filter_)
        statement = self._names.of("select count(*) from {s}.records where {where}", where=condition.sql)
        found = self._server.run(lambda c: c.execute(statement, condition.parameters).fetchone())
        return int(found[0])

    def all_records(self, filter_: Filter | None) -> Iterator[Held]:
        """The records that pass a filter, in the order in which their texts came, as of one commit."""
        condition = condition_for(filter_)
        statement = self._names.of(
            "select {columns} from {s}.records where {where} order by number",
            columns=COLUMNS,
            where=condition.sql,
        )
        with self._server.reading() as connection, connection.cursor("records") as cursor:
            cursor.itersize = 2_048
            cursor.execute(statement, condition.parameters)
            yield from map(held, cursor)

    def vectors(self, ids: Sequence[Id] | None) -> tuple[list[Id], Vectors]:
        """The vectors of the records with these ids, in their order, or of all."""
        join = "" if ids is None else _BY_ID
        statement = self._names.of(
            "select id, id_is_integer, embedding from {s}.records {join} order by number", join=join
        )

        def work(connection: Connection) -> list[Any]:
            with connection.cursor(binary=True) as cursor:
                found: list[Any] = cursor.execute(statement, () if ids is None else _split(ids)).fetchall()
            return found

        rows = self._server.run(work)
        named: list[Id] = [int(id_) if is_integer else id_ for id_, is_integer, _ in rows]
        vectors = read_vectors([row[2] for row in rows], self.settings.dim, self.settings.dtype)
        if ids is None:
            return named, vectors
        places = {id_: place for place, id_ in enumerate(named)}
        kept = [id_ for id_ in ids if id_ in places]
        return kept, vectors[np.array([places[id_] for id_ in kept], np.int64)]

    def id_types(self, filter_: Filter | None) -> set[type]:
        """Which types the ids have."""
        condition = condition_for(filter_)
        statement = self._names.of(
            "select distinct id_is_integer from {s}.records where {where}", where=condition.sql
        )
        found = self._server.run(lambda c: c.execute(statement, condition.parameters).fetchall())
        return {int if is_integer else str for (is_integer,) in found}

    # Search -----------------------------------------------------------------------------------------------

    def nearest(self, queries: Vectors, k: int, allowed: Allowed) -> list[list[Ranked]]:
        """The k records most like each query."""

        def work(connection: Connection) -> list[list[Ranked]]:
            n_indexed = self._n_indexed(connection)
            by_index = n_indexed is not None and self._searcher.prepares_walk(
                connection, k, allowed, n_indexed
            )
            return [
                self._searcher.nearest(connection, query, k, allowed, by_index=by_index) for query in queries
            ]

        settings: dict[str, str | int] = {
            "hnsw.ef_search": min(MAX_EFFORT, max(EFFORT, 2 * k)),
            "hnsw.iterative_scan": "relaxed_order",
            "hnsw.scan_mem_multiplier": 16,
        }
        return self._server.run(work, **settings)

    def lexical(self, query: str, k: int, tokenizer: str, filter_: Filter | None) -> list[Ranked]:
        """The k records that share the rarest words with a query."""
        return self._server.run(lambda c: self._searcher.lexical(c, query, k, tokenizer, filter_))

    def terms(self, query: str, tokenizer: str) -> list[str]:
        """The words of a query that it is ranked by."""
        found = self._server.run(lambda c: self._searcher.telling_terms(c, query, tokenizer))
        return [term for _, term in found]

    def plan(self, filter_: Filter | None) -> Plan:
        """How a search by vector is answered."""
        n_rows = self.count(filter_)
        n_indexed = self._server.run(self._n_indexed)
        if n_indexed is not None:
            walks = self._server.run(lambda c: self._searcher.prepares_walk(c, 10, filter_, n_indexed))
            if not walks:
                return Plan("exact", n_rows, "reading all rows is quicker than asking the index")
            return Plan("approximate", n_rows, f"an index of pgvector's; exact scores of {EFFORT} candidates")
        if not self._names.can_be_indexed:
            return Plan("exact", n_rows, f"pgvector has no index for {self.settings.dim:,} dimensions")
        return Plan("exact", n_rows, "there is no index: one is built from 10,000 records on")

    # Upkeep -----------------------------------------------------------------------------------------------

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""
        statement = self._names.of(
            "select pg_total_relation_size(c.oid), coalesce(pg_stat_get_dead_tuples(c.oid), 0) "
            "from pg_class c where c.oid = to_regclass(%s)"
        )
        table = f'"{self._names.schema}".records'
        n_bytes, n_dead = self._server.run(lambda c: c.execute(statement, (table,)).fetchone())
        return CollectionInfo(self.name, self.settings, self.count(None), n_dead, n_bytes, self.plan(None))

    def build_index(self) -> None:
        """Build the approximate index, where there is none; others may read and write meanwhile."""
        if not self._names.can_be_indexed or self._server.run(self._has_index):
            return
        needed_kb = self.count(None) * (self.settings.dim * 4 + 40 * CONNECTIVITY) // 1024
        with self._server.outside() as connection:
            key = f"{self._names.schema} index"
            alone = connection.execute("select pg_try_advisory_lock(hashtextextended(%s, 0))", (key,))
            if not alone.fetchone()[0]:
                return  # another is at it, whose index will do; the lock ends with the connection
            # Left by a build that was broken off; PostgreSQL keeps it up and never uses it.
            connection.execute(self._names.of("drop index concurrently if exists {s}." + INDEX_NAME))
            memory = f"{min(BUILD_MEMORY_KB, max(65_536, needed_kb))}kB"
            connection.execute("select set_config('maintenance_work_mem', %s, false)", (memory,))
            connection.execute(
                self._names.of(
                    "create index concurrently {name} on {s}.records using hnsw ({indexed} {operators}) "
                    "with (m = {m}, ef_construction = {effort})",
                    name=INDEX_NAME,
                    indexed=self._names.indexed,
                    operators=self._names.operator_class,
                    m=str(CONNECTIVITY),
                    effort=str(EFFORT_BUILDING),
                )
            )
            connection.execute(self._names.of("analyze {s}.records"))

    def keep_index(self) -> None:
        """Build the index where it has become worthwhile."""
        statement = self._names.of("select n_records from {s}.state")
        if self._server.run(lambda c: c.execute(statement).fetchone())[0] > INDEX_ROWS:
            self.build_index()

    def compact(self) -> None:
        """Give back the room of what was removed, to this table."""
        with self._server.outside() as connection:
            connection.execute(self._names.of("vacuum (analyze) {s}.records"))

    def close(self) -> None:
        """Let go of the server."""
        self._server.close()

    # Steps ------------------------------------------------------------------------------------------------

    @property
    def _lock_timeout(self) -> str:
        return f"{int(1000 * self._server.timeout_seconds)}ms"

    def _known(self, connection: Connection, ids: Sequence[Id]) -> dict[Id, Held]:
        statement = self._names.of("select {columns} from {s}.records {join}", columns=COLUMNS, join=_BY_ID)
        rows = connection.execute(statement, _split(list(dict.fromkeys(ids)))).fetchall()
        return {each.id: each for each in map(held, rows)}

    def _n_indexed(self, connection: Connection) -> int | None:
        """About how many vectors the index has; None where there is no index that can be used."""
        found = connection.execute(
            "select reltuples from pg_index join pg_class on oid = indexrelid "
            "where indexrelid = to_regclass(%s) and indisvalid",
            (f'"{self._names.schema}".{INDEX_NAME}',),
        ).fetchone()
        return None if found is None else max(0, int(found[0]))

    def _has_index(self, connection: Connection) -> bool:
        return self._n_indexed(connection) is not None

    def _insert(self, connection: Connection, rows: Sequence[Row], vectors: Mapping[Id, Rows]) -> None:
        """All rows by one COPY, with their terms; and the counts that BM25 goes by."""
        kept = self.settings.text_search
        columns = [name for tokenizer in kept for name in TEXT_COLUMNS[tokenizer]]
        types = ["text", "bool", "text", "text", "bytea", self._names.vector_type]
        types += ["tsvector", "int4"] * len(kept)
        statement = self._names.of(
            "copy {s}.records (id, id_is_integer, text, metadata, content, embedding{more}) "
            "from stdin (format binary)",
            more="".join(f", {name}" for name in columns),
        )
        counts = dict.fromkeys(columns[1::2], 0)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                values: list[object] = [str(row.id), isinstance(row.id, int), row.text, row.metadata]
                values += [row.content, wired_vector(vectors[row.id])]
                for tokenizer in kept:
                    terms = all_terms(row.text, tokenizer)
                    values += [wired_words(terms), len(terms)]
                    counts[TEXT_COLUMNS[tokenizer][1]] += len(terms)
                copy.write_row(values)
        self._count_up(connection, {"n_records": len(rows), **counts})

    def _delete(self, connection: Connection, ids: Sequence[Id]) -> int:
        if not ids:
            return 0
        counts = [TEXT_COLUMNS[tokenizer][1] for tokenizer in self.settings.text_search]
        sums = "".join(f", coalesce(sum({count}), 0)" for count in counts)
        statement = self._names.of(
            "with gone as (delete from {s}.records "
            "using unnest(%s::text[], %s::boolean[]) as asked(id, kind) "
            "where records.id = asked.id and id_is_integer = asked.kind returning {returned}) "
            "select count(*){sums} from gone",
            returned=", ".join(["number", *counts]),
            sums=sums,
        )
        n_gone, *lengths = connection.execute(statement, _split(ids)).fetchone()
        lost = {name: -int(length) for name, length in zip(counts, lengths, strict=True)}
        self._count_up(connection, {"n_records": -n_gone, **lost})
        return int(n_gone)

    def _relabel(self, connection: Connection, rows: Sequence[Row]) -> None:
        if rows:
            statement = self._names.of(
                "update {s}.records set metadata = asked.metadata "
                "from unnest(%s::text[], %s::boolean[], %s::text[]) as asked(id, kind, metadata) "
                "where records.id = asked.id and id_is_integer = asked.kind"
            )
            parameters = (*_split([row.id for row in rows]), [row.metadata for row in rows])
            connection.execute(statement, parameters)

    def _count_up(self, connection: Connection, counts: Mapping[str, int]) -> None:
        steps = ", ".join(f"{name} = {name} + %s" for name in counts)
        connection.execute(self._names.of("update {s}.state set {steps}", steps=steps), list(counts.values()))


def _split(ids: Sequence[Id]) -> tuple[list[str], list[bool]]:
    """Ids as PostgreSQL keeps them: their text, and whether it is that of an integer."""
    # A text with NUL is in no record, and no parameter may have one.
    kept = [id_ for id_ in ids if isinstance(id_, int) or "\0" not in id_]
    return [str(id_) for id_ in kept], [isinstance(id_, int) for id_ in kept]


def _check_storable(rows: Sequence[Row]) -> None:
    for row in rows:
        if "\0" in row.text or _NUL.search(row.metadata) or (isinstance(row.id, str) and "\0" in row.id):
            raise InvalidInput(
                f"the record {row.id!r} holds the character NUL, which PostgreSQL cannot keep; take it out"
            )
        if isinstance(row.id, str) and len(row.id.encode()) > MAX_ID_BYTES:
            raise InvalidInput(
                f"the id {row.id[:40]!r}... has {len(row.id.encode()):,} bytes; PostgreSQL can find ids of "
                f"{MAX_ID_BYTES:,} at most"
            )
