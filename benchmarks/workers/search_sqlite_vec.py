"""Search with sqlite-vec: every vector is compared, in SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import sqlite_vec
from pysqlite3 import dbapi2 as sqlite3  # Python's own is often built without extensions
from searching import padded, serve


class SqliteVec:
    """A virtual table of vectors with two columns to filter by."""

    efforts = (0,)

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        self._database = sqlite3.connect(str(folder / "measured.sqlite"), isolation_level=None)
        self._database.enable_load_extension(True)
        sqlite_vec.load(self._database)
        columns = (
            f"embedding float[{vectors.shape[1]}] distance_metric=cosine, tenth integer, hundredth integer"
        )
        self._database.execute(f"create virtual table measured using vec0({columns})")
        self._database.execute("begin")
        self._database.executemany(
            "insert into measured(rowid, embedding, tenth, hundredth) values (?, ?, ?, ?)",
            (
                (row, np.asarray(vector, np.float32).tobytes(), row % 10, row % 100)
                for row, vector in enumerate(vectors)
            ),
        )
        self._database.execute("commit")
        return {}

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        where = {1: "", 10: " and tenth = 0", 100: " and hundredth = 0"}[step]
        statement = f"select rowid from measured where embedding match ? and k = ?{where} order by distance"
        found = [
            [row for (row,) in self._database.execute(statement, (query.tobytes(), k))] for query in queries
        ]
        return np.array([padded(ids, k) for ids in found], np.int64)


serve(SqliteVec())
