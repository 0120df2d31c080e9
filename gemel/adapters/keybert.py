"""gemel for KeyBERT: a backend under the name of the one it takes the place of, and KeyBERT on it."""

from __future__ import annotations

from typing import Any

from gemel.adapters.embedding import Embedding
from gemel.adapters.opening import EncoderLike
from gemel.adapters.sentence_transformers import SentenceTransformer
from gemel.contracts import Vectors
from gemel.errors import MissingExtra

try:
    import keybert
    from keybert.backend import BaseEmbedder
except ImportError:
    raise MissingExtra("the KeyBERT adapter", "keybert") from None


class SentenceTransformerBackend(BaseEmbedder):
    """Documents and candidate words into vectors: `KeyBERT(model=SentenceTransformerBackend(...))`."""

    def __init__(self, embedding_model: EncoderLike | SentenceTransformer = None, **choices: Any) -> None:
        """A name, a folder, an open encoder or a `SentenceTransformer` of gemel's; the choices are those of
        `gemel.load_encoder`."""
        super().__init__(embedding_model, "gemel")
        self._embedding = Embedding(embedding_model, **choices)

    def embed(self, documents: list[str], verbose: bool = False) -> Vectors:
        """One vector a document (n, dim)."""
        return self._embedding.embed(documents)


class KeyBERT(keybert.KeyBERT):
    """KeyBERT, whose embedding model is gemel's unless it is given another backend."""

    def __init__(self, model: Any = "all-MiniLM-L6-v2", llm: Any = None) -> None:
        backend = model if isinstance(model, BaseEmbedder) else SentenceTransformerBackend(model)
        super().__init__(model=backend, llm=llm)
