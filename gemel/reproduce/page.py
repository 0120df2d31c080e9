"""The page of a report: what it says about tables, pictures and facts, in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from gemel.drawing import BLUE, GREY, INK, ORANGE
from gemel.evaluate.scores import Scores
from gemel.reproduce.cells import NEAR_POINTS, Cell, cell_of, columns_of, is_score, numbered, was_run, why_not
from gemel.reproduce.inlining import inline_picture
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.page_style import STYLE

TITLE = "Sentence-BERT, measured again"
PAPER = "https://arxiv.org/abs/1908.10084"
COLUMNS_BESIDE = 2  # as many leave room to set ours, the paper's and the difference side by side
_COLOURS = {INK: "var(--ink)", GREY: "var(--muted)", BLUE: "var(--blue)", ORANGE: "var(--orange)"}


def page_of(
    reproductions: Sequence[Reproduction], pictures: Mapping[str, str], facts: Mapping[str, str]
) -> str:
    """The whole page: nothing in it is fetched, and nothing in it runs."""
    body = [
        *_introduction(reproductions),
        *(part for reproduction in reproductions for part in _table_section(reproduction)),
        *_pictures_section(pictures),
        *_facts_section(reproductions, facts),
    ]
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{STYLE}\n</style>\n</head>"
    )
    return "\n".join([head, "<body>", "<main>", *body, "</main>", "</body>", "</html>", ""])


def _introduction(reproductions: Sequence[Reproduction]) -> Iterator[str]:
    yield f"<h1>{TITLE}</h1>"
    yield f'<p class="lead">The tables of <a href="{PAPER}">arXiv 1908.10084</a>, run with gemel.</p>'
    yield (
        "<p>Sentence-BERT makes one vector of a sentence, so that sentences of like meaning get vectors of "
        "like direction. The paper (Reimers and Gurevych, 2019) claims two things. The vectors of plain BERT "
        "are poor at this, often worse than averaged word vectors, and a short training on pairs of "
        "sentences makes them good. And since each sentence is read once, instead of once with every "
        "other, what took hours takes seconds. Here its measurements were made again.</p>"
    )
    yield f"<p>{_what_was_run(reproductions)}</p>"
    yield (
        '<p>In the tables <span class="ours">bold figures</span> are ours, measured here; '
        '<span class="paper">grey ones</span> are the paper\'s, and the difference follows: grey within '
        f'{NEAR_POINTS:g} point (speeds: a tenth), <span class="difference above">blue above</span>, '
        '<span class="difference below">orange below</span>. A grey row was not run: it has the paper\'s '
        "figure alone, and a footnote says what is not at hand. Where a line has a footnote otherwise, "
        "something else was measured than in the paper (another model, other data), and its difference is "
        "no verdict on either.</p>"
    )
    if reproductions:
        yield "<h2>At a glance</h2>"
        yield from _glance(reproductions)


def _what_was_run(reproductions: Sequence[Reproduction]) -> str:
    lines = [line for reproduction in reproductions for line in reproduction.lines]
    tables = "1 table" if len(reproductions) == 1 else f"{len(reproductions)} tables"
    text = f"Of {len(lines)} lines in {tables}, {sum(map(was_run, lines))} were run here."
    n_near, n_compared = map(sum, zip(*map(_near, reproductions), strict=True)) if reproductions else (0, 0)
    if n_compared:
        text += (
            f" Where the same thing was measured as in the paper, {n_near} of {n_compared} scores lie within "
            f"{NEAR_POINTS:g} point of the paper's."
        )
    return text


def _near(reproduction: Reproduction) -> tuple[int, int]:
    """How many scores of lines without a note are near the paper's, and how many there are."""
    if not is_score(reproduction.table):
        return 0, 0
    cells = [
        cell_of(reproduction.table, line, column)
        for line in reproduction.lines
        for column in reproduction.table.columns
        if not line.note
    ]
    return sum(cell.side == "near" for cell in cells), sum(bool(cell.side) for cell in cells)


def _glance(reproductions: Sequence[Reproduction]) -> Iterator[str]:
    yield '<div class="scroll"><table><thead><tr><th scope="col">table</th>'
    yield '<th scope="col" class="number">lines run</th>'
    yield '<th scope="col" class="number">of them with a note</th>'
    yield f'<th scope="col" class="number">scores within {NEAR_POINTS:g} point</th></tr></thead><tbody>'
    for reproduction in reproductions:
        table, lines = reproduction.table, reproduction.lines
        run = [line for line in lines if was_run(line)]
        n_near, n_compared = _near(reproduction)
        near = f"{n_near} of {n_compared}" if n_compared else "–"
        yield (
            f'<tr><td><a href="#table-{table.number}">{table.number}. {escape(table.title)}</a></td>'
            f'<td class="number">{len(run)} of {len(lines)}</td>'
            f'<td class="number">{sum(bool(line.note) for line in run)}</td>'
            f'<td class="number">{near}</td></tr>'
        )
    yield "</tbody></table></div>"


