"""A deterministic encoder, and a process that encodes a file with it: for tests that kill or starve it.

    python encoding_process.py '{"source": ..., "output": ..., ...}'

prints a JSON line with the rows, the resumed rows and the texts encoded, or the error.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from gemel.data.texts import TextSource
from gemel.errors import GemelError
from gemel.tasks.encode import EncodeOptions, encode_file


class HashEncoder:
    """The hash of a text as 16 numbers from -1 to 1; counts what it encodes."""

    dim = 16

    def __init__(self, fingerprint: str = "hash-16", delay_seconds: float = 0.0) -> None:
        self.fingerprint = fingerprint
        self.delay_seconds = delay_seconds
        self.n_encoded = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        time.sleep(self.delay_seconds)
        self.n_encoded += len(texts)
        digests = b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
        return np.frombuffer(digests, np.int16).reshape(-1, self.dim).astype(np.float32) / 32768


def run(source: str, output: str, *, delay_seconds: float = 0.0, **options: Any) -> dict[str, Any]:
    """Encode and say what happened."""
    encoder = HashEncoder(delay_seconds=delay_seconds)
    id_column = None if Path(source).suffix == ".txt" else "id"
    try:
        summary = encode_file(
            encoder, TextSource(source, id_column=id_column), output, options=EncodeOptions(**options)
        )
    except GemelError as error:
        return {"error": type(error).__name__, "message": str(error), "encoded": encoder.n_encoded}
    return {"rows": summary.rows, "resumed": summary.resumed_rows, "encoded": encoder.n_encoded}


def die_at(step: int) -> None:
    """Kill this process as it is about to take its nth step towards the disk."""
    steps = 0

    def counted(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return call

    for name in ("mkdir", "pwrite", "fsync", "replace", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))


def die_at_every_step(source: str, output: str, expected: str, **options: Any) -> dict[str, Any]:
    """Kill a run at its first step, at its second and so on; list what a next run does not mend."""
    wrong = []
    for step in count(1):
        child = os.fork()
        if not child:
            die_at(step)
            run(source, output, **options)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return {"steps": step - 1, "wrong": wrong}
        was_in_place = Path(output).exists()
        outcome = run(source, output, **options)
        is_done = "exists already" in outcome["message"] if was_in_place else "error" not in outcome
        if not is_done or Path(output).read_bytes() != Path(expected).read_bytes():
            wrong.append((step, outcome))
        Path(output).unlink()
        shutil.rmtree(f"{output}.partial", ignore_errors=True)
    raise AssertionError("count never ends")


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    if max_file_bytes := settings.pop("max_file_bytes", None):
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    print(json.dumps((die_at_every_step if "expected" in settings else run)(**settings)))  # noqa: T201
