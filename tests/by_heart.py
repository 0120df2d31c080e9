"""An encoder that knows a few sentences, for figures that are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class TableEncoder:
    """Knows a few sentences by heart, and remembers what it was asked."""

    fingerprint = "by-heart"
    engine = "memory"

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors, self.seen = vectors, list[str]()
        self.dim = len(next(iter(vectors.values())))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.array([self.vectors[text] for text in texts], np.float32).reshape(len(texts), self.dim)
