"""gemel's own routes, named as its functions and commands are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemel.errors import InvalidInput
from gemel.serve.answers import INLINE_NUMBERS, Answer, float_list, json_bytes, plain, rows, usage_of
from gemel.serve.calls import Call
from gemel.serve.inputs import embed
from gemel.serve.openai_routes import USAGE
from gemel.serve.refusals import Refusal
from gemel.serve.rerank_routes import Scores, class_shares
from gemel.serve.routing import Route
from gemel.serve.schemas import (
    AnyOf,
    Choice,
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
from gemel.serve.work import on_thread
from gemel.similarity import MEASURES, pairwise

MOST_SCORES = 4_000_000  # of a matrix in one answer
TEXTS = AnyOf((Text(), ListOf(Text(), least=1)), "a text or a list of texts")
SIMILARITY_REQUEST = Record(
    "OwnSimilarityRequest",
    Field("a", TEXTS),
    Field("b", TEXTS, None, "As many texts as a, compared row by row; with matrix, left out for a itself."),
    Field("matrix", Flag(), False, "Compare every text of a with every one of b."),
    Field("measure", Choice(tuple(MEASURES)), "cosine", "Distances are negated: larger is more similar."),
    Field("model", Text(), None),
)
SIMILARITY_ANSWER = Reply(
    "Similarity",
    Field("object", Choice(("similarity",))),
    Field("scores", AnyOf((ListOf(Number()), ListOf(ListOf(Number()))), "numbers")),
    Field("measure", Text()),
    Field("model", Text()),
    Field("usage", USAGE),
)
CLASSIFY_REQUEST = Record(
    "ClassifyRequest",
    Field("pairs", ListOf(ListOf(Text(), least=2, most=2), least=1), says="Each as [premise, hypothesis]."),
    Field("model", Text(), None),
)
CLASSIFY_ANSWER = Reply(
    "Classes",
    Field("object", Choice(("classify",))),
    Field(
        "data",
        ListOf(Reply("Class", Field("index", Whole()), Field("label", Text()), Field("scores", Free()))),
    ),
    Field("model", Text()),
    Field("usage", USAGE),
)


async def similarity(call: Call, request: dict[str, Any]) -> Answer:
    """How alike texts are: row by row, or all with all."""
    call.models.check_encoder_name(request["model"])
    a, b = _texts(request["a"]), _texts(request["b"])
    if request["matrix"]:
        if len(a) * len(b or a) > MOST_SCORES:
            raise Refusal(
                "too_large",
                f"{len(a):,} by {len(b or a):,} texts are over {MOST_SCORES:,} scores; ask for fewer at once",
            )
    elif len(a) != len(b):
        raise InvalidInput(
            f"a has {len(a)} texts and b {len(b)}; give as many in both, or matrix=true for all with all"
        )
    vectors = await embed(call, Inputs([*a, *b], False))
    left, right = vectors[: len(a)], vectors[len(a) :] if b else vectors
    tail = {"measure": request["measure"], "model": call.models.name, "usage": usage_of(call.n_tokens)}
    measure = request["measure"]
    if not request["matrix"]:
        scores = await _compared(call, left.size, lambda: pairwise(left, right, measure))
        return plain({"object": "similarity", "scores": scores, **tail})
    matrix = await _compared(call, left.size * len(right), lambda: MEASURES[measure](left, right))
    return await rows(b'{"object":"similarity","scores":[', matrix, float_list, b"]," + json_bytes(tail)[1:])


async def classify(call: Call, request: dict[str, Any]) -> Answer:
    """The class of each pair of texts."""
    labels = call.models.the_classifier(request["model"]).labels
    shares = await class_shares(call, [(first, second) for first, second in request["pairs"]])
    data = [
        {
            "index": row,
            "label": labels[int(of_pair.argmax())],
            "scores": {label: float(share) for label, share in zip(labels, of_pair, strict=True)},
        }
        for row, of_pair in enumerate(shares)
    ]
    answer = {"object": "classify", "data": data, "model": call.models.classifier_name}
    return plain({**answer, "usage": usage_of(call.n_tokens)})


async def _compared(call: Call, n_numbers: int, compare: Callable[[], Scores]) -> Scores:
    """The scores of vectors; of many on a thread, so that other requests are answered meanwhile."""
    if n_numbers <= INLINE_NUMBERS:
        return compare()
    return await on_thread(call.serving.workers, compare)


def _texts(given: str | list[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else given


ROUTES = (
    Route(
        "POST",
        "/v1/similarity",
        similarity,
        "How alike texts are: row by row, or all with all.",
        SIMILARITY_ANSWER,
        SIMILARITY_REQUEST,
        measures="embed",
    ),
    Route(
        "POST",
        "/v1/classify",
        classify,
        "The class of each pair of texts, such as entailment.",
        CLASSIFY_ANSWER,
        CLASSIFY_REQUEST,
        measures="predict",
    ),
)
