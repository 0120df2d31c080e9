"""Texts with classes: what a classifier learns from, and what clusters are measured by."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from gemel.data.class_names import class_name, in_order
from gemel.data.layouts import opened_table
from gemel.data.tables import Table, describe, is_text
from gemel.errors import InvalidInput

TEXT_COLUMNS = ("text", "sentence", "content")
LABEL_COLUMNS = ("label", "class", "category", "intent")
NAMED_BY = {"text": "text=", "label": "label="}


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts and the positions of their classes in `label_names`."""

    texts: list[str]
    labels: npt.NDArray[np.int64]
    label_names: tuple[str, ...]
    origin: str = "memory"

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise InvalidInput(f"{len(self.texts)} texts were given {len(self.labels)} labels")
        if len(self) and not 0 <= self.labels.min() <= self.labels.max() < len(self.label_names):
            raise InvalidInput(
                f"classes run from {self.labels.min()} to {self.labels.max()}; "
                f"expected positions in label_names, which has {len(self.label_names)}"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: slice | Sequence[int] | npt.NDArray[np.int64]) -> LabelledTexts:
        """The texts of these rows, in the order given."""
        chosen = np.arange(len(self))[rows]
        texts = [self.texts[row] for row in chosen]
        return LabelledTexts(texts, self.labels[chosen], self.label_names, self.origin)


def read_labelled(
    path: str | os.PathLike[str],
    *,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    label_names: Sequence[str] | None = None,
    named_by: Mapping[str, str] = NAMED_BY,
) -> LabelledTexts:
    """The labelled texts of a file.

    `text` names the column, or several that are joined by a blank (a title and a body); `label` the class's.
    `label_names` are the classes in their order, where another file has set them. `named_by` is how a caller
    names the columns of text and label, for messages to advise.
    """
    with opened_table(path) as table:
        rows = list(table.rows())
        found = table.columns or (list(rows[0][1]) if rows else [])
        choose = partial(_chosen, found=found, table=table, named_by=named_by)
        columns = choose("text", [text] if isinstance(text, str) else text, TEXT_COLUMNS)
        of_label = choose("label", [label] if label else None, LABEL_COLUMNS)[0]
        texts, names = [], []
        for number, row in rows:
            texts.append(" ".join(_text(row.get(column), column, table.place(number)) for column in columns))
            names.append(_class(row.get(of_label), of_label, table.place(number)))
    if not texts:
        raise InvalidInput(f"{path} holds no labelled texts; expected at least one row")
    known = tuple(label_names) if label_names is not None else in_order(names)
    places = {name: place for place, name in enumerate(known)}
    unknown = next((row for row, name in enumerate(names) if name not in places), None)
    if unknown is not None:
        raise InvalidInput(
            f"{table.place(rows[unknown][0])}: the label {names[unknown]!r} is unknown; "
            f"expected one of {', '.join(known[:10])}"
        )
    return LabelledTexts(texts, np.array([places[name] for name in names], np.int64), known, str(path))


def _chosen(
    role: str,
    named: Sequence[str] | None,
    usual: Sequence[str],
    *,
    found: Sequence[str],
    table: Table,
    named_by: Mapping[str, str],
) -> list[str]:
    chosen = list(named) if named else [name for name in usual if name in found][:1]
    missing = [name for name in chosen if name not in found]
    if missing or not chosen:
        wanted = ", ".join(missing) or f"one of {', '.join(usual)}"
        advice = (
            f"name the column of the {role} with {named_by[role]}"
            if role in named_by
            else f"rename the column of the {role}"
        )
        raise InvalidInput(
            f"{table.name} has the columns {', '.join(found) or 'none'}; expected {wanted}: {advice}"
        )
    return chosen


def _text(value: object, column: str, place: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not is_text(value) or not value.strip():
        raise InvalidInput(f"{place}: {column} is {_shown(value)}; expected a text")
    return value


def _class(value: object, column: str, place: str) -> str:
    name = class_name(value)
    if name is None:
        raise InvalidInput(
            f"{place}: {column} is {_shown(value)}; expected the name or the whole number of a class"
        )
    return name


def _shown(value: object) -> str:
    return "empty" if is_text(value) else describe(value)
