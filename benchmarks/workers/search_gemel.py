"""Search with a collection of gemel's: records in SQLite, vectors in a file, an index derived from them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from searching import padded, serve

from gemel.index import Collection, KnownModel, Record

NAME = "measured"
AT_ONCE = 50_000


class Gemel:
    """A collection without full text, as its peers are."""

    efforts = (0,)

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        began = time.perf_counter()
        made = Collection.create(folder / "c", KnownModel(NAME, vectors.shape[1]), text_search=())
        made.close()
        self._collection = Collection.open(folder / "c", keeps_index=False)
        for start in range(0, len(vectors), AT_ONCE):
            part = np.ascontiguousarray(vectors[start : start + AT_ONCE])
            records = [
                Record(row, f"row {row}", {"tenth": row % 10, "hundredth": row % 100})
                for row in range(start, start + len(part))
            ]
            self._collection.add_vectors(records, part, fingerprint=NAME)
        stored = time.perf_counter()
        self._collection.build_index()
        return {"store": stored - began, "index": time.perf_counter() - stored}

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        filter_ = {1: None, 10: "tenth = 0", 100: "hundredth = 0"}[step]
        found = self._collection.search_vectors(queries, k, fingerprint=NAME, filter=filter_)
        return np.array([padded([hit.record.id for hit in hits], k) for hits in found], np.int64)  # type: ignore[misc]


serve(Gemel())
