"""A durable, searchable home for sentences: one folder, which survives a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy.typing as npt

from gemel.contracts import Encoder, Vectors
from gemel.errors import InvalidInput
from gemel.index import lexical, reading
from gemel.index.ann import OnIndexed
from gemel.index.arguments import checked_vectors, checked_window, read_filter
from gemel.index.commit import Commit, Rankers
from gemel.index.database import Database
from gemel.index.dense import DenseSearch
from gemel.index.doctor import Diagnosis, Doctor
from gemel.index.filters import Filter
from gemel.index.hnsw import HnswParameters
from gemel.index.lexical import checked_tokenizers
from gemel.index.moment import Moment
from gemel.index.opened import OpenedCollection
from gemel.index.records import Added, Found, Id, Record, Row, checked_ids
from gemel.index.segment import DType, Rows
from gemel.index.settings import KnownModel, Settings, make_folder, read_settings
from gemel.index.store import CollectionInfo, Plan
from gemel.index.transfer import Export, stored_windows
from gemel.index.upkeep import Upkeep
from gemel.index.writing import Writer

TIMEOUT_SECONDS = 10.0


class Collection(OpenedCollection):
    """Sentences with ids, metadata and vectors in a folder: made with `create`, used again with `open`."""

    def __init__(
        self,
        path: Path,
        encoder: Encoder | None,
        query_encoder: Encoder | None,
        *,
        read_only: bool,
        keeps_index: bool,
        timeout_seconds: float,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._is_read_only = read_only or not os.access(path, os.W_OK)
        self._database = Database(path, read_only=self._is_read_only, timeout_seconds=timeout_seconds)
        try:
            self.settings = read_settings(self._database)
            self._use(encoder, query_encoder)
        except BaseException:
            self._database.close()
            raise
        self._dense = DenseSearch(path, self._database, self.settings)
        self._rankers = Rankers(self._dense)
        self._writer = Writer(path, self._database, self.settings, timeout_seconds)
        self._upkeep = Upkeep(self._dense, self._writer, timeout_seconds)
        self._keeps_index = keeps_index

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | KnownModel,
        *,
        dtype: DType = "float32",
        measure: str = "cosine",
        text_search: Sequence[str] = ("word", "trigram"),
        model: str = "",
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Collection:
        """Make an empty collection for the vectors of this encoder (`model` is its name), and open it."""
        tokenizers = checked_tokenizers(text_search)
        settings = Settings(encoder.fingerprint, encoder.dim, dtype, measure, tokenizers, model=model)
        make_folder(Path(path), settings)
        used = None if isinstance(encoder, KnownModel) else encoder
        return cls.open(path, used, timeout_seconds=timeout_seconds)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        encoder: Encoder | None = None,
        *,
        query_encoder: Encoder | None = None,
        read_only: bool = False,
        keeps_index: bool = True,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Collection:
        """Open a collection; without an encoder, vectors go in and queries come as vectors.

        `query_encoder` is the same model with a prompt for queries, where it has one. With `keeps_index`,
        adding builds or extends the index when it has become worthwhile. A writer waits `timeout_seconds`
        for another.
        """
        return cls(
            Path(path),
            encoder,
            query_encoder,
            read_only=read_only,
            keeps_index=keeps_index,
            timeout_seconds=timeout_seconds,
        )

    # In and out -------------------------------------------------------------------------------------------

    def remove(self, ids: Iterable[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""
        self._check_writable()
        return self._writer.remove(list(dict.fromkeys(checked_ids(ids))))

    def get(self, ids: Iterable[Id]) -> list[Record | None]:
        """The record of each id, None where there is none."""
        asked = checked_ids(ids)
        with self._database.reading() as connection:
            rows = reading.rows_by_id(connection, asked)
        return [rows[id_].record(self.path) if id_ in rows else None for id_ in asked]

    def count(self, filter: str | Filter | None = None) -> int:
        """How many records there are, or how many pass a filter."""
        where, parameters = _condition(filter)
        with self._database.reading() as connection:
            found = connection.execute(f"select count(*) from records where {where}", parameters)
            return int(found.fetchone()[0])

    def records(self, filter: str | Filter | None = None) -> Iterator[Record]:
        """All records, or those that pass a filter, in the order in which their texts came."""
        condition = _condition(filter)
        with self._database.reading() as connection:
            for row in reading.all_rows(connection, *condition):
                yield row.record(self.path)

    def vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Id], Vectors]:
        """The vectors (n, dim) of the records with these ids, or of all, and the id of each row.

        Ids that are not there, or whose vector is lost, are left out. All vectors of a collection in which
        nothing was removed are not copied, but mapped.
        """
        asked = None if ids is None else checked_ids(ids)
        with self._dense.reading() as (connection, view):
            return reading.vectors_of(connection, view, asked, self.path)

    def records_with_vectors(self, ids: Iterable[Id] | None = None) -> tuple[list[Record], Vectors]:
        """The same with the records themselves, all of one commit."""
        asked = None if ids is None else checked_ids(ids)
        with self._dense.reading() as (connection, view):
            named, vectors = reading.vectors_of(connection, view, asked, self.path)
            rows = (
                {row.id: row for row in reading.all_rows(connection)}
                if asked is None
                else reading.known_rows(connection, named)
            )
        return [rows[id_].record(self.path) for id_ in named], vectors

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
        n_wanted = checked_window(k, offset)
        with self.moment(by_vector=False) as moment:
            ranked = moment.lexical(query, n_wanted, filter, tokenizer)[offset:]
            records = moment.read(each.key for each in ranked)
        return [Found(records[key], score) for key, score in ranked]

    def terms(self, query: str, *, tokenizer: str | None = None) -> list[str]:
        """What `lexical` goes by: the words of a query that are here, the most common perhaps left out."""
        by = lexical.chosen_tokenizer(self.settings.text_search, tokenizer, self.name)
        with self._database.reading() as connection:
            return [term for _, term in self._rankers.words.telling(connection, query, by)]

    @contextmanager
    def moment(self, *, by_vector: bool = True) -> Iterator[Moment]:
        """The collection as it is now, for rankings of which only some records are read."""
        if by_vector:
            with self._dense.reading() as (connection, view):
                yield Commit(self._rankers, connection, view, self.name)
        else:
            with self._database.reading() as connection:
                yield Commit(self._rankers, connection, None, self.name)

    def plan(self, filter: str | Filter | None = None) -> Plan:
        """How a search by vector would be answered, and why so."""
        with self._dense.reading() as (connection, view):
            return self._dense.plan(connection, view, read_filter(filter))

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""
        return self._dense.info()

    # Upkeep -----------------------------------------------------------------------------------------------

    def build_index(
        self, parameters: HnswParameters | None = None, *, on_progress: OnIndexed | None = None
    ) -> None:
        """Build the approximate index of all vectors, or bring the one that is there up to date."""
        self._check_writable()
        self._upkeep.build_index(parameters, on_progress)

    def compact(self, *, on_progress: OnIndexed | None = None) -> None:
        """Give back the room of what was removed, and bring the index, where there is one, up to date."""
        self._check_writable()
        self._upkeep.compact(on_progress)

    def doctor(self, *, repair: bool = True, drop: bool = False) -> Diagnosis:
        """Examine everything, mend what is derived, name what is lost, and `drop` records that are."""
        if repair:
            self._check_writable()
        doctor = Doctor(
            self.settings,
            self._database,
            self._writer,
            None if self.encoder is None else self._encode,
            self._upkeep,
        )
        return doctor.repair(drop=drop) if repair else doctor.examine()

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        filter: str | Filter | None = None,
        with_vectors: bool = False,
        overwrite: bool = False,
    ) -> int:
        """Write the records to a .jsonl, .jsonl.gz or .parquet file, whole or not at all; how many."""
        condition = _condition(filter)
        with self._dense.reading() as (connection, view):
            rows = reading.all_rows(connection, *condition)
            kept = view if with_vectors else None
            windows = stored_windows(self.path, rows, kept, self.settings.fingerprint)
            dim = self.settings.dim if with_vectors else None
            export = Export(windows, dim, lambda: reading.id_types(connection, *condition))
            return export.write(Path(path), overwrite=overwrite)

    # The life of the object -------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the folder; everything that was acknowledged is safe already."""
        self._database.close()

    # Steps ------------------------------------------------------------------------------------------------

    def _search(
        self, vectors: npt.ArrayLike, k: int, filter: str | Filter | None, offset: int
    ) -> list[list[Found]]:
        n_wanted = checked_window(k, offset)
        queries = checked_vectors("queries", vectors, self.settings.dim)
        with self.moment() as moment:
            ranked = [row[offset:] for row in moment.nearest(queries, n_wanted, filter)]
            records = moment.read(each.key for row in ranked for each in row)
        return [[Found(records[key], score) for key, score in row] for row in ranked]

    def _upsert(self, window: list[Row]) -> Added:
        return self._writer.upsert(window, self._encode)

    def _upsert_vectors(self, window: list[Row], stored: Rows) -> Added:
        return self._writer.upsert_vectors(window, stored)

    def _keep_index(self, added: Added) -> None:
        if self._keeps_index:
            self._upkeep.index_if_worthwhile()


def _condition(filter: str | Filter | None) -> tuple[str, tuple[str | int | float | None, ...]]:
    read = read_filter(filter)
    return ("1", ()) if read is None else (read.sql, read.parameters)
