"""What a collection is to whoever uses it, wherever its records are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, runtime_checkable

import numpy.typing as npt

from gemel.contracts import Encoder, Vectors
from gemel.index.filters import Filter
from gemel.index.moment import Moment
from gemel.index.records import Added, Found, Id, Metadata, Record
from gemel.index.settings import Settings

OnProgress = Callable[[int], object]


@dataclass(frozen=True)
class Plan:
    """How a search is answered: exactly, or by the index and exact scores of what it proposes."""

    method: Literal["exact", "approximate"]
    n_rows: int  # that may be found
    reason: str


@dataclass(frozen=True)
class CollectionInfo:
    """What a collection is and holds."""

    name: str
    settings: Settings
    n_records: int
    n_removed: int  # whose room is not given back yet
    n_bytes: int
    plan: Plan


@runtime_checkable
class Store(Protocol):
    """Sentences with ids, metadata and vectors: in a folder (`Collection`), or kept by a server.

    When a method that changes something returns, the change is safe. `name` is what messages call it: a
    folder, or an address without its password.
    """

    name: str
    settings: Settings
    encoder: Encoder | None
    query_encoder: Encoder | None

    def with_encoder(self, encoder: Encoder, query_encoder: Encoder | None = None) -> Store:
        """The same open collection, which encodes with other objects of the same model."""

    def add(
        self,
        texts: Iterable[str | Record],
        ids: Iterable[Id] | None = None,
        metadata: Iterable[Metadata] | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Store texts under their ids, in place of what stood there; what has not changed costs nothing."""

    def add_vectors(
        self,
        records: Iterable[str | Record],
        vectors: npt.ArrayLike,
        *,
        fingerprint: str,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Store records with vectors that the model of this fingerprint has made of their texts."""

    def remove(self, ids: Iterable[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""

    def get(self, ids: Iterable[Id]) -> list[Record | None]:
        """The record of each id, None where there is none."""

    def count(self, filter: str | Filter | None = None) -> int:
        """How many records there are, or how many pass a filter."""

    def records(self, filter: str | Filter | None = None) -> Iterator[Record]:
        """All records, or those that pass a filter, in the order in which their texts came."""

    def vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Id], Vectors]:
        """The vectors (n, dim) of the records with these ids, or of all, and the id of each row."""

    def records_with_vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Record], Vectors]:
        """The same with the records themselves: each vector is that of the text beside it."""

    def search(
        self, queries: Sequence[str], k: int = 10, *, filter: str | Filter | None = None, offset: int = 0
    ) -> list[list[Found]]:
        """For each query the k records most like it, best first, behind the first `offset`."""

    def search_vectors(
        self,
        vectors: npt.ArrayLike,
        k: int = 10,
        *,
        fingerprint: str,
        filter: str | Filter | None = None,
        offset: int = 0,
    ) -> list[list[Found]]:
        """The same for queries that the model of this fingerprint has encoded already (n, dim)."""

    def lexical(
        self,
        query: str,
        k: int = 10,
        *,
        filter: str | Filter | None = None,
        offset: int = 0,
        tokenizer: str | None = None,
    ) -> list[Found]:
        """The k records that share the rarest words with a query (BM25), best first."""

    def terms(self, query: str, *, tokenizer: str | None = None) -> list[str]:
        """What `lexical` goes by: the words of a query that are here, the most common perhaps left out."""

    def moment(self, *, by_vector: bool = True) -> AbstractContextManager[Moment]:
        """The collection as it is now, for rankings of which only some records are read."""

    def plan(self, filter: str | Filter | None = None) -> Plan:
        """How a search by vector would be answered, and why so."""

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""

    def compact(self, *, on_progress: Callable[[int, int], object] | None = None) -> None:
        """Give back the room of what was removed, and bring the index, where there is one, up to date."""

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        filter: str | Filter | None = None,
        with_vectors: bool = False,
        overwrite: bool = False,
    ) -> int:
        """Write the records to a .jsonl, .jsonl.gz or .parquet file, whole or not at all; how many."""

    def import_file(self, path: str | os.PathLike[str], *, on_progress: OnProgress | None = None) -> Added:
        """Add the records of a file that a collection was exported to; vectors in it are not made again."""

    def close(self) -> None:
        """Let go of it; everything that was acknowledged is safe already."""

    def __enter__(self) -> Store:
        """The collection itself, which is closed behind the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of it."""

    def __len__(self) -> int:
        """How many records there are."""

    def __iter__(self) -> Iterator[Record]:
        """All records."""

    def __contains__(self, id: Id) -> bool:
        """Whether there is a record with this id."""
