"""Search with hnswlib, 32 links a node, saved to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
from searching import serve


class Hnswlib:
    """An index by cosine."""

    efforts = (32, 64, 128, 256, 512)

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        self._index = hnswlib.Index("cosine", vectors.shape[1])
        self._index.init_index(len(vectors), M=16, ef_construction=128, random_seed=0)  # M links each way
        self._index.add_items(np.array(vectors), np.arange(len(vectors)))
        self._index.save_index(str(folder / "index.hnswlib"))
        return {}

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        self._index.set_ef(effort)
        try:
            if step == 1:
                return self._index.knn_query(queries, k)[0].astype(np.int64)
            # A filter in Python is called under the interpreter's lock: threads would wait for each other.
            kept = self._index.knn_query(queries, k, num_threads=1, filter=lambda row: row % step == 0)
            return kept[0].astype(np.int64)
        except RuntimeError:  # "cannot return the results in a contiguous 2D array": fewer than k were found
            return np.full((len(queries), k), -1, np.int64)


serve(Hnswlib())
