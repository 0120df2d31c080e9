"""The rows of a file that are good, and the examples they become in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
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
from gemel.data.class_names import HUB_NO_GOLD_LABEL, NLI_LABELS, in_order
from gemel.data.examples import CLASSIFIED, Examples, Labels, spoken_counts
from gemel.data.gold import ROWS_OF_DOUBT, GoldLabels
from gemel.data.roles import Kind
from gemel.data.tables import Table, finite_number
from gemel.errors import InvalidInput


class Tally:
    """Rows that are left out, by reason; bad ones only if that was asked for."""

    def __init__(self, skip_bad_rows: bool) -> None:
        self.skip_bad_rows = skip_bad_rows
        self.left_out: Counter[str] = Counter()

    def on_bad_row(self, reason: str, message: str) -> None:
        """Count a bad row, or refuse it."""
        if not self.skip_bad_rows:
            raise InvalidInput(
                f"{message}; repair the row, or leave out all such with skip_bad_rows "
                "(the flag --skip-bad-rows)"
            )
        self.left_out[reason] += 1


class Gathered:
    """The rows that are good so far, and what they become in the end."""

    def __init__(
        self,
        table: Table,
        kind: Kind,
        roles: Mapping[str, str],
        tally: Tally,
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
        elif self._gold.are_of_nli:
            self._drop_unknown()
        if self.limit is not None:  # a row without a class did not count, whenever that was found out
            self._keep([place < self.limit for place in range(len(self.numbers))])
        names: tuple[str, ...] = ()
        labels: Labels | None = None
        if self.kind == "scored pairs":
            labels = self._scores()
        elif self.kind in CLASSIFIED:
            names = self._names()
            indices = {name: index for index, name in enumerate(names)}
            labels = np.array([indices[value] for value in self.values], np.int64)
        if not self.numbers:
            spoken_of = spoken_counts(self.tally.left_out) or "none"
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
        """The classes in order; where there are none but NLI's, all three of them."""
        if self.label_names is not None and not isinstance(self.label_names, Mapping):
            return tuple(self.label_names)
        names = set(self.values)
        if names <= set(NLI_LABELS):
            return NLI_LABELS
        self._check_fractions()
        return in_order(names)

    def _check_fractions(self) -> None:
        """Refuse scores that stand in a column of labels, as sentence-transformers has them."""
        labels = zip(self.numbers, self.values, strict=True)
        fractions = ((number, label) for number, label in labels if (finite_number(label) or 0) % 1)
        number, label = next(fractions, (0, None))
        if label is None:
            return
        column = self.roles["label"]
        advice = f'say so with --column score={column}, or columns={{"score": "{column}"}}'
        if self.kind == "classified texts":
            advice = "a text alone has a class: name the column of the classes"
        raise InvalidInput(f"{self.table.place(number)}: the label {label} looks like a score; {advice}")

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
