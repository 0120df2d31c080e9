"""How fast an encoder is, with tokenising and everything: texts in, vectors out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors


@dataclass(frozen=True)
class Speed:
    """Figures of one encoder; times are the best of several rounds, latencies of texts one at a time."""

    name: str
    texts_per_second: float
    tokens_per_second: float
    p50_ms: float
    p99_ms: float
    mean_cosine: float  # to the reference's vectors
    min_cosine: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


class SpeedTrial:
    """Several encoders on the same texts, one after another in every round, so that noise is shared."""

    def __init__(self, encoders: dict[str, Encoder], texts: Sequence[str], n_tokens: int) -> None:
        self.encoders = encoders
        self.texts = list(texts)
        self.n_tokens = n_tokens
        self._seconds: dict[str, list[float]] = {name: [] for name in encoders}
        self._latencies: dict[str, list[float]] = {name: [] for name in encoders}
        self._vectors: dict[str, Vectors] = {}

    def run_round(self, n_single: int = 100) -> None:
        """Every encoder once: all texts in one call, then some of them one by one."""
        for name, encoder in self.encoders.items():
            began = time.perf_counter()
            self._vectors[name] = encoder.encode(self.texts)
            self._seconds[name].append(time.perf_counter() - began)
            for text in self.texts[:n_single]:
                began = time.perf_counter()
                encoder.encode([text])
                self._latencies[name].append(time.perf_counter() - began)

    def results(self, reference: str) -> list[Speed]:
        """The figures of all encoders; cosines are to the vectors of the reference."""
        return [self._result(name, self._vectors[reference]) for name in self.encoders]

    def _result(self, name: str, reference: Vectors) -> Speed:
        seconds = min(self._seconds[name])
        milliseconds = 1000 * np.array(self._latencies[name])
        cosine = _cosines(self._vectors[name], reference)
        return Speed(
            name=name,
            texts_per_second=len(self.texts) / seconds,
            tokens_per_second=self.n_tokens / seconds,
            p50_ms=float(np.percentile(milliseconds, 50)),
            p99_ms=float(np.percentile(milliseconds, 99)),
            mean_cosine=float(cosine.mean()),
            min_cosine=float(cosine.min()),
        )


def _cosines(first: Vectors, second: Vectors) -> npt.NDArray[np.float64]:
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    cosine: npt.NDArray[np.float64] = (a * b).sum(1) / np.maximum(lengths, 1e-30)
    return cosine
