"""A collection at one moment: rankings first, then only those of their records that are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from gemel.contracts import Vectors
from gemel.index.filters import Filter
from gemel.index.records import Id, Metadata, Record


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
