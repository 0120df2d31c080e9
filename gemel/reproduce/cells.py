"""The cells of a reproduced table: what a terminal and a page show alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.paper import PaperTable

NONE = "–"
NEAR_POINTS = 1.0  # a figure is near the paper's within one point of a score,
NEAR_RATIO = 1.1  # or within a tenth of a speed


@dataclass(frozen=True)
class Cell:
    """One figure of ours beside the paper's, written out; a dash where there is none."""

    ours: str
    paper: str
    difference: str = ""  # points for scores, a ratio for speeds; empty where one of the two is absent
    side: str = ""  # near, above or below the paper's


def columns_of(reproduction: Reproduction) -> tuple[str, ...]:
    """The paper's columns, then those that only our lines have."""
    ours = (column for line in reproduction.lines for column in our_figures(line))
    return tuple(dict.fromkeys((*reproduction.table.columns, *ours)))


def our_figures(line: Line) -> Mapping[str, float]:
    """What was measured here: nothing, where something is said to be missing."""
    if line.missing:
        return {}
    return {column: figure for column, figure in line.figures.items() if math.isfinite(figure)}


def was_run(line: Line) -> bool:
    """Whether there is any figure of ours."""
    return bool(our_figures(line))


def why_not(line: Line) -> str:
    """What is not at hand, in words."""
    return line.missing or "not run"


def numbered(texts: Iterable[str]) -> dict[str, int]:
    """Footnotes: a number for every text, the same for the same text, none for an empty one."""
    return {text: number for number, text in enumerate(dict.fromkeys(filter(None, texts)), 1)}


def cell_of(table: PaperTable, line: Line, column: str) -> Cell:
    """The cell of a line in a column."""
    ours = our_figures(line).get(column)
    paper = line.paper.figures.get(column) if line.paper else None
    our_text = _with_spread(table, ours, line.spread.get(column))
    paper_text = _with_spread(table, paper, line.paper.spread.get(column) if line.paper else None)
    if ours is None or paper is None:
        return Cell(our_text, paper_text)
    if is_score(table):
        return Cell(our_text, paper_text, signed(ours - paper), _side(ours - paper, NEAR_POINTS))
    ratio = ours / paper
    side = "near" if 1 / NEAR_RATIO <= ratio <= NEAR_RATIO else "above" if ratio > 1 else "below"
    return Cell(our_text, paper_text, f"×{_rounded(ratio)}", side)


def is_score(table: PaperTable) -> bool:
    """Whether figures are in points of a hundred; else they are rates, which are compared as ratios."""
    return "x 100" in table.unit


def signed(points: float) -> str:
    """A difference with its sign, and none where it rounds to nothing."""
    text = f"{abs(points):.2f}"
    if float(text) == 0:
        return text
    return f"+{text}" if points > 0 else f"−{text}"


def _side(points: float, near: float) -> str:
    if abs(points) <= near:
        return "near"
    return "above" if points > 0 else "below"


def _with_spread(table: PaperTable, mean: float | None, spread: float | None) -> str:
    if mean is None:
        return NONE
    write = "{:.2f}".format if is_score(table) else _rounded
    return write(mean) if not spread else f"{write(mean)} ± {write(spread)}"


def _rounded(value: float) -> str:
    """Two digits at least: 0.62, 1.8, 44, 2,042."""
    n_decimals = 0 if value >= 10 else 1 if value >= 1 else 2
    return f"{value:,.{n_decimals}f}"
