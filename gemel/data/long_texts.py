"""Examples without long texts, of which one takes the time of several short ones."""

from __future__ import annotations

from dataclasses import replace

from gemel.data.examples import Examples
from gemel.errors import InvalidInput


def without_long_texts(examples: Examples, max_characters: int, limit: int | None = None) -> Examples:
    """The examples whose texts have so many characters at most, the first `limit` of them."""
    if max_characters < 1:
        raise InvalidInput(f"max_characters is {max_characters!r}; expected at least 1, such as 120")
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit!r}; expected at least 1: ask for one example or more")
    lengths = (max(map(len, texts)) for texts in zip(*examples.columns.values(), strict=True))
    short = [row for row, length in enumerate(lengths) if length <= max_characters]
    n_long = len(examples) - len(short)
    if not short:
        raise InvalidInput(
            f"all {n_long:,} {examples.kind} of {examples.origin} have a text of more than "
            f"max_characters={max_characters:,}; give a larger one"
        )
    left_out = {
        **examples.left_out,
        **({f"longer than {max_characters:,} characters": n_long} if n_long else {}),
    }
    return replace(examples.take(short[:limit]), left_out=left_out, unused=examples.unused)
