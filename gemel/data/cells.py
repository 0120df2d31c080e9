"""What the cells of an example hold: a text, a score, a class; a cell that holds something else says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemel.data.class_names import (
    HUB_NLI_LABELS,
    HUB_NO_GOLD_LABEL,
    NLI_LABELS,
    NO_GOLD_LABEL,
    class_name,
    truth_of,
)
from gemel.data.tables import describe, finite_number, is_text

Range = tuple[float, float]
LabelNames = Sequence[str] | Mapping[str, str]  # in their order, or what is written -> what it stands for

WITHOUT_GOLD = "no gold label"


class FlawedRow(Exception):
    """Why a row cannot be taken: in two words, and in a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def text_in(value: object, column: str) -> str:
    """A text that is not blank."""
    if not is_text(value):
        raise FlawedRow("no text", f"{column} is {describe(value)}; expected a text")
    if not value or value.isspace():
        raise FlawedRow("empty text", f"{column} is empty; expected a text")
    return value


def score_in(value: object, score_range: Range | None) -> float:
    """A finite number, or yes and no as 1 and 0."""
    score = finite_number(value)
    if score is None:
        score = truth_of(value)
    if score is None:
        raise FlawedRow("no score", f"the score is {value!r}; expected a finite number")
    if score_range is not None and not score_range[0] <= score <= score_range[1]:
        low, high = score_range
        raise FlawedRow("score out of range", f"the score is {score:g}; expected {low:g} to {high:g}")
    return score


def label_in(value: object, known: LabelNames | None) -> str:
    """The class that a cell names, by what that stands for where the caller has said so."""
    name = class_name(value)
    if name is None:
        raise FlawedRow("no label", f"the label is {value!r}; expected the name or the number of a class")
    if name == NO_GOLD_LABEL:
        raise FlawedRow(WITHOUT_GOLD, "the annotators did not agree")
    if name.lower() in NLI_LABELS and name not in (known or ()):  # SICK writes them in capitals
        name = name.lower()
    if isinstance(known, Mapping) and name not in known and name in _names_in(known):
        return name  # a file may have the names themselves
    if known is not None and name not in known:
        if name == HUB_NO_GOLD_LABEL and {*known, name} == HUB_NLI_LABELS:
            raise FlawedRow(WITHOUT_GOLD, "the annotators did not agree")
        raise FlawedRow("unknown label", unknown_label(name, known))
    return known[name] if isinstance(known, Mapping) else name


def _names_in(known: Mapping[str, str]) -> list[str]:
    """What labels stand for, without numbers: those that a file has are labels themselves."""
    return [name for name in known.values() if finite_number(name) is None]


def unknown_label(name: str, known: LabelNames) -> str:
    """The sentence for a class that nobody has announced."""
    return f"the label {name!r} is unknown; expected one of {', '.join(known)}, or say label_names"
