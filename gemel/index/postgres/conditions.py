"""Filters for PostgreSQL: a condition over `fields` that is true or false, never null; values are bound."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from gemel.errors import InvalidInput
from gemel.index.filter_tree import Compared, Containing, Field, Joined, Negated, OneOf, Test, Truthy, Value
from gemel.index.filters import Filter

# A case is the only thing that PostgreSQL evaluates in order: a text is never cast to a number.
_OF_TYPE = "case when jsonb_typeof(fields #> %s::text[]) = '{type}' then {test} else false end"
_TEXT = '(fields #>> %s::text[]) collate "C"'  # as bytes are in order, which is what SQLite does
_NUMBER = "(fields #>> %s::text[])::numeric"


class Condition(NamedTuple):
    """A piece of SQL that is true or false for every row, and its parameters."""

    sql: str
    parameters: tuple[object, ...] = ()


NEVER = Condition("false")
ALWAYS = Condition("true")


def condition_for(filter_: Filter | None) -> Condition:
    """What PostgreSQL gets for a filter."""
    return ALWAYS if filter_ is None else condition_of(filter_.tree)


def condition_of(test: Test) -> Condition:
    """What PostgreSQL gets for a test; equality is containment, which an index on `fields` can answer."""
    if isinstance(test, Joined):
        parts = [condition_of(part) for part in test.tests]
        sql = f" {test.word} ".join(part.sql for part in parts)
        return Condition(f"({sql})", tuple(value for part in parts for value in part.parameters))
    if isinstance(test, Negated):
        return _not(condition_of(test.test))
    path = _path(test.field)
    if isinstance(test, Truthy):
        falsy = """('null', 'false', '0', '""', '[]', '{}')"""
        return Condition(f"(coalesce(fields #> %s::text[], 'null') not in {falsy})", (path,))
    if isinstance(test, OneOf):
        return _one_of(test)
    if isinstance(test, Containing):
        return _containing(path, test.value)
    return _compared(path, test)


def _path(field: Field) -> list[str]:
    if any("\0" in part for part in field):
        raise InvalidInput(f"field {'.'.join(field)!r} holds the character NUL, which PostgreSQL cannot keep")
    return list(field)


def _not(condition: Condition) -> Condition:
    return Condition(f"(not {condition.sql})", condition.parameters)


def _compared(path: list[str], test: Compared) -> Condition:
    if test.sign == "=":
        return _equal(test.field, test.value)
    if test.sign == "!=":
        return _not(_equal(test.field, test.value))
    if not _is_kept(test.value) and not _is_endless(test.value):
        return NEVER
    if isinstance(test.value, str):
        return Condition(
            _OF_TYPE.format(type="string", test=f"{_TEXT} {test.sign} %s::text"), (path, path, test.value)
        )
    return Condition(
        _OF_TYPE.format(type="number", test=f"{_NUMBER} {test.sign} %s::numeric"),
        (path, path, repr(test.value)),
    )


def _equal(field: Field, value: Value) -> Condition:
    path = _path(field)
    if value is None:
        return Condition("(coalesce(jsonb_typeof(fields #> %s::text[]), 'null') = 'null')", (path,))
    if not _is_kept(value):
        return NEVER
    nested: object = value
    for part in reversed(field):
        nested = {part: nested}
    return Condition("(fields @> %s::jsonb)", (json.dumps(nested),))


def _one_of(test: OneOf) -> Condition:
    path = _path(test.field)
    tests = [_equal(test.field, None)] if None in test.values else []
    kept = [value for value in test.values if value is not None and _is_kept(value)]
    texts = [value for value in kept if isinstance(value, str)]
    numbers = [repr(value) for value in kept if not isinstance(value, str | bool)]
    tests += [_equal(test.field, value) for value in {each for each in kept if isinstance(each, bool)}]
    if texts:
        sql = _OF_TYPE.format(type="string", test=f"{_TEXT} = any(%s::text[])")
        tests.append(Condition(sql, (path, path, texts)))
    if numbers:
        sql = _OF_TYPE.format(type="number", test=f"{_NUMBER} = any(%s::numeric[])")
        tests.append(Condition(sql, (path, path, numbers)))
    if not tests:
        return NEVER
    sql = " or ".join(each.sql for each in tests)
    return Condition(f"({sql})", tuple(value for each in tests for value in each.parameters))


def _containing(path: list[str], value: Value) -> Condition:
    if not _is_kept(value):
        return NEVER
    element = _OF_TYPE.format(type="array", test="(fields #> %s::text[]) @> %s::jsonb")
    bound: tuple[object, ...] = (path, path, json.dumps([value]))
    if not isinstance(value, str):
        return Condition(f"({element})", bound)
    part = _OF_TYPE.format(type="string", test=f"strpos({_TEXT}, %s) > 0")
    return Condition(f"({element} or {part})", (*bound, path, path, value))


def _is_kept(value: Value) -> bool:
    """Whether any record can hold the value: neither NUL nor what is no finite number is ever stored."""
    if isinstance(value, str):
        return "\0" not in value
    return not isinstance(value, float) or math.isfinite(value)


def _is_endless(value: Value) -> bool:
    return isinstance(value, float) and math.isinf(value)
