"""A picture of a run: the loss and the validation score over the steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gemel.errors import MissingExtra

FORMATS = ("png", "svg")


def draw_curves(metrics: list[dict[str, Any]], title: str, target: Path) -> list[Path]:
    """Write `target` as PNG and SVG; the files that were written."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing training curves", "plot") from None
    losses = [(line["step"], line["loss"]) for line in metrics if "loss" in line]
    scores = [(line["step"], line["validation"]) for line in metrics if "validation" in line]
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set(title=title, xlabel="step", ylabel="training loss")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if losses:
        steps, values = map(np.array, zip(*losses, strict=True))
        axes.plot(steps, values, color="tab:blue", alpha=0.25, linewidth=1)
        axes.plot(steps, _smoothed(values), color="tab:blue", linewidth=1.8, label="training loss")
        axes.set_ylim(bottom=0)
    if scores:
        steps, values = map(np.array, zip(*scores, strict=True))
        right = axes.twinx()
        right.spines["top"].set_visible(False)
        right.plot(steps, values, "o-", color="tab:orange", markersize=4, label="validation")
        right.set_ylabel("validation score")
        best = int(values.argmax())
        right.annotate(
            f"{values[best]:.4f}", (steps[best], values[best]), xytext=(0, 8), textcoords="offset points",
            ha="center", color="tab:orange",
        )  # fmt: skip
        right.margins(y=0.15)
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [target.with_suffix(f".{suffix}") for suffix in FORMATS]
    for file in files:
        figure.savefig(file, dpi=150)
    return files


def _smoothed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A running mean over a tenth of the curve, shorter at both ends so that it starts and ends with it."""
    window = max(1, len(values) // 10)
    return np.array(
        [values[max(0, i - window // 2) : i + window // 2 + 1].mean() for i in range(len(values))]
    )
