"""One task of `pairs.py` with gemel: vectors.npy n task argument result.npz -> a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from gemel.similarity import pairs_above, top_pairs
from gemel.tasks.cluster import communities

vectors_file, n_rows, task, argument, result = sys.argv[1:]
vectors = np.load(vectors_file, mmap_mode="r")[: int(n_rows)]
began = time.perf_counter()
if task == "top":
    pairs = top_pairs(vectors, int(argument))
    found = {"first": pairs.first, "second": pairs.second, "scores": pairs.scores}
elif task == "above":
    blocks = list(pairs_above(vectors, float(argument)))
    found = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("first", "second", "scores")
    }
else:
    groups = communities(vectors, threshold=float(argument), min_size=10)
    found = {"sizes": np.array([len(group) for group in groups])}
seconds = time.perf_counter() - began
np.savez(result, **found)
# Not ru_maxrss, which begins with what the process that started this one had used.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
sys.stdout.write(
    json.dumps({"seconds": seconds, "n": len(next(iter(found.values()))), "peak_mb": peak}) + "\n"
)
