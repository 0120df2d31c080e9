"""One call for all the frameworks that only want `embed(documents) -> array`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemel.adapters.opening import EncoderLike, open_encoder
from gemel.adapters.sentence_transformers import SentenceTransformer
from gemel.contracts import Vectors, checked_texts


class Embedding:
    """Documents into vectors, by a name, a folder, an open encoder or a `SentenceTransformer` of gemel's."""

    def __init__(self, model: EncoderLike | SentenceTransformer = None, **choices: Any) -> None:
        self.model: Any = model if isinstance(model, SentenceTransformer) else open_encoder(model, **choices)

    def embed(self, documents: Sequence[str], **choices: Any) -> Vectors:
        """One vector a document (n, dim)."""
        texts = checked_texts(documents, "give a list of documents")
        vectors: Vectors = self.model.encode(texts, **choices)
        return vectors


class Backend:
    """What BERTopic's and KeyBERT's own base classes of a backend leave to be said."""

    def __init__(self, embedding_model: EncoderLike | SentenceTransformer = None, **choices: Any) -> None:
        """A name, a folder, an open encoder or a `SentenceTransformer` of gemel's; the choices are those of
        `gemel.load_encoder`."""
        framework: Any = super()
        framework.__init__(embedding_model, "gemel")
        self._embedding = Embedding(embedding_model, **choices)

    def embed(self, documents: list[str], verbose: bool = False) -> Vectors:
        """One vector a document (n, dim)."""
        return self._embedding.embed(documents)
