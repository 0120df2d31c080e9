"""Plain vectors under integer ids, kept by a server: the contract of every index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits
from gemel.index.arguments import checked_count, checked_entries, checked_numbers, checked_vectors
from gemel.index.backend import Backend
from gemel.index.checksums import content_hash
from gemel.index.records import NO_METADATA, Row
from gemel.index.scan import nothing_found

_WINDOW_ROWS = 4_096


class RemoteIndex:
    """The vectors of one collection on a server, which holds no texts; made by `gemel.index.opening`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Keep one vector (n, dim) under each id (n,); an id that is there already gets the new one."""
        numbers, given = checked_entries(ids, vectors, self._backend.settings.dim)
        rows = self._backend.settings.layout.stored(given)
        for start in range(0, len(numbers), _WINDOW_ROWS):
            window = dict(
                zip(
                    numbers[start : start + _WINDOW_ROWS].tolist(),
                    rows[start : start + _WINDOW_ROWS],
                    strict=True,
                )
            )
            # Where there is no text, the vector itself says whether anything has changed.
            entries = [
                Row(number, "", NO_METADATA, content_hash(row.tobytes().hex()))
                for number, row in window.items()
            ]
            self._backend.store(entries, window)

    def remove(self, ids: npt.ArrayLike) -> int:
        """Forget these ids; how many of them were there."""
        numbers = np.unique(checked_numbers("ids", ids)).tolist()
        return self._backend.remove(numbers) if numbers else 0

    def search(self, queries: npt.ArrayLike, k: int, *, allowed: npt.ArrayLike | None = None) -> Hits:
        """The k ids that are (nearly always) most like each query, among the `allowed` ones."""
        asked = checked_vectors("queries", queries, self._backend.settings.dim)
        hits = nothing_found(len(asked), checked_count("k", k))
        numbers = None if allowed is None else np.unique(checked_numbers("allowed", allowed)).tolist()
        if not len(asked) or numbers == []:
            return hits
        for row, ranked in enumerate(self._backend.nearest(asked, k, numbers)):
            hits.ids[row, : len(ranked)] = [int(each.held.id) for each in ranked]
            hits.scores[row, : len(ranked)] = [each.score for each in ranked]
        return hits

    def flush(self) -> None:
        """Bring the approximate index up to date, where it is worthwhile; all vectors are safe already."""
        self._backend.keep_index()

    def close(self) -> None:
        """Let go of the server."""
        self._backend.close()

    def __len__(self) -> int:
        return self._backend.count(None)
