"""Re-ranking and classes of pairs: the routes of Cohere, Jina and text-embeddings-inference."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.pair_scorer import PairScorer
from gemel.serve.answers import Answer, plain, usage_of
from gemel.serve.calls import Call
from gemel.serve.inputs import Reading, default_reading, embed, score
from gemel.serve.models import HOW_TO_RERANK
from gemel.serve.openai_routes import USAGE
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route
from gemel.serve.schemas import (
    AnyOf,
    Field,
    Flag,
    Free,
    Inputs,
    ListOf,
    Number,
    Record,
    Reply,
    Text,
    Whole,
)
from gemel.serve.tei_routes import DIRECTION, TRUNCATE, reading_of
from gemel.text_encoder import TextEncoder

Scores = npt.NDArray[np.float32]

DOCUMENT = AnyOf(
    (Text(), Record("Document", Field("text", Text()), ignores_others=True)),
    "a text, or an object with a text",
)
RERANK_REQUEST = Record(
    "RerankRequest",
    Field("query", Text()),
    Field("documents", ListOf(DOCUMENT, least=1)),
    Field("model", Text(), None, "The re-ranker's name; may be left out."),
    Field("top_n", Whole(1), None, "How many of the best to tell of."),
    Field("return_documents", Flag(), False),
    Field("raw_scores", Flag(), False, "Scores as the model gives them, not between 0 and 1."),
    Field("max_tokens_per_doc", Whole(1), None, "Not used: pairs are cut to what the model reads."),
    Field("max_chunks_per_doc", Whole(1), None, "Not used."),
    Field("rank_fields", ListOf(Text()), None, "Not used: of an object the text is read."),
    Field("priority", Whole(0), None, "Not used."),
)
RERANK_ANSWER = Reply(
    "Ranking",
    Field("id", Text()),
    Field("object", Text()),
    Field("model", Text()),
    Field(
        "results",
        ListOf(
            Reply(
                "Ranked",
                Field("index", Whole()),
                Field("relevance_score", Number()),
                Field("document", Reply("RankedDocument", Field("text", Text())), None),
            )
        ),
    ),
    Field("usage", USAGE),
    Field("meta", Free()),
)
PAIR_DIRECTION = replace(
    DIRECTION,
    says="Where to cut what is too long; a re-ranker's pairs are refused rather than cut at the left.",
)
TEI_RERANK_REQUEST = Record(
    "TeiRerankRequest",
    Field("query", Text()),
    Field("texts", ListOf(Text(), least=1)),
    Field("raw_scores", Flag(), False),
    Field("return_text", Flag(), False),
    Field("top_n", Whole(1), None, "How many of the best to tell of."),
    TRUNCATE,
    PAIR_DIRECTION,
)
TEI_RERANK_ANSWER = ListOf(
    Reply("TeiRanked", Field("index", Whole()), Field("score", Number()), Field("text", Text(), None))
)
PAIR = ListOf(Text(), least=1, most=2)
PREDICT_REQUEST = Record(
    "PredictRequest",
    Field(
        "inputs",
        AnyOf((Text(), PAIR, ListOf(PAIR, least=1)), "a text, a pair of texts, or a list of such"),
        says="This server's models read pairs: [a, b] or [[a, b], ...].",
    ),
    Field("raw_scores", Flag(), False),
    TRUNCATE,
    PAIR_DIRECTION,
)
PREDICTION = ListOf(Reply("Prediction", Field("score", Number()), Field("label", Text())))


async def rerank(call: Call, request: dict[str, Any]) -> Answer:
    """The documents in the order of their relevance, in Cohere's and Jina's shape."""
    reranker = call.models.the_reranker(request["model"])
    texts = [document if isinstance(document, str) else document["text"] for document in request["documents"]]
    pairs = [(request["query"], text) for text in texts]
    scores = await _relevance(call, reranker, pairs, default_reading(call), request["raw_scores"])
    order = np.argsort(-scores, kind="stable")[: request["top_n"]].tolist()
    results = [
        {"index": row, "relevance_score": float(scores[row])}
        | ({"document": {"text": texts[row]}} if request["return_documents"] else {})
        for row in order
    ]
    answer = {
        "id": str(uuid.uuid4()),
        "object": "rerank",
        "model": call.models.reranker_name,
        "results": results,
        "usage": usage_of(call.n_tokens),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }
    return plain(answer)


async def tei_rerank(call: Call, request: dict[str, Any]) -> Answer:
    """The texts in the order of their scores, in the shape of text-embeddings-inference."""
    reranker, texts = call.models.the_reranker(), request["texts"]
    pairs = [(request["query"], text) for text in texts]
    scores = await _relevance(call, reranker, pairs, reading_of(call, request), request["raw_scores"])
    order = np.argsort(-scores, kind="stable")[: request["top_n"]].tolist()
    return plain(
        [
            {"index": row, "score": float(scores[row])}
            | ({"text": texts[row]} if request["return_text"] else {})
            for row in order
        ]
    )


async def predict(call: Call, request: dict[str, Any]) -> Answer:
    """The scores of each label for pairs of texts."""
    pairs, is_single = _pairs(request["inputs"])
    reading = reading_of(call, request)
    if call.models.classifier is not None:
        labels = call.models.classifier.labels
        shares = await class_shares(call, pairs, reading)
        scores = np.log(np.maximum(shares, np.finfo(np.float32).tiny)) if request["raw_scores"] else shares
    elif call.models.reranker is not None:
        labels = call.models.reranker.labels
        scores = scaled(call.models.reranker, await score(call, pairs, reading), request["raw_scores"])
    else:
        raise Refusal("not_loaded", HOW_TO_RERANK)
    predictions = [
        sorted(
            ({"score": float(value), "label": label} for value, label in zip(row, labels, strict=True)),
            key=_score_of,
            reverse=True,
        )
        for row in scores
    ]
    return plain(predictions[0] if is_single else predictions)


def _score_of(prediction: dict[str, Any]) -> float:
    return float(prediction["score"])


async def class_shares(call: Call, pairs: list[tuple[str, str]], reading: Reading | None = None) -> Scores:
    """How likely each label is for each pair (n, labels), the same as `PairClassifier.probabilities`."""
    classifier = call.models.the_classifier()
    encoder = classifier.encoder
    assert isinstance(encoder, TextEncoder)
    reading = replace(reading or default_reading(call), name_of=lambda row: f"pair {row // 2}")
    inputs = Inputs([text for pair in pairs for text in pair], False)
    vectors = await embed(call, inputs, reading, encoder)
    return classifier.probabilities_of(vectors[::2], vectors[1::2])


def scaled(reranker: PairScorer, scores: Scores, is_raw: bool) -> Scores:
    """Scores between 0 and 1, or before any squashing; a sigmoid that the model has is not applied twice."""
    has_sigmoid = reranker.folder.activation == "sigmoid"
    if reranker.folder.activation not in ("sigmoid", "identity") or has_sigmoid != is_raw:
        return scores
    exact = scores.astype(np.float64)
    if is_raw:
        tiny = float(np.finfo(np.float32).tiny)
        exact = np.clip(exact, tiny, 1 - 2.0**-24)
        return (np.log(exact) - np.log1p(-exact)).astype(np.float32)
    return (1 / (1 + np.exp(-exact))).astype(np.float32)


async def _relevance(
    call: Call, reranker: PairScorer, pairs: list[tuple[str, str]], reading: Reading, is_raw: bool
) -> Scores:
    if len(reranker.labels) != 1:
        raise Refusal(
            "not_loaded",
            f"{call.models.reranker_name} gives {', '.join(reranker.labels)}, and ranking needs one score; "
            "use /predict, or start the server with another --reranker",
        )
    scores: Scores = scaled(reranker, await score(call, pairs, reading), is_raw)[:, 0]
    return scores


def _pairs(inputs: Any) -> tuple[list[tuple[str, str]], bool]:
    is_single = isinstance(inputs, str) or isinstance(inputs[0], str)
    entries = [inputs] if is_single else inputs
    for entry in entries:
        if isinstance(entry, str) or len(entry) != 2:
            raise Refusal(
                "not_loaded",
                "this server's models read pairs of texts, and one text was given; send inputs as [a, b]",
                parameter="inputs",
            )
    return [(first, second) for first, second in entries], is_single


def _rerank_route(path: str) -> Route:
    return Route(
        "POST",
        path,
        rerank,
        "Documents in the order of their relevance, as Cohere's and Jina's clients ask for it.",
        RERANK_ANSWER,
        RERANK_REQUEST,
        "cohere",
        measures="predict",
    )


ROUTES = (
    _rerank_route("/v2/rerank"),
    _rerank_route("/v1/rerank"),
    Route(
        "POST",
        "/rerank",
        tei_rerank,
        "Texts in the order of their scores.",
        TEI_RERANK_ANSWER,
        TEI_RERANK_REQUEST,
        "tei",
        measures="predict",
    ),
    Route(
        "POST",
        "/predict",
        predict,
        "The scores of each label for pairs of texts.",
        AnyOf((PREDICTION, ListOf(PREDICTION)), "predictions"),
        PREDICT_REQUEST,
        "tei",
        measures="predict",
    ),
)
