"""What a server has to do for a collection: everything that `RemoteCollection` does not do itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from gemel.contracts import Vectors
from gemel.index.filters import Filter
from gemel.index.planning import Changes
from gemel.index.records import Id, Row
from gemel.index.segment import Rows
from gemel.index.settings import Settings
from gemel.index.store import CollectionInfo, Plan
from gemel.similarity import pairwise

# What may be found: what passes a filter, the records with these ids, or everything.
Allowed: TypeAlias = Filter | Sequence[int] | None


class Held(NamedTuple):
    """A record as a server holds it."""

    id: Id
    text: str
    metadata: str
    content: bytes

    @property
    def is_sound(self) -> bool:
        """Servers look after what they hold themselves."""
        return True


class Ranked(NamedTuple):
    """A record that was found, and its score."""

    held: Held
    score: float


class Backend(Protocol):
    """The records of one collection on a server; arguments have been checked before they come here."""

    name: str
    settings: Settings

    def known(self, ids: Sequence[Id]) -> dict[Id, Held]:
        """Those of the records with these ids that are there."""

    def store(self, rows: Sequence[Row], vectors: Mapping[Id, Rows]) -> Changes[Held] | None:
        """Store the rows, and say what that took; None, and nothing is done, where a vector is missing."""

    def remove(self, ids: Sequence[Id]) -> int:
        """Remove the records with these ids; how many of them were there."""

    def count(self, filter_: Filter | None) -> int:
        """How many records pass a filter."""

    def all_records(self, filter_: Filter | None) -> Iterator[Held]:
        """The records that pass a filter, in the order in which their texts came."""

    def vectors(self, ids: Sequence[Id] | None) -> tuple[list[Id], Vectors]:
        """The vectors of the records with these ids, in their order, or of all."""

    def nearest(self, queries: Vectors, k: int, allowed: Allowed) -> list[list[Ranked]]:
        """The k records most like each query."""

    def lexical(self, query: str, k: int, tokenizer: str, filter_: Filter | None) -> list[Ranked]:
        """The k records that share the rarest words with a query."""

    def terms(self, query: str, tokenizer: str) -> list[str]:
        """The words of a query that it is ranked by."""

    def id_types(self, filter_: Filter | None) -> set[type]:
        """Which types the ids have."""

    def plan(self, filter_: Filter | None) -> Plan:
        """How a search by vector is answered."""

    def info(self) -> CollectionInfo:
        """What the collection is and holds."""

    def build_index(self) -> None:
        """Build the approximate index, where there is none."""

    def keep_index(self) -> None:
        """The same, where it has become worthwhile."""

    def compact(self) -> None:
        """Give back the room of what was removed."""

    def close(self) -> None:
        """Let go of the server."""


def best_of(
    query: Vectors, candidates: Sequence[tuple[int, Held]], rows: Vectors, k: int, measure: str
) -> list[Ranked]:
    """The k best of numbered candidates by their exact scores, as a collection in a folder scores them."""
    if not candidates:
        return []
    scores = pairwise(np.repeat(query[None], len(rows), axis=0), rows, measure)
    order = np.lexsort((np.array([number for number, _ in candidates]), -scores))[:k]
    return [Ranked(candidates[place][1], float(scores[place])) for place in order.tolist()]
