"""Queries of a family are checked once, and come out as if each had been checked alone."""

from __future__ import annotations

import pytest

from cep_core.errors import QueryError
from cep_core.language import check
from cep_core.language.alike import Families
from cep_core.language.checked import Schema
from cep_core.language.parser import parse_query

SCHEMA: Schema = {name: {"x": "int", "s": "string"} for name in ("A", "B", "C", "D", "E", "SELECTED")}
SCHEMA["Other"] = {"x": "string"}

FIRST = "PATTERN SEQ(A a, ANY(B, C)(x > 1)[2] b, !D d) WHERE [source] AND a.x < b[1].x WITHIN 5 min RETURN a.s AS s"
ALIKE = {
    "other classes": FIRST.replace("A a", "E a").replace("D d", "A d"),
    "another window": FIRST.replace("5 min", "17 min"),
    "a class that begins like a keyword": FIRST.replace("D d", "SELECTED d"),
}
UNLIKE = {
    "a class twice": FIRST.replace("A a", "B a"),
    "another constant": FIRST.replace("x > 1", "x > 2"),
    "another variable": FIRST.replace("!D d", "!D e"),
    "another unit": FIRST.replace("5 min", "5 hours"),
    "half a minute": FIRST.replace("5 min", "0.5 min"),
    "a class that declares something else": FIRST.replace("D d", "Other d"),
    "another place": FIRST.replace("(x > 1)[2]", "[2](x > 1)"),
}


def _is_alike(text: str) -> bool:
    known = Families(SCHEMA, {"first": 0, "second": 0})
    known.add(FIRST, parse_query(FIRST, "first"))
    return known.like(text) is not None


@pytest.mark.parametrize("name", ALIKE)
def test_is_like_the_first(name: str) -> None:
    assert _is_alike(ALIKE[name])


@pytest.mark.parametrize("name", UNLIKE)
def test_is_not_like_the_first(name: str) -> None:
    assert not _is_alike(UNLIKE[name])


@pytest.mark.parametrize("text", {**ALIKE, **UNLIKE}.values(), ids={**ALIKE, **UNLIKE}.keys())
def test_comes_out_as_if_alone(text: str) -> None:
    together = check({"first": FIRST, "second": text}, SCHEMA, to_mine=True)
    assert together["second"] == check({"second": text}, SCHEMA, to_mine=True)["second"]


def test_a_class_that_is_a_query_is_a_reference() -> None:
    texts = {"first": FIRST, "second": FIRST.replace("A a", "E a")}
    texts["E"] = "PATTERN A a WHERE [source] RETURN a.x AS x, a.s AS s"
    schema = {name: own for name, own in SCHEMA.items() if name != "E"}
    assert check(texts, schema, to_mine=True)["second"].refers_to == ("E",)


def test_a_query_of_a_family_can_be_referred_to() -> None:
    texts = {"one": "PATTERN SEQ(A a, B b) WITHIN 1 s RETURN a.x AS x", "two": "", "reader": ""}
    texts["two"] = texts["one"].replace("A a", "C a")
    texts["reader"] = "PATTERN SEQ(two t, D d) WHERE t.x = d.x WITHIN 1 min"
    checked = check(texts, SCHEMA, to_mine=True)
    assert list(checked)[-1] == "reader"
    assert checked["reader"].refers_to == ("two",)


@pytest.mark.parametrize("bad", ["WITHIN a.x", "WHERE a.y = 1 WITHIN 5 min", "WHERE a.x = 'one' WITHIN 5 min"])
def test_each_of_a_bad_family_is_reported_at_its_own_place(bad: str) -> None:
    texts = {"first": f"PATTERN SEQ(A a, B b) {bad}", "second": f"PATTERN SEQ(SELECTED a, C b) {bad}"}
    with pytest.raises(QueryError) as both:
        check(texts, SCHEMA, to_mine=True)
    for name, text in texts.items():
        with pytest.raises(QueryError) as alone:
            check({name: text}, SCHEMA, to_mine=True)
        assert str(alone.value).split("\n", 1)[1] in str(both.value)


def test_unknown_class_is_refused() -> None:
    with pytest.raises(QueryError, match="Unknown"):
        check({"first": FIRST, "second": FIRST.replace("D d", "Unknown d")}, SCHEMA, to_mine=True)
