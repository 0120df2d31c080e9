"""Search in a collection: by meaning, by words, or by both, read once more by a cross-encoder if wanted.

By both (hybrid) means reciprocal-rank fusion: the score of a hit is the sum of 1 / (60 + rank) over the
channels that found it. It is the default because it ranked best: on Cranfield nDCG@10 is 42.9, against 39.9
by meaning (all-MiniLM-L6-v2) and 35.9 by words (BM25) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from gemel.contracts import Reranker, Vectors, checked_texts
from gemel.errors import InvalidInput
from gemel.index import Collection, Filter, Found, Record
from gemel.index.arguments import checked_count
from gemel.index.collection import MAX_K
from gemel.index.records import Id
from gemel.tasks.explain import Explanation, Place, influences, is_unspaced, matches
from gemel.tasks.fusion import depth_for, fused_pages, rank_share
from gemel.tasks.passages import FILE_KEY, KEY, Passage, passage_of
from gemel.tasks.rerank import Reranking

Channel: TypeAlias = Literal["dense", "lexical"]
Mode: TypeAlias = Literal["dense", "lexical", "hybrid"]


@dataclass(frozen=True)
class Hit:
    """A document that a search has found: the text is the whole of it, or the passage that fits best."""

    id: Id
    text: str
    score: float
    metadata: Mapping[str, Any]
    passage: Passage | None = None  # where the text stands in a document that was cut
    explanation: Explanation | None = None


def search(
    collection: Collection,
    queries: Sequence[str],
    k: int = 10,
    *,
    mode: Mode | None = None,
    reranker: Reranker | Reranking | None = None,
    filter: str | Filter | None = None,
    offset: int = 0,
    explain: bool = False,
) -> list[list[Hit]]:
    """For each query the k documents that fit it best, best first, behind the first `offset`.

    Without a mode the search is hybrid where the collection has full text, and dense elsewhere. A reranker
    reads the first 100 documents again, or as many as `Reranking(reranker, n_candidates=...)` says.
    """
    asked = _checked_queries(queries)
    channels = _channels(collection, mode)
    n_wanted = checked_count("k", k) + checked_count("offset", offset, at_least=0)
    reading = reranker if reranker is None or isinstance(reranker, Reranking) else Reranking(reranker)
    n_ranked = _checked_depth(n_wanted, reading)
    vectors = _encoded(collection, asked) if "dense" in channels else None
    depth = n_ranked if len(channels) == 1 else min(depth_for(n_ranked), MAX_K)
    by_channel = {
        channel: _dense(collection, vectors, depth, filter)
        if vectors is not None and channel == "dense"
        else _lexical(collection, asked, depth, filter)
        for channel in channels
    }
    ranked = [
        _merged({channel: lists[row] for channel, lists in by_channel.items()}, n_ranked)
        for row in range(len(asked))
    ]
    if reading is not None:
        ranked = _reread(reading, asked, ranked)
    found = [[_hit(each, explain) for each in row[offset:n_wanted]] for row in ranked]
    return (
        [_explained(collection, *each) for each in zip(asked, found, _rows(vectors, asked), strict=True)]
        if explain
        else found
    )


# Channels --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Candidate:
    """A document with its best passage, the score, and the places that made it."""

    record: Record
    passage: Passage | None
    score: float
    places: dict[Channel, Place]
    reranked_from: int | None = None

    @property
    def document(self) -> Id:
        return self.record.id if self.passage is None else self.passage.document


def _dense(
    collection: Collection, vectors: Vectors, depth: int, filter: str | Filter | None
) -> list[list[Found]]:
    def ask(rows: Vectors, n: int) -> list[list[Found]]:
        return collection.search_vectors(rows, n, fingerprint=collection.settings.fingerprint, filter=filter)

    first = ask(vectors, depth) if len(vectors) else []
    return [
        _documents(found, depth, lambda n, row=row: ask(vectors[row : row + 1], n)[0])  # type: ignore[misc]
        for row, found in enumerate(first)
    ]


def _lexical(
    collection: Collection, queries: Sequence[str], depth: int, filter: str | Filter | None
) -> list[list[Found]]:
    def ask(query: str, n: int) -> list[Found]:
        return collection.lexical(query, n, filter=filter, tokenizer=_tokenizer(collection, query))

    return [
        _documents(ask(query, depth), depth, lambda n, query=query: ask(query, n))  # type: ignore[misc]
        for query in queries
    ]


def _tokenizer(collection: Collection, query: str) -> str | None:
    """By parts of words where the query's script has no borders between them; else as is usual here."""
    return "trigram" if is_unspaced(query) and "trigram" in collection.settings.text_search else None


def _documents(found: list[Found], depth: int, ask: Callable[[int], list[Found]]) -> list[Found]:
    """The best passage of each document; where many are of one, more are asked for."""
    n_asked = depth
    while True:
        best: dict[Id, Found] = {}
        for each in found:
            passage = passage_of(each.record)
            best.setdefault(each.record.id if passage is None else passage.document, each)
        if len(best) >= depth or len(found) < n_asked or n_asked == MAX_K:
            return list(best.values())[:depth]
        n_asked = min(2 * n_asked, MAX_K)
        found = ask(n_asked)


