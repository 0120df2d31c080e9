"""What values of recipes and settings must be, told in the words of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from gemel.errors import InvalidInput


@dataclass(frozen=True)
class Expected:
    """A kind of value: in words, and how to know it."""

    words: str
    fits: Callable[[Any], bool]

    def __or__(self, other: Expected) -> Expected:
        return Expected(
            f"{self.words}, or {other.words}", lambda value: self.fits(value) or other.fits(value)
        )


def is_int(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of either kind."""
    return is_int(value) or isinstance(value, float)


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


def _is_two_numbers(value: Any) -> bool:
    return _all(is_number)(value) and len(value) == 2


ANYTHING = Expected("anything", lambda value: True)
TEXT = Expected('a word in quotes, such as "mean"', lambda value: isinstance(value, str))
TEXTS = Expected('a list of words, such as ["premise"]', _all(lambda value: isinstance(value, str)))
WHOLE = Expected("a whole number", is_int)
WHOLES = Expected("a list of whole numbers, such as [1, 2, 3]", _all(is_int))
NUMBER = Expected("a number", is_number)
TWO_NUMBERS = Expected("two numbers, such as [0, 5]", _is_two_numbers)
BOOLEAN = Expected("true or false", lambda value: isinstance(value, bool))
TABLE = Expected('a table, such as { path = "pairs.tsv" }', lambda value: isinstance(value, Mapping))
WORDS = Expected(
    'a table of words, such as { 0 = "no" }',
    lambda value: isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values()),
)
TABLES = Expected("one or several [[...]] tables", _all(lambda value: isinstance(value, Mapping)))
TEXT_OR_TEXTS = TEXT | TEXTS
TEXT_OR_TABLE = TEXT | TABLE
WHOLE_OR_WHOLES = WHOLE | WHOLES


def check_keys(values: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse an unknown key with a list of the known ones."""
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInput(
            f"{where} has the unknown key {unknown[0]!r}; the known keys are {', '.join(known)}"
        )


def check_types(values: Mapping[str, Any], expected: Mapping[str, Expected], where: str) -> None:
    """Refuse a value of another type than its key takes."""
    for name, value in values.items():
        if name in expected and not expected[name].fits(value):
            raise InvalidInput(f"{name} in {where} is {value!r}; expected {expected[name].words}")
