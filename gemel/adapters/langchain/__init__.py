"""gemel for LangChain: embeddings, a document compressor, and a vector store that is a collection."""

from __future__ import annotations

from gemel.errors import MissingExtra

try:
    import langchain_core  # noqa: F401
except ImportError:
    raise MissingExtra("the LangChain adapter", "langchain") from None

from gemel.adapters.langchain.embeddings import GemelEmbeddings, HuggingFaceEmbeddings
from gemel.adapters.langchain.reranker import GemelCrossEncoder, GemelReranker
from gemel.adapters.langchain.vector_store import GemelVectorStore

__all__ = [
    "GemelCrossEncoder",
    "GemelEmbeddings",
    "GemelReranker",
    "GemelVectorStore",
    "HuggingFaceEmbeddings",
]
