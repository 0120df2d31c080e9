"""Plain texts to learn from: those of several files and columns, each text once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemel.data.conditions import condition
from gemel.data.examples import Examples
from gemel.data.texts import Id, TextSource
from gemel.errors import InvalidInput


@dataclass(frozen=True)
class TextFile:
    """A file, its columns that hold texts, and the values that other columns must have."""

    path: str | Path
    columns: tuple[str, ...] = ("text",)
    where: Mapping[str, str] = field(default_factory=dict)  # {"lang": "en"} or {"source": "!=sick"}
    document: str | None = None  # a column: rows in which it has one value are one text, such as a page

    @classmethod
    def named(cls, name: str, column: str = "text") -> TextFile:
        """The file of a name such as `pairs.tsv:premise,hypothesis`, or with the usual column."""
        path, colon, columns = name.rpartition(":")
        if not colon or Path(name).exists():
            return cls(name, (column,))
        return cls(path, tuple(columns.split(",")))

    def texts(self) -> Iterator[str]:
        """Every text of every column."""
        for column in self.columns:
            if self.document is None:
                yield from (text for _, text in self._rows(column))
                continue
            parts: dict[Id, list[str]] = {}
            for document, text in self._rows(column):
                parts.setdefault(document, []).append(text)
            yield from map("\n".join, parts.values())

    def _rows(self, column: str) -> Iterator[tuple[Id, str]]:
        others = tuple(self.where)
        source = TextSource(
            self.path, column=column, id_column=self.document, other_columns=others, options=()
        )
        tests = {name: condition(asked) for name, asked in self.where.items()}
        for record, values in source.rows():
            if all(is_wanted(values.get(name)) for name, is_wanted in tests.items()):
                yield record.id, record.text


def read_plain_texts(files: Sequence[TextFile], *, limit: int | None = None, seed: int = 42) -> Examples:
    """The different texts of all files, blank ones left out, or an even sample of so many of them."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit!r}; expected at least 1: ask for one text or more")
    found = list(dict.fromkeys(text for file in files for text in file.texts() if text.strip()))
    if limit is not None and limit < len(found):
        rows = sorted(random.Random(seed).sample(range(len(found)), limit))
        found = [found[row] for row in rows]
    paths = tuple(str(file.path) for file in files)
    return Examples("texts", {"text": found}, origin=" + ".join(paths), files=paths)
