"""Rows whose texts stand in lists, as `query`, `pos` and `neg` of FlagEmbedding do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemel.data.tables import OnBadRow, Row, describe

_POSITIVES = ("pos", "positive", "positives")
_NEGATIVES = ("neg", "negative", "negatives")


def may_hold_lists(columns: Sequence[str]) -> bool:
    """Whether a table with this header is worth a look at its rows."""
    return any(name in columns for name in _POSITIVES)


@dataclass(frozen=True)
class Lists:
    """Which columns hold lists, and how they become columns of texts: a row for each positive one.

    All rows need as many negatives as the first ones have at least; what they have more of is left.
    """

    positives: str
    negatives: str | None
    n_negatives: int
    has_more: bool
    others: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that the rows have afterwards, and one for what is left."""
        more = [f"{self.negatives} beyond the first {self.n_negatives}"] if self.has_more else []
        return [*self.others, "positive", *self._negative_columns, *more]

    def unfolded(
        self, rows: Iterable[Row], place: Callable[[int], str], on_bad_row: OnBadRow
    ) -> Iterator[Row]:
        """The rows, each text in a column of its own."""
        for number, row in rows:
            flaw = self._flaw(row)
            if flaw is not None:
                on_bad_row("lists that do not fit", f"{place(number)}: {flaw}")
                continue
            kept = {name: value for name, value in row.items() if name in self.others}
            negatives = row[self.negatives] if self.negatives else ()
            beside = dict(zip(self._negative_columns, negatives, strict=False))
            for positive in row[self.positives]:
                yield number, {**kept, "positive": positive, **beside}

    @property
    def _negative_columns(self) -> list[str]:
        return [f"negative_{n}" for n in range(1, self.n_negatives + 1)]

    def _flaw(self, row: Mapping[str, Any]) -> str | None:
        wanted = [(self.positives, 1)]
        if self.negatives:
            wanted.append((self.negatives, self.n_negatives))
        for name, n_least in wanted:
            found = row.get(name)
            if not isinstance(found, list):
                return f"{name!r} is {describe(found)}; expected a list of texts, as other rows have"
            if len(found) < n_least:
                return f"{name!r} holds {len(found)} text(s); expected {n_least} or more, as other rows have"
        return None


def find_lists(first: Sequence[Row], columns: Sequence[str]) -> Lists | None:
    """Where the first rows of a table with these columns hold lists of texts, or None."""
    positives = _column_of_lists(first, _POSITIVES)
    if positives is None:
        return None
    negatives = _column_of_lists(first, _NEGATIVES)
    lengths = [len(texts) for texts in _lists(first, negatives)] if negatives else [0]
    others = tuple(name for name in columns if name not in (positives, negatives))
    return Lists(positives, negatives, min(lengths), max(lengths) > min(lengths), others)


def _column_of_lists(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    return next((name for name in names if _lists(rows, name)), None)


def _lists(rows: Sequence[Row], name: str) -> list[list[Any]]:
    """The lists of a column that have something in them."""
    return [row[name] for _, row in rows if isinstance(row.get(name), list) and row[name]]
