"""Where evaluators of sentence-transformers leave their figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class ModelCardData:
    """What is known of a model besides its folder; it is not written into one."""

    base_model: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    def set_evaluation_metrics(self, evaluator: Any, metrics: Mapping[str, float], *when: Any) -> None:
        """Keep what an evaluator has found."""
        self.metrics.update(metrics)
