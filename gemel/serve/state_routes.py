"""What the server tells of itself: whether it lives and is ready, what is loaded, what it has counted."""

from __future__ import annotations

from typing import Any

from gemel.serve.answers import Answer, plain
from gemel.serve.calls import Call
from gemel.serve.models import Models
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route
from gemel.serve.schemas import Field, Flag, Free, Nullable, Number, Reply, Text, Whole
from gemel.text_encoder import FolderEncoder
from gemel.version import VERSION

INFO = Reply(
    "Info",
    Field("model_id", Text()),
    Field("model_sha", Nullable(Text())),
    Field("model_dtype", Text()),
    Field("served_model_name", Text()),
    Field("model_type", Free()),
    Field("max_concurrent_requests", Whole()),
    Field("max_input_length", Nullable(Whole())),
    Field("max_batch_tokens", Whole()),
    Field("max_batch_requests", Nullable(Whole())),
    Field("max_client_batch_size", Whole()),
    Field("auto_truncate", Flag()),
    Field("tokenization_workers", Whole()),
    Field("version", Text()),
    Field("sha", Nullable(Text())),
    Field("docker_label", Nullable(Text())),
    Field("dim", Whole()),
    Field("fingerprint", Text()),
    Field("settings", Text()),
    Field("reranker", Nullable(Text())),
    Field("classifier", Nullable(Text())),
    Field("tokens_per_second", Number()),
    Field("limits", Free()),
)


async def health(call: Call, request: dict[str, Any]) -> Answer:
    """That the process lives, also while it stops."""
    return Answer(b"", media_type="text/plain; charset=utf-8")


async def ready(call: Call, request: dict[str, Any]) -> Answer:
    """Whether new requests are welcome."""
    if call.serving.is_draining:
        raise Refusal("stopping", "the server is stopping; send new requests elsewhere")
    return Answer(b"", media_type="text/plain; charset=utf-8")


async def info(call: Call, request: dict[str, Any]) -> Answer:
    """What is loaded, and the limits."""
    models, serving = call.models, call.serving
    encoder, limits = models.encoder, serving.limits
    max_tokens = encoder.spec.max_tokens if isinstance(encoder, FolderEncoder) else None
    return plain(
        {
            "model_id": models.name,
            "model_sha": None,
            "model_dtype": encoder.precision,
            "served_model_name": models.name,
            "model_type": {"embedding": {"pooling": _pooling(models)}},
            "max_concurrent_requests": limits.max_concurrent_requests,
            "max_input_length": max_tokens,
            "max_batch_tokens": limits.max_request_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": limits.max_inputs,
            "auto_truncate": serving.settings.auto_truncate,
            "tokenization_workers": models.n_threads,
            "version": VERSION,
            "sha": None,
            "docker_label": None,
            "dim": encoder.dim,
            "fingerprint": encoder.fingerprint,
            "settings": encoder.settings,
            "reranker": models.reranker_name,
            "classifier": models.classifier_name,
            "tokens_per_second": round(serving.batcher.tokens_per_second, 1),
            "limits": vars(limits),
        }
    )


async def metrics(call: Call, request: dict[str, Any]) -> Answer:
    """Counters and histograms, as Prometheus reads them."""
    text = call.serving.metrics.text()
    return Answer(text.encode(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _pooling(models: Models) -> str:
    encoder = models.encoder
    return "+".join(encoder.spec.pooling.modes) if isinstance(encoder, FolderEncoder) else "mean"


ROUTES = (
    Route("GET", "/health", health, "200 as long as the process lives.", None, dialect="tei", scope="open"),
    Route("GET", "/ping", health, "The same as /health.", None, dialect="tei", scope="open"),
    Route(
        "GET", "/ready", ready, "200 as long as new requests are welcome.", None, dialect="tei", scope="open"
    ),
    Route("GET", "/info", info, "What is loaded, and the limits.", INFO, dialect="tei"),
    Route("GET", "/metrics", metrics, "Counters and histograms for Prometheus.", None, dialect="tei"),
)
