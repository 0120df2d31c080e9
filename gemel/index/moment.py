"""A collection at one moment: rankings first, then only those of their records that are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from gemel.contracts import Vectors
from gemel.index.filters import Filter
from gemel.index.records import Found, Id, Metadata, Record


class Candidate(NamedTuple):
    """A record in a ranking: what it is read by at this moment, and how well it fits."""

    key: Id
    score: float


class Head(NamedTuple):
    """What a record is called, and its metadata if they have a field that was asked for."""

    id: Id
    metadata: Metadata


class Moment(Protocol):
    """What a search ranks and then reads; in a folder, all of it is of one commit."""

    can_be_shared: bool  # by two threads, of which one asks `nearest` without a filter and one `lexical`

    def nearest(self, vectors: Vectors, k: int, filter: str | Filter | None) -> list[list[Candidate]]:
        """For each query vector the k records most like it, best first."""

    def lexical(
        self, query: str, k: int, filter: str | Filter | None, tokenizer: str | None
    ) -> list[Candidate]:
        """The k records that share the rarest words with a query, best first."""

    def heads(self, keys: Iterable[Id], field: str) -> dict[Id, Head]:
        """What records are called, with the metadata of those that have a field: not to be shown yet."""

    def read(self, keys: Iterable[Id]) -> dict[Id, Record]:
        """The records, each compared with its checksum, and with its vector's if it was found by that."""


class Searchable(Protocol):
    """What answers with whole records, as a server does."""

    def search_vectors(
        self, vectors: Vectors, k: int = 10, *, fingerprint: str, filter: str | Filter | None = None
    ) -> list[list[Found]]:
        """For each query vector the k records most like it."""

    def lexical(
        self,
        query: str,
        k: int = 10,
        *,
        filter: str | Filter | None = None,
        tokenizer: str | None = None,
    ) -> list[Found]:
        """The k records that share the rarest words with a query."""


class KeptMoment:
    """Rankings of a collection that answers with whole records: these are kept until they are read.

    Each ranking is of the moment in which it was asked for; of a record that has changed between two, what
    the first has found is shown.
    """

    can_be_shared = False

    def __init__(self, store: Searchable, fingerprint: str) -> None:
        self._store = store
        self._fingerprint = fingerprint
        self._records: dict[Id, Record] = {}

    def nearest(self, vectors: Vectors, k: int, filter: str | Filter | None) -> list[list[Candidate]]:
        """For each query vector the k records most like it, best first."""
        found = self._store.search_vectors(vectors, k, fingerprint=self._fingerprint, filter=filter)
        return [self._kept(row) for row in found]

    def lexical(
        self, query: str, k: int, filter: str | Filter | None, tokenizer: str | None
    ) -> list[Candidate]:
        """The k records that share the rarest words with a query, best first."""
        return self._kept(self._store.lexical(query, k, filter=filter, tokenizer=tokenizer))

    def heads(self, keys: Iterable[Id], field: str) -> dict[Id, Head]:
        """What records are called, with their metadata."""
        return {key: Head(key, self._records[key].metadata) for key in keys}

    def read(self, keys: Iterable[Id]) -> dict[Id, Record]:
        """The records as they came."""
        return {key: self._records[key] for key in keys}

    def _kept(self, found: list[Found]) -> list[Candidate]:
        for each in found:
            self._records.setdefault(each.record.id, each.record)
        return [Candidate(each.record.id, each.score) for each in found]
