"""A filter lets through what it says, for every record one way or the other, and never becomes SQL."""

from __future__ import annotations

import atexit
import json
import operator
import re
import sqlite3
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_places import postgres_server

from gemel.errors import InvalidInput
from gemel.index import Filter
from gemel.index.judging import passes
from gemel.index.milvus.expressions import necessary
from gemel.index.postgres.conditions import condition_for

RECORDS: list[dict[str, Any]] = [
    {"year": 2019, "lang": "en", "draft": False, "tags": ["news", "sport"], "author": {"name": "Kim"}},
    {"year": 2020, "lang": "de", "draft": True, "tags": [], "score": 0.5},
    {"year": "2020", "lang": None, "a field with spaces": 1, "tags": "newspaper"},
    {"year": 2019.5, "lang": "", "draft": 0, "tags": [1, True, None, 2.5]},
    {},
    {"author": "Kim", "and": 3, "'; drop table records; --": 1, "lang": 'say "so"', "s": "[]", "t": "{}"},
]


def passing_in_postgres(text: str, *values: Any) -> list[int]:
    """The records that PostgreSQL lets through."""
    condition = condition_for(Filter(text, *values))
    statement = f"select number - 1 from filtered where {condition.sql} order by number"
    connection = filtered_table()
    found = connection.execute(statement, condition.parameters).fetchall()
    assert connection.execute("select count(*) from filtered").fetchone() == (len(RECORDS),)
    return [number for (number,) in found]


@cache
def filtered_table() -> Any:
    """A connection to a table of the records."""
    import psycopg

    connection = psycopg.connect(postgres_server().uri, autocommit=True)
    connection.execute("create temporary table filtered (number serial, fields jsonb not null)")
    for record in RECORDS:
        connection.execute("insert into filtered (fields) values (%s)", (json.dumps(record),))
    atexit.register(connection.close)
    return connection


def passing(text: str, *values: Any) -> list[int]:
    """The records that SQLite lets through."""
    read = Filter(text, *values)
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table records (number integer primary key, metadata text)")
        connection.executemany("insert into records values (?, ?)", enumerate(map(json.dumps, RECORDS)))
        found = connection.execute(f"select number from records where {read.sql}", read.parameters).fetchall()
        assert connection.execute("select count(*) from records").fetchone() == (len(RECORDS),)
    connection.close()
    return [number for (number,) in found]


