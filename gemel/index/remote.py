"""A collection whose records are kept by a server: the same contract as one in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors
from gemel.errors import Busy, InvalidInput
from gemel.index.arguments import checked_vectors, checked_window, read_filter
from gemel.index.backend import Backend, Held, Ranked
from gemel.index.filters import Filter
from gemel.index.kept_moment import KeptMoment
from gemel.index.lexical import chosen_tokenizer
from gemel.index.moment import Moment
from gemel.index.opened import OpenedCollection
from gemel.index.planning import changes_for
from gemel.index.records import Added, Found, Id, Record, Row, checked_ids
from gemel.index.segment import Rows
from gemel.index.store import CollectionInfo, Plan
from gemel.index.transfer import WINDOW_ROWS, Export

_ATTEMPTS = 20


class RemoteCollection(OpenedCollection):
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
            self._use(encoder, query_encoder)
        except BaseException:
            backend.close()
            raise

    # In and out -------------------------------------------------------------------------------------------

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

    def records_with_vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Record], Vectors]:
        """The same with the records themselves: each vector is that of the text beside it."""
        held = self._backend.all_records(None) if ids is None else self._held(checked_ids(ids))
        paired: list[tuple[Held, Vectors]] = []
        while together := list(islice(held, WINDOW_ROWS)):
            paired += self._paired(together)
        vectors = np.array([vector for _, vector in paired], np.float32).reshape(-1, self.settings.dim)
        return [_record(each) for each, _ in paired], vectors

    # Search -----------------------------------------------------------------------------------------------

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

    @contextmanager
    def moment(self, *, by_vector: bool = True) -> Iterator[Moment]:
        """The collection as it is now: the server answers with whole records, which are kept."""
        yield KeptMoment(self)

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
        condition = read_filter(filter)
        held = self._backend.all_records(condition)
        dim = self.settings.dim if with_vectors else None
        export = Export(self._windows(held, with_vectors), dim, lambda: self._backend.id_types(condition))
        return export.write(Path(path), overwrite=overwrite)

    # The life of the object -------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the server; everything that was acknowledged is safe already."""
        self._backend.close()

    # Steps ------------------------------------------------------------------------------------------------

    def _upsert(self, window: list[Row]) -> Added:
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

    def _upsert_vectors(self, window: list[Row], stored: Rows) -> Added:
        changes = self._backend.store(
            window, {row.id: vector for row, vector in zip(window, stored, strict=True)}
        )
        assert changes is not None, "every row has its vector"
        return changes.added(0)

    def _keep_index(self, added: Added) -> None:
        if self._keeps_index and added.n_new + added.n_changed:
            self._backend.keep_index()

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
            if with_vectors:
                made_by = {"fingerprint": self.settings.fingerprint}
                yield [
                    {**_entry(each), "embedding": vector, **made_by}
                    for each, vector in self._paired(together)
                ]
            else:
                yield [_entry(each) for each in together]

    def _held(self, ids: Sequence[Id]) -> Iterator[Held]:
        for start in range(0, len(ids), WINDOW_ROWS):
            part = ids[start : start + WINDOW_ROWS]
            known = self._backend.known(list(dict.fromkeys(part)))
            yield from (known[id_] for id_ in part if id_ in known)

    def _paired(self, held: Sequence[Held]) -> list[tuple[Held, Vectors]]:
        """The records with their vectors; one whose text changes while these are read is read again."""
        before = {each.id: each for each in held}
        paired: dict[Id, tuple[Held, Vectors]] = {}
        for _ in range(_ATTEMPTS):
            ids, rows = self._backend.vectors(list(before))
            after = self._backend.known(ids) if ids else {}
            for id_, row in zip(ids, rows, strict=True):
                if id_ in after and after[id_].content == before[id_].content:
                    paired[id_] = before[id_], row
            before = {id_: each for id_, each in after.items() if id_ not in paired}
            if not before:
                return [paired[each.id] for each in held if each.id in paired]
        raise Busy(
            f"records of {self.name} change faster than they can be read with their vectors; try again"
        )


def _entry(held: Held) -> dict[str, Any]:
    return {"id": held.id, "text": held.text, "metadata": held.metadata}


def _record(held: Held) -> Record:
    return Record(held.id, held.text, json.loads(held.metadata))


def _found(ranked: Sequence[Ranked]) -> list[Found]:
    return [Found(_record(held), score) for held, score in ranked]
