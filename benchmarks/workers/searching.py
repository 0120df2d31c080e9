"""What every search worker does: build from the vectors of a file, then answer, plainly and under filters.

A worker is called with one JSON object: vectors and queries (.npy), rows, k, shares (of the rows that filters
keep), efforts, seconds (that one measurement may take), folder, and prints one line of JSON. A filter that
keeps a share of 0.1 keeps the rows whose number is divisible by 10.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class System(Protocol):
    """An index under test."""

    efforts: Sequence[int]  # how hard to search, least first; one where there is no such choice

    def build(self, vectors: Any, folder: Path) -> dict[str, float]:
        """Make the index and whatever it keeps on the disk; seconds of steps that are told apart."""

    def search(self, queries: Any, k: int, effort: int, step: int) -> Any:
        """The ids (n, k) of the rows most like each query, among those divisible by `step`."""


def serve(system: System) -> None:
    """Measure one system as the first argument asks, and print what was found."""
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    folder.mkdir(parents=True)
    vectors = np.load(asked["vectors"], mmap_mode="r")[: asked["rows"]]
    queries = np.load(asked["queries"])
    before = peak_mb()
    began = time.perf_counter()
    steps = system.build(vectors, folder)
    line: dict[str, Any] = {
        "build_seconds": time.perf_counter() - began,
        "steps": steps,
        "bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        "searches": [],
    }
    for effort in system.efforts:
        for share in asked["shares"]:
            found = _search(system, queries, asked, effort, round(1 / share))
            result = folder.with_name(f"{folder.name}-{effort}-{share}.npy")
            np.save(result, found.pop("ids"))
            line["searches"].append({"effort": effort, "share": share, "result": str(result), **found})
    line |= {"peak_mb": peak_mb(), "peak_before_mb": before}
    sys.stdout.write(json.dumps(line) + "\n")


def _search(system: System, queries: Any, asked: dict[str, Any], effort: int, step: int) -> dict[str, Any]:
    """One query at a time for as long as there is time, then all of these at once."""
    system.search(queries[:1], asked["k"], effort, step)  # what is done once, is not timed
    seconds: list[float] = []
    found: list[Any] = []
    began = time.perf_counter()
    for row in range(len(queries)):
        started = time.perf_counter()
        found.append(system.search(queries[row : row + 1], asked["k"], effort, step))
        seconds.append(time.perf_counter() - started)
        if time.perf_counter() - began > asked["seconds"]:
            break
    began = time.perf_counter()
    system.search(queries[: len(found)], asked["k"], effort, step)
    together = time.perf_counter() - began
    return {
        "ids": np.concatenate(found),
        "p50_ms": 1000 * float(np.percentile(seconds, 50)),
        "p99_ms": 1000 * float(np.percentile(seconds, 99)),
        "queries_per_second": len(found) / together,
    }


def peak_mb() -> float:
    """The most memory that was ever resident in this process; not ru_maxrss, which survives exec."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


def padded(ids: Sequence[int], k: int) -> list[int]:
    """The ids of one query, -1 where there are too few."""
    return [*ids, *[-1] * (k - len(ids))]
