"""Search: are the documents that people found relevant near the top?

BEIR's protocol: every query that has a relevant document is compared with every document, exactly; nDCG@10 is
the figure that tables show. Its gain is linear, the grade itself, as in trec_eval; 2^grade - 1, which other
programs use, gives another figure where there are more grades than one. Documents that score the same stand
in the order of the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS, Encoder, Reranker, Vectors
from gemel.data.retrieval import RetrievalData
from gemel.errors import InvalidInput
from gemel.evaluate import ranking
from gemel.evaluate.bootstrap import interval_of, mean_of, resample
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.similarity import top_k

PRIMARY = "ndcg@10"
CUTOFFS = (1, 5, 10, 100)
N_RETRIEVED = (
    1_000  # as deep as trec_eval's lists usually are; average precision counts what is below as missed
)

_Rows = npt.NDArray[np.int64]


def evaluate_retrieval(
    encoder: Encoder,
    data: RetrievalData,
    *,
    name: str = "retrieval",
    measure: str = "cosine",
    reranker: Reranker | None = None,
    depth: int = 100,
    skips_own_id: bool = False,
    data_hash: str = "",
) -> Scores:
    """The figures of exact search; with a reranker, of its order of the first `depth` documents.

    `skips_own_id` leaves out a document that has the query's own id, where queries are documents themselves.
    """
    if depth < 1:
        raise InvalidInput(f"depth is {depth}; expected the number of documents to rerank, at least 1")
    queries = [
        query for query, judged in data.relevance.items() if any(grade > 0 for grade in judged.values())
    ]
    documents = list(data.documents)
    vectors, prompts = _vectors(encoder, [data.queries[query] for query in queries], data)
    ids = top_k(*vectors, min(N_RETRIEVED + skips_own_id, len(documents)), measure).ids
    if skips_own_id:
        ids = _without_own(ids, queries, documents)
    if reranker is not None:
        ids = _reranked(ids, queries, documents, data, reranker, depth)
    per_query = _figures(*_grades(ids, queries, documents, data.relevance))
    n_left_out = len(data.queries) - len(queries)
    others = ["the query's own document left out"] if skips_own_id else []
    if reranker is not None:
        others.append(f"the first {depth:,} reranked by {_print_of(reranker)} ({engine_of(reranker)})")
    return Scores(
        name=name,
        metrics={metric: float(values.mean()) for metric, values in per_query.items()},
        primary=PRIMARY,
        protocol=_protocol(measure, len(documents), n_left_out, prompts, others),
        n_examples=len(queries),
        data_hash=data_hash,
        fingerprint="+".join([encoder.fingerprint, *([] if reranker is None else [_print_of(reranker)])]),
        engine=" + ".join(engine_of(each) for each in (encoder, reranker) if each is not None),
        interval=interval_of(resample(mean_of(per_query[PRIMARY]), len(queries))),
    )


# Lists of documents ----------------------------------------------------------------------------------


def _vectors(
    encoder: Encoder, queries: Sequence[str], data: RetrievalData
) -> tuple[tuple[Vectors, Vectors], list[str]]:
    """The vectors of queries and documents, and the prompts that stood before them."""
    documents = list(data.documents.values())
    prompts = [_prompt(encoder, names) for names in (QUERY_PROMPTS, DOCUMENT_PROMPTS)]
    if prompts == ["", ""]:
        encoded = EncodedTexts(encoder, [*queries, *documents])
        return (encoded.of(queries), encoded.of(documents)), []
    sides = [
        EncodedTexts(_prompted(encoder, prompt), texts).of(texts)
        for prompt, texts in zip(prompts, (queries, documents), strict=True)
    ]
    return (sides[0], sides[1]), [prompt for prompt in prompts if prompt]


def _prompt(encoder: Any, names: Sequence[str]) -> str:
    """The first of the names that the encoder's model has a prompt for."""
    prompts: Mapping[str, str] = getattr(getattr(encoder, "spec", None), "prompts", {})
    return next((name for name in names if name in prompts), "")


def _prompted(encoder: Any, prompt: str) -> Encoder:
    prompted: Encoder = encoder.with_prompt(prompt) if prompt else encoder
    return prompted


def _without_own(ids: _Rows, queries: Sequence[str], documents: Sequence[str]) -> _Rows:
    """The lists without the query itself, one document shorter."""
    places = {document: row for row, document in enumerate(documents)}
    own = np.array([places.get(query, -2) for query in queries])[:, None]
    # A stable sort moves the query's own document, if it is there, behind all others.
    order = np.argsort(ids == own, axis=1, kind="stable")
    shortened = np.take_along_axis(np.where(ids == own, -1, ids), order, axis=1)
    return shortened[:, :N_RETRIEVED]


def _reranked(
    ids: _Rows,
    queries: Sequence[str],
    documents: Sequence[str],
    data: RetrievalData,
    reranker: Reranker,
    depth: int,
) -> _Rows:
    """The first `depth` of each list in the reranker's order; equal scores stay in the encoder's."""
    reordered = ids.copy()
    for row, query in enumerate(queries):
        head = ids[row, :depth][ids[row, :depth] >= 0]
        pairs = [(data.queries[query], data.documents[documents[place]]) for place in head]
        scores = np.asarray(reranker.score(pairs))
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise InvalidInput(
                f"the reranker gave scores of shape {scores.shape} for {len(pairs)} pairs; "
                "expected one finite score a pair: ranking needs a model with one output"
            )
        reordered[row, : len(head)] = head[np.argsort(-scores, kind="stable")]
    return reordered


# Figures ---------------------------------------------------------------------------------------------


def _grades(
    ids: _Rows,
    queries: Sequence[str],
    documents: Sequence[str],
    relevance: Mapping[str, Mapping[str, float]],
) -> tuple[ranking.Doubles, ranking.Doubles]:
    """The grade at each rank, and all grades of each query, best first."""
    ranked = np.zeros(ids.shape)
    judged = np.zeros((len(queries), max(len(relevance[query]) for query in queries)))
    for row, query in enumerate(queries):
        grades = relevance[query]
        ranked[row] = [grades.get(documents[place], 0) if place >= 0 else 0 for place in ids[row]]
        judged[row, : len(grades)] = sorted(grades.values(), reverse=True)
    return ranked, judged


def _figures(ranked: ranking.Doubles, judged: ranking.Doubles) -> dict[str, ranking.Doubles]:
    figures = {
        PRIMARY: ranking.ndcg(ranked, judged, 10),
        "mrr@10": ranking.reciprocal_rank(ranked, 10),
        "map": ranking.average_precision(ranked, judged),
    }
    figures |= {f"recall@{k}": ranking.recall(ranked, judged, k) for k in CUTOFFS}
    return figures | {f"precision@{k}": ranking.precision(ranked, k) for k in CUTOFFS}


def _print_of(reranker: Reranker) -> str:
    """What it is known by; a reranker need have no fingerprint."""
    return str(getattr(reranker, "fingerprint", type(reranker).__name__))


def _protocol(
    measure: str, n_documents: int, n_left_out: int, prompts: Sequence[str], others: Sequence[str]
) -> str:
    parts = [
        f"exact search by {measure} over {n_documents:,} documents",
        "nDCG@10 with linear gain as in trec_eval and BEIR",
        f"map over the first {N_RETRIEVED:,}",
        "equal scores in the order of the corpus",
    ]
    if n_left_out:
        parts.append(f"{n_left_out:,} queries without a relevant document left out")
    if prompts:
        parts.append(f"prompts: {', '.join(prompts)}")
    return "; ".join([*parts, *others])
