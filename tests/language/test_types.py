"""Every value has a type, and clashes are refused."""

from __future__ import annotations

import pytest

from cep_core.language import check
from tests.language.shop import checked, refused

RETURNED = [
    ("a.x", "int"),
    ("a.y", "float"),
    ("a.x + a.y", "float"),
    ("a.x * 2", "int"),
    ("a.x / 2", "float"),
    ("a.x % 2", "int"),
    ("-a.y", "float"),
    ("abs(a.x)", "int"),
    ("round(a.y)", "float"),
    ("round(a.x)", "int"),
    ("round(a.y, 2)", "float"),
    ("floor(a.y)", "int"),
    ("ceil(a.y)", "int"),
    ("sqrt(a.x)", "float"),
    ("least(a.x, a.y, 3)", "float"),
    ("greatest(a.s, 'x')", "string"),
    ("coalesce(a.x, NULL)", "int"),
    ("coalesce(NULL, a.at)", "timestamp"),
    ("lower(a.s)", "string"),
    ("length(a.s)", "int"),
    ("concat(a.s, '-', a.id)", "string"),
    ("hour(a.at)", "int"),
    ("dayofweek(a.ts)", "int"),
    ("distance(a.x, a.y, 0, 0)", "float"),
    ("haversine(a.x, a.y, 0, 0)", "float"),
    ("duration(a, b)", "float"),
    ("a.ok", "bool"),
    ("a.source", "string"),
    ("a.event_class", "string"),
    ("a.start_ts", "timestamp"),
    ("'text'", "string"),
    ("NULL", "null"),
    ("count(w)", "int"),
    ("sum(w.x)", "int"),
    ("sum(w.y)", "float"),
    ("avg(w.x)", "float"),
    ("min(w.s)", "string"),
    ("first(w).at", "timestamp"),
    ("last(w).ts", "timestamp"),
    ("w[2].x", "int"),
    ("t.ts", "timestamp"),
]


@pytest.mark.parametrize(("value", "expected"), RETURNED)
def test_type_of(value: str, expected: str) -> None:
    query = checked(f"PATTERN AND(A a, B b, A[2] w, EVERY(1 s) t) WITHIN 1 s RETURN {value} AS v")
    assert query.fields == (("v", expected),)


CLASHES = [
    ("a.x = 'one'", "a whole number does not compare with a text"),
    ("a.s > 1", "a text does not compare with a whole number"),
    ("a.ok = 1", "a truth value does not compare with a whole number"),
    ("a.x IN (1, 'two')", "a whole number does not compare with a text"),
    ("a.x BETWEEN 1 AND 'two'", "a whole number does not compare with a text"),
    ("a.x LIKE '1%'", "LIKE compares texts"),
    ("a.s LIKE 'a\\b'", "a backslash stands before"),
    ("a.s LIKE 'a\\'", "a backslash stands before"),
    ("a.at > 'soon'", "'soon' is no moment"),
    ("a.at > 5", "a whole number does not compare with a timestamp"),
    ("a.at = a.s", "a timestamp does not compare with a text"),
    ("a.at IN ('2026-13-01')", "is no moment"),
    ("a.at - a.ts > 1", "duration(a, b) gives the seconds"),
    ("a.s + 1 = 2", '"+" takes numbers, but this is a text'),
    ("-a.ok = 2", '"-" takes numbers, but this is a truth value'),
    ("abs(a.s) = 2", "abs takes a number, but this is a text"),
    ("abs(a.x, 1) = 2", "abs takes 1 argument, not 2"),
    ("round(a.x, 1, 2) = 2", "round takes 1 or 2 arguments, not 3"),
    ("round(a.y, a.x) = 2", "round takes a whole number as its second argument"),
    ("least(a.x) = 2", "least takes 2 or more arguments, not 1"),
    ("least(a.x, a.s) = 2", "least mixes a whole number with a text"),
    ("coalesce(a.at, '2026-01-01') > a.ts", "coalesce mixes a timestamp with a text"),
    ("lower(a.x) = 'x'", "lower takes a string, but this is a whole number"),
    ("concat(a.s, 1) = 'x'", "concat takes a string"),
    ("hour(a.s) = 2", "hour takes a timestamp"),
    ("distance(a.x, a.y) = 2", "distance takes 4 arguments, not 2"),
    ("sum(w.s) = 2", "sum takes numbers, but this is a text"),
    ("NOT (a.x = 1 OR a.x = 'two')", "a whole number does not compare with a text"),
    ("FORALL i IN 1..2 (w[i].x = 'two')", "a whole number does not compare with a text"),
]


@pytest.mark.parametrize(("condition", "message"), CLASHES)
def test_a_type_clash_is_refused(condition: str, message: str) -> None:
    assert message in refused(f"PATTERN AND(A a, A[2] w) WHERE {condition} WITHIN 1 s")


def test_a_filter_is_typed_too() -> None:
    assert "a whole number does not compare with a text" in refused("PATTERN A(x = 'one') a")


def test_one_mistake_is_reported_once() -> None:
    shown = refused("PATTERN A a WHERE a.nope > 'x'")
    assert shown.startswith('query q, line 1, column 19: class A has no attribute "nope"')
    assert shown.count("query q") == 1


def test_without_a_schema_every_class_and_attribute_is_accepted() -> None:
    queries = {"q": "PATTERN AND(Foo a, Bar b) WHERE a.x = 'one' AND a.x > b.y + 1 WITHIN 1 s RETURN a.x AS x"}
    query = check(queries, None)["q"]
    assert query.fields == (("x", "null"),)
    assert query.attributes == {("Foo", "x"), ("Bar", "y")}


def test_a_source_of_another_type_is_known_to_those_who_refer_to_it() -> None:
    schema = {"Meter": {"source": "int", "x": "int"}}
    queries = {"high": "PATTERN Meter m WHERE [source] AND m.x > 5", "q": "PATTERN high h RETURN h.source + 1 AS s"}
    assert check(queries, schema)["q"].fields == (("s", "int"),)  # type: ignore[arg-type]
