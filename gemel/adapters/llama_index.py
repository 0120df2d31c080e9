"""gemel for LlamaIndex: an embedding model, and a node postprocessor that reranks."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from gemel.adapters.opening import (
    EncoderLike,
    RerankerLike,
    for_documents,
    for_queries,
    open_encoder,
    open_reranker,
)
from gemel.checkpoint.resolving import DEFAULT_MODEL
from gemel.contracts import Encoder, Reranker
from gemel.errors import InvalidInput, MissingExtra
from gemel.tasks.rerank import rerank

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
except ImportError:
    raise MissingExtra("the LlamaIndex adapter", "llama-index") from None

BATCH_SIZE = 2_048  # the most that LlamaIndex allows; the engine packs texts by itself
_OPEN = "gemel "  # begins the label of a model that was given open, and cannot be opened by its name


class GemelEmbedding(BaseEmbedding):
    """Texts into vectors, each side with the prompt that the model has for it."""

    source: str | None = Field(
        default=None, description="The name or folder of the model, where model_name is another label."
    )
    opened_with: dict[str, Any] = Field(
        default_factory=dict, description="The choices of gemel.load_encoder that the model was opened with."
    )
    _queries: Encoder = PrivateAttr()
    _documents: Encoder = PrivateAttr()

    def __init__(
        self,
        model: EncoderLike = None,
        *,
        model_name: str | None = None,
        embed_batch_size: int = BATCH_SIZE,
        source: str | None = None,
        opened_with: dict[str, Any] | None = None,
        **choices: Any,
    ) -> None:
        """`model` is a name, a folder or an open encoder; the choices are those of `gemel.load_encoder`, and
        of LlamaIndex `callback_manager`, `num_workers` and `embeddings_cache`.

        `model_name` alone is opened, too; beside a model it is only what LlamaIndex calls that. `source` and
        `opened_with` are what `to_dict` has saved.
        """
        own = {name: choices.pop(name) for name in list(choices) if name in BaseEmbedding.model_fields}
        chosen = {**(opened_with or {}), **choices}
        given = _checked_name(source or model_name) if model is None else model
        encoder = open_encoder(given, **chosen)
        label = _label(given, encoder)
        super().__init__(
            model_name=model_name or label,
            embed_batch_size=embed_batch_size,
            source=label if model_name not in (None, label) else None,
            opened_with=chosen,
            **own,
        )
        self._queries, self._documents = for_queries(encoder), for_documents(encoder)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex keeps its settings."""
        return "GemelEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return _listed(self._queries, [query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return _listed(self._documents, texts)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class GemelRerank(BaseNodePostprocessor):
    """The best nodes for a query, in a cross-encoder's order."""

    top_n: int = 2
    keep_retrieval_score: bool = False
    _reranker: Reranker = PrivateAttr()

    def __init__(
        self, model: RerankerLike, *, top_n: int = 2, keep_retrieval_score: bool = False, **choices: Any
    ) -> None:
        """`model` is a name, a folder or an open reranker; the choices are those of `gemel.load_reranker`."""
        super().__init__(top_n=top_n, keep_retrieval_score=keep_retrieval_score)
        self._reranker = open_reranker(model, **choices)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex keeps its settings."""
        return "GemelRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InvalidInput("nodes were given without a query; give query_bundle or query_str")
        texts = [each.node.get_content(metadata_mode=MetadataMode.EMBED) for each in nodes]
        ranked = rerank(self._reranker, query_bundle.query_str, texts, self.top_n) if nodes else []
        for each in ranked:
            node = nodes[each.row]
            if self.keep_retrieval_score:
                node.node.metadata["retrieval_score"] = node.score
            node.score = each.score
        return [nodes[each.row] for each in ranked]


def _checked_name(name: str | None) -> str | None:
    if name is not None and name.startswith(_OPEN):
        raise InvalidInput(
            f"model_name is {name!r}, which stands for a model that was given open; give that model, or the "
            "name or folder that it was opened by"
        )
    return name


def _label(source: EncoderLike, encoder: Encoder) -> str:
    """What a model can be opened by again, or what says that it cannot."""
    if source is None:
        return DEFAULT_MODEL
    return os.fspath(source) if isinstance(source, str | os.PathLike) else f"{_OPEN}{encoder.fingerprint}"


def _listed(encoder: Encoder, texts: list[str]) -> list[list[float]]:
    found: list[list[float]] = encoder.encode(texts).tolist()
    return found
