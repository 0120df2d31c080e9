"""LangChain's VectorStore as a gemel collection: a folder that lasts, searched by meaning, words or both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from gemel.adapters.langchain.embeddings import both_encoders
from gemel.errors import InvalidInput
from gemel.index import Collection, Filter, Found, Record
from gemel.tasks.search import Mode, search

Where = str | Filter | Mapping[str, Any] | None
Scored = list[tuple[Document, float]]


class GemelVectorStore(VectorStore):
    """Documents in a collection; scores are similarities, larger is better."""

    def __init__(self, path: str | os.PathLike[str], embedding: Embeddings, **choices: Any) -> None:
        """Open the collection at `path`, or make one there; the choices are those of `Collection.create`."""
        self._embedding = embedding
        encoder, query_encoder = both_encoders(embedding)
        if not (Path(path).is_dir() and any(Path(path).iterdir())):
            Collection.create(path, encoder, **choices).close()
        self.collection = Collection.open(path, encoder, query_encoder=query_encoder)

    @property
    def embeddings(self) -> Embeddings:
        """What makes the vectors."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | os.PathLike[str] | None = None,
        **choices: Any,
    ) -> GemelVectorStore:
        """A collection at `path` that holds these texts, besides those that are there already."""
        if path is None:
            raise InvalidInput("no path was given; say where the collection shall be, with path=")
        store = cls(path, embedding, **choices)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **ignored: Any,
    ) -> list[str]:
        """Store the texts under their ids, or under new ones; text that has not changed costs nothing."""
        listed = list(texts)
        named = [each or str(uuid4()) for each in (ids or repeat(None, len(listed)))]
        self.collection.add(listed, ids=named, metadata=metadatas)
        return named

    def delete(self, ids: list[str] | None = None, **ignored: Any) -> bool:
        """Remove documents by their ids, or all of them."""
        self.collection.remove([each.id for each in self.collection] if ids is None else ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that have these ids."""
        return [_document(record) for record in self.collection.get(ids) if record is not None]

    # Search -----------------------------------------------------------------------------------------------

    def similarity_search(
        self, query: str, k: int = 4, filter: Where = None, mode: Mode = "dense", **ignored: Any
    ) -> list[Document]:
        """The k documents most like the query; `mode` is dense, lexical or hybrid."""
        if mode == "dense":
            return [document for document, _ in self.similarity_search_with_score(query, k, filter)]
        (hits,) = search(self.collection, [query], k, mode=mode, filter=_filter(filter))
        return [_document(Record(hit.id, hit.text, hit.metadata)) for hit in hits]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Where = None, **ignored: Any
    ) -> Scored:
        """The same with their similarities."""
        return _scored(self.collection.search([query], k, filter=_filter(filter))[0])

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Where = None, **ignored: Any
    ) -> list[Document]:
        """The k documents whose vectors are most like this one."""
        return [document for document, _ in _scored(self._by_vector(embedding, k, filter))]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **ignored: Any,
    ) -> list[Document]:
        """Documents like the query and unlike each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **ignored: Any,
    ) -> list[Document]:
        """Documents like the vector and unlike each other."""
        found = self._by_vector(embedding, fetch_k, filter)
        if not found:
            return []
        ids, vectors = self.collection.vectors([each.record.id for each in found])
        query = np.array(embedding, np.float32)
        chosen = maximal_marginal_relevance(query, list(vectors.astype(np.float32)), lambda_mult, k)
        by_id = {each.record.id: each.record for each in found}
        return [_document(by_id[ids[row]]) for row in chosen]

    def _by_vector(self, vector: npt.ArrayLike, k: int, filter: Where) -> list[Found]:
        rows = np.array(vector, np.float32)[None]
        fingerprint = self.collection.settings.fingerprint
        return self.collection.search_vectors(rows, k, fingerprint=fingerprint, filter=_filter(filter))[0]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """From 0, unlike, to 1, alike."""
        measure = self.collection.settings.measure
        if measure in ("cosine", "dot"):
            return lambda score: min(1.0, max(0.0, (1 + score) / 2))
        return lambda score: 1 / (1 - score)  # of a negated distance


def _document(record: Record) -> Document:
    return Document(id=str(record.id), page_content=record.text, metadata=dict(record.metadata))


def _scored(found: list[Found]) -> Scored:
    return [(_document(each.record), each.score) for each in found]


def _filter(where: Where) -> str | Filter | None:
    """A filter as it is, or one that asks for equal fields."""
    if not isinstance(where, Mapping):
        return where
    if not where:
        return None
    return Filter(" and ".join(f"`{name}` = ?" for name in where), *where.values())
