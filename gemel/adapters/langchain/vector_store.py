"""LangChain's VectorStore as a gemel collection: a folder that lasts, searched by meaning, words or both."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
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

from gemel.adapters.langchain.documents import (
    Scored,
    Where,
    condition_of,
    document_of,
    kept_ids,
    records_of,
    refuse_unknown,
    scored_documents,
    whole_document_ids,
)
from gemel.adapters.langchain.embeddings import both_encoders
from gemel.contracts import checked_texts
from gemel.errors import InvalidInput
from gemel.index import Collection, Found, Record
from gemel.index.arguments import checked_window
from gemel.tasks.channels import Channel, Channels
from gemel.tasks.passages import remove_documents
from gemel.tasks.search import Mode

_CHANNELS: dict[str, tuple[Channel, ...]] = {
    "dense": ("dense",),
    "lexical": ("lexical",),
    "hybrid": ("dense", "lexical"),
}


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
        batch_size: int | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Store the texts under their ids, or under new ones; text that has not changed costs nothing.

        `batch_size`, which LangChain's indexing gives, is not needed: the engine packs texts by itself.
        """
        refuse_unknown(unknown, "add_texts", "texts, metadatas, ids or batch_size")
        listed = list(texts)
        named = [each or str(uuid4()) for each in (ids or repeat(None, len(listed)))]
        self.collection.add(listed, ids=kept_ids(self.collection, named), metadata=metadatas)
        return named

    def delete(self, ids: list[str] | None = None, **criteria: Any) -> bool:
        """Remove documents by their ids, those that pass a `filter`, or with neither all of them.

        A passage goes with the whole of its document. True also where nothing was there to remove: False is
        a failure to LangChain's indexing.
        """
        given = dict(criteria)
        where = condition_of(given.pop("filter", None))
        refuse_unknown(given, "delete", "ids, filter or nothing")
        if criteria and ids is not None:
            raise InvalidInput("delete was given ids and a filter; give one of them")
        if criteria and where is None:
            raise InvalidInput(
                f"delete was given the filter {criteria['filter']!r}, which everything passes; say which "
                "documents are meant, or remove all of them with delete()"
            )
        if where is not None:
            self._remove_documents(list(self.collection.records(where)))
        elif ids is not None:
            self._remove_documents(records_of(self.collection, ids))
        else:
            self.collection.remove([each.id for each in self.collection])
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that have these ids; for the id of a document that was cut, all its passages."""
        return [document_of(record) for record in records_of(self.collection, ids)]

    # Search -----------------------------------------------------------------------------------------------

    def similarity_search(
        self, query: str, k: int = 4, filter: Where = None, mode: Mode = "dense", **unknown: Any
    ) -> list[Document]:
        """The k documents most like the query; `mode` is dense, lexical or hybrid."""
        refuse_unknown(unknown, "similarity_search", "query, k, filter or mode")
        return [document for document, _ in self.similarity_search_with_score(query, k, filter, mode)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Where = None, mode: Mode = "dense", **unknown: Any
    ) -> Scored:
        """The same with their scores: similarities, but by words BM25, and by both the sum of rank shares."""
        refuse_unknown(unknown, "similarity_search_with_score", "query, k, filter or mode")
        if mode == "dense":
            return scored_documents(self.collection.search([query], k, filter=condition_of(filter))[0])
        return scored_documents(self._by_channels(query, k, filter, mode))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, filter: Where = None, **unknown: Any
    ) -> list[Document]:
        """The k documents whose vectors are most like this one."""
        refuse_unknown(unknown, "similarity_search_by_vector", "embedding, k or filter")
        return [document_of(each.record) for each in self._by_vector(embedding, k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **unknown: Any,
    ) -> list[Document]:
        """Documents like the query and unlike each other."""
        refuse_unknown(unknown, "a search for diversity", "query, k, fetch_k, lambda_mult or filter")
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Where = None,
        **unknown: Any,
    ) -> list[Document]:
        """Documents like the vector and unlike each other; one that changes meanwhile is left out."""
        refuse_unknown(unknown, "a search for diversity", "embedding, k, fetch_k, lambda_mult or filter")
        found = {each.record.id: each.record for each in self._by_vector(embedding, fetch_k, filter)}
        records, vectors = self.collection.records_with_vectors(list(found))
        unchanged = [row for row, record in enumerate(records) if record == found[record.id]]
        query, candidates = np.array(embedding, np.float32), vectors[unchanged].astype(np.float32)
        chosen = maximal_marginal_relevance(query, list(candidates), lambda_mult, k)
        return [document_of(records[unchanged[place]]) for place in chosen]

    def _similarity_search_with_relevance_scores(self, query: str, k: int = 4, **choices: Any) -> Scored:
        _refuse_words(choices)
        found: Scored = super()._similarity_search_with_relevance_scores(query, k, **choices)
        return found

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **choices: Any
    ) -> Scored:
        _refuse_words(choices)
        found: Scored = await super()._asimilarity_search_with_relevance_scores(query, k, **choices)
        return found

    # Steps ------------------------------------------------------------------------------------------------

    def _remove_documents(self, records: list[Record]) -> None:
        remove_documents(self.collection, whole_document_ids(records))
        # Of a document whose first passage is missing, the others are not known to be there.
        self.collection.remove([record.id for record in records])

    def _by_channels(self, query: str, k: int, filter: Where, mode: str) -> list[Found]:
        """What fits best by words, or by meaning and words: of each document one passage."""
        if mode not in _CHANNELS:
            raise InvalidInput(f"mode is {mode!r}; expected one of {', '.join(_CHANNELS)}")
        queries, n_wanted = checked_texts([query]), checked_window(k, 0)
        channels = Channels(self.collection, _CHANNELS[mode], condition_of(filter))
        by_vector = "dense" in channels.names
        vectors = np.array([self._embedding.embed_query(query)], np.float32) if by_vector else None
        with self.collection.moment(by_vector=by_vector) as moment:
            (ranked,) = channels.ranked(moment, queries, vectors, n_wanted)
            records = moment.read(each.key for each in ranked)
        return [Found(records[each.key], each.score) for each in ranked]

    def _by_vector(self, vector: npt.ArrayLike, k: int, filter: Where) -> list[Found]:
        rows = np.array(vector, np.float32)[None]
        fingerprint = self.collection.settings.fingerprint
        where = condition_of(filter)
        return self.collection.search_vectors(rows, k, fingerprint=fingerprint, filter=where)[0]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """From 0, unlike, to 1, alike."""
        measure = self.collection.settings.measure
        if measure in ("cosine", "dot"):
            return lambda score: min(1.0, max(0.0, (1 + score) / 2))
        return lambda score: 1 / (1 - score)  # of a negated distance


def _refuse_words(choices: dict[str, Any]) -> None:
    """Scores of words have no upper end, so that none says how relevant a document is."""
    mode = choices.get("mode", "dense")
    if mode != "dense":
        raise InvalidInput(
            f"relevance from 0 to 1 was asked for with mode={mode!r}, and only mode='dense' has it; leave "
            "the mode out, or search without a threshold"
        )
