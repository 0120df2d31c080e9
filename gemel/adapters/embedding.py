"""One call for all the frameworks that only want `embed(documents) -> array`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemel.adapters.opening import EncoderLike, open_encoder
from gemel.adapters.sentence_transformers import SentenceTransformer
from gemel.contracts import Vectors


class Embedding:
    """Documents into vectors, by a name, a folder, an open encoder or a `SentenceTransformer` of gemel's."""

    def __init__(self, model: EncoderLike | SentenceTransformer = None, **choices: Any) -> None:
        self.model: Any = model if isinstance(model, SentenceTransformer) else open_encoder(model, **choices)

    def embed(self, documents: Sequence[str], **choices: Any) -> Vectors:
        """One vector a document (n, dim)."""
        vectors: Vectors = self.model.encode([str(each) for each in documents], **choices)
        return vectors
