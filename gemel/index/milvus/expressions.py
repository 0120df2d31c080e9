"""Filters for Milvus: a necessary condition in its own language, the values apart where it takes them so."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from gemel.index.filter_tree import Compared, Containing, Field, Joined, OneOf, Test, Value

MAX_ALTERNATIVES = 100


@dataclass
class Expression:
    """What Milvus gets: a text with {v0}, {v1} ... in it, and their values."""

    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    def inlined(self) -> str:
        """The same with the values in their places, for Milvus Lite, which takes no values apart.

        What is in a text that could end it is never let into an expression: see `_is_plain`.
        """
        return self.text.format(**{name: json.dumps(value) for name, value in self.values.items()})


def necessary(test: Test | None) -> Expression:
    """What every record that passes a test fulfils; empty where Milvus cannot tell any apart."""
    expression = Expression()
    expression.text = ("" if test is None else _said(test, expression)) or ""
    return expression


def _said(test: Test, expression: Expression) -> str | None:
    """The condition; None where it cannot be said: a negation never is, as what is missing passes none."""
    if isinstance(test, Joined):
        parts = [_said(part, expression) for part in test.tests]
        said = [part for part in parts if part is not None]
        if not said or (test.word == "or" and len(said) < len(parts)):
            return None
        return "(" + f" {test.word} ".join(said) + ")"
    if isinstance(test, Compared) and test.sign != "!=":
        return _compared(test.field, "==" if test.sign == "=" else test.sign, test.value, expression)
    if isinstance(test, OneOf) and len(test.values) <= MAX_ALTERNATIVES:
        parts = [_compared(test.field, "==", value, expression) for value in test.values]
        return None if None in parts else "(" + " or ".join(map(str, parts)) + ")"
    if isinstance(test, Containing) and not isinstance(test.value, str):  # a text may also be a part of one
        path, name = _path(test.field), _bound(test.value, expression)
        return None if path is None or name is None else f"json_contains({path}, {name})"
    return None


def _compared(field_: Field, sign: str, value: Value, expression: Expression) -> str | None:
    path, name = _path(field_), _bound(value, expression)
    return None if path is None or name is None else f"{path} {sign} {name}"


def _path(field_: Field) -> str | None:
    if not all(_is_plain(part) for part in field_):
        return None
    return "metadata" + "".join(f'["{part}"]' for part in field_)


def _bound(value: Value, expression: Expression) -> str | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, str) and not _is_plain(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53:
        return None  # which JSON in Milvus may keep as the nearest float
    name = f"v{len(expression.values)}"
    expression.values[name] = value
    return f"{{{name}}}"


def _is_plain(text: str) -> bool:
    """Whether a text can stand in an expression as it is: ASCII without quotes, backslashes and brackets."""
    return text.isascii() and text.isprintable() and not set(text) & set("\"'\\{}[]%")
