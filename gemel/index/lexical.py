"""Full text: free words become a query that SQLite's FTS5 ranks by BM25."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from gemel.errors import InvalidInput
from gemel.index.database import TOKENIZERS, in_parts, table_of
from gemel.index.filters import Filter

_MAX_TERMS = 200  # a whole page as a query would take seconds
# In how many records the words of a query may be found, all together, or in which share of a large
# collection's: each costs a microsecond, and "the", in half of all sentences, ranks none of them.
_MAX_MATCHES, _MAX_SHARE = 4_000, 0.01
_WORD = re.compile(r"\w+")


def checked_tokenizers(names: Sequence[str]) -> tuple[str, ...]:
    """The tokenizers of a new collection, each once."""
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name not in TOKENIZERS:
            raise InvalidInput(f"text_search has {name!r}; expected some of {', '.join(TOKENIZERS)}, or none")
    return tuple(dict.fromkeys(names))


def query_terms(text: str, tokenizer: str) -> list[str]:
    """The words of a query (or their three-letter parts), each once."""
    if tokenizer == "trigram":
        # Spaces count as letters: so a word of two letters is found, and a Korean stem before its particle.
        padded = f" {' '.join(text.split())} "
        terms = [padded[at : at + 3] for at in range(len(padded) - 2)]
    else:
        terms = _WORD.findall(text)
    return list(dict.fromkeys(term.lower() for term in terms))[:_MAX_TERMS]


def index_texts(connection: sqlite3.Connection, tokenizers: Sequence[str], first_number: int) -> None:
    """Take the records from a number on into the full text."""
    for table in map(table_of, tokenizers):
        connection.execute(
            f"insert into {table}(rowid, text) select number, text from records where number >= ?",
            (first_number,),
        )


def forget_texts(connection: sqlite3.Connection, tokenizers: Sequence[str], numbers: Sequence[int]) -> None:
    """Take records, which must still be there, out of the full text."""
    for table in map(table_of, tokenizers):
        columns = f"insert into {table}({table}, rowid, text)"
        sql = f"{columns} select 'delete', number, text from records where number in (?*)"
        for _ in in_parts(connection, sql, numbers):
            pass


def ranked(
    connection: sqlite3.Connection, query: str, tokenizer: str, k: int, filter_: Filter | None
) -> list[tuple[int, float]]:
    """The numbers of the k best records and their BM25, larger is better; equal ones by lower number.

    Words that are in very many records are left out where rarer ones are in the query.
    """
    table = table_of(tokenizer)
    terms = telling_terms(connection, query, tokenizer)
    if not terms:
        return []
    where, parameters = ("1", ()) if filter_ is None else (filter_.sql, filter_.parameters)
    join = "" if filter_ is None else f"join records on records.number = {table}.rowid"
    found = connection.execute(
        f"select {table}.rowid, -bm25({table}) as score from {table} {join} "
        f"where {table} match ? and {where} order by score desc, {table}.rowid limit ?",
        (" OR ".join(map(_quoted, terms)), *parameters, k),
    )
    return found.fetchall()


def telling_terms(connection: sqlite3.Connection, query: str, tokenizer: str) -> list[str]:
    """The rarest terms of a query, as many as can be looked at in time; none that is nowhere."""
    table, terms = table_of(tokenizer), query_terms(query, tokenizer)
    n_records = connection.execute("select next_number from state").fetchone()[0]  # or a few less
    most = max(_MAX_MATCHES, int(_MAX_SHARE * n_records))
    count = f"select count(*) from (select 1 from {table} where {table} match ? limit {most + 1})"
    counted = [(connection.execute(count, (_quoted(term),)).fetchone()[0], term) for term in terms]
    chosen: list[str] = []
    n_matches = 0
    for n, term in sorted(pair for pair in counted if pair[0]):
        n_matches += n
        if chosen and n_matches > most:
            break
        chosen.append(term)
    return chosen


def _quoted(term: str) -> str:
    """The term as a string of FTS5's language, so that none is taken for syntax."""
    return '"{}"'.format(term.replace('"', '""').replace("\0", " "))
