"""One commit of a folder, ranked by the numbers of its records and read where these are shown."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from gemel.contracts import Vectors
from gemel.index import lexical, reading
from gemel.index.ann import read_base
from gemel.index.arguments import read_filter
from gemel.index.dense import DenseSearch
from gemel.index.filters import Filter
from gemel.index.moment import Candidate, Head
from gemel.index.records import Id, Metadata, Record
from gemel.index.settings import Settings
from gemel.index.view import View


class Rankers:
    """What ranks the records of a folder at any moment: by vectors, and by words."""

    def __init__(self, dense: DenseSearch) -> None:
        self.dense = dense
        self.words = lexical.TermCounts()


class Commit:
    """What a transaction sees; without a view, by words alone."""

    can_be_shared = sqlite3.threadsafety == 3

    def __init__(
        self, rankers: Rankers, connection: sqlite3.Connection, view: View | None, name: str
    ) -> None:
        self._rankers = rankers
        self._connection = connection
        self._view = view
        self._name = name
        self._base = None if view is None else read_base(connection)
        self._by_vector: set[Id] = set()

    def nearest(self, vectors: Vectors, k: int, filter: str | Filter | None) -> list[list[Candidate]]:
        """For each query vector the k records most like it, best first."""
        assert self._view is not None, "a moment of words alone was asked for vectors"
        hits = self._rankers.dense.search(
            self._connection, self._view, self._base, vectors, k, read_filter(filter)
        )
        ranked = [
            [Candidate(number, score) for number, score in zip(*row, strict=True) if number >= 0]
            for row in zip(hits.ids.tolist(), hits.scores.tolist(), strict=True)
        ]
        self._by_vector.update(each.key for row in ranked for each in row)
        return ranked

    def lexical(
        self, query: str, k: int, filter: str | Filter | None, tokenizer: str | None
    ) -> list[Candidate]:
        """The k records that share the rarest words with a query, best first."""
        by = lexical.chosen_tokenizer(self._settings.text_search, tokenizer, self._name)
        connection, condition = self._connection, read_filter(filter)
        ranked = lexical.ranked_by_enough(
            lambda times: self._rankers.words.telling(connection, query, by, times),
            lambda counted: lexical.ranked(connection, counted, by, k, condition),
            k,
            condition,
        )
        return [Candidate(number, score) for number, score in ranked]

    def heads(self, keys: Iterable[Id], field: str) -> dict[Id, Head]:
        """What records are called, with the metadata of those that have a field: not to be shown yet."""
        numbers = [int(key) for key in keys]
        heads = reading.heads_by_number(self._connection, numbers, field, self._folder)
        return {number: Head(id_, self._metadata(number, kept)) for number, (id_, kept) in heads.items()}

    def read(self, keys: Iterable[Id]) -> dict[Id, Record]:
        """The records, each compared with its checksum, and with its vector's if it was found by that."""
        rows = reading.rows_by_number(self._connection, sorted({int(key) for key in keys}), self._folder)
        if self._view is not None:
            by_vector = [row for row in rows.values() if row.number in self._by_vector]
            reading.check_vectors(self._view, by_vector, self._folder)
        return {number: row.record(self._folder) for number, row in rows.items()}

    @property
    def _folder(self) -> Path:
        return self._rankers.dense.folder

    @property
    def _settings(self) -> Settings:
        return self._rankers.dense.settings

    def _metadata(self, number: int, kept: str | None) -> Metadata:
        if kept is None:
            return {}
        try:
            return dict(json.loads(kept))
        except ValueError:  # damaged: reading it says so
            return self.read([number])[number].metadata
