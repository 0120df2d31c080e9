"""Full text: free words become a query that SQLite's FTS5 ranks by BM25."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gemel.errors import InvalidInput
from gemel.index.database import TOKENIZERS, table_of
from gemel.index.filters import Filter

_MAX_TERMS = 200  # a whole page as a query would take seconds


def checked_tokenizers(names: Sequence[str]) -> tuple[str, ...]:
    """The tokenizers of a new collection, each once."""
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name not in TOKENIZERS:
            raise InvalidInput(f"text_search has {name!r}; expected some of {', '.join(TOKENIZERS)}, or none")
    return tuple(dict.fromkeys(names))


def full_text_query(text: str, tokenizer: str) -> str:
    """Any of the words (or of their three-letter parts), quoted so that none is taken for syntax."""
    words = text.split()
    if tokenizer == "trigram":
        # Spaces count as letters: so a word of two letters is found, and a Korean stem before its particle.
        padded = f" {' '.join(words)} "
        terms = [padded[at : at + 3] for at in range(len(padded) - 2)]
    else:
        terms = words
    distinct = list(dict.fromkeys(term.lower() for term in terms))[:_MAX_TERMS]
    return " OR ".join('"{}"'.format(term.replace('"', '""').replace("\0", " ")) for term in distinct)


def ranked(
    connection: sqlite3.Connection, query: str, tokenizer: str, k: int, filter_: Filter | None
) -> list[tuple[int, float]]:
    """The numbers of the k best records and their BM25, larger is better; equal ones by lower number."""
    asked = full_text_query(query, tokenizer)
    if not asked:
        return []
    table = table_of(tokenizer)
    where, parameters = ("1", ()) if filter_ is None else (filter_.sql, filter_.parameters)
    join = "" if filter_ is None else f"join records on records.number = {table}.rowid"
    found = connection.execute(
        f"select {table}.rowid, -bm25({table}) as score from {table} {join} "
        f"where {table} match ? and {where} order by score desc, {table}.rowid limit ?",
        (asked, *parameters, k),
    )
    return found.fetchall()
