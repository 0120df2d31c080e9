"""What an evaluation gives: figures, and all that one must know to compare them with others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gemel.contracts import Encoder, Reranker
from gemel.errors import InvalidInput

AVERAGE = "average"


@dataclass(frozen=True)
class Scores:
    """The figures of one encoder on one set; fractions, not percents."""

    name: str
    metrics: Mapping[str, float]
    primary: str  # the metric that tables show
    protocol: str  # in words
    n_examples: int
    data_hash: str  # sha256 of the files; empty for data that came from none
    fingerprint: str  # of the encoder; where a reranker took part, also its own, after a +
    engine: str  # likewise
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


def average_of(scores: Sequence[Scores]) -> Scores:
    """The mean of several sets, each counting the same, as in the paper's last column."""
    if len({each.fingerprint for each in scores}) != 1:
        raise InvalidInput("an average was asked of no scores, or of several encoders; expected one encoder")
    shared = [name for name in scores[0].metrics if all(name in each.metrics for each in scores)]
    hashes = "".join(each.data_hash for each in scores)
    return Scores(
        name=AVERAGE,
        metrics={name: float(np.mean([each.metrics[name] for each in scores])) for name in shared},
        primary=scores[0].primary,
        protocol=f"mean of {', '.join(each.name for each in scores)}, each counting the same",
        n_examples=sum(each.n_examples for each in scores),
        data_hash=hashlib.sha256(hashes.encode()).hexdigest() if hashes else "",
        fingerprint=scores[0].fingerprint,
        engine=scores[0].engine,
    )
