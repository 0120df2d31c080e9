"""Search in PostgreSQL: by vector, exactly or by pgvector's index, and by words, ranked by BM25."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemel.contracts import Vectors
from gemel.index.backend import Allowed, Held, Ranked, best_of
from gemel.index.filters import Filter
from gemel.index.lexical import most_matches, rarest, terms_of
from gemel.index.postgres.conditions import Condition, condition_for
from gemel.index.postgres.schema import TEXT_COLUMNS, Names
from gemel.index.postgres.server import Connection
from gemel.index.postgres.wire import read_vectors, wired_vector
from gemel.index.settings import Settings

COLUMNS = "id, id_is_integer, text, metadata, content"
EFFORT, MAX_EFFORT = 200, 1_000  # candidates that a walk keeps (hnsw.ef_search), and pgvector's most
MAX_SCANNED = 20_000  # vectors that a walk looks at, before a filter that lets few through is read in full
SPARE = 16  # more than are asked for, as PostgreSQL's order and ours may differ in the last bit
BM25_K1, BM25_B = 1.2, 0.75  # as SQLite has them

_NOT_LIKE_ANYTHING = {"<=>": 1.0}  # the distance of a vector of zeros, for which pgvector gives NaN


class Searcher:
    """The statements that find records of one collection, given a connection."""

    def __init__(self, names: Names, settings: Settings) -> None:
        self.names = names
        self.settings = settings

    def nearest(
        self, connection: Connection, query: Vectors, k: int, allowed: Allowed, *, by_index: bool
    ) -> list[Ranked]:
        """The k records most like one query (dim,), scored as a collection in a folder scores them."""
        condition = allowed_condition(allowed)
        if by_index:
            found = self._walked(connection, query, k, condition)
            if len(found) >= k:
                return found
        return self._compared(connection, query, k, condition)

    def _walked(self, connection: Connection, query: Vectors, k: int, condition: Condition) -> list[Ranked]:
        # What is indexed in half precision is put in order by the whole numbers, of twice as many.
        is_exact = self.names.index_type == self.names.vector_type
        n_candidates = k + SPARE if is_exact else 2 * k + SPARE
        statement = self.names.of(
            "select number, embedding, {columns} from {s}.records where {where} "
            "order by {indexed} {operator} %s::{type} limit %s",
            columns=COLUMNS,
            where=condition.sql,
            indexed=self.names.indexed,
            operator=self.names.operator,
            type=self.names.index_type,
        )
        sent = query.astype("float16" if self.names.index_type == "halfvec" else "float32")
        parameters = (*condition.parameters, wired_vector(sent), n_candidates)
        return self._best(connection, statement, parameters, query, k)

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
        return self._best(connection, statement, parameters, query, k)

    def _best(
        self, connection: Connection, statement: Any, parameters: Sequence[object], query: Vectors, k: int
    ) -> list[Ranked]:
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(statement, parameters).fetchall()
        candidates = [(row[0], held(row[2:])) for row in rows]
        vectors = read_vectors([row[1] for row in rows], self.settings.dim, self.settings.dtype)
        return best_of(query, candidates, vectors, k, self.settings.measure)

    # Words ------------------------------------------------------------------------------------------------

    def telling_terms(self, connection: Connection, query: str, tokenizer: str) -> list[tuple[int, str]]:
        """The rarest terms of a query, each with the number of records it is in."""
        terms = terms_of(query, tokenizer)
        if not terms:
            return []
        n_records = self._state(connection)[0]
        column, _ = TEXT_COLUMNS[tokenizer]
        # Counted no further than it matters.
        statement = self.names.of(
            "select (select count(*) from (select from {s}.records where {column} @@ asked.query::tsquery "
            "limit %s) as found), asked.term from unnest(%s::text[], %s::text[]) as asked(term, query)",
            column=column,
        )
        most = most_matches(n_records) + 1
        counted = connection.execute(statement, (most, terms, [_quoted(term) for term in terms])).fetchall()
        return rarest(counted, n_records)

    def lexical(
        self, connection: Connection, query: str, k: int, tokenizer: str, filter_: Filter | None
    ) -> list[Ranked]:
        """The k best records and their BM25, larger is better; equal ones by lower number."""
        counted = self.telling_terms(connection, query, tokenizer)
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
