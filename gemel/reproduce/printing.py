"""A reproduced table for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gemel.reproduce.cells import Cell, cell_of, columns_of, numbered, was_run, why_not
from gemel.reproduce.lines import Line, Reproduction
from gemel.table import format_table

COLUMNS_BESIDE = 2  # so many columns leave room to set ours, the paper's and the difference side by side
WIDTH = 110


def formatted(reproduction: Reproduction, width: int = WIDTH) -> str:
    """Ours beside the paper's in aligned columns, then footnotes and the protocol."""
    table = reproduction.table
    columns = columns_of(reproduction)
    notes = numbered(map(_note, reproduction.lines))
    layout = _beside if len(columns) <= COLUMNS_BESIDE else _stacked
    parts = [
        "\n".join(textwrap.wrap(f"Table {table.number}. {table.title}: {table.unit}", width)),
        layout(reproduction, columns, notes),
        "\n".join(_remarks(reproduction, notes, width)),
    ]
    return "\n\n".join(parts)


def _beside(reproduction: Reproduction, columns: tuple[str, ...], notes: dict[str, int]) -> str:
    """One row a line: for each column ours, the paper's and the difference."""
    header = [""]
    for column in columns:
        header += [f"{column}: ours", "paper", "differs"]
    cells = [[cell_of(reproduction.table, line, each) for each in columns] for line in reproduction.lines]
    blocks = [_aligned([row[number] for row in cells]) for number in range(len(columns))]
    rows = [
        [_name(line, notes), *(text for block in blocks for text in block[number])]
        for number, line in enumerate(reproduction.lines)
    ]
    return format_table(header, rows)


def _stacked(reproduction: Reproduction, columns: tuple[str, ...], notes: dict[str, int]) -> str:
    """Rows of ours, of the paper's and of the difference under each other, and a blank one between lines."""
    rows: list[list[str]] = []
    for line in reproduction.lines:
        cells = [cell_of(reproduction.table, line, column) for column in columns]
        block = [[_name(line, notes), "ours", *(cell.ours for cell in cells)]]
        if line.paper:
            block.append(["", "paper", *(cell.paper for cell in cells)])
        if any(cell.difference for cell in cells):
            block.append(["", "differs", *(cell.difference for cell in cells)])
        rows += [*([[""] * (2 + len(columns))] if rows else []), *block]
    return format_table(["", "", *columns], rows)


def _aligned(cells: list[Cell]) -> list[list[str]]:
    """Ours, the paper's and the difference, where means stand under means though only some have a spread."""
    ours, paper = (
        _means_under_means(texts) for texts in zip(*((c.ours, c.paper) for c in cells), strict=True)
    )
    differences = [cell.difference for cell in cells]
    return [list(texts) for texts in zip(ours, paper, differences, strict=True)]


def _means_under_means(texts: tuple[str, ...]) -> list[str]:
    tails = [len(text) - len(text.partition(" ±")[0]) for text in texts]
    return [text + " " * (max(tails) - tail) for text, tail in zip(texts, tails, strict=True)]


def _name(line: Line, notes: dict[str, int]) -> str:
    note = _note(line)
    return f"{_one_line(line.name)} [{notes[note]}]" if note else _one_line(line.name)


def _note(line: Line) -> str:
    """A line's footnote: what was measured and how that differs from the paper's; or what is not at hand."""
    if not was_run(line):
        whose = " (the figures are the paper's)" if line.paper else ""
        return _one_line(f"not at hand: {why_not(line)}{whose}")
    model = "" if line.model == line.name else line.model
    return _one_line(": ".join(part for part in (model, line.note) if part))


def _remarks(reproduction: Reproduction, notes: dict[str, int], width: int) -> Iterator[str]:
    for note, number in notes.items():
        yield _wrapped(f"[{number}] ", note, width)
    for remark in reproduction.remarks:
        yield _wrapped("- ", remark, width)
    yield _wrapped("Protocol: ", reproduction.table.protocol, width)


def _wrapped(label: str, text: str, width: int) -> str:
    indent = " " * len(label)
    return textwrap.fill(text, width, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())
