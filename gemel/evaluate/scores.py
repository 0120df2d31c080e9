"""What an evaluation gives: figures, and all that one must know to compare them with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Scores:
    """The figures of one encoder on one set; fractions, not percents."""

    name: str
    metrics: Mapping[str, float]
    primary: str  # the metric that tables show
    protocol: str  # in words
    n_pairs: int
    data_hash: str  # sha256 of the file; empty for data that came from none
    fingerprint: str  # of the encoder
    engine: str

    @property
    def score(self) -> float:
        """The primary metric."""
        return self.metrics[self.primary]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)
