"""A picture of a run: the loss and the validation score over the steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gemel.drawing import BLUE, ORANGE, finished, new_figure, quiet_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("png", "svg")
FEW = 20  # points, each of which is shown
Points = list[tuple[int, float]]


def draw_curves(metrics: list[dict[str, Any]], title: str, target: Path) -> list[Path]:
    """Write `target` as PNG and SVG; the files that were written."""
    losses, scores = (
        [(line["step"], line[name]) for line in metrics if name in line] for name in ("loss", "validation")
    )
    from matplotlib.ticker import MaxNLocator

    with quiet_style():
        figure = new_figure(7.2, 4.0)
        axes = figure.add_subplot()
        axes.set(title=title, xlabel="step")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _draw_losses(axes, losses)
        caption = "The training loss over the steps."
        if scores:
            _draw_scores(axes.twinx(), scores)
            best_step, best = max(scores, key=lambda point: point[1])
            caption += f" On the right the validation score: {best:.4f} at its best, at step {best_step:,}."
        picture = finished(title, caption, figure)
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [target.with_suffix(f".{suffix}") for suffix in FORMATS]
    for file in files:
        picture.save(file)
    return files


def _draw_losses(axes: Axes, losses: Points) -> None:
    _name_axis(axes, "training loss", BLUE)
    if losses:
        steps, values = map(np.array, zip(*losses, strict=True))
        axes.plot(steps, values, color=BLUE, alpha=0.25, linewidth=1)
        marker = "o" if len(values) <= FEW else None  # a lone point is no line
        axes.plot(steps, _smoothed(values), color=BLUE, linewidth=1.8, marker=marker, markersize=4)
        axes.set_ylim(0, 1.1 * max(values.max(), 1e-6))
        if len(values) == 1:
            axes.set_xlim(0, steps[0] + 1)


def _draw_scores(axes: Axes, scores: Points) -> None:
    _name_axis(axes, "validation score", ORANGE)
    steps, values = map(np.array, zip(*scores, strict=True))
    axes.plot(steps, values, "o-", color=ORANGE, markersize=4)
    axes.grid(False)  # one is enough
    axes.margins(y=0.15)
    best = int(values.argmax())
    axes.annotate(
        f"{values[best]:.4f}", (steps[best], values[best]), xytext=(0, 8), textcoords="offset points",
        ha="center", color=ORANGE,
    )  # fmt: skip


def _name_axis(axes: Axes, name: str, colour: str) -> None:
    """In the colour of its line, which then needs no legend."""
    axes.set_ylabel(name, color=colour)
    axes.tick_params(axis="y", labelcolor=colour)


def _smoothed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A running mean over a tenth of the curve, shorter at both ends so that it starts and ends with it."""
    window = max(1, len(values) // 10)
    return np.array(
        [values[max(0, i - window // 2) : i + window // 2 + 1].mean() for i in range(len(values))]
    )
