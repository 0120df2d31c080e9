"""An index in memory that compares a query with every vector: slow when large, and never wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits, Vectors
from gemel.errors import InvalidInput
from gemel.index.arguments import Integers, checked_count, checked_entries, checked_numbers, checked_vectors
from gemel.index.scan import PACKED, nothing_found
from gemel.similarity import MEASURES, PackedRows, top_k


class ExactIndex:
    """Vectors under integer ids, the reference that every other index is measured against."""

    def __init__(self, dim: int, *, measure: str = "cosine") -> None:
        if measure not in MEASURES:
            raise InvalidInput(f"measure is {measure!r}; expected one of {', '.join(MEASURES)}")
        self.dim = checked_count("dim", dim)
        self.measure = measure
        self._rows: Vectors = np.zeros((0, dim), np.float32)  # with room to grow
        self._ids: Integers = np.zeros(0, np.int64)  # of the rows in use
        self._places: dict[int, int] = {}
        self._packed: PackedRows | None = None  # ready to be searched, until something changes

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Keep one vector (n, dim) under each id (n,); an id that is there already gets the new one."""
        numbers, rows = checked_entries(ids, vectors, self.dim)
        self._packed = None
        places = [self._places.get(number, -1) for number in numbers.tolist()]
        is_new = np.array([place < 0 for place in places], np.bool_)
        known = np.array([place for place in places if place >= 0], np.int64)
        self._rows[known] = rows[~is_new]
        n_before, n_after = len(self._ids), len(self._ids) + int(is_new.sum())
        if n_after > len(self._rows):
            grown = np.empty((max(n_after, 2 * n_before), self.dim), np.float32)
            grown[:n_before] = self._rows[:n_before]
            self._rows = grown
        self._rows[n_before:n_after] = rows[is_new]
        self._ids = np.concatenate([self._ids, numbers[is_new]])
        self._places.update(zip(numbers[is_new].tolist(), range(n_before, n_after), strict=True))

    def remove(self, ids: npt.ArrayLike) -> int:
        """Forget these ids; how many of them were there."""
        gone = self._places_of(checked_numbers("ids", ids))
        if len(gone):
            self._packed = None
            kept = np.ones(len(self._ids), np.bool_)
            kept[gone] = False
            self._rows = self._rows[: len(kept)][kept]
            self._ids = self._ids[kept]
            self._places = {number: place for place, number in enumerate(self._ids.tolist())}
        return len(gone)

    def search(self, queries: npt.ArrayLike, k: int, *, allowed: npt.ArrayLike | None = None) -> Hits:
        """The k ids most like each query, among the `allowed` ones; equal scores by the earlier added."""
        asked, k = checked_vectors("queries", queries, self.dim), checked_count("k", k)
        if not len(asked) or not len(self):
            return nothing_found(len(asked), k)
        if allowed is None:
            hits = self._compared(asked, k, None)
        else:
            mask = np.zeros(len(self._ids), np.bool_)
            mask[self._places_of(checked_numbers("allowed", allowed))] = True
            hits = self._compared(asked, k, mask)
        return Hits(np.where(hits.ids >= 0, self._ids[hits.ids], -1), hits.scores)

    def flush(self) -> None:
        """Nothing to do: this index lives in memory only."""

    def __len__(self) -> int:
        return len(self._ids)

    def _compared(self, asked: Vectors, k: int, mask: npt.NDArray[np.bool_] | None) -> Hits:
        rows = self._rows[: len(self._ids)]
        if self.measure in PACKED:
            self._packed = self._packed or PackedRows(rows, self.measure)
            return self._packed.search(asked, k, allowed=mask)
        if mask is None:
            return top_k(asked, rows, k, self.measure)
        places = np.flatnonzero(mask)
        if not len(places):
            return nothing_found(len(asked), k)
        hits = top_k(asked, rows[places], k, self.measure)
        return Hits(np.where(hits.ids >= 0, places[hits.ids], -1), hits.scores)

    def _places_of(self, numbers: Integers) -> Integers:
        found = {self._places[number] for number in numbers.tolist() if number in self._places}
        return np.fromiter(found, np.int64, len(found))
