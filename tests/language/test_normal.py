"""NOT is pushed down to the atoms, and WHERE becomes a union of conjunctions."""

from __future__ import annotations

import time

import pytest

from cep_core.language import algebra as q
from cep_core.language import parse
from cep_core.language.format import format_condition
from cep_core.language.normal import disjuncts, push_down
from tests.language.shop import checked, refused


def pushed(text: str) -> str:
    where = parse(f"PATTERN A a WHERE {text}", "q").where
    assert where is not None
    return format_condition(push_down(where))


def normal(text: str) -> list[str]:
    found = disjuncts(parse(f"PATTERN A a WHERE {text}", "q").where)
    return [" AND ".join(format_condition(atom) for atom in atoms) for atoms in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOT a.x = 1", "a.x != 1"),
        ("NOT a.x != 1", "a.x = 1"),
        ("NOT a.x < 1", "a.x >= 1"),
        ("NOT a.x >= 1", "a.x < 1"),
        ("NOT a.x > 1", "a.x <= 1"),
        ("NOT a.x <= 1", "a.x > 1"),
        ("NOT NOT a.x = 1", "a.x = 1"),
        ("NOT a.x IN (1)", "a.x NOT IN (1)"),
        ("NOT a.x NOT IN (1)", "a.x IN (1)"),
        ("NOT a.x BETWEEN 1 AND 2", "a.x NOT BETWEEN 1 AND 2"),
        ("NOT a.s LIKE 'x'", "a.s NOT LIKE 'x'"),
        ("NOT a.x IS NULL", "a.x IS NOT NULL"),
        ("NOT (a.x = 1 AND a.y = 2)", "a.x != 1 OR a.y != 2"),
        ("NOT (a.x = 1 OR NOT a.y = 2)", "a.x != 1 AND a.y = 2"),
        ("NOT (a.x = 1 AND NOT (a.y = 2 AND a.z = 3))", "a.x != 1 OR a.y = 2 AND a.z = 3"),
        ("NOT FORALL i IN 1..2 (r[i].x = 1)", "NOT FORALL i IN 1..2 (r[i].x = 1)"),
        ("NOT FORALL i IN 1..2 (NOT (r[i].x = 1 OR r[i].y = 2))", "NOT FORALL i IN 1..2 (r[i].x != 1 AND r[i].y != 2)"),
        ("NOT NOT FORALL i IN 1..2 (NOT r[i].x = 1)", "FORALL i IN 1..2 (r[i].x != 1)"),
    ],
)
def test_not_is_pushed_down(text: str, expected: str) -> None:
    assert pushed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x = 1", ["a.x = 1"]),
        ("[source]", [""]),
        ("[source] AND a.x = 1", ["a.x = 1"]),
        ("a.x = 1 OR a.y = 2", ["a.x = 1", "a.y = 2"]),
        ("a.z = 0 AND (a.x = 1 OR a.y = 2)", ["a.z = 0 AND a.x = 1", "a.z = 0 AND a.y = 2"]),
        ("(a.x = 1 OR a.y = 2) AND a.z = 0", ["a.z = 0 AND a.x = 1", "a.z = 0 AND a.y = 2"]),
        ("a.x = 1 AND a.x = 1", ["a.x = 1"]),
        ("a.x = 1 OR a.x = 1", ["a.x = 1"]),
        ("(a.x = 1 OR a.y = 2) AND (a.x = 1 OR a.y = 2)", ["a.x = 1", "a.x = 1 AND a.y = 2", "a.y = 2"]),
        ("NOT (a.x = 1 AND a.y = 2)", ["a.x != 1", "a.y != 2"]),
        ("a.x IN (1, 2) OR a.x NOT BETWEEN 1 AND 2", ["a.x IN (1, 2)", "a.x NOT BETWEEN 1 AND 2"]),
        ("FORALL i IN 1..2 (r[i].x = 1 OR r[i].x = 2)", ["FORALL i IN 1..2 (r[i].x = 1 OR r[i].x = 2)"]),
    ],
)
def test_disjuncts(text: str, expected: list[str]) -> None:
    assert normal(text) == expected


def test_no_where_is_one_empty_disjunct() -> None:
    assert disjuncts(None) == ((),)


def both(count: int) -> str:
    return " AND ".join(f"(a.x = {number} OR a.y = {number})" for number in range(count))


def test_64_disjuncts_are_allowed_and_65_are_not() -> None:
    assert len(normal(both(6))) == 64
    assert len(checked("PATTERN A a WHERE " + " OR ".join(f"a.x = {number}" for number in range(64))).disjuncts) == 64
    message = refused("PATTERN A a WHERE " + " OR ".join(f"a.x = {number}" for number in range(65)))
    assert "more than 64 alternatives" in message
    assert "line 1, column 19" in message


def test_an_explosive_condition_is_refused_at_once() -> None:
    started = time.process_time()
    assert "more than 64 alternatives" in refused(f"PATTERN A a WHERE {both(60)}")
    assert time.process_time() - started < 1


def test_no_not_is_left_in_a_checked_query() -> None:
    query = checked(
        "PATTERN AND(A(NOT (x = 1 OR NOT y > 2)) a, B[2] r) "
        "WHERE NOT FORALL i IN 1..2 (NOT r[i].x > 1) AND NOT (a.x = 1 AND NOT a.y = 2) WITHIN 1 s"
    )
    assert "Not(" not in repr((query.query.pattern, query.disjuncts))
    assert isinstance(query.query.pattern, q.And)
    own = query.query.pattern.parts[0]
    assert isinstance(own, q.Element)
    assert own.filter is not None
    assert format_condition(own.filter) == "x != 1 AND y > 2"
    assert [len(atoms) for atoms in query.disjuncts] == [2, 2]
