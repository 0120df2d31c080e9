"""A collection of real sentences from end to end: how fast it takes them in, and how fast it answers."""

from __future__ import annotations

import json
import shutil
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from searching import peak_mb

from gemel import Collection, load_encoder, search
from gemel.data.texts import TextSource
from gemel.index import Record

asked = json.loads(sys.argv[1])
folder = Path(asked["folder"])
folder.mkdir(parents=True)
encoder = load_encoder(on_truncate="ignore")


def sentences(n: int) -> list[str]:
    source = TextSource(asked["texts"], format=asked["format"])
    return [record.text for record in islice(source.records(), n)]


def ingest(texts: list[str], rounds: int) -> list[dict[str, float]]:
    """Encoding alone and adding to a new collection, in turns."""
    lines = []
    for number in range(rounds):
        seconds: dict[str, float] = {}
        for what in ("encode", "add") if number % 2 else ("add", "encode"):
            began = time.perf_counter()
            if what == "encode":
                encoder.encode(texts)
            else:
                with Collection.create(folder / f"ingest-{number}", encoder) as made:
                    made.add(texts, ids=range(len(texts)))
            seconds[what] = time.perf_counter() - began
        shutil.rmtree(folder / f"ingest-{number}")
        lines.append({**seconds, "ratio": seconds["add"] / seconds["encode"]})
    return lines


def latencies(collection: Collection, queries: list[str], mode: Any) -> dict[str, float]:
    """Milliseconds from a text to its hits, one query at a time."""
    for query in queries[:20]:
        search(collection, [query], 10, mode=mode)
    seconds = []
    for query in queries:
        began = time.perf_counter()
        search(collection, [query], 10, mode=mode)
        seconds.append(time.perf_counter() - began)
    return {f"p{share}_ms": 1000 * float(np.percentile(seconds, share)) for share in (50, 99)}


texts = sentences(asked["rows"] + asked["queries"])
stored, queries = texts[: asked["rows"]], texts[asked["rows"] :][: asked["queries"]]
line: dict[str, Any] = {"ingest": ingest(stored[: asked["ingest_rows"]], asked["rounds"])}
with Collection.create(folder / "c", encoder) as made:
    began = time.perf_counter()
    if asked["vectors"]:  # made before, of the same texts in the same order
        rows = np.load(asked["vectors"], mmap_mode="r")[: len(stored)]
        records = [Record(row, text) for row, text in enumerate(stored)]
        made.add_vectors(records, rows, fingerprint=encoder.fingerprint)
    else:
        made.add(stored, ids=range(len(stored)))
    line["build_seconds"] = time.perf_counter() - began
    line |= {"rows": len(made), "plan": made.plan().reason, "bytes": made.info().n_bytes}
    line["search"] = {mode: latencies(made, queries, mode) for mode in ("dense", "lexical", "hybrid")}
line["peak_mb"] = peak_mb()
sys.stdout.write(json.dumps(line) + "\n")
