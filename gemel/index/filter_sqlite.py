"""Filters for SQLite: each test is 0 or 1 for every row of `records`, also where the field is not there."""

from __future__ import annotations

from typing import NamedTuple

from gemel.index.filter_tree import Compared, Containing, Field, Joined, Negated, OneOf, Test, Truthy, Value

# The types that SQLite's json_type gives a value, for each kind of value that a filter can hold.
_TYPES = {
    str: "('text')",
    int: "('integer', 'real')",
    float: "('integer', 'real')",
    bool: "('true', 'false')",
}
_TYPE, _VALUE = "json_type(metadata, ?)", "json_extract(metadata, ?)"


class Condition(NamedTuple):
    """A piece of SQL that is 0 or 1 for every row of `records`, and its parameters."""

    sql: str
    parameters: tuple[str | int | float | None, ...]


def condition_of(test: Test) -> Condition:
    """What SQLite gets for a test: fields become JSON paths and values parameters, both bound."""
    if isinstance(test, Joined):
        parts = [condition_of(part) for part in test.tests]
        sql = f" {test.word} ".join(part.sql for part in parts)
        return Condition(f"({sql})", tuple(value for part in parts for value in part.parameters))
    if isinstance(test, Negated):
        return _not(condition_of(test.test))
    path = _path(test.field)
    if isinstance(test, Truthy):
        return _true(path)
    if isinstance(test, OneOf):
        return _one_of(path, test.values)
    if isinstance(test, Containing):
        return _containing(path, test.value)
    return _compared(path, test)


def _path(field: Field) -> str:
    return "$" + "".join(f'."{part}"' for part in field)


def _not(condition: Condition) -> Condition:
    return Condition(f"(not {condition.sql})", condition.parameters)


def _true(path: str) -> Condition:
    # An empty list or object reads as a text of two characters, which a text may be, too.
    is_hollow = f"({_TYPE} in ('array', 'object') and {_VALUE} in ('[]', '{{}}'))"
    sql = f"coalesce({_TYPE} != 'null' and {_VALUE} not in (0, '') and not {is_hollow}, 0)"
    return Condition(sql, (path,) * 4)


def _compared(path: str, test: Compared) -> Condition:
    if test.sign == "=":
        return _equal(path, test.value)
    if test.sign == "!=":
        return _not(_equal(path, test.value))
    assert test.value is not None, "nothing is before or after null"
    return _in_order(path, test.sign, test.value)


def _equal(path: str, value: Value) -> Condition:
    if value is None:
        return Condition(f"(coalesce({_TYPE}, 'null') = 'null')", (path,))
    return _in_order(path, "=", value)


def _in_order(path: str, sign: str, value: str | int | float | bool) -> Condition:
    sql = f"coalesce({_TYPE} in {_TYPES[type(value)]} and {_VALUE} {sign} ?, 0)"
    return Condition(sql, (path, path, int(value) if isinstance(value, bool) else value))


def _one_of(path: str, values: tuple[Value, ...]) -> Condition:
    """Equal to one of the values: one list for each kind, as SQLite reads no deep chain of alternatives."""
    tests = [_equal(path, None)] if None in values else []
    for types in dict.fromkeys(_TYPES.values()):
        alike = [value for value in values if value is not None and _TYPES[type(value)] == types]
        if alike:
            marks = ",".join("?" * len(alike))
            bound = (int(value) if isinstance(value, bool) else value for value in alike)
            sql = f"coalesce({_TYPE} in {types} and {_VALUE} in ({marks}), 0)"
            tests.append(Condition(sql, (path, path, *bound)))
    sql = " or ".join(test.sql for test in tests)
    return Condition(f"({sql})", tuple(value for test in tests for value in test.parameters))


def _containing(path: str, value: Value) -> Condition:
    types = "('null')" if value is None else _TYPES[type(value)]
    element = "element.value is ?" if value is None else "element.value = ?"
    sql = (
        "exists (select 1 from json_each(metadata, ?) as element "
        f"where element.type in {types} and {element} and {_TYPE} = 'array')"
    )
    bound: tuple[str | int | float | None, ...] = (
        path,
        int(value) if isinstance(value, bool) else value,
        path,
    )
    if isinstance(value, str):
        sql = f"({sql} or coalesce({_TYPE} = 'text' and instr({_VALUE}, ?) > 0, 0))"
        bound = (*bound, path, path, value)
    return Condition(sql, bound)
