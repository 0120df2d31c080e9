"""A filter that has been read, as a tree: what each store turns into the language of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Comparison: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Field: TypeAlias = tuple[str, ...]  # the keys that lead to it, outermost first


@dataclass(frozen=True)
class Truthy:
    """The field is there, and is not false, null, 0, "", [] or {}."""

    field: Field


@dataclass(frozen=True)
class Compared:
    """The field is of the value's kind, and stands so to it; null is equal to what is not there."""

    field: Field
    sign: Comparison
    value: Value


@dataclass(frozen=True)
class OneOf:
    """The field is equal to one of the values."""

    field: Field
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Containing:
    """The field is a list with this element, or a text with this part."""

    field: Field
    value: Value


@dataclass(frozen=True)
class Negated:
    """The test is not passed."""

    test: Test


@dataclass(frozen=True)
class Joined:
    """All tests are passed (`and`), or at least one of them is (`or`)."""

    word: Literal["and", "or"]
    tests: tuple[Test, ...]


Test: TypeAlias = Truthy | Compared | OneOf | Containing | Negated | Joined


def fields_of(test: Test) -> set[Field]:
    """The fields that a test looks at."""
    if isinstance(test, Joined):
        return set().union(*map(fields_of, test.tests))
    return fields_of(test.test) if isinstance(test, Negated) else {test.field}
