"""Search in a collection: by meaning, by words, or by both, read once more by a cross-encoder if wanted.

By both (hybrid) means reciprocal-rank fusion: the score of a hit is the sum of 1 / (60 + rank) over the
channels that found it. It is the default because it ranked best: on Cranfield nDCG@10 is 43.1, against 39.9
by meaning (all-MiniLM-L6-v2) and 36.0 by words (BM25) alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

from gemel.contracts import Reranker, Vectors, checked_texts
from gemel.errors import InvalidInput
from gemel.index import Filter, Found, Record, Store
from gemel.index.arguments import MAX_K, checked_count
from gemel.index.records import Id
from gemel.tasks.explain import Explanation, Place, influences, is_unspaced, matches
from gemel.tasks.fusion import depth_for, fused_pages, rank_share
from gemel.tasks.passages import FILE_KEY, KEY, Passage, passage_of
from gemel.tasks.rerank import Reranking

Channel: TypeAlias = Literal["dense", "lexical"]
Mode: TypeAlias = Literal["dense", "lexical", "hybrid"]
_Ranking: TypeAlias = dict[Id, tuple[int, Found]]  # documents in their order, the rank and the record of each


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
    collection: Store,
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
    depth = n_ranked if len(channels) == 1 else min(depth_for(n_ranked), MAX_K)
    by_channel, vectors = _rankings(collection, asked, channels, depth, filter)
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
    """A record that stands for its document, the score, and the places that made it."""

    record: Record
    score: float
    places: dict[Channel, Place]
    reranked_from: int | None = None


def _rankings(
    collection: Store,
    queries: list[str],
    channels: Sequence[Channel],
    depth: int,
    filter: str | Filter | None,
) -> tuple[dict[Channel, list[_Ranking]], Vectors | None]:
    """Each channel's rankings, one a query, and the vectors of the queries where these were needed."""
    # One after the other: in two threads they were no faster, for both hold the interpreter too often.
    rankings: dict[Channel, list[_Ranking]] = {}
    vectors = None
    if "dense" in channels:
        vectors = _encoded(collection, queries)
        rankings["dense"] = _dense(collection, vectors, depth, filter)
    if "lexical" in channels:
        rankings["lexical"] = _lexical(collection, queries, depth, filter)
    return rankings, vectors


def _dense(collection: Store, vectors: Vectors, depth: int, filter: str | Filter | None) -> list[_Ranking]:
    def ask(rows: Vectors, n: int) -> list[list[Found]]:
        return collection.search_vectors(rows, n, fingerprint=collection.settings.fingerprint, filter=filter)

    def ask_one(row: int, n: int) -> list[Found]:
        return ask(vectors[row : row + 1], n)[0]

    first = ask(vectors, depth) if len(vectors) else []
    return [_documents(found, depth, partial(ask_one, row)) for row, found in enumerate(first)]


def _lexical(
    collection: Store, queries: Sequence[str], depth: int, filter: str | Filter | None
) -> list[_Ranking]:
    def ask(query: str, n: int) -> list[Found]:
        return collection.lexical(query, n, filter=filter, tokenizer=_tokenizer(collection, query))

    return [_documents(ask(query, depth), depth, partial(ask, query)) for query in queries]


def _tokenizer(collection: Store, query: str) -> str | None:
    """By parts of words where the query's script has no borders between them; else as is usual here."""
    return "trigram" if is_unspaced(query) and "trigram" in collection.settings.text_search else None


def _documents(found: list[Found], depth: int, ask: Callable[[int], list[Found]]) -> _Ranking:
    """The best passage of each document; where many are of one, more are asked for."""
    n_asked = depth
    while True:
        best: dict[Id, tuple[int, Found]] = {}
        for each in found:
            passage = passage_of(each.record)
            document = each.record.id if passage is None else passage.document
            if document not in best and len(best) < depth:
                best[document] = len(best) + 1, each
        if len(best) >= depth or len(found) < n_asked or n_asked == MAX_K:
            return best
        n_asked = min(2 * n_asked, MAX_K)
        found = ask(n_asked)


def _merged(rankings: dict[Channel, _Ranking], n_wanted: int) -> list[_Candidate]:
    """One ranking of all channels: the only one as it is, or several fused."""
    if len(rankings) == 1:
        ((channel, only),) = rankings.items()
        first = islice(only.values(), n_wanted)
        return [
            _Candidate(each.record, each.score, {channel: Place(rank, each.score, each.score)})
            for rank, each in first
        ]
    fusion = fused_pages([list(ranking) for ranking in rankings.values()], n_wanted)
    return [_fused_candidate(document, score, rankings) for document, score in fusion]


def _fused_candidate(document: Id, score: float, rankings: dict[Channel, _Ranking]) -> _Candidate:
    """What is shown of a document is what ranked best in any channel."""
    places: dict[Channel, Place] = {}
    shown: tuple[int, Record] | None = None
    for channel, ranking in rankings.items():
        if document in ranking:
            rank, found = ranking[document]
            places[channel] = Place(rank, found.score, rank_share(rank))
            if shown is None or rank < shown[0]:
                shown = rank, found.record
    assert shown is not None, "a document that no channel has found was fused"
    return _Candidate(shown[1], score, places)


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
    passage = passage_of(found.record)
    document = found.record.id if passage is None else passage.document
    return Hit(document, found.record.text, found.score, metadata, passage, explanation)


def found_words(collection: Store, query: str) -> str:
    """The words of a query that a search by words goes by; all of them where there is no full text."""
    if not collection.settings.text_search or is_unspaced(query):
        return query
    return " ".join(collection.terms(query))


def _explained(collection: Store, query: str, hits: list[Hit], vector: Vectors | None) -> list[Hit]:
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


def _channels(collection: Store, mode: str | None) -> tuple[Channel, ...]:
    if mode not in (None, *get_args(Mode)):
        raise InvalidInput(f"mode is {mode!r}; expected one of {', '.join(get_args(Mode))}")
    has_words = bool(collection.settings.text_search)
    if mode in ("lexical", "hybrid") and not has_words:
        raise InvalidInput(
            f"{collection.name} was made without full text; search it with mode='dense', or make it anew"
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


def _encoded(collection: Store, queries: list[str]) -> Vectors:
    if collection.query_encoder is None:
        raise InvalidInput(
            f"{collection.name} was opened without an encoder; open it with one, or search it by words "
            "with mode='lexical'"
        )
    return collection.query_encoder.encode(queries)


def _rows(vectors: Vectors | None, queries: Sequence[str]) -> list[Vectors | None]:
    if vectors is None:
        return [None] * len(queries)
    return [vectors[row : row + 1] for row in range(len(queries))]
