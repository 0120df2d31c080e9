"""What a recipe or a command asks of a cell: `1`, `!=0`, or several of these at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

_TRUTHS = {"true": "1", "false": "0"}
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")


def condition(asked: str | Sequence[str]) -> Callable[[Any], bool]:
    """Whether a cell meets all that is asked of it."""
    every = [str(each) for each in (asked if isinstance(asked, list | tuple) else [asked])]
    unwanted = {plain(each.removeprefix("!=")) for each in every if each.startswith("!=")}
    wanted = {plain(each) for each in every if not each.startswith("!=")}

    def test(found: Any) -> bool:
        value = plain(found)
        return value not in unwanted and all(value == each for each in wanted)

    return test


def plain(value: object) -> str:
    """A cell as text, alike in all formats: 1, 1.0 and true are "1", and what is not there is empty."""
    text = "" if value is None else str(value).strip()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else _TRUTHS.get(text.lower(), text)
