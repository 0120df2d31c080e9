"""The routes of text-embeddings-inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gemel.serve.answers import Answer, float_list, json_bytes, plain, rows
from gemel.serve.calls import Call
from gemel.serve.inputs import Reading, apart, check_count, check_tokens, embed, embed_tokens
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route
from gemel.serve.schemas import (
    LARGEST_ID,
    AnyOf,
    Choice,
    Field,
    Flag,
    Inputs,
    InputsKind,
    ListOf,
    Nullable,
    Number,
    Record,
    Reply,
    Text,
    Whole,
)
from gemel.serve.vectors import check_dim, shortened, unit
from gemel.similarity import pairwise
from gemel.tokens import Token

SIDES = Choice(("Left", "Right", "left", "right"))
TRUNCATE = Field(
    "truncate", Flag(), None, "Cut inputs that are too long; otherwise as /info's auto_truncate."
)
DIRECTION = Field("truncation_direction", SIDES, "Right", "Where to cut what is too long.")
PROMPT = Field("prompt_name", Text(), None, "One of the model's prompts, put before each text.")
EMBED_REQUEST = Record(
    "EmbedRequest",
    Field("inputs", InputsKind()),
    Field("normalize", Flag(), True, "Scale the vectors to unit length."),
    TRUNCATE,
    DIRECTION,
    PROMPT,
    Field("dimensions", Whole(1), None, "Cut the vectors to so many numbers."),
)
EMBED_ALL_REQUEST = Record("EmbedAllRequest", Field("inputs", InputsKind()), TRUNCATE, DIRECTION, PROMPT)
SIMILARITY_REQUEST = Record(
    "SimilarityRequest",
    Field(
        "inputs",
        Record("Sentences", Field("source_sentence", Text()), Field("sentences", ListOf(Text(), least=1))),
    ),
    Field("parameters", Record("SimilarityParameters", PROMPT, TRUNCATE, DIRECTION), None),
)
TEXTS = AnyOf((Text(), ListOf(Text(), least=1)), "a text or a list of texts")
TOKENIZE_REQUEST = Record(
    "TokenizeRequest", Field("inputs", TEXTS), Field("add_special_tokens", Flag(), True), PROMPT
)
IDS = ListOf(Whole(0, LARGEST_ID), least=1)
DECODE_REQUEST = Record(
    "DecodeRequest",
    Field("ids", AnyOf((IDS, ListOf(IDS, least=1)), "token ids, or a list of such")),
    Field("skip_special_tokens", Flag(), True),
)
TOKEN = Reply(
    "Token",
    Field("id", Whole()),
    Field("text", Text()),
    Field("special", Flag()),
    Field("start", Nullable(Whole())),
    Field("stop", Nullable(Whole())),
)


async def embed_inputs(call: Call, request: dict[str, Any]) -> Answer:
    """One vector an input."""
    encoder = call.models.encoder
    check_dim(encoder, request["dimensions"])
    vectors = await embed(call, request["inputs"], reading_of(call, request))
    vectors = shortened(encoder, vectors, request["dimensions"])
    vectors = unit(encoder, vectors) if request["normalize"] else vectors
    return await rows(b"[", vectors, float_list, b"]")


async def embed_all(call: Call, request: dict[str, Any]) -> Answer:
    """One vector a token of each input."""
    vectors = await embed_tokens(call, request["inputs"], reading_of(call, request))
    return await rows(b"[", vectors, float_list, b"]")


async def similarity(call: Call, request: dict[str, Any]) -> Answer:
    """The cosine of one sentence with others."""
    sentences = request["inputs"]
    texts = [sentences["source_sentence"], *sentences["sentences"]]
    parameters = request["parameters"] or {}
    vectors = await embed(call, Inputs(texts, False), reading_of(call, parameters))
    scores = pairwise(np.broadcast_to(vectors[:1], vectors[1:].shape), vectors[1:], "cosine")
    return plain(scores)


async def tokenize(call: Call, request: dict[str, Any]) -> Answer:
    """The tokens of each text, and the characters they stand for."""
    encoder = call.models.the_transformer()
    prompt = encoder.spec.prompt_text(request["prompt_name"])
    texts = _as_list(request["inputs"])
    check_count(call, len(texts), "inputs")

    def explained(text: str) -> bytes:
        tokens = encoder.tokenizer.explain(prompt + text, add_special_tokens=request["add_special_tokens"])
        return json_bytes([_described(token) for token in tokens])

    def written() -> bytes:
        for text in texts:  # counted first: a token takes many times the memory of its characters
            check_tokens(call, int(encoder.tokenizer.count([text], prompt)[0]))
        return b"[" + b",".join(map(explained, texts)) + b"]"

    return Answer(await apart(sum(map(len, texts)), written))


async def decode(call: Call, request: dict[str, Any]) -> Answer:
    """The texts that token ids stand for."""
    encoder = call.models.the_transformer()
    given = request["ids"]
    sequences = [given] if isinstance(given[0], int) else given
    check_count(call, len(sequences), "ids")
    n_vocabulary = encoder.tokenizer.n_vocabulary
    largest = max(max(ids) for ids in sequences)
    if largest >= n_vocabulary:
        raise Refusal(
            "invalid", f"token {largest} was given, and this model's vocabulary has {n_vocabulary:,}"
        )

    def decoded() -> list[str]:
        return [
            encoder.tokenizer.decode(ids, skip_special_tokens=request["skip_special_tokens"])
            for ids in sequences
        ]

    return plain(await apart(sum(map(len, sequences)), decoded))


def reading_of(call: Call, request: dict[str, Any]) -> Reading:
    """How a request wants its texts to be read."""
    cuts = request.get("truncate")
    return Reading(
        prompt=request.get("prompt_name"),
        cuts=call.serving.settings.auto_truncate if cuts is None else cuts,
        keeps_the_end=True if request.get("truncation_direction", "Right").lower() == "left" else None,
    )


def _as_list(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _described(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "text": token.text,
        "special": token.is_special,
        "start": None if token.is_special else token.start,
        "stop": None if token.is_special else token.stop,
    }


VECTORS = ListOf(ListOf(Number()))
ROUTES = (
    Route(
        "POST",
        "/embed",
        embed_inputs,
        "One vector an input.",
        VECTORS,
        EMBED_REQUEST,
        "tei",
        measures="embed",
    ),
    Route(
        "POST",
        "/",
        embed_inputs,
        "The same as /embed, for clients that know only the server's address.",
        VECTORS,
        EMBED_REQUEST,
        "tei",
        measures="embed",
    ),
    Route(
        "POST",
        "/embed_all",
        embed_all,
        "One vector a token of each input, before pooling.",
        ListOf(VECTORS),
        EMBED_ALL_REQUEST,
        "tei",
        measures="embed",
    ),
    Route(
        "POST",
        "/similarity",
        similarity,
        "The cosine of one sentence with others.",
        ListOf(Number()),
        SIMILARITY_REQUEST,
        "tei",
        measures="embed",
    ),
    Route(
        "POST",
        "/tokenize",
        tokenize,
        "The tokens of texts, and the characters they stand for.",
        ListOf(ListOf(TOKEN)),
        TOKENIZE_REQUEST,
        "tei",
    ),
    Route(
        "POST",
        "/decode",
        decode,
        "The texts that token ids stand for.",
        ListOf(Text()),
        DECODE_REQUEST,
        "tei",
    ),
)
