"""Search with LanceDB: a table with its own HNSW index over IVF partitions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from searching import padded, serve


class Lance:
    """A table of vectors with two columns to filter by."""

    efforts = (20, 80, 320)

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        began = time.perf_counter()
        rows = np.arange(len(vectors))
        flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
        data = pa.table(
            {
                "id": rows,
                "tenth": rows % 10,
                "hundredth": rows % 100,
                "vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
            }
        )
        self._table = lancedb.connect(str(folder)).create_table("measured", data)
        stored = time.perf_counter()
        self._table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")
        return {"store": stored - began, "index": time.perf_counter() - stored}

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        found = []
        for query in queries:
            asked = self._table.search(query).distance_type("cosine").limit(k).nprobes(effort).ef(4 * effort)
            asked = asked.refine_factor(4).select(["id"])
            if step > 1:
                asked = asked.where({10: "tenth = 0", 100: "hundredth = 0"}[step], prefilter=True)
            found.append(padded(asked.to_arrow()["id"].to_pylist(), k))
        return np.array(found, np.int64)


serve(Lance())
