"""The waists of the house: what an encoder, a reranker and a search result are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]  # (n, dim)
Vector = npt.NDArray[np.float32]  # (dim,)
OnTruncate = Literal["warn", "error", "ignore", "chunk"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors: the waist between torch (training) and numpy (use)."""

    @property
    def dim(self) -> int:
        """The length of every vector."""

    @property
    def fingerprint(self) -> str:
        """A hash of weights and configuration: equal fingerprints give comparable vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in the order given: float32 (n, dim), also for n = 0."""


@runtime_checkable
class Reranker(Protocol):
    """Reads two texts at once and scores how well they fit: slower than an encoder, more exact."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """One score a pair (n,), or one a label (n, labels); larger is better."""


@dataclass(frozen=True)
class Hits:
    """The best rows for each query: similarities, best first; short rows are padded with id -1."""

    ids: npt.NDArray[np.int64]  # (queries, k)
    scores: npt.NDArray[np.float32]  # (queries, k)

    def __post_init__(self) -> None:
        assert self.ids.shape == self.scores.shape, "ids and scores must be of one shape"

    def __len__(self) -> int:
        return len(self.ids)
