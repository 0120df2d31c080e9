"""What an evaluation gives: figures, and all that one must know to compare them with others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gemel.contracts import Encoder, Reranker


@dataclass(frozen=True)
class Scores:
    """The figures of one encoder on one set; fractions, not percents."""

    name: str
    metrics: Mapping[str, float]
    primary: str  # the metric that tables show
    protocol: str  # in words
    n_examples: int
    data_hash: str  # sha256 of the files; empty for data that came from none
    fingerprint: str  # of the encoder
    engine: str
    interval: tuple[float, float] | None = None  # 95% of the primary metric, by the bootstrap

    def __post_init__(self) -> None:
        assert self.primary in self.metrics, f"{self.primary} is not among {list(self.metrics)}"

    @property
    def score(self) -> float:
        """The primary metric."""
        return self.metrics[self.primary]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


def engine_of(encoder: Encoder | Reranker) -> str:
    """What computes, and how exactly."""
    engine = str(getattr(encoder, "engine", type(encoder).__name__))
    return f"{engine} {getattr(encoder, 'precision', '')}".rstrip()
