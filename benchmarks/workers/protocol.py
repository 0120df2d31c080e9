"""What every encoding worker does with its lines: the first says what to load, each further one is a job."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BATCH_SIZE = 32
Encode = Callable[[list[str]], npt.NDArray[np.float32]]
Load = Callable[[dict[str, Any]], dict[str, Encode]]  # "as is", and "no smart batching" where it has one


def serve(load: Load, packages: Sequence[str]) -> None:
    """Load what the first line asks for, encode one text, then answer job after job until the lines end.

    `load` imports its library itself: a start is counted from the process to the first vector.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    settings = json.loads(sys.stdin.readline())
    ways = load(settings)
    ways["as is"](["The first sentence of all."])
    ways.setdefault("no smart batching", lambda texts: in_calls(ways["as is"], texts))
    _answer(answers, {"versions": _versions(packages), "peak_mb": peak_mb()})
    texts: dict[str, list[str]] = {}
    for line in sys.stdin:
        job = json.loads(line)
        texts.update(job.get("texts", {}))
        _answer(answers, _done(job, ways, texts) if "task" in job else {})


def in_calls(encode: Encode, texts: list[str]) -> npt.NDArray[np.float32]:
    """Batches as the texts come, each a call of its own: nothing can be sorted by length."""
    starts = range(0, len(texts), BATCH_SIZE)
    return np.concatenate([encode(texts[start : start + BATCH_SIZE]) for start in starts])


def peak_mb() -> float:
    """The most memory that was ever resident in this process."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss may be the parent's: it survives exec
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _done(job: dict[str, Any], ways: dict[str, Encode], texts: dict[str, list[str]]) -> dict[str, Any]:
    given = texts[job["of"]]
    if job["task"] == "one at a time":
        seconds = [_timed(ways["as is"], [text])[0] for text in given]
    else:
        taken, vectors = _timed(ways[job["task"]], given)
        seconds = [taken]
        if job.get("save"):
            np.save(job["save"], np.asarray(vectors, np.float32))
    return {"seconds": seconds, "peak_mb": peak_mb()}


def _timed(encode: Encode, texts: list[str]) -> tuple[float, npt.NDArray[np.float32]]:
    began = time.perf_counter()
    vectors = encode(texts)
    return time.perf_counter() - began, vectors


def _answer(answers: Any, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
