"""One task of `pairs.py` with sentence-transformers: vectors.npy n task argument result.npz -> JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import util

vectors_file, n_rows, task, argument, result = sys.argv[1:]
vectors = torch.from_numpy(np.load(vectors_file, mmap_mode="r")[: int(n_rows)].copy())
began = time.perf_counter()
if task == "top":
    pairs = util.paraphrase_mining_embeddings(vectors, max_pairs=int(argument))
    seconds = time.perf_counter() - began
    columns = np.array(pairs)
    found = {"first": columns[:, 1], "second": columns[:, 2], "scores": columns[:, 0]}
else:
    groups = util.community_detection(vectors, threshold=float(argument), min_community_size=10)
    seconds = time.perf_counter() - began
    found = {"sizes": np.array([len(group) for group in groups])}
np.savez(result, **found)
# Not ru_maxrss, which begins with what the process that started this one had used.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) / 1024
sys.stdout.write(
    json.dumps({"seconds": seconds, "n": len(next(iter(found.values()))), "peak_mb": peak}) + "\n"
)
