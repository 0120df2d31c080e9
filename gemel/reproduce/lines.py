"""What a reproduction is: lines of our own beside those of the paper, or why a line could not be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gemel.evaluate.scores import Scores
from gemel.reproduce.paper import PaperRow, PaperTable


@dataclass(frozen=True)
class Line:
    """The figures of one model by column, in the paper's unit; or in `missing` what is not at hand."""

    name: str
    paper: PaperRow | None = None  # the line that it is laid beside
    model: str = ""  # what was measured, in short
    note: str = ""  # how that differs from what the paper measured
    figures: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)  # standard deviation over seeds
    missing: str = ""
    scores: tuple[Scores, ...] = ()  # all that the figures come from
    source: str = ""  # the whole name or folder of the model: two may end alike


@dataclass(frozen=True)
class Reproduction:
    """One table, run here."""

    table: PaperTable
    lines: tuple[Line, ...]
    remarks: tuple[str, ...] = ()  # what the lines say together

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "table": self.table.number,
            "title": self.table.title,
            "unit": self.table.unit,
            "protocol": self.table.protocol,
            "lines": [asdict(line) for line in self.lines],
            "remarks": list(self.remarks),
        }
