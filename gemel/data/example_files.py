"""Files of examples: tables with named columns, and official layouts.

Besides tables with named columns, SNLI and MultiNLI (.jsonl and .txt) and the STS benchmark (`sts-train.csv`)
are read as they are published. Rows whose gold label is `-` (or -1 beside 0, 1 and 2), on which SNLI's
annotators did not agree, are left out and counted, as everyone does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

from gemel.data.cells import LabelNames, Range
from gemel.data.example_rows import ROWS_LOOKED_AT, ExampleRows
from gemel.data.examples import CLASSIFIED, Examples
from gemel.data.gathered import Gathered, Tally
from gemel.data.layouts import is_sts, opened_table
from gemel.data.roles import Kind, assign_roles, checked_kind, may_matter
from gemel.data.tables import Table
from gemel.errors import InvalidInput

STS_RANGE = (0.0, 5.0)


def read_examples(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    kind: str | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    limit: int | None = None,
    skip_bad_rows: bool = False,
    score_range: Range | None = None,
    label_names: LabelNames | None = None,
) -> Examples:
    """The examples of a file, the first `limit` of them.

    `columns` names the columns that have other names than the usual: `{"first": "q", "score": "s"}`. `where`
    keeps rows by the value of a column, `{"lang": "en"}` or `{"source": "!=sick"}`, or by several conditions
    that all have to hold, `{"source": ["!=sick", "!=snli"]}`; 1, 1.0 and true are one value, as are 0, 0.0
    and false. Scores are brought from `score_range` to 0..1. `label_names` are the classes in their order,
    where another file has set them, or what the labels of this one stand for: `{"0": "entailment", ...}`.
    """
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit!r}; expected at least 1: ask for one example or more")
    tally = Tally(skip_bad_rows)
    with opened_table(path) as table:
        source = ExampleRows(table, where or {}, columns or {}, tally.on_bad_row)
        known_kind = None if kind is None else checked_kind(kind)
        kind, roles = _assigned(source, table, known_kind)
        if isinstance(label_names, Mapping) and kind not in CLASSIFIED:
            raise InvalidInput(
                f"label_names say what labels stand for, and {table.name} holds {kind}, which have none; "
                "leave them out, or name the column of the labels"
            )
        scores_from = _checked_range(score_range) or (STS_RANGE if is_sts(source.columns) else None)
        gathered = Gathered(table, kind, roles, tally, scores_from, label_names, limit)
        for number, row in source.rows(list(roles.values())):
            if source.late and known_kind is None:
                _check_late(source, table, kind, roles)
            gathered.take(number, row)
            if gathered.is_full():
                break
        if source.n_excluded:
            tally.left_out["excluded by where"] = source.n_excluded
        examples = gathered.examples(source.unused(list(roles.values())))
    if score_range is None and scores_from is not None:
        _check_guess(examples)
    return examples


def _assigned(source: ExampleRows, table: Table, kind: Kind | None) -> tuple[Kind, dict[str, str]]:
    try:
        return assign_roles(source.columns, columns=source.named, kind=kind, where=table.name)
    except InvalidInput:
        _check_columns(source.columns, table)
        raise


def _check_columns(columns: Sequence[str], table: Table) -> None:
    """Where no examples were found: say so first if there are no columns, or none that can be told apart."""
    if not any(column.strip() for column in columns):
        raise InvalidInput(f"{table.name} is empty; expected rows, and names for their columns")
    marks = [] if table.has_types or len(columns) > 1 else [mark for mark in ";|\t," if mark in columns[0]]
    if marks:
        told = "a tab" if marks[0] == "\t" else repr(marks[0])
        raise InvalidInput(
            f"{table.name} has one column, {columns[0]!r}; it seems to be separated by {told}, and .csv is "
            "read by commas, .tsv by tabs: save it as one of these"
        )


def _check_late(source: ExampleRows, table: Table, kind: Kind, roles: Mapping[str, str]) -> None:
    """Refuse columns that came late and would make other examples of the rows before."""
    found = [*source.columns, *source.late]
    try:
        as_found = assign_roles(found, columns=source.named, kind=None, where=table.name)
        is_same = all(map(may_matter, source.late)) and as_found == (kind, roles)  # lists always change it
    except InvalidInput:
        is_same = False
    (column, number), *_ = source.late.items()
    source.late.clear()
    if is_same:
        return
    raise InvalidInput(
        f"{table.place(number)} has {column!r}, which none of the first {ROWS_LOOKED_AT} rows has, so that "
        f"they were taken for {kind}; move such a row to the front, or say kind={kind!r} to do without it"
    )


def _checked_range(score_range: Range | None) -> Range | None:
    if score_range is not None and not -math.inf < score_range[0] < score_range[1] < math.inf:
        raise InvalidInput(f"score_range is {score_range!r}; expected (lowest, highest), such as (0, 5)")
    return score_range


def _check_guess(examples: Examples) -> None:
    """Refuse a copy of the STS benchmark whose scores somebody seems to have brought to 0..1 before."""
    scores = examples.labels if examples.kind == "scored pairs" else None
    if scores is not None and len(scores) >= 100 and scores.max() <= 1 / STS_RANGE[1]:
        raise InvalidInput(
            f"{examples.origin} looks like the STS benchmark, whose scores are 0 to 5, "
            "but has none above 1; say which it is with score_range=(0, 5) or (0, 1)"
        )
