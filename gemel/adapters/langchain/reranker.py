"""LangChain's document compressor and cross-encoder on gemel's rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, PrivateAttr

from gemel.adapters.opening import RerankerLike, open_reranker
from gemel.contracts import Reranker
from gemel.tasks.rerank import rerank


class GemelReranker(BaseDocumentCompressor):
    """The best documents for a query, as a cross-encoder has it, with `relevance_score` in their metadata."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", protected_namespaces=())

    model: Any  # a name, a folder or an open reranker
    top_n: int | None = 3
    precision: str | None = None
    threads: int | None = None
    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the reranker, as soon as the arguments are known."""
        self._reranker = open_reranker(self.model, precision=self.precision, threads=self.threads)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The `top_n` best documents, best first."""
        ranked = rerank(self._reranker, query, [each.page_content for each in documents], self.top_n)
        return [
            documents[each.row].model_copy(
                update={"metadata": {**documents[each.row].metadata, "relevance_score": each.score}}
            )
            for each in ranked
        ]


class GemelCrossEncoder(BaseCrossEncoder):
    """A cross-encoder for the compressors that LangChain itself has."""

    def __init__(self, model: RerankerLike, **choices: Any) -> None:
        self.reranker = open_reranker(model, **choices)

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """One score a pair, larger is better."""
        found: list[float] = self.reranker.score(text_pairs).tolist()
        return found