def _table_section(reproduction: Reproduction) -> Iterator[str]:
    table, columns = reproduction.table, columns_of(reproduction)
    is_beside = len(columns) <= COLUMNS_BESIDE
    yield f'<section id="table-{table.number}">'
    yield f"<h2>Table {table.number}. {escape(table.title)}</h2>"
    yield f'<p class="lead">{escape(table.unit.replace(" x ", " × "))}</p>'
    yield f'<div class="scroll"><table class="figures {"beside" if is_beside else "stacked"}">'
    yield from _beside_head(columns) if is_beside else _stacked_head(columns)
    yield "<tbody>"
    notes = numbered(map(_note, reproduction.lines))
    for line in reproduction.lines:
        cells = [cell_of(table, line, column) for column in columns]
        figures = "".join(map(_beside_cells if is_beside else _stacked_cell, cells))
        row = "<tr>" if was_run(line) else '<tr class="missing">'
        yield f'{row}<th scope="row">{_name(line, notes)}</th>{figures}</tr>'
    yield "</tbody></table></div>"
    if notes:
        yield f'<ol class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ol>'
    if reproduction.remarks:
        yield f"<ul>{''.join(f'<li>{escape(remark)}</li>' for remark in reproduction.remarks)}</ul>"
    yield f'<p class="protocol">Protocol: {escape(table.protocol)}.</p>'
    yield from _measurements(reproduction.lines)
    yield "</section>"


def _beside_head(columns: Sequence[str]) -> Iterator[str]:
    over = "".join(f'<th scope="colgroup" colspan="3" class="number">{escape(each)}</th>' for each in columns)
    whose = '<th scope="col" class="number">ours</th><th scope="col" class="number">paper</th>'
    whose += '<th scope="col" class="number">differs</th>'
    yield f'<thead><tr class="spanned"><th></th>{over}</tr>'
    yield f'<tr class="whose"><th scope="col">model</th>{whose * len(columns)}</tr></thead>'


def _stacked_head(columns: Sequence[str]) -> Iterator[str]:
    cells = "".join(f'<th scope="col" class="number">{escape(column)}</th>' for column in columns)
    yield f'<thead><tr><th scope="col">model</th>{cells}</tr></thead>'


def _beside_cells(cell: Cell) -> str:
    return "".join(
        f'<td class="number"><span class="{kind}">{escape(text)}</span></td>'
        for kind, text in (
            ("ours", cell.ours),
            ("paper", cell.paper),
            (f"difference {cell.side}".rstrip(), cell.difference),
        )
    )


def _stacked_cell(cell: Cell) -> str:
    return (
        f'<td class="number"><span class="ours">{escape(cell.ours)}</span>'
        f'<span class="paper"><span class="spoken">the paper </span>{escape(cell.paper)}</span>'
        f'<span class="difference {cell.side}">{escape(cell.difference)}</span></td>'
    )


def _name(line: Line, notes: Mapping[str, int]) -> str:
    aside = line.model if was_run(line) else "not at hand"
    aside = "" if aside == line.name else aside
    mark = f"<sup>{notes[_note(line)]}</sup>" if _note(line) else ""
    return escape(line.name) + mark + (f'<span class="aside">{escape(aside)}</span>' if aside else "")


def _note(line: Line) -> str:
    """A line's footnote: how it differs from what the paper measured, or why it was not run."""
    return line.note if was_run(line) else f"not at hand: {why_not(line)}"


def _measurements(lines: Iterable[Line]) -> Iterator[str]:
    """Every measurement that the figures come from, folded away."""
    rows = [[line.name, *_measurement(each)] for line in lines if was_run(line) for each in line.scores]
    if rows:
        yield f"<details><summary>Every measurement behind it ({len(rows)})</summary>"
        yield from _plain_table(("model", "set", "examples", "measure", "× 100", "95% interval"), rows)
        yield "</details>"


def _measurement(scores: Scores) -> list[str]:
    low, high = scores.interval or (None, None)
    interval = f"{100 * low:.2f} to {100 * high:.2f}" if low is not None and high is not None else "–"
    return [scores.name, f"{scores.n_examples:,}", scores.primary, f"{100 * scores.score:.2f}", interval]


def _pictures_section(pictures: Mapping[str, str]) -> Iterator[str]:
    if pictures:
        yield '<section id="pictures"><h2>Pictures</h2>'
    for number, (title, svg) in enumerate(pictures.items(), 1):
        picture = inline_picture(svg, f"picture-{number}-", _COLOURS)
        yield f'<figure><div class="scroll">\n{picture.svg}</div>'
        yield f"<figcaption><strong>{escape(title)}.</strong> {escape(picture.caption)}</figcaption></figure>"
    if pictures:
        yield "</section>"


def _facts_section(reproductions: Sequence[Reproduction], facts: Mapping[str, str]) -> Iterator[str]:
    yield '<section id="facts"><h2>What it was run with</h2>'
    if facts:
        entries = (f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items())
        yield f"<dl>{''.join(entries)}</dl>"
    lines = [line for each in reproductions for line in each.lines if was_run(line)]
    models = {
        (line.model or line.name, each.fingerprint, each.engine) for line in lines for each in line.scores
    }
    if models:
        yield "<h3>Models</h3>"
        yield from _plain_table(("model", "fingerprint", "engine"), sorted(models), code={1})
    data = {(each.name, f"{each.n_examples:,}", each.data_hash) for line in lines for each in line.scores}
    hashed = sorted(entry for entry in data if entry[2])
    if hashed:
        yield "<h3>Data</h3>"
        yield from _plain_table(("set", "examples", "sha256 of the files"), hashed, code={2})
    yield "<p>Everything on this page is also in <code>report.json</code>, beside it.</p></section>"


def _plain_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], code: frozenset[int] | set[int] = frozenset()
) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    yield f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        cells = (
            f"<td><code>{escape(text)}</code></td>" if number in code else f"<td>{escape(text)}</td>"
            for number, text in enumerate(row)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
