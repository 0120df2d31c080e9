"""LangChain's Embeddings on gemel's encoders, and gemel's Encoder on LangChain's embeddings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from gemel.adapters.opening import EncoderLike, for_documents, for_queries, open_encoder
from gemel.adapters.sentence_transformers import SentenceTransformer
from gemel.contracts import Encoder, Vectors


class GemelEmbeddings(Embeddings):
    """Texts into vectors, each side with the prompt that the model has for it."""

    def __init__(self, model: EncoderLike = None, **choices: Any) -> None:
        """`model` is a name, a folder or an open encoder; the choices are those of `gemel.load_encoder`."""
        self.encoder = open_encoder(model, **choices)
        self.query_encoder = for_queries(self.encoder)
        self.document_encoder = for_documents(self.encoder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a document."""
        found: list[list[float]] = self.document_encoder.encode(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        found: list[float] = self.query_encoder.encode([text])[0].tolist()
        return found


class HuggingFaceEmbeddings(BaseModel, Embeddings):
    """The class of that name in langchain-huggingface, with its arguments, on gemel's engine."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=(), populate_by_name=True)

    model_name: str = Field(default="sentence-transformers/all-mpnet-base-v2", alias="model")
    cache_folder: str | None = None
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    encode_kwargs: dict[str, Any] = Field(default_factory=dict)
    query_encode_kwargs: dict[str, Any] = Field(default_factory=dict)
    multi_process: bool = False
    show_progress: bool = False
    _model: SentenceTransformer = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the model, as soon as the arguments are known."""
        self._model = SentenceTransformer(
            self.model_name, cache_folder=self.cache_folder, **self.model_kwargs
        )

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a document; line breaks count as spaces, as there."""
        return self._embedded(texts, self.encode_kwargs)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return self._embedded([text], self.query_encode_kwargs or self.encode_kwargs)[0]

    def _embedded(self, texts: list[str], choices: dict[str, Any]) -> list[list[float]]:
        lines = [text.replace("\n", " ") for text in texts]
        vectors = self._model.encode(lines, show_progress_bar=self.show_progress, **choices)
        found: list[list[float]] = vectors.tolist()
        return found


class EmbeddingsEncoder:
    """Any of LangChain's embeddings as gemel's Encoder, known by its class, its settings and its width."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.embeddings = embeddings
        self.dim = len(embeddings.embed_query("gemel"))
        kind = f"{type(embeddings).__module__}.{type(embeddings).__qualname__}"
        settings = {
            name: value
            for name, value in vars(embeddings).items()
            if name in ("model", "model_name", "deployment", "dimensions") and isinstance(value, str | int)
        }
        known = json.dumps([kind, settings, self.dim], sort_keys=True)
        self.fingerprint = f"langchain-{hashlib.sha256(known.encode()).hexdigest()[:32]}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a document (n, dim)."""
        found = self.embeddings.embed_documents(list(texts)) if texts else []
        return np.array(found, np.float32).reshape(len(texts), self.dim)


class QueryEncoder(EmbeddingsEncoder):
    """The same for queries."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a query (n, dim)."""
        found = [self.embeddings.embed_query(text) for text in texts]
        return np.array(found, np.float32).reshape(len(texts), self.dim)


def both_encoders(embeddings: Embeddings) -> tuple[Encoder, Encoder]:
    """The encoders of documents and of queries behind any of LangChain's embeddings."""
    if isinstance(embeddings, GemelEmbeddings):
        return embeddings.document_encoder, embeddings.query_encoder
    return EmbeddingsEncoder(embeddings), QueryEncoder(embeddings)
