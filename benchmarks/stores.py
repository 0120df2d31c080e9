"""Collections in PostgreSQL and Milvus beside the one in a folder: recall@10 and queries a second.

    python benchmarks/stores.py --vectors VECTORS.npy --store postgresql://... --store milvus:/tmp/bench.db

Every store is filled and asked by a process of its own, with the same vectors of real sentences; queries are
other rows of the same file. Recall is measured against exact search, plainly and under filters that keep a
tenth and a hundredth of the rows. The server's time and the way to it are in every figure; the index is
built behind the adding, and told apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel.index import Collection, KnownModel, Record
from gemel.index.opening import address_in, create_collection, open_collection, shown_address
from gemel.index.remote import RemoteCollection
from gemel.similarity import top_k
from gemel.table import format_table

K = 10
MODEL = "a-model-for-the-benchmark"
SHARES = {1: None, 10: "tenth", 100: "hundredth"}  # every so many rows, and the filter that keeps them
WINDOW_ROWS = 8_192
N_QUERIES, WARM_QUERIES = 500, 20


def measured(store: str, vectors: Path, rows: int, seconds: float) -> dict[str, Any]:
    """One store filled, indexed and asked."""
    everything = np.load(vectors, mmap_mode="r")
    queries = np.asarray(everything[rows : rows + N_QUERIES], np.float32)
    address = address_in(store, f"bench-{int(time.time() * 1000)}")
    create_collection(address, KnownModel(MODEL, everything.shape[1]), text_search=("word",)).close()
    with closing(open_collection(address, keeps_index=False)) as collection:
        began = time.perf_counter()
        for start in range(0, rows, WINDOW_ROWS):
            stop = min(start + WINDOW_ROWS, rows)
            records = [
                Record(n, f"sentence number {n}", {"tenth": n % 10 == 0, "hundredth": n % 100 == 0})
                for n in range(start, stop)
            ]
            collection.add_vectors(records, everything[start:stop], fingerprint=MODEL)
        filled = time.perf_counter()
        assert isinstance(collection, Collection | RemoteCollection)
        collection.build_index()
        indexed = time.perf_counter()
        searches = {
            step: _asked(collection, queries, np.asarray(everything[:rows:step]), step, filter_, seconds)
            for step, filter_ in SHARES.items()
        }
        found = collection.info()
    return {
        "store": shown_address(store),
        "rows": rows,
        "fill_seconds": filled - began,
        "index_seconds": indexed - filled,
        "bytes": found.n_bytes,
        "plan": found.plan.reason,
        "searches": searches,
    }


def _asked(
    collection: Any, queries: Any, kept: Any, step: int, filter_: str | None, seconds: float
) -> dict[str, float]:
    """Recall and speed of lone queries, one after the other, for as long as they may take."""
    truth = top_k(queries, kept, K).ids * step
    for row in range(WARM_QUERIES):
        collection.search_vectors(queries[row : row + 1], K, fingerprint=MODEL, filter=filter_)
    took: list[float] = []
    shares: list[float] = []
    for row in range(len(queries)):
        began = time.perf_counter()
        hits = collection.search_vectors(queries[row : row + 1], K, fingerprint=MODEL, filter=filter_)[0]
        took.append(time.perf_counter() - began)
        shares.append(len({hit.record.id for hit in hits} & set(truth[row].tolist())) / K)
        if sum(took) > seconds:
            break
    return {
        "recall": float(np.mean(shares)),
        "p50_ms": 1000 * float(np.percentile(took, 50)),
        "p99_ms": 1000 * float(np.percentile(took, 99)),
        "queries_per_second": len(took) / sum(took),
        "queries": len(took),
    }


HEADER = [
    "store",
    "recall",
    "at 10%",
    "at 1%",
    "p50 ms",
    "p99 ms",
    "queries/s",
    "10% p50",
    "1% p50",
    "fill s",
]
HEADER += ["index s", "MB"]


def row_of(line: dict[str, Any]) -> list[str]:
    """One store's figures."""
    plain, tenth, hundredth = line["searches"].values()
    return [
        line["store"], f"{plain['recall']:.3f}", f"{tenth['recall']:.3f}", f"{hundredth['recall']:.3f}",
        f"{plain['p50_ms']:.2f}", f"{plain['p99_ms']:.2f}", f"{plain['queries_per_second']:,.0f}",
        f"{tenth['p50_ms']:.2f}", f"{hundredth['p50_ms']:.2f}", f"{line['fill_seconds']:,.1f}",
        f"{line['index_seconds']:,.1f}", f"{line['bytes'] / 1e6:,.0f}",
    ]  # fmt: skip


@click.command()
@click.option("--vectors", type=click.Path(path_type=Path, exists=True), required=True, help="A .npy.")
@click.option("--store", "stores", multiple=True, help="Besides a folder: postgresql://..., milvus:...")
@click.option("--rows", default=100_000, show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="That one measurement may take.")
@click.option("--json", "json_file", type=click.Path(path_type=Path))
@click.option("--alone", is_flag=True, hidden=True, help="Measure the one store here, and print a line.")
def main(
    vectors: Path, stores: tuple[str, ...], rows: int, seconds: float, json_file: Path | None, alone: bool
) -> None:
    """Measure, compare and print."""
    if alone:
        click.echo(json.dumps(measured(stores[0], vectors, rows, seconds)))
        return
    lines = []
    with tempfile.TemporaryDirectory(prefix="gemel-stores-") as folder:
        for store in (folder, *stores):
            asked = [sys.executable, __file__, "--vectors", str(vectors), "--rows", str(rows), "--alone"]
            asked += ["--store", store, "--seconds", str(seconds)]
            done = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True)
            line = json.loads(done.stdout.splitlines()[-1])
            lines.append({**line, "store": "folder"} if store == folder else line)
            click.echo(f"  {lines[-1]['store']}: {lines[-1]['plan']}", err=True)
    click.echo(f"{rows:,} rows\n" + format_table(HEADER, [*map(row_of, lines)]))
    if json_file:
        date = datetime.now(timezone.utc).isoformat(timespec="minutes")
        json_file.write_text(json.dumps({"date": date, "lines": lines}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
