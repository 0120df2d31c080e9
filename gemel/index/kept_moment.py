"""A moment of a collection that answers with whole records, as one on a server does."""

from __future__ import annotations

from collections.abc import Iterable

from gemel.contracts import Vectors
from gemel.index.filters import Filter
from gemel.index.moment import Candidate, Head
from gemel.index.records import Found, Id, Record
from gemel.index.store import Store


class KeptMoment:
    """Rankings of a collection that answers with whole records: these are kept until they are read.

    Each ranking is of the moment in which it was asked for; of a record that has changed between two, what
    the first has found is shown.
    """

    can_be_shared = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[Id, Record] = {}

    def nearest(self, vectors: Vectors, k: int, filter: str | Filter | None) -> list[list[Candidate]]:
        """For each query vector the k records most like it, best first."""
        fingerprint = self._store.settings.fingerprint
        found = self._store.search_vectors(vectors, k, fingerprint=fingerprint, filter=filter)
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
