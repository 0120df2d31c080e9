"""All pairs above a threshold with faiss: vectors.npy n above threshold result.npz -> a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np

vectors_file, n_rows, task, argument, result = sys.argv[1:]
assert task == "above", task
vectors = np.load(vectors_file, mmap_mode="r")[: int(n_rows)].copy()
began = time.perf_counter()
index = faiss.IndexFlatIP(vectors.shape[1])
index.add(vectors)
limits, scores, ids = index.range_search(vectors, float(argument))
first = np.repeat(np.arange(len(vectors)), np.diff(limits.astype(np.int64)))
once = first < ids
found = {"first": first[once], "second": ids[once], "scores": scores[once]}
seconds = time.perf_counter() - began
np.savez(result, **found)
# Not ru_maxrss, which begins with what the process that started this one had used.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
sys.stdout.write(json.dumps({"seconds": seconds, "n": len(found["first"]), "peak_mb": peak}) + "\n")
