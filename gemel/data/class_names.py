"""What a cell calls a class, alike in all formats, and the classes of NLI."""

from __future__ import annotations

from collections.abc import Iterable

from gemel.data.conditions import plain
from gemel.data.tables import finite_number, is_text

NLI_LABELS = ("contradiction", "entailment", "neutral")  # in Sentence-BERT's order of the classes
NO_GOLD_LABEL = "-"
HUB_NO_GOLD_LABEL = "-1"  # where the classes of NLI are numbers, as data sets of the hub have them
HUB_NLI_LABELS = {HUB_NO_GOLD_LABEL, "0", "1", "2"}
_TRUTHS = {"0": 0.0, "1": 1.0}


def class_name(value: object) -> str | None:
    """The name or the number of a class: 1, 1.0 and true are "1"; None where the cell holds neither.

    A text stays as it is written: "1.0" may be a version, and "true" a word among others.
    """
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return (value.strip() or None) if is_text(value) else None


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once: numbers by their value, then words by the alphabet."""
    numbers = {name: finite_number(name) for name in names}
    return tuple(sorted(numbers, key=lambda name: (numbers[name] is None, numbers[name] or 0, name)))


def truth_of(value: object) -> float | None:
    """1 for yes and 0 for no, however a file spells them: 1, 1.0 or true; None for anything else."""
    return _TRUTHS.get(plain(value))
