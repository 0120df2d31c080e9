"""Search in PostgreSQL: by vector, exactly or by pgvector's index, and by words, ranked by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gemel.contracts import Vectors
from gemel.index.backend import Allowed, Held, Ranked, best_of
from gemel.index.filters import Filter
from gemel.index.lexical import Counted, most_matches, ranked_by_enough, rarest, terms_of
from gemel.index.postgres.conditions import ALWAYS, Condition, condition_for
from gemel.index.postgres.schema import TEXT_COLUMNS, Names
from gemel.index.postgres.server import Connection
from gemel.index.postgres.wire import read_vectors, wired_vector
from gemel.index.settings import Settings

COLUMNS = "id, id_is_integer, text, metadata, content"
# Candidates that a walk keeps (hnsw.ef_search), and pgvector's most. Of 30,000 vectors of real sentences (384
# numbers) 60 find 0.989 of the ten best, 100 0.996, 200 0.998.
EFFORT, MAX_EFFORT = 128, 1_000
SPARE = 8  # more than are asked for, as PostgreSQL's order and ours may differ in the last bit
# The same of a walk that goes on until enough have passed a filter, a stretch at a time: what a later stretch
# brings may be better than what an earlier one has.
FILTERED_SPARE = 20
# Of a filter a sample of rows tells how many it lets through. A walk that looks at its limit of vectors gives
# what it has come across, be it near or not: hence a limit that is not met, and no walk where it would take
# longer than reading all rows. In microseconds, measured on 100,000 rows: a vector that a walk looks at, of
# which there are several for each that it gives, and a row that is read in full.
SAMPLED_ROWS, LEAST_LIMIT = 2_000, 20_000
WALK_COST, WALK_LOOKS, READ_COST = 4.0, 12, 1.1
BM25_K1, BM25_B = 1.2, 0.75  # as SQLite has them

_NOT_LIKE_ANYTHING = {"<=>": 1.0}  # the distance of a vector of zeros, for which pgvector gives NaN


class Searcher:
    """The statements that find records of one collection, given a connection."""

    def __init__(self, names: Names, settings: Settings) -> None:
        self.names = names
        self.settings = settings

    def prepares_walk(self, connection: Connection, k: int, allowed: Allowed, n_indexed: int) -> bool:
        """Whether walking the index is quicker than reading all rows; if so, with a limit that is not met."""
        n_candidates = self._n_candidates(k, is_filtered=allowed is not None)
        n_looks = WALK_LOOKS * n_candidates / self._share(connection, allowed, n_indexed)
        if n_looks * WALK_COST > n_indexed * READ_COST:
            return False
        most = max(LEAST_LIMIT, int(4 * n_looks))
        # What has been weighed here is not weighed again by the planner, which at times would read all rows.
        connection.execute(
            "select set_config('hnsw.max_scan_tuples', %s, true), set_config('enable_seqscan', 'off', true)",
            (str(most),),
        )
        return True

    def _share(self, connection: Connection, allowed: Allowed, n_rows: int) -> float:
        """About which share of the rows may be found."""
        if allowed is None:
            return 1.0
        if not isinstance(allowed, Filter):
            return max(1, len(allowed)) / max(1, n_rows, len(allowed))
        condition = condition_for(allowed)
        percent = min(100.0, 100 * SAMPLED_ROWS / max(1, n_rows))
        statement = self.names.of(
            "select count(*) filter (where {where}), count(*) "
            "from {s}.records tablesample system ({percent})",
            where=condition.sql,
            percent=f"{percent:.6f}",
        )
        n_passing, n_sampled = connection.execute(statement, condition.parameters).fetchone()
        share: float = (n_passing + 0.5) / (n_sampled + 1)
        return min(1.0, share)

    def _n_candidates(self, k: int, *, is_filtered: bool) -> int:
        # What is indexed in half precision is put in order by the whole numbers, of twice as many.
        is_exact = self.names.index_type == self.names.vector_type
        return (k if is_exact else 2 * k) + (FILTERED_SPARE if is_filtered else SPARE)

    def nearest(
        self, connection: Connection, query: Vectors, k: int, allowed: Allowed, *, by_index: bool
    ) -> list[Ranked]:
        """The k records most like one query (dim,), scored as a collection in a folder scores them."""
        condition = allowed_condition(allowed)
        if by_index:
            found = self._walked(connection, query, k, condition)
            if found is not None:
                return found
            connection.execute("select set_config('enable_seqscan', 'on', true)")
        return self._compared(connection, query, k, condition)

    def _walked(
        self, connection: Connection, query: Vectors, k: int, condition: Condition
    ) -> list[Ranked] | None:
        """What the index finds; None where the walk has ended before it had enough to be sure of the best."""
        n_candidates = self._n_candidates(k, is_filtered=condition is not ALWAYS)
        statement = self.names.of(
            "select number, embedding, {columns} from {s}.records where {where} "
            "order by {indexed} {operator} %s::{type} limit %s",
            columns=COLUMNS,
            where=condition.sql,
            indexed=self.names.indexed,
            operator=self.names.operator,
            type=self.names.index_type,
        )
        with np.errstate(over="ignore"):
            sent = query.astype("float16" if self.names.index_type == "halfvec" else "float32")
        if not np.isfinite(sent).all():  # too long for half precision
            return None
        parameters = (*condition.parameters, wired_vector(sent), n_candidates)
        candidates = self._rows(connection, statement, parameters)
        return self._best(candidates, query, k) if len(candidates) == n_candidates else None

    def _compared(self, connection: Connection, query: Vectors, k: int, condition: Condition) -> list[Ranked]:
        # An expression that no index is made of: every row that passes is looked at.
        distance = f"embedding::vector {self.names.operator} %s::vector"
        nothing = _NOT_LIKE_ANYTHING.get(self.names.operator)
        if nothing is not None:
            distance = f"coalesce(nullif({distance}, 'NaN'), {nothing})"
        statement = self.names.of(
            "select number, embedding, {columns} from {s}.records where {where} "
            "order by ({distance}) + 0, number limit %s",
            columns=COLUMNS,
            where=condition.sql,
            distance=distance,
        )
        parameters = (*condition.parameters, wired_vector(query), k + SPARE)
        return self._best(self._rows(connection, statement, parameters), query, k)

    def _rows(self, connection: Connection, statement: Any, parameters: Sequence[object]) -> list[Any]:
        with connection.cursor(binary=True) as cursor:
            rows: list[Any] = cursor.execute(statement, parameters).fetchall()
        return rows

    def _best(self, rows: Sequence[Any], query: Vectors, k: int) -> list[Ranked]:
        candidates = [(row[0], held(row[2:])) for row in rows]
        vectors = read_vectors([row[1] for row in rows], self.settings.dim, self.settings.dtype)
        return best_of(query, candidates, vectors, k, self.settings.measure)

    # Words ------------------------------------------------------------------------------------------------

    def telling_terms(
        self, connection: Connection, query: str, tokenizer: str, times: int = 1
    ) -> list[Counted]:
        """The rarest terms of a query, each with the number of records it is in."""
        terms = terms_of(query, tokenizer)
        if not terms:
            return []
        n_records = self._state(connection)[0]
        column, _ = TEXT_COLUMNS[tokenizer]
        most = most_matches(n_records, times) + 1
        common = self._common(connection, terms, column, n_records)
        terms = [term for term in terms if common.get(term, 0) < most]
        # Counted no further than it matters, and not where it is known to be more.
        statement = self.names.of(
            "select (select count(*) from (select from {s}.records where {column} @@ asked.query::tsquery "
            "limit %s) as found), asked.term from unnest(%s::text[], %s::text[]) as asked(term, query)",
            column=column,
        )
        counted = connection.execute(statement, (most, terms, [_quoted(term) for term in terms])).fetchall()
        counted += [(n_found, term) for term, n_found in common.items() if n_found >= most]
        return rarest(counted, most - 1)

    def _common(
        self, connection: Connection, terms: Sequence[str], column: str, n_records: int
    ) -> dict[str, int]:
        """Of the commonest terms, which PostgreSQL keeps count of, in about how many records they are."""
        found = connection.execute(
            "select known.term, known.share from pg_stats, unnest(most_common_elems::text::text[], "
            "most_common_elem_freqs) as known(term, share) where schemaname = %s and tablename = 'records' "
            "and attname = %s and known.term = any(%s::text[])",
            (self.names.schema, column, list(terms)),
        )
        return {term: int(share * n_records) for term, share in found.fetchall()}

    def lexical(
        self, connection: Connection, query: str, k: int, tokenizer: str, filter_: Filter | None
    ) -> list[Ranked]:
        """The k best records and their BM25, larger is better; equal ones by lower number."""
        return ranked_by_enough(
            lambda times: self.telling_terms(connection, query, tokenizer, times),
            lambda counted: self._by_terms(connection, counted, k, tokenizer, filter_),
            k,
            filter_,
        )

    def _by_terms(
        self,
        connection: Connection,
        counted: Sequence[Counted],
        k: int,
        tokenizer: str,
        filter_: Filter | None,
    ) -> list[Ranked]:
        if not counted:
            return []
        n_records, n_words, n_trigrams = self._state(connection)
        column, length = TEXT_COLUMNS[tokenizer]
        average = max(1.0, (n_trigrams if tokenizer == "trigram" else n_words) / max(1, n_records))
        condition = condition_for(filter_)
        statement = self.names.of(
            """
            select {columns}, score from {s}.records join (
                select number, sum(asked.weight * {more} * cardinality(term.positions) /
                    (cardinality(term.positions) + {k1} * ({rest} + {b} * {length} / %s::float8))) as score
                from {s}.records cross join lateral unnest({column}) as term
                join unnest(%s::text[], %s::float8[]) as asked(lexeme, weight) on asked.lexeme = term.lexeme
                where {column} @@ %s::tsquery and {where}
                group by number order by score desc, number limit %s
            ) as best using (number) order by score desc, number""",
            columns=COLUMNS,
            column=column,
            length=length,
            where=condition.sql,
            more=str(BM25_K1 + 1),
            k1=str(BM25_K1),
            b=str(BM25_B),
            rest=str(1 - BM25_B),
        )
        terms = [term for _, term in counted]
        weights = [_weight(n_found, n_records) for n_found, _ in counted]
        asked = " | ".join(map(_quoted, terms))
        parameters = (average, terms, weights, asked, *condition.parameters, k)
        rows = connection.execute(statement, parameters).fetchall()
        return [Ranked(held(row), float(row[-1])) for row in rows]

    def _state(self, connection: Connection) -> tuple[int, int, int]:
        statement = self.names.of("select n_records, n_words, n_trigrams from {s}.state")
        found: tuple[int, int, int] = connection.execute(statement).fetchone()
        return found


def held(row: Sequence[Any]) -> Held:
    """The record of a row that begins with COLUMNS."""
    id_, is_integer, text, metadata, content = row[:5]
    return Held(int(id_) if is_integer else id_, text, metadata, bytes(content))


def allowed_condition(allowed: Allowed) -> Condition:
    """What may be found, as a condition."""
    if allowed is None or isinstance(allowed, Filter):
        return condition_for(allowed)
    ids = [str(number) for number in allowed]
    return Condition("(id_is_integer and id = any(%s::text[]))", (ids,))


def _quoted(term: str) -> str:
    """A term as a tsquery takes it for one, whatever is in it."""
    doubled = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def _weight(n_found: int, n_records: int) -> float:
    from math import log

    return max(1e-6, log((max(n_records, n_found) - n_found + 0.5) / (n_found + 0.5)))
