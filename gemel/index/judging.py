"""Filters judged here, from a record's metadata: for stores whose own filters cannot say everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemel.index.filter_tree import Compared, Containing, Field, Joined, Negated, OneOf, Test, Truthy, Value

_MISSING = object()


def passes(test: Test, metadata: Mapping[str, Any]) -> bool:
    """Whether a record with this metadata passes a test."""
    if isinstance(test, Joined):
        judged = (passes(part, metadata) for part in test.tests)
        return all(judged) if test.word == "and" else any(judged)
    if isinstance(test, Negated):
        return not passes(test.test, metadata)
    found = _value_of(test.field, metadata)
    if isinstance(test, Truthy):
        return found is not _MISSING and bool(found)
    if isinstance(test, OneOf):
        return any(_is_equal(found, value) for value in test.values)
    if isinstance(test, Containing):
        if isinstance(found, list):
            return any(_is_equal(element, test.value) for element in found)
        return isinstance(found, str) and isinstance(test.value, str) and test.value in found
    return _is_so(found, test)


def _value_of(field: Field, metadata: Mapping[str, Any]) -> Any:
    value: Any = metadata
    for part in field:
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


def _kind(value: Any) -> str:
    if value is None or value is _MISSING:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _is_equal(found: Any, value: Value) -> bool:
    kind = _kind(value)
    return _kind(found) == kind and (kind == "null" or bool(found == value))


def _is_so(found: Any, test: Compared) -> bool:
    if test.sign in ("=", "!="):
        return _is_equal(found, test.value) == (test.sign == "=")
    if _kind(found) != _kind(test.value):
        return False
    if isinstance(found, str):  # as bytes are in order, which Python's own order of letters is not always
        found, value = found.encode(), str(test.value).encode()
        return _in_order(found, test.sign, value)
    return _in_order(found, test.sign, test.value)


def _in_order(found: Any, sign: str, value: Any) -> bool:
    return bool(
        found < value
        if sign == "<"
        else found <= value
        if sign == "<="
        else found > value
        if sign == ">"
        else found >= value
    )
