"""A collection whose records are kept by a server: the same contract as one in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors, checked_texts
from gemel.errors import InvalidInput, WriteFailed
from gemel.index.arguments import checked_vectors, checked_window, read_filter
from gemel.index.backend import Backend, Held, Ranked
from gemel.index.filters import Filter
from gemel.index.lexical import chosen_tokenizer
from gemel.index.planning import changes_for, windows
from gemel.index.records import Added, Found, Id, Metadata, Record, Row, checked_ids, checked_rows, each_once
from gemel.index.segment import Rows
from gemel.index.store import CollectionInfo, OnProgress, Plan
from gemel.index.transfer import WINDOW_ROWS, Export, add_entries, read_entries


class RemoteCollection:
    """Sentences with ids, metadata and vectors on a server: made and opened by `gemel.index.opening`."""

    def __init__(
        self,
        backend: Backend,
        encoder: Encoder | None = None,
        query_encoder: Encoder | None = None,
        *,
        read_only: bool = False,
        keeps_index: bool = True,
    ) -> None:
        self.name = backend.name
        self.settings = backend.settings
        self._backend = backend
        self._is_read_only = read_only
        self._keeps_index = keeps_index
        try:
            for model in (encoder, query_encoder):
                if model is not None:
                    self.settings.check_model(model.fingerprint, model.dim, self.name)
        except BaseException:
            backend.close()
            raise
        self.encoder = encoder
        self.query_encoder = encoder if query_encoder is None else query_encoder

    def with_encoder(self, encoder: Encoder, query_encoder: Encoder | None = None) -> RemoteCollection:
        """The same open collection, which encodes with other objects of the same model."""
        for model in (encoder, query_encoder or encoder):
            self.settings.check_model(model.fingerprint, model.dim, self.name)
        other = copy(self)
        other.encoder, other.query_encoder = encoder, query_encoder or encoder
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

        Texts without ids are known by their content. Windows of texts are stored one by one: when this
        returns, all are safe, and `on_progress` is told how many are.
        """
        self._check_writable()
        rows: Iterable[Row] = each_once(checked_rows(texts, ids, metadata))
        if isinstance(texts, Sequence):  # and no stream: then one that is wrong stops all of them
            rows = list(rows)
        return self._added(rows, self._upsert, on_progress)

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
        given = {row.id: vector for row, vector in zip(rows, stored, strict=True)}

        def upsert(window: list[Row]) -> Added:
            changes = self._backend.store(window, given)
            assert changes is not None, "every row has its vector"
            return changes.added(0)

        return self._added(rows, upsert, on_progress)

    def remove(self, ids: Iterable[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""
        self._check_writable()
        asked = list(dict.fromkeys(checked_ids(ids)))
        return self._backend.remove(asked) if asked else 0

    def get(self, ids: Iterable[Id]) -> list[Record | None]:
        """The record of each id, None where there is none."""
        asked = checked_ids(ids)
        known = self._backend.known(list(dict.fromkeys(asked))) if asked else {}
        return [_record(known[id_]) if id_ in known else None for id_ in asked]

    def count(self, filter: str | Filter | None = None) -> int:
        """How many records there are, or how many pass a filter."""
        return self._backend.count(read_filter(filter))

    def records(self, filter: str | Filter | None = None) -> Iterator[Record]:
        """All records, or those that pass a filter, in the order in which their texts came."""
        return map(_record, self._backend.all_records(read_filter(filter)))

    def vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Id], Vectors]:
        """The vectors (n, dim) of the records with these ids, or of all, and the id of each row."""
        return self._backend.vectors(None if ids is None else checked_ids(ids))

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
        array = np.asarray(vectors)
        self.settings.check_model(fingerprint, array.shape[-1] if array.ndim else 0, self.name)
        return self._search(array, k, filter, offset)

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
        if not isinstance(query, str):
            raise InvalidInput(f"a query of words is a str; a {type(query).__name__} was given")
        by = chosen_tokenizer(self.settings.text_search, tokenizer, self.name)
        ranked = self._backend.lexical(query, checked_window(k, offset), by, read_filter(filter))
        return _found(ranked[offset:])

    def terms(self, query: str, *, tokenizer: str | None = None) -> list[str]:
        """What `lexical` goes by: the words of a query that are here, the most common perhaps left out."""
        by = chosen_tokenizer(self.settings.text_search, tokenizer, self.name)
        return self._backend.terms(query, by)

    def plan(self, filter: str | Filter | None = None) -> Plan:
        """How a search by vector would be answered, and why so."""
        return self._backend.plan(read_filter(filter))

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""
        return self._backend.info()

    # Upkeep -----------------------------------------------------------------------------------------------

    def build_index(self) -> None:
        """Build the approximate index of all vectors, where there is none."""
        self._check_writable()
        self._backend.build_index()

    def keep_index(self) -> None:
        """The same, where it has become worthwhile: after much was added with keeps_index=False."""
        self._check_writable()
        self._backend.keep_index()

    def compact(self, *, on_progress: Callable[[int, int], object] | None = None) -> None:
        """Give back the room of what was removed, and bring the index, where there is one, up to date."""
        self._check_writable()
        self._backend.compact()
        if on_progress is not None:
            on_progress(len(self), len(self))

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        filter: str | Filter | None = None,
        with_vectors: bool = False,
        overwrite: bool = False,
    ) -> int:
        """Write the records to a .jsonl, .jsonl.gz or .parquet file, whole or not at all; how many."""
        held = self._backend.all_records(read_filter(filter))
        dim = self.settings.dim if with_vectors else None
        export = Export(self._windows(held, with_vectors), dim, self._backend.id_types)
        return export.write(Path(path), overwrite=overwrite)

    def import_file(self, path: str | os.PathLike[str], *, on_progress: OnProgress | None = None) -> Added:
        """Add the records of a file that a collection was exported to; vectors in it are not made again."""
        self._check_writable()
        return add_entries(
            read_entries(Path(path)),
            self.add,
            lambda records, vectors, fingerprint: self.add_vectors(records, vectors, fingerprint=fingerprint),
            on_progress,
        )

    # The life of the object -------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the server; everything that was acknowledged is safe already."""
        self._backend.close()

    def __enter__(self) -> RemoteCollection:
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

    # Steps ------------------------------------------------------------------------------------------------

    def _added(
        self, rows: Iterable[Row], upsert: Callable[[list[Row]], Added], on_progress: OnProgress | None
    ) -> Added:
        added = Added()
        for window in windows(rows):
            added += upsert(window)
            if on_progress is not None:
                on_progress(len(added))
        if self._keeps_index and added.n_new + added.n_changed:
            self._backend.keep_index()
        return added

    def _upsert(self, window: list[Row]) -> Added:
        """Store a window of rows, encoding those whose text is not there yet."""
        made: dict[bytes, Rows] = {}
        changes = changes_for(window, self._backend.known(list(dict.fromkeys(row.id for row in window))))
        while True:
            missing = {row.content: row.text for row in changes.inserted if row.content not in made}
            if missing:
                made.update(zip(missing, self._encode(list(missing.values())), strict=True))
            vectors = {row.id: made[row.content] for row in window if row.content in made}
            done = self._backend.store(window, vectors)
            if done is not None:
                return done.added(len(done.inserted))
            # Another writer has been here meanwhile, and more is missing than it seemed.
            changes = changes_for(window, self._backend.known([row.id for row in window]))

    def _search(
        self, vectors: npt.ArrayLike, k: int, filter: str | Filter | None, offset: int
    ) -> list[list[Found]]:
        n_wanted = checked_window(k, offset)
        queries = checked_vectors("queries", vectors, self.settings.dim)
        if not len(queries):
            return []
        ranked = self._backend.nearest(queries, n_wanted, read_filter(filter))
        return [_found(row[offset:]) for row in ranked]

    def _windows(self, held: Iterator[Held], with_vectors: bool) -> Iterator[list[dict[str, Any]]]:
        while together := list(islice(held, WINDOW_ROWS)):
            window: list[dict[str, Any]] = [
                {"id": each.id, "text": each.text, "metadata": each.metadata} for each in together
            ]
            if with_vectors:
                ids, rows = self._backend.vectors([each.id for each in together])
                vectors = dict(zip(ids, rows, strict=True))
                window = [
                    {**entry, "embedding": vectors[entry["id"]], "fingerprint": self.settings.fingerprint}
                    for entry in window
                    if entry["id"] in vectors
                ]
            yield window

    def _encode(self, texts: list[str]) -> Rows:
        if self.encoder is None:
            raise InvalidInput(
                f"{self.name} was opened without an encoder; open it with one, or use add_vectors"
            )
        return self.settings.layout.stored(self.encoder.encode(texts))

    def _check_writable(self) -> None:
        if self._is_read_only:
            raise WriteFailed(f"{self.name} is open for reading only; open it so that it can be written")


def _record(held: Held) -> Record:
    return Record(held.id, held.text, json.loads(held.metadata))


def _found(ranked: Sequence[Ranked]) -> list[Found]:
    return [Found(_record(held), score) for held, score in ranked]
