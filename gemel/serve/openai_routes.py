"""OpenAI's embeddings and models."""

from __future__ import annotations

from typing import Any

from gemel.contracts import Vectors
from gemel.serve.answers import Answer, json_bytes, openai_entry, plain, rows, usage_of
from gemel.serve.calls import Call
from gemel.serve.inputs import embed
from gemel.serve.models import Models
from gemel.serve.routing import Route
from gemel.serve.schemas import AnyOf, Choice, Field, InputsKind, ListOf, Number, Record, Reply, Text, Whole
from gemel.serve.vectors import check_dim, shortened

EMBEDDINGS_REQUEST = Record(
    "EmbeddingsRequest",
    Field("input", InputsKind(), says="What to embed; token ids with or without the model's special tokens."),
    Field("model", Text(), None, "The loaded model's name, or one of its aliases; may be left out."),
    Field("encoding_format", Choice(("float", "base64")), "float", "base64 holds little-endian float32."),
    Field("dimensions", Whole(1), None, "Cut the vectors to so many numbers, and scale unit vectors again."),
    Field("user", Text(), None, "Not used."),
)
USAGE = Reply("Usage", Field("prompt_tokens", Whole()), Field("total_tokens", Whole()))
EMBEDDINGS_ANSWER = Reply(
    "Embeddings",
    Field("object", Choice(("list",))),
    Field(
        "data",
        ListOf(
            Reply(
                "Embedding",
                Field("object", Choice(("embedding",))),
                Field("index", Whole()),
                Field("embedding", AnyOf((ListOf(Number()), Text()), "numbers or base64")),
            )
        ),
    ),
    Field("model", Text()),
    Field("usage", USAGE),
)
MODEL = Reply(
    "Model",
    Field("id", Text()),
    Field("object", Choice(("model",))),
    Field("created", Whole()),
    Field("owned_by", Text()),
)
MODELS_ANSWER = Reply("ModelList", Field("object", Choice(("list",))), Field("data", ListOf(MODEL)))


async def embeddings(call: Call, request: dict[str, Any]) -> Answer:
    """One vector an input, in OpenAI's shape."""
    call.models.check_encoder_name(request["model"])
    check_dim(call.models.encoder, request["dimensions"])
    vectors: Vectors = await embed(call, request["input"])
    vectors = shortened(call.models.encoder, vectors, request["dimensions"])
    tail = json_bytes({"model": call.models.name, "usage": usage_of(call.n_tokens)})
    entry = openai_entry(request["encoding_format"])
    return await rows(b'{"object":"list","data":[', vectors, entry, b"]," + tail[1:])


async def list_models(call: Call, request: dict[str, Any]) -> Answer:
    """What is loaded."""
    return plain({"object": "list", "data": described(call.models)})


async def get_model(call: Call, request: dict[str, Any]) -> Answer:
    """One loaded model by its name."""
    name = request["path"]["model"]
    for model in described(call.models):
        if name in (model["id"], model["id"].rpartition("/")[2]):
            return plain(model)
    call.models.check_encoder_name(name)
    return plain(described(call.models)[0])  # an alias


def described(models: Models) -> list[dict[str, Any]]:
    """The loaded models as OpenAI lists them."""
    names = dict.fromkeys((models.name, models.reranker_name, models.classifier_name))
    return [
        {"id": name, "object": "model", "created": int(models.loaded), "owned_by": "gemel"}
        for name in names
        if name is not None
    ]


ROUTES = (
    Route(
        "POST",
        "/v1/embeddings",
        embeddings,
        "Embeddings, as OpenAI's clients ask for them.",
        EMBEDDINGS_ANSWER,
        EMBEDDINGS_REQUEST,
        measures="embed",
    ),
    Route(
        "POST",
        "/embeddings",
        embeddings,
        "Embeddings, without the version in the path.",
        EMBEDDINGS_ANSWER,
        EMBEDDINGS_REQUEST,
        measures="embed",
    ),
    Route("GET", "/v1/models", list_models, "The models that are loaded.", MODELS_ANSWER),
    Route("GET", "/v1/models/{model:path}", get_model, "One model by its name.", MODEL),
)
