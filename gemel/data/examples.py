"""Examples to train on or to measure by: pairs, scored or classified, triplets, texts, classified texts.

Besides tables with named columns the official layouts are read: SNLI and MultiNLI (.jsonl and .txt) and the
STS benchmark (`sts-train.csv`). Rows whose gold label is `-` (or -1 beside 0, 1 and 2), on which SNLI's
annotators did not agree, are left out and counted, as everyone does.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.data.class_names import class_name
from gemel.data.example_rows import ExampleRows
from gemel.data.layouts import is_sts, opened_table
from gemel.data.roles import Kind, assign_roles, checked_kind
from gemel.data.tables import Table, describe, finite_number, is_text
from gemel.errors import InvalidInput

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float32]
Range = tuple[float, float]
LabelNames = Sequence[str] | Mapping[str, str]  # in their order, or what is written -> what it stands for

NLI_LABELS = ("contradiction", "entailment", "neutral")  # in Sentence-BERT's order of the classes
NO_GOLD_LABEL = "-"
HUB_NO_GOLD_LABEL = "-1"  # where the classes of NLI are numbers, as data sets of the hub have them
HUB_NLI_LABELS = {HUB_NO_GOLD_LABEL, "0", "1", "2"}
STS_RANGE = (0.0, 5.0)
_TOLD_CLASSES = 10  # in a description
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
        return Examples(self.kind, columns, labels, self.label_names, self.origin)

    def with_label_names(self, names: Sequence[str]) -> Examples:
        """The same examples, their classes in another order."""
        if tuple(names) == self.label_names or self.labels is None:
            return self
        places = {name: place for place, name in enumerate(names)}
        unknown = [name for name in self.label_names if name not in places]
        if unknown:
            raise InvalidInput(f"{self.origin}: {_unknown(unknown[0], names)}")
        labels = np.array([places[name] for name in self.label_names], np.int64)[self.labels.astype(np.int64)]
        return replace(self, labels=labels, label_names=tuple(names))

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
        if self.left_out:
            parts.append(f"left out: {_spoken(self.left_out)}")
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
        scores_from = _checked_range(score_range) or (STS_RANGE if is_sts(source.columns) else None)
        gathered = _Gathered(table, kind, roles, tally, scores_from, label_names)
        for number, row in source.rows(list(roles.values())):
            gathered.add(number, row)
            if len(gathered.numbers) == limit:
                break
        if source.n_excluded:
            tally.left_out["excluded by where"] = source.n_excluded
        examples = gathered.examples(source.unused(list(roles.values())))
    if score_range is None and scores_from is not None:
        _check_guess(examples)
    return examples


def yes_as_score(examples: Examples) -> Examples:
    """Pairs of the classes 0 and 1 as pairs with these scores; other examples as they are."""
    if examples.kind != "classified pairs" or examples.label_names != ("0", "1"):
        return examples
    assert examples.labels is not None
    scores = examples.labels.astype(np.float32)
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

_NO_GOLD_LABEL = "no gold label"


class _FlawedRow(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


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
    ) -> None:
        self.table, self.kind, self.roles, self.tally = table, kind, roles, tally
        self.score_range, self.label_names = score_range, label_names
        self.numbers: list[int] = []
        self.texts: dict[str, list[str]] = {role: [] for role in roles if role not in ("score", "label")}
        self.values: list[Any] = []

    def add(self, number: int, row: Mapping[str, Any]) -> None:
        """Take in a row, or leave it out."""
        try:
            texts, value = self._parse(row)
        except _FlawedRow as flaw:
            if flaw.reason == _NO_GOLD_LABEL:
                self.tally.left_out[flaw.reason] += 1
            else:
                self.tally.on_bad_row(flaw.reason, f"{self.table.place(number)}: {flaw}")
            return
        for gathered, text in zip(self.texts.values(), texts, strict=True):
            gathered.append(text)
        self.values.append(value)
        self.numbers.append(number)

    def _parse(self, row: Mapping[str, Any]) -> tuple[list[str], Any]:
        for column in self.roles.values():
            if column not in row:
                found = ", ".join(row) or "none"
                raise _FlawedRow("missing column", f"the row has no {column!r} (found: {found})")
        value: Any = None
        if "score" in self.roles:
            value = _score(row[self.roles["score"]], self.score_range)
        elif "label" in self.roles:
            value = _label(row[self.roles["label"]], self.label_names)
        return [_text(row[self.roles[role]], self.roles[role]) for role in self.texts], value

    def examples(self, unused: Sequence[str]) -> Examples:
        """All of them, once the file has been read."""
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
        return Examples(self.kind, columns, labels, names, told, left_out, tuple(unused))

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
        if self.kind == "classified pairs" and set(self.values) == HUB_NLI_LABELS:
            self._drop_without_gold()
        names = set(self.values)
        if names <= set(NLI_LABELS):
            return NLI_LABELS
        if names > set(NLI_LABELS):
            self._drop_unknown()
            return NLI_LABELS
        numbers = {name: finite_number(name) for name in names}
        fraction = next((name for name, number in numbers.items() if number and number % 1), None)
        if fraction is not None:
            raise InvalidInput(
                f"{self.table.name}: the label {fraction} looks like a score; "
                f'say so with columns={{"score": "{self.roles["label"]}"}}'
            )
        return tuple(sorted(names, key=lambda name: (numbers[name] is None, numbers[name] or 0, name)))

    def _drop_unknown(self) -> None:
        for number, name in zip(self.numbers, self.values, strict=True):
            if name not in NLI_LABELS:
                message = f"{self.table.place(number)}: {_unknown(name, NLI_LABELS)}"
                self.tally.on_bad_row("unknown label", message)
        self._keep([name in NLI_LABELS for name in self.values])

    def _drop_without_gold(self) -> None:
        self.tally.left_out[_NO_GOLD_LABEL] += self.values.count(HUB_NO_GOLD_LABEL)
        self._keep([name != HUB_NO_GOLD_LABEL for name in self.values])

    def _keep(self, is_kept: Sequence[bool]) -> None:
        self.values = list(compress(self.values, is_kept))
        self.numbers = list(compress(self.numbers, is_kept))
        self.texts = {role: list(compress(texts, is_kept)) for role, texts in self.texts.items()}


def _text(value: object, column: str) -> str:
    if not is_text(value):
        raise _FlawedRow("no text", f"{column} is {describe(value)}; expected a text")
    if not value or value.isspace():
        raise _FlawedRow("empty text", f"{column} is empty; expected a text")
    return value


def _score(value: object, score_range: Range | None) -> float:
    score = finite_number(value)
    if score is None:
        raise _FlawedRow("no score", f"the score is {value!r}; expected a finite number")
    if score_range is not None and not score_range[0] <= score <= score_range[1]:
        low, high = score_range
        raise _FlawedRow("score out of range", f"the score is {score:g}; expected {low:g} to {high:g}")
    return score


def _label(value: object, known: LabelNames | None) -> str:
    name = class_name(value)
    if name is None:
        raise _FlawedRow("no label", f"the label is {value!r}; expected the name or the number of a class")
    if name == NO_GOLD_LABEL:
        raise _FlawedRow(_NO_GOLD_LABEL, "the annotators did not agree")
    if name.lower() in NLI_LABELS:  # SICK writes them in capitals
        name = name.lower()
    if known is not None and name not in known:
        if isinstance(known, Mapping) and name == HUB_NO_GOLD_LABEL and {*known, name} == HUB_NLI_LABELS:
            raise _FlawedRow(_NO_GOLD_LABEL, "the annotators did not agree")
        raise _FlawedRow("unknown label", _unknown(name, known))
    return known[name] if isinstance(known, Mapping) else name


def _unknown(name: str, known: LabelNames) -> str:
    return f"the label {name!r} is unknown; expected one of {', '.join(known)}, or say label_names"


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
