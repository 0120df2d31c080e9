"""Full text: free words become a query that SQLite's FTS5 ranks by BM25."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from gemel.errors import InvalidInput
from gemel.index.database import TOKENIZERS, full_text, in_parts, table_of
from gemel.index.filters import Filter

# In how many records the terms of a query may be found, besides the rarest, or in which share of many: each
# costs a microsecond, and "the", in half of all sentences, ranks none of them. On Cranfield fewer rank as
# well.
MAX_MATCHES, MAX_SHARE = 2_000, 0.01
# As many times these are looked at where a filter leaves too few: 40 to 100 ms with 100,000 records.
TIMES_UNDER_A_FILTER = 20
_MAX_TERMS = 200
_LATIN_MARKS = re.compile(r"([a-z0-9])[\u0300-\u036f]+")  # of letters that have no accented form of their own
_MAX_KNOWN, _LONGEST_KNOWN = 50_000, 64  # terms, and letters of one
# Letters and digits with the accents that follow them: no quotation mark, and nothing else that FTS5 could
# take for syntax.
_WORDS = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")

Result = TypeVar("Result")
Counted = tuple[int, str]  # in how many records a term is, and the term


def checked_tokenizers(names: Sequence[str]) -> tuple[str, ...]:
    """The tokenizers of a new collection, each once."""
    if isinstance(names, str):
        names = (names,)
    for name in names:
        if name not in TOKENIZERS:
            raise InvalidInput(f"text_search has {name!r}; expected some of {', '.join(TOKENIZERS)}, or none")
    return tuple(dict.fromkeys(names))


def chosen_tokenizer(kept: Sequence[str], name: str | None, place: str) -> str:
    """The tokenizer that was asked for, or the first that a collection keeps."""
    if not kept or (name is not None and name not in kept):
        offered = f"it has {', '.join(kept)}" if kept else "it was made without full text"
        raise InvalidInput(f"{place} has no full text by {name or 'word'}: {offered}")
    return name or kept[0]


def terms_of(text: str, tokenizer: str) -> list[str]:
    """The distinct terms of a query, as a store that keeps `all_terms` of its texts has them."""
    return list(dict.fromkeys(all_terms(text, tokenizer)))[:_MAX_TERMS]


def all_terms(text: str, tokenizer: str) -> list[str]:
    """The terms of a text in their order, each as often as it stands there."""
    if tokenizer == "trigram":
        return _trigrams(text)
    return [_without_accents(word) for word in _words(text)]


def _asked_terms(text: str, tokenizer: str) -> list[str]:
    """The distinct terms of a query for FTS5, which takes accents off Latin letters and off no others."""
    terms = _trigrams(text) if tokenizer == "trigram" else [_plain_latin(word) for word in _words(text)]
    return list(dict.fromkeys(terms))[:_MAX_TERMS]


def _words(text: str) -> list[str]:
    return _WORDS.findall(unicodedata.normalize("NFC", text.replace("\0", " ")).lower())


def _trigrams(text: str) -> list[str]:
    # Spaces count as letters: so a word of two letters is found, and a Korean stem before its particle.
    padded = f" {' '.join(_WORDS.findall(text.replace(chr(0), ' ').lower()))} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def most_matches(n_records: int, times: int = 1) -> int:
    """In how many records the terms of a query may be found, besides the rarest; so many times the usual."""
    return times * max(MAX_MATCHES, int(MAX_SHARE * n_records))


def rarest(counted: Iterable[Counted], most: int) -> list[Counted]:
    """Of terms and how often each is there the rarest, as many as are found so often at most."""
    kept: list[Counted] = []
    n_matches = 0
    for n_found, term in sorted(pair for pair in counted if pair[0]):
        n_matches += n_found
        if kept and n_matches > most:
            break
        kept.append((n_found, term))
    return kept


def ranked_by_enough(
    telling: Callable[[int], list[Counted]],
    rank: Callable[[list[Counted]], list[Result]],
    k: int,
    filter_: Filter | None,
) -> list[Result]:
    """What the rarest terms find; where a filter leaves less than k of it, more common ones as well.

    `telling` takes how many times as many matches as usual its terms may have.
    """
    terms = telling(1)
    found = rank(terms)
    if filter_ is None or len(found) >= k:
        return found
    more = telling(TIMES_UNDER_A_FILTER)
    return rank(more) if len(more) > len(terms) else found


class TermCounts:
    """In how many records terms are found, as of the last commit: the common ones are in every query."""

    def __init__(self) -> None:
        # One pair, so that no thread ever counts for another commit than it sees.
        self._counted: tuple[int, dict[tuple[str, str, int], int]] = (-1, {})

    def telling(
        self, connection: sqlite3.Connection, query: str, tokenizer: str, times: int = 1
    ) -> list[Counted]:
        """The rarest terms of a query, as many as are quickly ranked: what stands everywhere tells little."""
        change, n_records = connection.execute("select change, next_number from state").fetchone()
        as_of, known = self._counted
        if as_of != change or len(known) > _MAX_KNOWN:
            known = {}
            self._counted = change, known
        most = most_matches(n_records, times)  # of numbers given so far: there may be a few records less
        table = table_of(tokenizer)
        # Counted no further than it matters: the table of terms would count every "the".
        count = f"select count(*) from (select 1 from {table} where {table} match ? limit {most + 1})"
        counted: list[Counted] = []
        for term in _asked_terms(query, tokenizer):
            n_found = known.get((tokenizer, term, times))
            if n_found is None:
                n_found = connection.execute(count, (_match([term], tokenizer),)).fetchone()[0]
                if len(term) <= _LONGEST_KNOWN:
                    known[tokenizer, term, times] = n_found
            counted.append((n_found, term))
        return rarest(counted, most)


def _plain_latin(word: str) -> str:
    bases = ((unicodedata.normalize("NFD", letter)[0], letter) for letter in word)
    return _LATIN_MARKS.sub(r"\1", "".join(base if base.isascii() else letter for base, letter in bases))


def _match(terms: Sequence[str], tokenizer: str) -> str:
    """FTS5's expression for any of the terms; a word also as texts have it that write accents apart."""
    apart = (unicodedata.normalize("NFD", term) for term in terms if tokenizer == "word")
    return " OR ".join(f'"{term}"' for term in dict.fromkeys([*terms, *apart]))


