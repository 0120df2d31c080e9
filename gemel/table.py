"""Plain tables that align."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# 1,234.56 or +0.12 or −3 or ×1.20 or 84.67 ± 0.19, or a dash where there is none
_NUMBER = re.compile(r"[+\-−×]?\d[\d,]*(\.\d+)?( ± \d[\d,]*(\.\d+)?)?|–")


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; columns of numbers are set to the right."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(width_of, column)) for column in columns]
    to_the_right = [all(_is_number(cell) for cell in column[1:] if cell.strip()) for column in columns]
    lines = [header, ["─" * width for width in widths], *rows]
    return "\n".join(_line(line, widths, to_the_right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], to_the_right: Sequence[bool]) -> str:
    padded = (
        f"{_blanks(cell, width)}{cell}" if right else f"{cell}{_blanks(cell, width)}"
        for cell, width, right in zip(cells, widths, to_the_right, strict=True)
    )
    return "  ".join(padded).rstrip()


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes: two a Korean, Chinese or Japanese letter, none a mark."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def shortened(text: str, width: int) -> str:
    """A text on one line, cut to so many columns of a terminal."""
    line = " ".join(text.split())
    if width_of(line) <= width:
        return line
    line = line[:width]
    while line and width_of(line) > width - 1:
        line = line[:-1]
    return f"{line.rstrip()}…"


def _blanks(cell: str, width: int) -> str:
    return " " * (width - width_of(cell))


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell.strip()) is not None
