"""Examples to train on or to measure by: pairs, scored or classified, triplets, texts, classified texts.

Besides tables with named columns the official layouts are read: SNLI and MultiNLI (.jsonl and .txt) and the
STS benchmark (`sts-train.csv`). Rows whose gold label is `-` (or -1 beside 0, 1 and 2), on which SNLI's
annotators did not agree, are left out and counted, as everyone does.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.data.cells import (
    WITHOUT_GOLD,
    FlawedRow,
    LabelNames,
    Range,
    label_in,
    score_in,
    text_in,
    unknown_label,
)
from gemel.data.class_names import HUB_NO_GOLD_LABEL, NLI_LABELS, in_order, truth_of
from gemel.data.example_rows import ROWS_LOOKED_AT, ExampleRows
from gemel.data.gold import ROWS_OF_DOUBT, GoldLabels
from gemel.data.layouts import is_sts, opened_table
from gemel.data.roles import Kind, assign_roles, checked_kind, may_matter
from gemel.data.tables import Table, finite_number
from gemel.errors import InvalidInput

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float32]

STS_RANGE = (0.0, 5.0)
_TOLD_CLASSES = 10  # in a description
_FOLDERS = re.compile(r"\S*/")
_CLASSIFIED = ("classified pairs", "classified texts")
_LABEL_TYPES: dict[str, type[np.generic]] = {
    "scored pairs": np.float32,
    **dict.fromkeys(_CLASSIFIED, np.int64),
}
_N_COLUMNS = {"triplets": 3, "classified texts": 1, "texts": 1}  # two in the others


@dataclass(frozen=True, eq=False)
class Examples:
    """Texts in columns, an example a row; classes are int64 positions in `label_names`, scores float32."""

    kind: Kind
    columns: Mapping[str, list[str]]
    labels: Labels | None = None
    label_names: tuple[str, ...] = ()
    origin: str = "memory"
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows of the origin not here
    unused: tuple[str, ...] = ()  # columns of the origin that are not here
    files: tuple[str, ...] = ()  # that the origin speaks of, as it does

    def __post_init__(self) -> None:
        checked_kind(self.kind)
        lengths = {name: len(texts) for name, texts in self.columns.items()}
        n_columns = _N_COLUMNS.get(self.kind, 2)
        enough = len(lengths) == n_columns or (self.kind == "triplets" and len(lengths) > n_columns)
        if not enough or len(set(lengths.values())) != 1:
            expected = {1: "1 column", 2: "2 columns", 3: "3 or more columns"}[n_columns]
            raise InvalidInput(f"{self.kind} were given {lengths} texts; expected {expected} of one length")
        label_type = _LABEL_TYPES.get(self.kind)
        expected = "no labels" if label_type is None else f"{len(self)} labels, {label_type.__name__}"
        given = "no labels" if self.labels is None else f"{self.labels.shape[0]} labels, {self.labels.dtype}"
        if given != expected:
            raise InvalidInput(f"{self.kind} were given {given}; expected {expected}")
        if self.labels is None or not len(self):
            return
        if self.kind == "scored pairs" and not np.isfinite(self.labels).all():
            raise InvalidInput("a score is NaN or infinite; expected finite numbers")
        lowest, highest = self.labels.min(), self.labels.max()
        if self.kind in _CLASSIFIED and (lowest < 0 or highest >= len(self.label_names)):
            raise InvalidInput(
                f"classes run from {lowest} to {highest}; expected positions in label_names, "
                f"which has {len(self.label_names)}"
            )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: slice) -> Examples:
        return self.take(rows)

    def take(self, rows: slice | Sequence[int] | npt.NDArray[np.int64]) -> Examples:
        """The examples of these rows, in the order given."""
        chosen = np.arange(len(self))[rows]
        columns = {name: [texts[row] for row in chosen] for name, texts in self.columns.items()}
        labels = None if self.labels is None else self.labels[chosen]
        return Examples(self.kind, columns, labels, self.label_names, self.origin, files=self.files)

    def with_label_names(self, names: Sequence[str]) -> Examples:
        """The same examples, their classes in another order."""
        if tuple(names) == self.label_names or self.labels is None:
            return self
        places = {name: place for place, name in enumerate(names)}
        unknown = [name for name in self.label_names if name not in places]
        if unknown:
            raise InvalidInput(f"{self.origin}: {unknown_label(unknown[0], names)}")
        labels = np.array([places[name] for name in self.label_names], np.int64)[self.labels.astype(np.int64)]
        return replace(self, labels=labels, label_names=tuple(names))

    @property
    def public_origin(self) -> str:
        """The origin for others to read, without the folders of this machine."""
        told = self.origin
        for file in self.files:
            told = told.replace(file, Path(file).name)
        return told if self.files else _FOLDERS.sub("", told)

    def describe(self) -> str:
        """One line for a person: how many of what, from where."""
        parts = [f"{len(self):,} {self.kind} from {self.origin}"]
        if self.kind in _CLASSIFIED and self.labels is not None:
            counts = np.bincount(self.labels.astype(np.int64), minlength=len(self.label_names))
            shares = list(zip(self.label_names, counts / max(1, len(self)), strict=True))
            told = [f"{name} {share:.0%}" for name, share in shares[:_TOLD_CLASSES]]
            rest = len(shares) - len(told)
            parts.append(", ".join([*told, *([f"{rest} more classes"] if rest else [])]))
        elif self.labels is not None and len(self):
            parts.append(f"scores {self.labels.min():.2f} to {self.labels.max():.2f}")
        if left_out := _spoken(self.left_out):
            parts.append(f"left out: {left_out}")
        return "; ".join(parts)


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
    tally = _Tally(skip_bad_rows)
    with opened_table(path) as table:
        source = ExampleRows(table, where or {}, columns or {}, tally.on_bad_row)
        known_kind = None if kind is None else checked_kind(kind)
        kind, roles = assign_roles(source.columns, columns=source.named, kind=known_kind, where=table.name)
        if isinstance(label_names, Mapping) and kind not in _CLASSIFIED:
            raise InvalidInput(
                f"label_names say what labels stand for, and {table.name} holds {kind}, which have none; "
                "leave them out, or name the column of the labels"
            )
        scores_from = _checked_range(score_range) or (STS_RANGE if is_sts(source.columns) else None)
        gathered = _Gathered(table, kind, roles, tally, scores_from, label_names, limit)
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


def yes_as_score(examples: Examples) -> Examples:
    """Pairs of the classes 0 and 1 as pairs with these scores; other examples as they are."""
    truths = [truth_of(name) for name in examples.label_names]
    if examples.kind != "classified pairs" or set(truths) != {0.0, 1.0} or len(truths) > 2:
        return examples
    assert examples.labels is not None
    scores = np.array(truths, np.float32)[examples.labels.astype(np.int64)]
    return replace(examples, kind="scored pairs", labels=scores, label_names=())


# Which rows -----------------------------------------------------------------------------------------


class _Tally:
    """Rows that are left out, by reason; bad ones only if that was asked for."""

    def __init__(self, skip_bad_rows: bool) -> None:
        self.skip_bad_rows = skip_bad_rows
        self.left_out: Counter[str] = Counter()

    def on_bad_row(self, reason: str, message: str) -> None:
        """Count a bad row, or refuse it."""
        if not self.skip_bad_rows:
            raise InvalidInput(f"{message}; repair the row, or leave out all such with skip_bad_rows")
        self.left_out[reason] += 1


# What the rows become --------------------------------------------------------------------------------


class _Gathered:
    """The rows that are good so far, and what they become in the end."""

    def __init__(
        self,
        table: Table,
        kind: Kind,
        roles: Mapping[str, str],
        tally: _Tally,
        score_range: Range | None,
        label_names: LabelNames | None,
        limit: int | None,
    ) -> None:
        self.table, self.kind, self.roles, self.tally = table, kind, roles, tally
        self.score_range, self.label_names, self.limit = score_range, label_names, limit
        self.numbers: list[int] = []
        self.texts: dict[str, list[str]] = {role: [] for role in roles if role not in ("score", "label")}
        self.values: list[Any] = []
        self._gold = GoldLabels()  # of pairs, where nobody has said the classes
        self._ahead: list[tuple[int, Mapping[str, Any]]] = []  # rows behind the limit that were looked at

    def is_full(self) -> bool:
        """Whether the rows that were asked for are there, and what -1 means in them is settled."""
        if self.limit is None:
            return False
        n_rows = len(self.numbers) - self._gold.n_without
        return n_rows >= self.limit and (not self._is_in_doubt() or len(self._ahead) >= ROWS_OF_DOUBT)

    def take(self, number: int, row: Mapping[str, Any]) -> None:
        """Take in a row; behind the limit, as long as -1 may be a class or none, only look at it."""
        if not self._is_in_doubt():
            self._add(number, row)
            return
        self._ahead.append((number, row))
        self._gold.look_at(row.get(self.roles["label"]))
        if self._gold.lack:
            for each in self._ahead:
                if not self.is_full():
                    self._add(*each)

    def _is_in_doubt(self) -> bool:
        return self.limit is not None and len(self.numbers) >= self.limit and self._gold.may_lack

    def _add(self, number: int, row: Mapping[str, Any]) -> None:
        try:
            texts, value = self._parse(row)
        except FlawedRow as flaw:
            if flaw.reason == WITHOUT_GOLD:
                self.tally.left_out[flaw.reason] += 1
            else:
                self.tally.on_bad_row(flaw.reason, f"{self.table.place(number)}: {flaw}")
            return
        for gathered, text in zip(self.texts.values(), texts, strict=True):
            gathered.append(text)
        self.values.append(value)
        self.numbers.append(number)
        if self.kind == "classified pairs" and self.label_names is None:
            self._gold.take(value)

    def _parse(self, row: Mapping[str, Any]) -> tuple[list[str], Any]:
        for column in self.roles.values():
            if column not in row:
                found = ", ".join(row) or "none"
                raise FlawedRow("missing column", f"the row has no {column!r} (found: {found})")
        value: Any = None
        if "score" in self.roles:
            value = score_in(row[self.roles["score"]], self.score_range)
        elif "label" in self.roles:
            value = label_in(row[self.roles["label"]], self.label_names)
        return [text_in(row[self.roles[role]], self.roles[role]) for role in self.texts], value

    def examples(self, unused: Sequence[str]) -> Examples:
        """All of them, once the file has been read."""
        if self._gold.lack:
            self._drop_without_gold()
        elif self.limit is not None:  # rows of -1 did not count until another class was seen
            self._keep([place < self.limit for place in range(len(self.numbers))])
        names: tuple[str, ...] = ()
        labels: Labels | None = None
        if self.kind == "scored pairs":
            labels = self._scores()
        elif self.kind in _CLASSIFIED:
            names = self._names()
            indices = {name: index for index, name in enumerate(names)}
            labels = np.array([indices[value] for value in self.values], np.int64)
        if not self.numbers:
            spoken_of = _spoken(self.tally.left_out) or "none"
            raise InvalidInput(
                f"{self.table.name} holds no {self.kind} (left out: {spoken_of}); expected at least one row"
            )
        spoken = {"first": "anchor", "second": "positive"} if self.kind == "triplets" else {}
        columns = {spoken.get(role, role): texts for role, texts in self.texts.items()}
        origin = ", ".join(f"{spoken.get(role, role)} = {column}" for role, column in self.roles.items())
        # One of them may be a label under another name, or hold more negatives.
        if self.kind in ("pairs", "texts", "triplets") and unused:
            origin += f"; not used: {', '.join(unused)}"
        told, left_out = f"{self.table.name} ({origin})", dict(self.tally.left_out)
        files = (self.table.name,)
        return Examples(self.kind, columns, labels, names, told, left_out, tuple(unused), files)

    def _scores(self) -> npt.NDArray[np.float32]:
        low, high = self.score_range or (0.0, 1.0)
        for number, value in zip(self.numbers, self.values, strict=True):
            if not low <= value <= high:  # only where no range was known when the row came
                raise InvalidInput(
                    f"{self.table.place(number)}: the score is {value:g}, and the scores of this file run "
                    f"from {min(self.values):g} to {max(self.values):g}; expected 0 to 1: "
                    "say what they can be with score_range (the flag --score-range), such as 0 and 5"
                )
        return ((np.array(self.values, np.float64) - low) / (high - low)).astype(np.float32)

    def _names(self) -> tuple[str, ...]:
        """The classes in order; where all of NLI's are among them, there are no others."""
        if self.label_names is not None and not isinstance(self.label_names, Mapping):
            return tuple(self.label_names)
        names = set(self.values)
        if names <= set(NLI_LABELS):
            return NLI_LABELS
        if names > set(NLI_LABELS):
            self._drop_unknown()
            return NLI_LABELS
        fraction = next((name for name in names if (finite_number(name) or 0) % 1), None)
        if fraction is not None:
            raise InvalidInput(
                f"{self.table.name}: the label {fraction} looks like a score; "
                f'say so with columns={{"score": "{self.roles["label"]}"}}'
            )
        return in_order(names)

    def _drop_unknown(self) -> None:
        for number, name in zip(self.numbers, self.values, strict=True):
            if name not in NLI_LABELS:
                message = f"{self.table.place(number)}: {unknown_label(name, NLI_LABELS)}"
                self.tally.on_bad_row("unknown label", message)
        self._keep([name in NLI_LABELS for name in self.values])

    def _drop_without_gold(self) -> None:
        self.tally.left_out[WITHOUT_GOLD] += self.values.count(HUB_NO_GOLD_LABEL)
        self._keep([name != HUB_NO_GOLD_LABEL for name in self.values])

    def _keep(self, is_kept: Sequence[bool]) -> None:
        self.values = list(compress(self.values, is_kept))
        self.numbers = list(compress(self.numbers, is_kept))
        self.texts = {role: list(compress(texts, is_kept)) for role, texts in self.texts.items()}


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


def _spoken(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
