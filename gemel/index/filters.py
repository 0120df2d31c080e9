"""Which records a search may find: a small language over metadata, the same in every store.

    year >= 2019 and lang in ("en", "de") and not draft
    author.name = "Kim" or tags contains "news"
    `a field with spaces` = null

or   := and ("or" and)*          and := not ("and" not)*          not := "not" not | test
test := "(" or ")" | field | field comparison value | field ["not"] "in" "(" value, ... ")"
comparison := = == != <> < <= > >= contains      value := number | "text" | 'text' | true | false | null | ?

- A field alone is true where it is there and is not false, null, 0, "", [] or {}.
- Values of different kinds are never equal and never in order: "2020" is not 2020, nor before or after it.
- A test of a field that a record lacks is false (only `= null` is true there), and `not` turns that round:
  every record either passes a filter or passes its opposite.
- `contains` looks for an element in a list and for a part in a text.
- ? stands for a value that is given beside the filter: Filter("lang = ?", "en").
No word of a filter ever becomes SQL: it is read into a tree, from which each store makes its own condition
with fields and values as bound parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from gemel.errors import InvalidInput
from gemel.index.filter_sqlite import Condition, condition_of
from gemel.index.filter_tree import (
    Compared,
    Comparison,
    Containing,
    Field,
    Joined,
    Negated,
    OneOf,
    Test,
    Truthy,
    Value,
)
from gemel.index.records import whole_text
from gemel.threads import once

_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<quoted>`[^`]+`)
  | (?P<word>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
  | (?P<sign>==|!=|<>|<=|>=|[=<>(),?])
  | (?P<end>$)
    )""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = {"and", "or", "not", "in", "contains", "true", "false", "null"}
_COMPARISONS: dict[str, Comparison] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
_KINDS = (str, int, float, bool)
# SQLite reads expressions to a depth of 1,000, with 32,766 parameters.
_UNASKABLE = re.compile(r'["\\\x00-\x1f]')
_MAX_TESTS, _MAX_DEPTH, _MAX_VALUES = 500, 50, 10_000


class Filter:
    """A filter that has been read: `tree` is what it says, `sql` and `parameters` are what SQLite gets."""

    def __init__(self, text: str, *values: Value) -> None:
        if not isinstance(text, str):
            raise InvalidInput(
                f"a filter is a str such as 'year >= 2019 and lang = \"en\"'; {text!r} was given"
            )
        self.text = whole_text(text, "the filter")
        self.values = values
        self._tokens = _read_tokens(text)
        self._at = 0
        self._n_tests = self._depth = 0
        self._unused = list(values)
        self.tree = self._either()
        if self._kind != "end":
            self._refuse("`and`, `or` or the end")
        if self._unused:
            raise InvalidInput(f"filter {text!r} has fewer ? than the {len(values)} values given")

    @once
    def condition(self) -> Condition:
        """An expression over `records` and its parameters, for SQLite."""
        return condition_of(self.tree)

    @property
    def sql(self) -> str:
        """An expression over `records`."""
        return self.condition.sql

    @property
    def parameters(self) -> tuple[str | int | float | None, ...]:
        """What its question marks stand for."""
        return self.condition.parameters

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two filters the same; 1, 1.0 and True are equal to Python and not here."""
        return (self.text, *((type(value), value) for value in self.values))

    # Reading: one method for each line of the grammar -------------------------------------------------

    def _either(self) -> Test:
        return self._chain("or", self._both)

    def _both(self) -> Test:
        return self._chain("and", self._negated)

    def _chain(self, word: Literal["and", "or"], part: Callable[[], Test]) -> Test:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _negated(self) -> Test:
        n_negations = 0
        while self._takes("not"):
            n_negations += 1
        test = self._test()
        return Negated(test) if n_negations % 2 else test

    def _test(self) -> Test:
        self._n_tests += 1
        if self._n_tests > _MAX_TESTS:
            raise InvalidInput(f"the filter has more than {_MAX_TESTS} tests; make it shorter, use `in`")
        if self._takes("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise InvalidInput(
                    f"the filter has brackets {self._depth} deep; make it {_MAX_DEPTH} at most"
                )
            inside = self._either()
            self._expect(")")
            self._depth -= 1
            return inside
        field = self._field()
        if self._kind == "sign" and self._word in _COMPARISONS:
            return _compared(field, _COMPARISONS[self._next()], self._value())
        if self._takes("contains"):
            return Containing(field, self._value())
        is_negated = self._takes("not")
        if self._takes("in"):
            return self._among(field, is_negated)
        if is_negated:
            self._refuse("`in` after `not`")
        return Truthy(field)

    def _among(self, field: Field, is_negated: bool) -> Test:
        self._expect("(")
        values = [self._value()]
        while self._takes(","):
            values.append(self._value())
        self._expect(")")
        if len(values) > _MAX_VALUES:
            raise InvalidInput(
                f"the filter has {len(values):,} values to choose from; give {_MAX_VALUES:,} at most"
            )
        test = OneOf(field, tuple(values))
        return Negated(test) if is_negated else test

    def _field(self) -> Field:
        if self._kind == "quoted":
            name = self._next()[1:-1]
            if _UNASKABLE.search(name):  # JSON writes them otherwise than they are
                raise InvalidInput(
                    f"field {name!r} has a quotation mark, a backslash or a control character in it; "
                    "rename it to filter by it"
                )
            return (name,)
        if self._kind != "word" or self._word.lower() in _KEYWORDS:
            self._refuse("a field")
        return tuple(self._next().split("."))

    def _value(self) -> Value:
        kind = self._kind
        if kind == "number":
            number = self._next()
            return _as_stored(int(number)) if re.fullmatch(r"[+-]?\d{1,19}", number) else float(number)
        if kind == "text":
            return re.sub(r"\\(.)", r"\1", self._next()[1:-1], flags=re.DOTALL)
        if kind == "word" and self._word.lower() in _CONSTANTS:
            return _CONSTANTS[self._next().lower()]
        if self._takes("?"):
            return self._given()
        return self._refuse("a number, a text in quotation marks, true, false, null or ?")

    def _given(self) -> Value:
        if not self._unused:
            raise InvalidInput(f"filter {self.text!r} has more ? than the {len(self.values)} values given")
        value = self._unused.pop(0)
        if value is not None and type(value) not in _KINDS:
            raise InvalidInput(
                f"a filter was given the {type(value).__name__} {value!r}; "
                "expected a str, a number, a bool or None"
            )
        if isinstance(value, str):
            return whole_text(value, f"value {len(self.values) - len(self._unused) - 1} of the filter")
        return _as_stored(value) if isinstance(value, int) else value

    # Tokens -------------------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    @property
    def _word(self) -> str:
        return self._tokens[self._at][1]

    def _next(self) -> str:
        word = self._word
        self._at += 1
        return word

    def _takes(self, word: str) -> bool:
        is_there = self._kind in ("word", "sign") and self._word.lower() == word
        self._at += is_there
        return is_there

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            self._refuse(f"`{word}`")

    def _refuse(self, expected: str) -> Value:
        found = f"{self._word!r}" if self._word else "its end"
        raise InvalidInput(
            f"filter {self.text!r} has {found} at character {self._tokens[self._at][2]}; expected {expected}"
        )


def _as_stored(number: int) -> int | float:
    """The number as a database compares it, which has 64 bits for whole ones."""
    if -(1 << 63) <= number < 1 << 63:
        return number
    return float(min(max(number, -(1 << 1023)), 1 << 1023))  # beyond it a float has no number


def _read_tokens(text: str) -> list[tuple[str, str, int]]:
    tokens: list[tuple[str, str, int]] = []
    at = 0
    while not tokens or tokens[-1][0] != "end":
        match = _TOKENS.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            raise InvalidInput(
                f"filter {text!r} cannot be read at character {place}; expected something like "
                'year >= 2019 and lang in ("en", "de") and not draft'
            )
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind], match.start(kind)))
        at = match.end()
    return tokens


def _compared(field: Field, sign: Comparison, value: Value) -> Test:
    if sign not in ("=", "!=") and (value is None or isinstance(value, bool)):
        raise InvalidInput(f"nothing is before or after {value}; compare it with = or !=")
    return Compared(field, sign, value)