def _merged(lists: dict[Channel, list[Found]], n_wanted: int) -> list[_Candidate]:
    """One ranking of all channels; what is shown of a document is what ranked best in any of them."""
    is_lone = len(lists) == 1
    seen: dict[Id, _Candidate] = {}
    rankings: list[list[Id]] = []
    for channel, found in lists.items():
        ranking: list[Id] = []
        for rank, each in enumerate(found, 1):
            place = Place(rank, each.score, each.score if is_lone else rank_share(rank))
            one = _Candidate(each.record, passage_of(each.record), each.score, {channel: place})
            other = seen.get(one.document)
            if other is not None:
                shown = one if rank < min(place.rank for place in other.places.values()) else other
                one = replace(shown, places={**other.places, channel: place})
            seen[one.document] = one
            ranking.append(one.document)
        rankings.append(ranking)
    if is_lone:
        return [seen[key] for key in rankings[0][:n_wanted]]
    return [replace(seen[key], score=score) for key, score in fused_pages(rankings, n_wanted)]


def _reread(
    reading: Reranking, queries: Sequence[str], ranked: list[list[_Candidate]]
) -> list[list[_Candidate]]:
    """Every list in the reranker's order; all pairs of all queries are read in one go."""
    pairs = [(query, each.record.text) for query, row in zip(queries, ranked, strict=True) for each in row]
    scores = iter(reading.scores(pairs).tolist())
    return [
        sorted(
            [replace(each, score=next(scores), reranked_from=rank) for rank, each in enumerate(row, 1)],
            key=lambda each: -each.score,
        )
        for row in ranked
    ]


# Hits ------------------------------------------------------------------------------------------------------


def _hit(found: _Candidate, explain: bool) -> Hit:
    metadata = {name: value for name, value in found.record.metadata.items() if name not in (KEY, FILE_KEY)}
    explanation = Explanation(found.places, (), (), found.reranked_from) if explain else None
    return Hit(found.document, found.record.text, found.score, metadata, found.passage, explanation)


def found_words(collection: Collection, query: str) -> str:
    """The words of a query that a search by words goes by; all of them where there is no full text."""
    if not collection.settings.text_search or is_unspaced(query):
        return query
    return " ".join(collection.terms(query))


def _explained(collection: Collection, query: str, hits: list[Hit], vector: Vectors | None) -> list[Hit]:
    """The hits with the words they share with the query and, by meaning, the words that count."""
    texts = [hit.text for hit in hits]
    weights: Sequence[Sequence[Any]] = [()] * len(hits)
    words = found_words(collection, query)
    if vector is not None and collection.encoder is not None and hits:
        weights = influences(collection.encoder, vector, texts, collection.settings.measure)
    return [
        replace(
            hit,
            explanation=None
            if hit.explanation is None
            else replace(hit.explanation, matches=matches(words, hit.text), influences=tuple(own)),
        )
        for hit, own in zip(hits, weights, strict=True)
    ]


# Checks ----------------------------------------------------------------------------------------------------


def _checked_queries(queries: Sequence[str]) -> list[str]:
    if isinstance(queries, str):
        raise InvalidInput(f"a list of queries was expected and one str was given; search for [{queries!r}]")
    return checked_texts(queries)


def _channels(collection: Collection, mode: str | None) -> tuple[Channel, ...]:
    if mode not in (None, *get_args(Mode)):
        raise InvalidInput(f"mode is {mode!r}; expected one of {', '.join(get_args(Mode))}")
    has_words = bool(collection.settings.text_search)
    if mode in ("lexical", "hybrid") and not has_words:
        raise InvalidInput(
            f"{collection.path} was made without full text; search it with mode='dense', or make it anew"
        )
    if mode == "lexical":
        return ("lexical",)
    return ("dense",) if mode == "dense" or not has_words else ("dense", "lexical")


def _checked_depth(n_wanted: int, reading: Reranking | None) -> int:
    if n_wanted > MAX_K:
        raise InvalidInput(f"k and offset ask for {n_wanted:,} hits; expected {MAX_K:,} at most")
    if reading is None:
        return n_wanted
    if n_wanted > reading.n_candidates:
        raise InvalidInput(
            f"k and offset ask for {n_wanted:,} hits and the reranker reads {reading.n_candidates:,}; "
            "ask for fewer, or let it read more with Reranking(reranker, n_candidates=...)"
        )
    return reading.n_candidates


def _encoded(collection: Collection, queries: list[str]) -> Vectors:
    if collection.query_encoder is None:
        raise InvalidInput(
            f"{collection.path} was opened without an encoder; open it with one, or search it by words "
            "with mode='lexical'"
        )
    return collection.query_encoder.encode(queries)


def _rows(vectors: Vectors | None, queries: Sequence[str]) -> list[Vectors | None]:
    if vectors is None:
        return [None] * len(queries)
    return [vectors[row : row + 1] for row in range(len(queries))]
