"""gemel for BERTopic: a backend under the name of the one it takes the place of, and BERTopic on it."""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from gemel.adapters.embedding import Backend
from gemel.errors import MissingExtra

try:
    import bertopic
    from bertopic.backend import BaseEmbedder
except ImportError:
    raise MissingExtra("the BERTopic adapter", "bertopic") from None


class SentenceTransformerBackend(Backend, BaseEmbedder):
    """Documents and words into vectors: `BERTopic(embedding_model=SentenceTransformerBackend(...))`."""


class BERTopic(bertopic.BERTopic):
    """BERTopic, whose embedding model is gemel's unless it is given another backend."""

    def __init__(self, *arguments: Any, embedding_model: Any = None, **choices: Any) -> None:
        if not isinstance(embedding_model, BaseEmbedder):
            embedding_model = SentenceTransformerBackend(embedding_model)
        super().__init__(*arguments, embedding_model=embedding_model, **choices)


# BERTopic asks its constructor for the names of its settings.
update_wrapper(BERTopic.__init__, bertopic.BERTopic.__init__)
