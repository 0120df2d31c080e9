"""gemel for KeyBERT: a backend under the name of the one it takes the place of, and KeyBERT on it."""

from __future__ import annotations

from typing import Any

from gemel.adapters.embedding import Backend
from gemel.errors import MissingExtra

try:
    import keybert
    from keybert.backend import BaseEmbedder
except ImportError:
    raise MissingExtra("the KeyBERT adapter", "keybert") from None


class SentenceTransformerBackend(Backend, BaseEmbedder):
    """Documents and candidate words into vectors: `KeyBERT(model=SentenceTransformerBackend(...))`."""


class KeyBERT(keybert.KeyBERT):
    """KeyBERT, whose embedding model is gemel's unless it is given another backend."""

    def __init__(self, model: Any = "all-MiniLM-L6-v2", llm: Any = None) -> None:
        backend = model if isinstance(model, BaseEmbedder) else SentenceTransformerBackend(model)
        super().__init__(model=backend, llm=llm)
