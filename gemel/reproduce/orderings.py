"""Which line of a table is better than which, here and in the paper: an ablation's result is its order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from gemel.reproduce.lines import Line
from gemel.reproduce.paper import PaperTable


def orderings(table: PaperTable, lines: Sequence[Line]) -> tuple[str, ...]:
    """For each group of lines and each column both orders, best first, and how far they agree.

    Where two neighbours differ by less than their deviations over seeds together, `≈` stands between them.
    """
    remarks = []
    for column in table.columns:
        for group in dict.fromkeys(line.name.partition(" ")[0] for line in lines):
            members = [
                line
                for line in lines
                if line.name.startswith(f"{group} ")
                and column in line.figures
                and line.paper is not None
                and column in line.paper.figures
            ]
            if len(members) > 1:
                remarks.append(_remark(group, column, members))
    return tuple(remarks)


def _remark(group: str, column: str, members: Sequence[Line]) -> str:
    ours = {line.name.removeprefix(f"{group} "): line.figures[column] for line in members}
    spread = {line.name.removeprefix(f"{group} "): line.spread.get(column, 0.0) for line in members}
    paper = {
        line.name.removeprefix(f"{group} "): line.paper.figures[column] for line in members if line.paper
    }
    n_alike, n_pairs = agreement(ours, paper)
    return (
        f"{column}, {group}: ours {_ordered(ours, spread)}; the paper {_ordered(paper, {})}; "
        f"{n_alike} of {n_pairs} pairs are in the same order"
    )


def agreement(ours: Mapping[str, float], paper: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of names are in the same order in both, and how many the paper has an order for."""
    names = list(ours)
    pairs = [
        (ours[first] - ours[second], paper[first] - paper[second])
        for place, first in enumerate(names)
        for second in names[place + 1 :]
        if paper[first] != paper[second]
    ]
    return sum(here * there > 0 for here, there in pairs), len(pairs)


def _ordered(figures: Mapping[str, float], spread: Mapping[str, float]) -> str:
    """The names, the best first, with `≈` where the next is within the deviation."""
    names = sorted(figures, key=lambda name: -figures[name])
    text = names[0]
    for before, name in pairwise(names):
        noise = math.hypot(spread.get(before, 0.0), spread.get(name, 0.0))
        text += f" {'≈' if figures[before] - figures[name] <= noise else '>'} {name}"
    return text
