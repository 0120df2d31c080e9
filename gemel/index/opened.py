"""What every open collection does, wherever its records are kept."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy.typing as npt

from gemel.contracts import Encoder, checked_texts
from gemel.errors import InvalidInput, WriteFailed
from gemel.index.filters import Filter
from gemel.index.planning import windows
from gemel.index.records import Added, Found, Id, Metadata, Record, Row, checked_rows, each_once
from gemel.index.segment import Rows, as_array
from gemel.index.settings import Settings
from gemel.index.store import OnProgress
from gemel.index.transfer import add_entries, read_entries

Own = TypeVar("Own", bound="OpenedCollection")


class OpenedCollection(ABC):
    """Texts in and vectors made of them, queries as texts or vectors; the rest is the place's own."""

    name: str
    settings: Settings
    encoder: Encoder | None
    query_encoder: Encoder | None
    _is_read_only: bool

    def with_encoder(self: Own, encoder: Encoder, query_encoder: Encoder | None = None) -> Own:
        """The same open collection, which encodes with other objects of the same model."""
        other = copy(self)
        other._use(encoder, query_encoder)
        return other

    # In and out -------------------------------------------------------------------------------------------

    def add(
        self,
        texts: Iterable[str | Record],
        ids: Iterable[Id] | None = None,
        metadata: Iterable[Metadata] | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Store texts under their ids, in place of what stood there; what has not changed costs nothing.

        Texts without ids are known by their content. Windows of texts are committed one by one: when this
        returns, all are safe, and `on_progress` is told how many are.
        """
        self._check_writable()
        rows: Iterable[Row] = each_once(checked_rows(texts, ids, metadata))
        if isinstance(texts, Sequence):  # and no stream: then one that is wrong stops all of them
            rows = list(rows)
        return self._added(rows, lambda window, _: self._upsert(window), on_progress)

    def add_vectors(
        self,
        records: Iterable[str | Record],
        vectors: npt.ArrayLike,
        *,
        fingerprint: str,
        on_progress: OnProgress | None = None,
    ) -> Added:
        """Store records with vectors that the model of this fingerprint has made of their texts."""
        self._check_writable()
        stored = self.settings.layout.stored(vectors)
        self.settings.check_model(fingerprint, stored.shape[1], self.name)
        rows = list(each_once(checked_rows(records)))
        if len(rows) != len(stored):
            raise InvalidInput(f"{len(rows)} records and {len(stored)} vectors were given; give one for each")
        return self._added(
            rows,
            lambda window, start: self._upsert_vectors(window, stored[start : start + len(window)]),
            on_progress,
        )

    def import_file(self, path: str | os.PathLike[str], *, on_progress: OnProgress | None = None) -> Added:
        """Add the records of a file that a collection was exported to; vectors in it are not made again."""
        self._check_writable()
        return add_entries(
            read_entries(Path(path)),
            self.add,
            lambda records, vectors, fingerprint: self.add_vectors(records, vectors, fingerprint=fingerprint),
            on_progress,
        )

    # Search -----------------------------------------------------------------------------------------------

    def search(
        self, queries: Sequence[str], k: int = 10, *, filter: str | Filter | None = None, offset: int = 0
    ) -> list[list[Found]]:
        """For each query the k records most like it, best first, behind the first `offset`."""
        texts = checked_texts(queries)
        if self.query_encoder is None:
            raise InvalidInput(
                f"{self.name} was opened without an encoder; open it with one, or use search_vectors"
            )
        return self._search(self.query_encoder.encode(texts), k, filter, offset)

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
        array = as_array(vectors, "vectors")
        self.settings.check_model(fingerprint, array.shape[-1] if array.ndim else 0, self.name)
        return self._search(array, k, filter, offset)

    # The life of the object -------------------------------------------------------------------------------

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def __contains__(self, id: Id) -> bool:
        return self.get([id])[0] is not None

    # What each place does by itself -----------------------------------------------------------------------

    @abstractmethod
    def get(self, ids: Iterable[Id]) -> list[Record | None]:
        """The record of each id, None where there is none."""

    @abstractmethod
    def count(self, filter: str | Filter | None = None) -> int:
        """How many records there are, or how many pass a filter."""

    @abstractmethod
    def records(self, filter: str | Filter | None = None) -> Iterator[Record]:
        """All records, or those that pass a filter, in the order in which their texts came."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it; everything that was acknowledged is safe already."""

    @abstractmethod
    def _upsert(self, window: list[Row]) -> Added:
        """Store a window of rows, encoding those whose text is not there yet: one commit."""

    @abstractmethod
    def _upsert_vectors(self, window: list[Row], stored: Rows) -> Added:
        """Store a window of rows with the vector of each: one commit."""

    @abstractmethod
    def _keep_index(self, added: Added) -> None:
        """Build or extend the index if it is to be kept and that has become worthwhile."""

    @abstractmethod
    def _search(
        self, vectors: npt.ArrayLike, k: int, filter: str | Filter | None, offset: int
    ) -> list[list[Found]]:
        """For each query vector the k records most like it."""

    # Steps ------------------------------------------------------------------------------------------------

    def _use(self, encoder: Encoder | None, query_encoder: Encoder | None) -> None:
        """Take these encoders, which must be of the collection's model."""
        for model in (encoder, query_encoder):
            if model is not None:
                self.settings.check_model(model.fingerprint, model.dim, self.name)
        self.encoder = encoder
        self.query_encoder = encoder if query_encoder is None else query_encoder

    def _added(
        self, rows: Iterable[Row], upsert: Callable[[list[Row], int], Added], on_progress: OnProgress | None
    ) -> Added:
        """What became of all rows; each window is told where among them it begins."""
        added = Added()
        for window in windows(rows):
            added += upsert(window, len(added))
            if on_progress is not None:
                on_progress(len(added))
        self._keep_index(added)
        return added

    def _encode(self, texts: list[str]) -> Rows:
        if self.encoder is None:
            raise InvalidInput(
                f"{self.name} was opened without an encoder; open it with one, or use add_vectors"
            )
        return self.settings.layout.stored(self.encoder.encode(texts))

    def _check_writable(self) -> None:
        if self._is_read_only:
            raise WriteFailed(
                f"{self.name} is open for reading only; open it where, and so that, it can be written"
            )
