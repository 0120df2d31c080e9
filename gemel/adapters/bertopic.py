"""gemel for BERTopic: a backend under the name of the one it takes the place of, and BERTopic on it."""

from __future__ import annotations

import inspect
from typing import Any

from gemel.adapters.embedding import Embedding
from gemel.adapters.opening import EncoderLike
from gemel.adapters.sentence_transformers import SentenceTransformer
from gemel.contracts import Vectors
from gemel.errors import MissingExtra

try:
    import bertopic
    from bertopic.backend import BaseEmbedder
except ImportError:
    raise MissingExtra("the BERTopic adapter", "bertopic") from None


class SentenceTransformerBackend(BaseEmbedder):
    """Documents and words into vectors: `BERTopic(embedding_model=SentenceTransformerBackend(...))`."""

    def __init__(self, embedding_model: EncoderLike | SentenceTransformer = None, **choices: Any) -> None:
        """A name, a folder, an open encoder or a `SentenceTransformer` of gemel's; the choices are those of
        `gemel.load_encoder`."""
        super().__init__(embedding_model, "gemel")
        self._embedding = Embedding(embedding_model, **choices)

    def embed(self, documents: list[str], verbose: bool = False) -> Vectors:
        """One vector a document (n, dim)."""
        return self._embedding.embed(documents)


class BERTopic(bertopic.BERTopic):
    """BERTopic, whose embedding model is gemel's unless it is given another backend."""

    def __init__(self, *arguments: Any, embedding_model: Any = None, **choices: Any) -> None:
        if not isinstance(embedding_model, BaseEmbedder):
            embedding_model = SentenceTransformerBackend(embedding_model)
        super().__init__(*arguments, embedding_model=embedding_model, **choices)

    # BERTopic asks its constructor for the names of its settings.
    __init__.__signature__ = inspect.signature(bertopic.BERTopic.__init__)  # type: ignore[attr-defined]
