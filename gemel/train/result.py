"""What a training run came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemel.train.curves import draw_curves
from gemel.train.metrics import MetricsFile


@dataclass(frozen=True)
class TrainResult:
    """What a run came to."""

    model: Path  # the folder of the best model, or of the last where nothing was validated
    steps: int
    best_step: int
    best_score: float | None
    seconds: float
    stopped_early: bool
    is_complete: bool = True  # all steps were made: nothing was left for want of time or patience
    planned_steps: int | None = None  # of which an older program did not tell

    @property
    def course(self) -> str:
        """How far it went, and of which step the model is, in a line."""
        told = f"{self.steps:,}"
        if not self.is_complete:
            planned = "" if self.planned_steps is None else f" of {self.planned_steps:,}"
            told += f"{planned}, then {'it got no better' if self.stopped_early else 'time was up'}"
        return told if self.best_step == self.steps else f"{told}; the best was step {self.best_step:,}"

    def draw_curves(self, title: str | None = None) -> list[Path]:
        """Put a picture of the loss and the validation score beside the model, as PNG and SVG."""
        place = self.model.parent
        return draw_curves(MetricsFile(place / "metrics.jsonl").read(), title or place.name, place / "curves")