FILTERS: list[tuple[str, list[int]]] = [
    ("year >= 2019", [0, 1, 3]),
    ("year > 2019 and year < 2020", [3]),
    ('year = "2020"', [2]),
    ("year == 2020.0", [1]),
    ("year != 2020", [0, 2, 3, 4, 5]),
    ("year <> 2020", [0, 2, 3, 4, 5]),
    ("not year = 2020", [0, 2, 3, 4, 5]),
    ("draft", [1]),
    ("not draft", [0, 2, 3, 4, 5]),
    ("not not draft", [1]),
    ("draft = false", [0]),
    ("draft = 0", [3]),
    ("lang = null", [2, 4]),
    ("lang != null", [0, 1, 3, 5]),
    ("lang", [0, 1, 5]),
    ("tags", [0, 2, 3]),
    ("s and t", [5]),
    ('lang in ("en", \'de\')', [0, 1]),
    ('lang not in ("en", "de", null)', [3, 5]),
    ('lang > "d" and lang < "f"', [0, 1]),
    ('tags contains "news"', [0, 2]),
    ("tags contains 1", [3]),
    ("tags contains true", [3]),
    ("tags contains null", [3]),
    ("tags contains 2.5", [3]),
    ('author.name = "Kim"', [0]),
    ('author = "Kim"', [5]),
    ("`a field with spaces` = 1", [2]),
    ("`and` = 3", [5]),
    ("`'; drop table records; --` = 1", [5]),
    ('lang = "say \\"so\\""', [5]),
    ("year >= 2019 and lang in (\"en\", \"de\") and not draft", [0]),
    ('draft or author = "Kim" and year = 1', [1]),
    ('(draft or author = "Kim") and not year = 2020', [5]),
    ("YEAR = 2019", []),
    ("year >= -1e3 AND NOT draft", [0, 3]),
    ("year < 12345678901234567890123", [0, 1, 3]),
    (f"year < {'9' * 5000}", [0, 1, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_a_filter_lets_through_what_it_says(text: str, expected: list[int]) -> None:
    assert passing(text) == expected


@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_what_is_judged_here_is_judged_alike(text: str, expected: list[int]) -> None:
    tree = Filter(text).tree
    assert [number for number, record in enumerate(RECORDS) if passes(tree, record)] == expected


@pytest.mark.extras
@pytest.mark.parametrize(("text", "expected"), FILTERS)
def test_postgres_lets_through_the_same(text: str, expected: list[int]) -> None:
    assert passing_in_postgres(text) == expected


@pytest.mark.extras
@pytest.mark.parametrize(
    "value", ["a\0b", float("nan"), float("inf"), float("-inf"), 10**30, -0.0, True, "", "\\", "%s"]
)
@pytest.mark.parametrize("sign", ["=", "!=", "contains", "in"])
def test_postgres_takes_every_value(value: Any, sign: str) -> None:
    text = "year in (?, 1, true, null)" if sign == "in" else f"year {sign} ?"
    assert passing_in_postgres(text, value) == passing(text, value)


@pytest.mark.parametrize("value", ["en", 2019, 0.5, True, "' or 1=1 --", '") or ("1"="1'])
def test_a_value_beside_the_filter_is_a_value_and_nothing_else(value: Any) -> None:
    fields = ("lang", "year", "score", "draft")
    expected = [
        number
        for number, record in enumerate(RECORDS)
        if any((type(value), value) == (type(record.get(field)), record.get(field)) for field in fields)
    ]
    assert passing("lang = ? or year = ? or score = ? or draft = ?", *[value] * 4) == expected


INJECTIONS = [
    "1=1",
    "year = 2019; drop table records",
    "year = 2019 -- and lang",
    "year = 2019) or (1=1",
    'lang = "en" or 1=1',
    "lang = 'en'' or ''1''=''1'",
    "json_extract(metadata, '$.year') = 2019",
    "number in (select number from records)",
    "year union select 1",
    "year = (select 1)",
    "year/**/= 2019",
    "records.number = 1 or year like '%'",
    "year = 2019 /* comment",
    'year = 0x10',
    "year = 2019a",
]  # fmt: skip


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="filter"):
        Filter(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has its end at character 0; expected a field"),
        ("year >=", "has its end at character 7; expected a number"),
        ("year = 2019 lang", "has 'lang' at character 12; expected `and`, `or` or the end"),
        ("(year = 1", "expected `\\)`"),
        ("year not 3", "expected `in` after `not`"),
        ('lang = "en', "cannot be read at character 7"),
        ("year < null", "nothing is before or after None"),
        ("year in ()", "expected a number"),
        ("and = 3", "has 'and' at character 0; expected a field"),
        ('`a"b` = 1', "quotation mark"),
        ("`a\\b` = 1", "a backslash or a control character"),
        ("`a\tb` = 1", "a backslash or a control character"),
        (" or ".join(["a"] * 501), "more than 500 tests"),
        ("(" * 60 + "a" + ")" * 60, "51 deep"),
        (f"a in ({', '.join(['1'] * 10_001)})", "10,001 values"),
        ("a = ?", "more \\? than the 0 values"),
    ],
)
def test_a_filter_that_cannot_be_read_says_where(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Filter(text)


def test_values_that_are_not_used_or_not_values_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"fewer \? than the 2 values"):
        Filter("a = ?", 1, 2)
    with pytest.raises(InvalidInput, match="the list"):
        Filter("a = ?", [1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a filter is a str"):
        Filter({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the filter holds half a surrogate pair"):
        Filter('a = "\ud800"')
    with pytest.raises(InvalidInput, match="value 1 of the filter holds half a surrogate pair"):
        Filter("a = ? or b = ?", "whole", "\ud800")


def test_a_long_filter_is_run() -> None:
    assert passing(" or ".join(f"year = {year}" for year in range(1800, 2299))) == [0, 1]
    assert passing("(" * 50 + "draft" + ")" * 50) == [1]
    assert passing(f"year in ({', '.join(map(str, range(1, 10_001)))})") == [0, 1]
    assert passing("not " * 5_001 + "draft") == [0, 2, 3, 4, 5]


# Any filter, against a reader of its own -----------------------------------------------------------------

FIELDS = ("year", "lang", "draft", "score", "nothing")
SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def kind_of(value: Any) -> str:
    return (
        "bool"
        if isinstance(value, bool)
        else "number"
        if isinstance(value, int | float)
        else type(value).__name__
    )


def holds(record: dict[str, Any], field: str, sign: str, value: Any) -> bool:
    have = record.get(field)
    return kind_of(have) == kind_of(value) and SIGNS[sign](have, value)


numbers = st.integers(-3000, 3000) | st.floats(-3000, 3000)
values = numbers | st.sampled_from(["en", "de", "", "2020", "' or 1=1 --", 'a"b', "\\"])
tests = st.tuples(st.sampled_from(FIELDS), st.sampled_from(sorted(SIGNS)), values)
trees = st.recursive(
    tests.map(lambda test: ("test", test)),
    lambda parts: st.tuples(st.just("not"), parts) | st.tuples(st.sampled_from(["and", "or"]), parts, parts),
    max_leaves=12,
)


def spelt(tree: Any) -> str:
    if tree[0] == "test":
        field, sign, value = tree[1]
        shown = (
            '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
            if isinstance(value, str)
            else repr(value)
        )
        return f"{field} {sign} {shown}"
    if tree[0] == "not":
        return f"not ({spelt(tree[1])})"
    return f"({spelt(tree[1])}) {tree[0]} ({spelt(tree[2])})"


def judged(tree: Any, record: dict[str, Any]) -> bool:
    if tree[0] == "test":
        return holds(record, *tree[1])
    if tree[0] == "not":
        return not judged(tree[1], record)
    both = judged(tree[1], record), judged(tree[2], record)
    return all(both) if tree[0] == "and" else any(both)


@given(trees)
def test_any_filter_is_judged_as_by_hand(tree: Any) -> None:
    by_hand = [number for number, record in enumerate(RECORDS) if judged(tree, record)]
    assert passing(spelt(tree)) == by_hand
    read = Filter(spelt(tree)).tree
    assert [number for number, record in enumerate(RECORDS) if passes(read, record)] == by_hand


@given(trees)
def test_what_milvus_gets_ends_no_text_and_names_every_value(tree: Any) -> None:
    expression = necessary(Filter(spelt(tree)).tree)
    assert set(re.findall(r"\{(\w+)\}", expression.text)) <= set(expression.values)
    inlined = re.sub(r'"[^"\\]*"', "", expression.inlined())  # without its texts
    assert not set(inlined) & set("\"'\\;")


@pytest.mark.extras
@given(trees)
def test_postgres_judges_any_filter_alike(tree: Any) -> None:
    assert passing_in_postgres(spelt(tree)) == passing(spelt(tree))


@given(st.text())
def test_no_text_makes_anything_but_a_filter_or_an_error(text: str) -> None:
    try:
        passing(text)
    except InvalidInput as error:
        assert "filter" in str(error) or "field" in str(error) or "nothing is" in str(error)  # noqa: PT017
