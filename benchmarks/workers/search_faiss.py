"""Search with faiss' HNSW, 32 links a node, saved to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
from searching import serve


class Faiss:
    """An index of inner products, of vectors at unit length."""

    efforts = (32, 64, 128, 256, 512)

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        self._n = len(vectors)
        self._index = faiss.IndexHNSWFlat(vectors.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = 128
        self._index.add(_units(vectors))
        faiss.write_index(self._index, str(folder / "index.faiss"))
        return {}

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        # faiss' own way to filter a graph: it walks over all, and keeps what is allowed.
        kept = None if step == 1 else faiss.IDSelectorBatch(np.arange(0, self._n, step, dtype=np.int64))
        how = faiss.SearchParametersHNSW(efSearch=effort, sel=kept)
        return self._index.search(_units(queries), k, params=how)[1]


def _units(vectors: Any) -> Any:
    rows = np.array(vectors, np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


serve(Faiss())