def _without_accents(word: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFD", word) if not unicodedata.combining(part))


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


def index_anew(connection: sqlite3.Connection, tokenizers: Sequence[str]) -> None:
    """Make the full text again from the records as they are."""
    for table in map(table_of, tokenizers):
        connection.execute(f"insert into {table}({table}) values ('rebuild')")


def copied_table(connection: sqlite3.Connection, tokenizer: str) -> str:
    """The name of a copy of the full text among the connection's own tables, over the same records."""
    table, copy = table_of(tokenizer), "copied_text"
    connection.execute("create temp view copied_records as select number, text from main.records")
    connection.execute(full_text(f"temp.{copy}", tokenizer, records="copied_records"))
    for part in ("data", "idx", "docsize"):
        connection.execute(f"delete from temp.{copy}_{part}")
        connection.execute(f"insert into temp.{copy}_{part} select * from main.{table}_{part}")
    return copy


def ranked(
    connection: sqlite3.Connection, counted: Sequence[Counted], tokenizer: str, k: int, filter_: Filter | None
) -> list[tuple[int, float]]:
    """The numbers of the k best records and their BM25, larger is better; equal ones by lower number."""
    table = table_of(tokenizer)
    if not counted:
        return []
    asked = _match([term for _, term in counted], tokenizer)
    where, parameters = ("1", ()) if filter_ is None else (filter_.sql, filter_.parameters)
    join = "" if filter_ is None else f"join records on records.number = {table}.rowid"
    found = connection.execute(
        f"select {table}.rowid, -bm25({table}) as score from {table} {join} "
        f"where {table} match ? and {where} order by score desc, {table}.rowid limit ?",
        (asked, *parameters, k),
    )
    return found.fetchall()
