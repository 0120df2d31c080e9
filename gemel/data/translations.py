"""Translation pairs out of a table that holds the same texts in several languages, a language a row.

XNLI and the translated STS benchmark are such: row k of German says what row k of English says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from gemel.data.examples import Examples
from gemel.data.layouts import opened_table
from gemel.data.tables import Row, is_text
from gemel.errors import InvalidInput


def read_translations(
    path: str | os.PathLike[str],
    *,
    texts: Sequence[str],
    language: str = "lang",
    pivot: str = "en",
    languages: Sequence[str] | None = None,
) -> Examples:
    """Each distinct text of the pivot beside its translation, for every other language or those named.

    `texts` names the columns that hold texts, `language` the column that says in which one a row is.
    """
    with opened_table(path) as table:
        by_language = _by_language(table.rows(), list(texts), language, str(path))
    wanted = [name for name in by_language if name != pivot] if languages is None else list(languages)
    for name in (pivot, *wanted):
        if name not in by_language:
            raise InvalidInput(
                f"{path} has no rows in the language {name!r}; it has {', '.join(by_language) or 'none'}"
            )
        if len(by_language[name]) != len(by_language[pivot]):
            raise InvalidInput(
                f"{path} has {len(by_language[pivot]):,} texts in {pivot!r} and {len(by_language[name]):,} "
                f"in {name!r}; expected as many of each, in one order"
            )
    pairs = dict.fromkeys(
        pair
        for name in wanted
        for pair in zip(by_language[pivot], by_language[name], strict=True)
        if all(text.strip() for text in pair)
    )
    if not pairs:
        raise InvalidInput(
            f"{path} holds no translations from {pivot!r}; expected another language beside it"
        )
    first, second = map(list, zip(*pairs, strict=True))
    origin = f"{path} (first = {pivot}, second = {', '.join(wanted)})"
    return Examples("pairs", {"first": first, "second": second}, origin=origin, files=(str(path),))


def _by_language(rows: Iterator[Row], texts: list[str], language: str, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, row in rows:
        missing = [column for column in (language, *texts) if not is_text(row.get(column))]
        if missing:
            raise InvalidInput(
                f"{name}, row {number}: there is no text in the column {missing[0]!r} "
                f"(columns: {', '.join(row)}); name the right ones with texts and language"
            )
        found.setdefault(row[language], []).extend(row[column] for column in texts)
    return found
