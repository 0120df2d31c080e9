"""Search, paraphrase mining and communities under sentence-transformers' names, by gemel's exact searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.measures import ScoreFunction, cos_sim, measure_of
from gemel.adapters.sentence_transformers.tensors import Floats, array, rows, tensor_or_array
from gemel.contracts import Hits
from gemel.errors import InvalidInput
from gemel.similarity import PackedRows, Pairs, neighbours, pairwise, top_pairs
from gemel.similarity import top_k as most_similar
from gemel.similarity.packed import MEASURES as PACKED_MEASURES

Rows = npt.NDArray[np.int64]

QUERIES_AT_ONCE = 8_192  # rows whose neighbours are searched together


def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500_000,
    top_k: int = 10,
    score_function: ScoreFunction = cos_sim,
) -> list[list[dict[str, int | float]]]:
    """For each query its `top_k` nearest rows of the corpus as {"corpus_id", "score"}, best first."""
    queries, corpus = rows(query_embeddings), rows(corpus_embeddings)
    if not len(queries) or not len(corpus):
        return [[] for _ in range(len(queries))]
    k = min(_checked("top_k", top_k), len(corpus))
    parts = _nearest(queries, corpus, k, score_function, (query_chunk_size, corpus_chunk_size))
    return [
        [{"corpus_id": row, "score": score} for row, score in zip(ids, scores, strict=True)]
        for hits in parts
        for ids, scores in zip(hits.ids.tolist(), hits.scores.tolist(), strict=True)
    ]


information_retrieval = semantic_search  # its name in older programs


def paraphrase_mining(
    model: Any,
    sentences: Sequence[str],
    show_progress_bar: bool = False,
    batch_size: int = 32,
    query_chunk_size: int = 5_000,
    corpus_chunk_size: int = 100_000,
    max_pairs: int = 500_000,
    top_k: int = 100,
    score_function: ScoreFunction = cos_sim,
    truncate_dim: int | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
) -> list[list[float | int]]:
    """The most similar pairs of sentences as [score, row, row], best first."""
    embeddings = model.encode(
        list(sentences),
        show_progress_bar=show_progress_bar,
        batch_size=batch_size,
        truncate_dim=truncate_dim,
        prompt_name=prompt_name,
        prompt=prompt,
    )
    return paraphrase_mining_embeddings(
        embeddings, query_chunk_size, corpus_chunk_size, max_pairs, top_k, score_function
    )


def paraphrase_mining_embeddings(
    embeddings: Any,
    query_chunk_size: int = 5_000,
    corpus_chunk_size: int = 100_000,
    max_pairs: int = 500_000,
    top_k: int = 100,
    score_function: ScoreFunction = cos_sim,
) -> list[list[float | int]]:
    """The most similar pairs of rows as [score, row, row], best first: of each row its `top_k` nearest, and
    of all these pairs the best `max_pairs`."""
    vectors = rows(embeddings)
    if len(vectors) < 2:
        return []
    k, n_pairs = min(_checked("top_k", top_k), len(vectors) - 1), _checked("max_pairs", max_pairs)
    found = _best_overall(vectors, n_pairs, k, measure_of(score_function))
    if found is None:
        nearest = _nearest(vectors, vectors, k + 1, score_function, (query_chunk_size, corpus_chunk_size))
        found = _best_of_nearest(nearest, n_pairs, k, len(vectors))
    columns = (column.tolist() for column in (found.scores, found.first, found.second))
    return [list(pair) for pair in zip(*columns, strict=True)]


def community_detection(
    embeddings: Any,
    threshold: float = 0.75,
    min_community_size: int = 10,
    batch_size: int = 1_024,
    show_progress_bar: bool = False,
) -> list[list[int]]:
    """Groups of rows, the largest first: a centre, then the rows that score the threshold with it.

    As there, a group is as large as it is before others have taken rows from it; `gemel.communities` counts
    anew each time, and so finds larger groups.
    """
    if not len(embeddings):
        return []
    vectors = rows(embeddings)
    near = neighbours(vectors, threshold)
    counts = np.diff(near.offsets)
    centres = np.flatnonzero(counts >= min_community_size)
    is_taken = np.zeros(len(vectors), np.bool_)
    found = []
    for centre in centres[np.argsort(-counts[centres], kind="stable")].tolist():
        members = near.of(centre)
        members = members[~is_taken[members]]
        if is_taken[centre] or len(members) < min_community_size:
            continue
        is_taken[members] = True
        found.append(_around(vectors, centre, members))
    return sorted(found, key=len, reverse=True)


def _around(vectors: Floats, centre: int, members: Rows) -> list[int]:
    """The members by similarity to the centre, which comes first."""
    others = members[members != centre]
    scores = pairwise(vectors[others], np.broadcast_to(vectors[centre], (len(others), vectors.shape[1])))
    return [centre, *others[np.argsort(-scores, kind="stable")].tolist()]


def _best_overall(vectors: Floats, n_pairs: int, k: int, measure: str | None) -> Pairs | None:
    """The most similar pairs of all, in half the time: where no row is in more than k of them, they are those
    of the k nearest of each row too. None where a row is in more, or is bound to be."""
    if measure is None or 2 * n_pairs > k * len(vectors):
        return None
    pairs = top_pairs(vectors, n_pairs, measure=measure)
    counts = np.bincount(np.concatenate([pairs.first, pairs.second]))
    return pairs if counts.max(initial=0) <= k else None


def _best_of_nearest(nearest: Iterator[Hits], n_pairs: int, k: int, n_rows: int) -> Pairs:
    """The most similar pairs among the k nearest of each row."""
    start, codes, scores = 0, np.zeros(0, np.int64), np.zeros(0, np.float32)
    for hits in nearest:
        found, their_scores = _pairs_of(hits, start, k, n_rows)
        codes, scores = np.concatenate([codes, found]), np.concatenate([scores, their_scores])
        codes, scores = _best_of(codes, scores, n_pairs)
        start += len(hits)
    return Pairs(*np.divmod(codes, n_rows), scores)


def _pairs_of(hits: Hits, start: int, k: int, n_rows: int) -> tuple[Rows, Floats]:
    """The k nearest others of each row as pairs in one number: first * n_rows + second, first < second."""
    first = np.repeat(np.arange(start, start + len(hits)), hits.ids.shape[1])
    second, scores = hits.ids.reshape(-1), hits.scores.reshape(-1)
    differ = (first != second) & (second >= 0)
    first, second, scores = first[differ], second[differ], scores[differ]
    nearest = np.arange(len(first)) - np.searchsorted(first, first) < k
    first, second, scores = first[nearest], second[nearest], scores[nearest]
    return np.minimum(first, second) * n_rows + np.maximum(first, second), scores


def _best_of(codes: Rows, scores: Floats, n: int) -> tuple[Rows, Floats]:
    """Each pair once, and of these the n best, best first."""
    codes, places = np.unique(codes, return_index=True)
    scores = scores[places]
    order = np.argsort(-scores, kind="stable")[:n]
    return codes[order], scores[order]


def _nearest(
    queries: Floats, corpus: Floats, k: int, score: ScoreFunction, chunks: tuple[int, int]
) -> Iterator[Hits]:
    """The k best rows of the corpus for each query, some queries at a time."""
    measure = measure_of(score)
    n_queries = _checked("query_chunk_size", chunks[0])
    if measure is not None:  # the matrix is never held, so that larger chunks cost no memory
        n_queries = QUERIES_AT_ONCE
    search = PackedRows(corpus, measure).search if measure in PACKED_MEASURES else None
    for start in range(0, len(queries), n_queries):
        part = queries[start : start + n_queries]
        if search is not None:
            yield search(part, k)
        elif measure is not None:
            yield most_similar(part, corpus, k, measure)
        else:
            yield _scored_by(score, part, corpus, k, chunks[1])


def _scored_by(score: ScoreFunction, queries: Floats, corpus: Floats, k: int, n_corpus: int) -> Hits:
    """The k best rows by a function that the caller has made."""
    ids, scores = np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32)
    for start in range(0, len(corpus), _checked("corpus_chunk_size", n_corpus)):
        part = tensor_or_array(corpus[start : start + n_corpus])
        found = array(score(tensor_or_array(queries), part)).astype(np.float32)
        places = np.broadcast_to(np.arange(start, start + found.shape[1]), found.shape)
        scores, ids = np.concatenate([scores, found], axis=1), np.concatenate([ids, places], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, best, 1), np.take_along_axis(ids, best, 1)
    return Hits(ids, scores)


def _checked(name: str, value: int) -> int:
    if value < 1:
        raise InvalidInput(f"{name} is {value!r}; expected at least 1")
    return value
