"""The pictures of a report: what Sentence-BERT changes, and how near a reproduction comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gemel.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Picture,
    finished,
    label_points,
    new_figure,
    quiet_style,
)
from gemel.errors import InvalidInput
from gemel.reproduce.cells import cell_of, our_figures
from gemel.reproduce.lines import Line, Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 6.2  # inches: texts stay readable when a phone shows it 4 wide

_COLOURS = (ORANGE, BLUE, INK)


@dataclass(frozen=True)
class SpeedPoint:
    """How quick and how good one model is; `is_from_paper` where the figures were not measured here."""

    name: str
    sentences_per_second: float
    sts_average: float  # Spearman x 100
    is_from_paper: bool = False


@dataclass(frozen=True)
class Similarities:
    """The cosines that a model gives to pairs, and the scores that people gave to the same pairs."""

    name: str
    cosines: NDArray[np.floating]
    gold: NDArray[np.floating]

    def __post_init__(self) -> None:
        if self.cosines.shape != self.gold.shape or self.cosines.ndim != 1 or not len(self.gold):
            raise InvalidInput(
                f"the similarities of {self.name} have cosines of shape {self.cosines.shape} and gold "
                f"scores of shape {self.gold.shape}; give one list of each, of one length, not empty"
            )
        if not (np.isfinite(self.cosines).all() and np.isfinite(self.gold).all()):
            raise InvalidInput(
                f"the similarities of {self.name} have values that are no numbers; leave those pairs out"
            )


def quality_against_speed(points: Sequence[SpeedPoint]) -> Picture:
    """Each model as a point: sentences a second to the right, STS average upwards."""
    if not points or any(point.sentences_per_second <= 0 for point in points):
        raise InvalidInput("a picture of speed needs at least one point, and every speed must be above 0")
    with quiet_style():
        figure = new_figure(WIDTH, 4.0)
        axes = figure.add_subplot()
        axes.set(xscale="log", xlabel="sentences a second", ylabel="STS average (Spearman × 100)")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        for point in points:
            axes.plot(
                point.sentences_per_second, point.sts_average, "o", markersize=7, markeredgecolor=BLUE,
                markeredgewidth=1.4, color="none" if point.is_from_paper else BLUE,
            )  # fmt: skip
        axes.locator_params(axis="y", integer=True, steps=(1, 2, 5, 10))
        axes.margins(x=0.12, y=0.12)
        places = [(point.sentences_per_second, point.sts_average) for point in points]
        label_points(axes, places, [point.name for point in points])
    caption = "Up is better, right is quicker (each step of the lower scale is ten times the one before)."
    if any(point.is_from_paper for point in points):
        caption += " Hollow points are the paper's own figures, from its own machine."
    return finished("Quality against speed", caption, figure)


def similarity_histograms(
    raw: Similarities, tuned: Similarities, *, low: float = 1.0, high: float = 4.0
) -> Picture:
    """Cosines of pairs that people scored at most `low` and at least `high`, before and after tuning."""
    with quiet_style():
        figure = new_figure(WIDTH, 4.2)
        panels = figure.subplots(2, 1, sharex=True)
        least = min(float(each.cosines.min()) for each in (raw, tuned))
        edges = np.linspace(np.floor(least * 10) / 10, 1.0, 61)
        for axes, each in zip(panels, (raw, tuned), strict=True):
            _histogram(axes, each, edges, low, high)
        panels[0].legend(frameon=False, loc="upper left", fontsize=9)
        panels[-1].set_xlabel("cosine of the two sentences")
    share = {each.name: _separation(each, low, high) for each in (raw, tuned)}
    caption = (
        f"Pairs of sentences that people found unlike (score {low:g} or less) and alike ({high:g} or more), "
        "by the cosine of their vectors. "
        + "; ".join(
            f"{name}: an alike pair has the higher cosine in {part:.1%} of cases"
            for name, part in share.items()
        )
        + "."
    )
    return finished("What the cosines of a model say", caption, figure)


def _histogram(axes: Axes, each: Similarities, edges: NDArray[np.floating], low: float, high: float) -> None:
    groups = (
        (each.cosines[each.gold <= low], ORANGE, f"unlike (score ≤ {low:g})"),
        (each.cosines[each.gold >= high], BLUE, f"alike (score ≥ {high:g})"),
    )
    for cosines, colour, label in groups:
        shares = np.histogram(np.clip(cosines, edges[0], edges[-1]), edges)[0] / max(1, len(cosines))
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.35)
        axes.stairs(shares, edges, color=colour, linewidth=1.3, label=label)
    axes.set_title(f"{each.name}: alike above unlike in {_separation(each, low, high):.1%} of cases")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.set_ylabel("of the pairs")


def _separation(each: Similarities, low: float, high: float) -> float:
    """How often an alike pair has a higher cosine than an unlike one; 0.5 would be chance."""
    unlike, alike = np.sort(each.cosines[each.gold <= low]), each.cosines[each.gold >= high]
    if not len(unlike) or not len(alike):
        raise InvalidInput(
            f"the gold scores run from {each.gold.min():g} to {each.gold.max():g}, so that there are "
            f"{len(unlike)} pairs of at most {low:g} and {len(alike)} of at least {high:g}; give other limits"
        )
    below = np.searchsorted(unlike, alike, "left") + np.searchsorted(unlike, alike, "right")
    return float(below.mean() / 2 / len(unlike))


def reliability(models: Sequence[Similarities], *, n_bins: int = 5) -> Picture:
    """The mean cosine of pairs by the score that people gave, with the spread of the middle half."""
    if not 1 <= len(models) <= len(_COLOURS):
        raise InvalidInput(
            f"a picture of reliability got {len(models)} models; give 1 to {len(_COLOURS)}, "
            "which can be told apart"
        )
    lowest = min(float(each.gold.min()) for each in models)
    highest = max(float(each.gold.max()) for each in models)
    edges = np.linspace(lowest, highest, n_bins + 1)
    with quiet_style():
        figure = new_figure(WIDTH, 3.8)
        axes = figure.add_subplot()
        axes.set(xlabel="score that people gave", ylabel="cosine of the two sentences")
        axes.plot(
            [lowest, highest], [0, 1], linestyle=(0, (2, 3)), color=GREY, linewidth=1.2, label="in proportion"
        )
        for number, (each, colour) in enumerate(zip(models, _COLOURS, strict=False)):
            _reliability_line(axes, each, edges, colour, shift=0.012 * number * (highest - lowest))
        axes.legend(frameon=False, loc="lower right")
    caption = (
        f"Pairs in {n_bins} groups by the score that people gave: the dot is the mean cosine of a group, the "
        "bar its middle half. A model whose cosines mean something rises from left to right with short bars."
    )
    return finished("Cosines against the scores that people gave", caption, figure)


def _reliability_line(
    axes: Axes, each: Similarities, edges: NDArray[np.floating], colour: str, shift: float
) -> None:
    bins = np.clip(np.digitize(each.gold, edges) - 1, 0, len(edges) - 2)
    groups = [
        (number, each.cosines[bins == number]) for number in range(len(edges) - 1) if (bins == number).any()
    ]
    centres = np.array([(edges[number] + edges[number + 1]) / 2 + shift for number, _ in groups])
    means = np.array([group.mean() for _, group in groups])
    quarters = np.array([np.quantile(group, (0.25, 0.75)) for _, group in groups]).T
    axes.vlines(centres, *quarters, color=colour, linewidth=5, alpha=0.3)
    axes.plot(centres, means, "o-", color=colour, markersize=6, linewidth=1.4, label=each.name)


def ours_against_paper(reproduction: Reproduction, column: str = "average") -> Picture:
    """One row a line: the paper's figure as a stroke, ours as a dot, both with the difference in numbers."""
    lines = [line for line in reproduction.lines if _has(line, column)]
    if not lines:
        raise InvalidInput(
            f"table {reproduction.table.number} has no figure in the column {column!r}; its columns are "
            f"{', '.join(reproduction.table.columns)}"
        )
    with quiet_style():
        figure = new_figure(WIDTH, 1.0 + 0.3 * len(lines))
        axes = figure.add_subplot()
        for height, line in enumerate(reversed(lines)):
            _dots(axes, reproduction, line, column, height)
        axes.set_yticks(range(len(lines)), [line.name for line in reversed(lines)])
        axes.set_ylim(-0.6, len(lines) - 0.4)
        axes.set_xlabel(f"{column} ({reproduction.table.unit.replace(' x ', ' × ')})")
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
    caption = "Strokes are the paper's figures, dots are ours; a stroke without a dot was not run here."
    if any(line.spread.get(column) for line in lines):
        caption += " The bar behind a dot is the standard deviation over seeds, both ways."
    which = "" if column == "average" else f", {column}"
    title = f"Table {reproduction.table.number}{which}: ours against the paper's"
    return finished(title, caption, figure)


def _has(line: Line, column: str) -> bool:
    return column in our_figures(line) or (line.paper is not None and column in line.paper.figures)


def _dots(axes: Axes, reproduction: Reproduction, line: Line, column: str, height: int) -> None:
    cell = cell_of(reproduction.table, line, column)
    ours = our_figures(line).get(column)
    paper = line.paper.figures.get(column) if line.paper else None
    if ours is not None and paper is not None:
        axes.plot([ours, paper], [height, height], color=GREY, linewidth=1.2, zorder=1)
    if paper is not None:
        axes.plot(paper, height, "|", markersize=13, color=GREY, markeredgewidth=2)
    if ours is not None:
        spread = line.spread.get(column, 0.0)
        axes.plot([ours - spread, ours + spread], [height, height], color=BLUE, linewidth=5, alpha=0.3)
        axes.plot(ours, height, "o", markersize=6, color=BLUE)
    text = f"{cell.ours}  {cell.difference}".rstrip() if ours is not None else "not run"
    axes.annotate(
        text, (1, height), xycoords=axes.get_yaxis_transform(), xytext=(8, 0), textcoords="offset points",
        va="center_baseline", color=INK if ours is not None else GREY, fontsize=9,
    )  # fmt: skip
