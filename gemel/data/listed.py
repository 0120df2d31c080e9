"""Rows whose texts stand in lists, as `query`, `pos` and `neg` of FlagEmbedding do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gemel.data.tables import OnBadRow, Row, describe

POSITIVES = ("pos", "positive", "positives")
NEGATIVES = ("neg", "negative", "negatives", "hard_negatives")


@dataclass
class Lists:
    """Which columns hold lists, and how they become columns of texts: a row for each positive one.

    All rows need as many negatives as the first ones have at least; what they have more of is left.
    """

    positives: str | None  # or None: the positive text stands in a column that is known by its name
    negatives: str | None
    n_negatives: int
    others: tuple[str, ...]
    left: list[str] = field(default_factory=list)  # what was not used, once the rows have been read

    @property
    def columns(self) -> list[str]:
        """The columns that the rows have afterwards."""
        return [*self.others, *(["positive"] if self.positives else []), *self._negative_columns]

    @property
    def sources(self) -> list[str]:
        """The columns that hold the lists."""
        return [name for name in (self.positives, self.negatives) if name]

    def that_give(self, wanted: Sequence[str]) -> Lists | None:
        """Those of the lists that some of these columns come from: what nobody wants multiplies no rows."""
        positives = self.positives if "positive" in wanted else None
        negatives = self.negatives if any(name in wanted for name in self._negative_columns) else None
        if positives is None and negatives is None:
            return None
        return replace(
            self, positives=positives, negatives=negatives, n_negatives=self.n_negatives if negatives else 0
        )

    def source_of(self, column: str) -> str:
        """The column of the file that one of the columns afterwards comes from."""
        if column == "positive" and self.positives:
            return self.positives
        return self.negatives if self.negatives and column in self._negative_columns else column

    def spoken(self, name: str) -> str:
        """What a column of the file is called afterwards."""
        return {self.positives: "positive", self.negatives: "negative_1"}.get(name, name)

    def unfolded(
        self, rows: Iterable[Row], place: Callable[[int], str], on_bad_row: OnBadRow
    ) -> Iterator[Row]:
        """The rows, each text in a column of its own."""
        for number, row in rows:
            flaw = self._flaw(row)
            if flaw is not None:
                on_bad_row("lists that do not fit", f"{place(number)}: {flaw}")
                continue
            texts = {name: value for name, value in row.items() if name in self.others}
            negatives = _texts(row[self.negatives]) if self.negatives else []
            if len(negatives) > self.n_negatives and not self.left:
                self.left.append(f"{self.negatives} beyond the first {self.n_negatives}")
            texts.update(zip(self._negative_columns, negatives, strict=False))
            if self.positives is None:
                yield number, texts
            else:
                for positive in _texts(row[self.positives]):
                    yield number, {**texts, "positive": positive}

    @property
    def _negative_columns(self) -> list[str]:
        return [f"negative_{n}" for n in range(1, self.n_negatives + 1)]

    def _flaw(self, row: Mapping[str, Any]) -> str | None:
        for name in self.sources:
            n_least = self.n_negatives if name == self.negatives else 1
            found = row.get(name)
            texts = _texts(found)
            if not isinstance(found, list | str):
                return f"{name!r} is {describe(found)}; expected a list of texts, as other rows have"
            if len(texts) < n_least:
                return f"{name!r} holds {len(texts)} text(s); expected {n_least} or more, as other rows have"
            strange = next((text for text in texts if not isinstance(text, str)), "")
            if strange != "":
                return f"a text of {name!r} is {describe(strange)}; expected a text"
        return None


def is_list_of_texts(column: str, value: object) -> bool:
    """Whether a column of this name, with such a value in it, holds positive or negative texts."""
    return column in (*POSITIVES, *NEGATIVES) and isinstance(value, list) and bool(value)


def find_lists(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], named: Mapping[str, str]
) -> Lists | None:
    """Where these rows of a table hold lists of texts; the caller may have named the columns."""
    positives = [name for role, name in named.items() if role in ("second", "positive")] or POSITIVES
    negatives = [name for role, name in named.items() if role.startswith("negative")] or NEGATIVES
    held = {name: _lists(rows, name) for name in (*positives, *negatives)}
    if not any(held.values()):
        return None
    # Beside a list of negatives, the positive one may be a lone text.
    present = [name for name in positives if name in columns]
    positive = next((name for name in present if held[name]), next(iter(present), None))
    negative = next((name for name in negatives if held[name]), None)
    n_negatives = min(map(len, held[negative])) if negative else 0
    others = tuple(name for name in columns if name not in (positive, negative))
    return Lists(positive, negative, n_negatives, others)


def _lists(rows: Sequence[Mapping[str, Any]], name: str) -> list[list[Any]]:
    """The lists of a column that have something in them."""
    return [row[name] for row in rows if isinstance(row.get(name), list) and row[name]]


def _texts(found: object) -> list[Any]:
    return found if isinstance(found, list) else [found]
