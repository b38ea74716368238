"""Queries refer to queries in any order; cycles are shown; a bad one causes no problem in those that refer to it."""

from __future__ import annotations

from cep_core.language import check, format_query, parse
from tests.language.shop import SHOP, checked, refused, refused_set

BASE = "PATTERN AND(A a, B b) WHERE [source] WITHIN 1 s RETURN a.x AS x, a.y / 2 AS half"


def test_queries_referred_to_come_first_and_the_rest_keeps_its_order() -> None:
    queries = {
        "z": "PATTERN A a",
        "top": "PATTERN AND(mid m, base b) WITHIN 1 s",
        "mid": "PATTERN base b",
        "base": BASE,
    }
    found = check(queries, SHOP)
    assert list(found) == ["z", "base", "mid", "top"]
    assert found["top"].refers_to == ("mid", "base")


def test_a_match_has_its_return_fields_its_times_and_its_source_if_it_tests_it() -> None:
    fields = checked("PATTERN base m RETURN m.x AS x, m.half AS h, m.source AS s, m.end_ts AS e", base=BASE).fields
    assert fields == (("x", "int"), ("h", "float"), ("s", "string"), ("e", "timestamp"))
    message = refused("PATTERN base m RETURN m.source AS s", base=BASE.replace("WHERE [source]", ""))
    assert 'class base has no attribute "source"' in message
    assert 'class base has no attribute "source"' in refused(
        "PATTERN base m WHERE [source]", base=BASE.replace("WHERE [source]", "")
    )
    assert 'no attribute "hlf"; did you mean "half"?' in refused("PATTERN base m WHERE m.hlf > 1", base=BASE)


def test_a_cycle_is_shown_on_each_of_its_queries() -> None:
    queries = {"a": "PATTERN b x", "b": "PATTERN SEQ(A a, c x) WITHIN 1 s", "c": "PATTERN a x", "free": "PATTERN a x"}
    message = refused_set(queries)
    assert "3 of 4 queries are refused, 3 problems" in message
    assert "query a, line 1, column 9: queries refer to each other in a cycle: a -> b -> c -> a" in message
    assert "query b, line 1, column 18: queries refer to each other in a cycle: b -> c -> a -> b" in message
    assert "query free" not in message


def test_a_query_that_refers_to_itself_is_a_cycle() -> None:
    assert "in a cycle: q -> q" in refused("PATTERN SEQ(A a, q x) WITHIN 1 s")


def test_an_id_that_is_a_class_is_refused_only_where_the_class_exists() -> None:
    assert 'query B: the id "B" is also the name of an event class' in refused_set({"B": "PATTERN A a"})
    assert list(check({"Other": "PATTERN A a"}, SHOP)) == ["Other"]
    assert list(check({"B": "PATTERN A a"}, None)) == ["B"]


def test_an_unknown_class_may_be_a_misspelt_query() -> None:
    assert 'unknown class "bse"; did you mean "base"?' in refused("PATTERN bse b", base=BASE)
    assert 'did you mean "base"?' in refused_set({"q": "PATTERN bse b", "base": BASE}), "whatever their order"


def test_a_long_cycle_is_cut_in_its_middle() -> None:
    message = refused_set({f"q{number}": f"PATTERN q{(number + 1) % 40} m" for number in range(40)})
    assert "40 of 40 queries are refused, 40 problems" in message
    shown = "q5 -> q6 -> q7 -> q8 -> q9 -> q10 -> q11 -> q12 -> 31 more -> q4 -> q5\n"
    assert f"query q5, line 1, column 9: queries refer to each other in a cycle: {shown}" in message


def test_a_refused_query_causes_no_problem_in_those_that_refer_to_it() -> None:
    message = refused_set({"bad": "PATTERN A a WHERE a.nope = 1", "q": "PATTERN bad b WHERE b.any_thing = 1"})
    assert "1 of 2 queries are refused, 1 problem" in message
    message = refused_set({"bad": "PATTERN", "q": "PATTERN bad b WHERE b.any_thing = 1 AND c.x = 1"})
    assert "2 of 2 queries are refused" in message
    assert "any_thing" not in message.split("query q")[1].split("\n")[0]


def test_a_long_chain_of_references_is_no_danger() -> None:
    count = 3000
    queries = {f"q{number}": f"PATTERN q{number + 1} m" for number in range(count)}
    queries[f"q{count}"] = "PATTERN A a"
    assert next(iter(check(queries, SHOP))) == f"q{count}"
    queries[f"q{count}"] = "PATTERN q0 m"
    assert f"{count + 1} of {count + 1} queries are refused" in refused_set(queries)


def test_a_version_follows_the_meaning_of_the_text_and_of_all_that_it_refers_to() -> None:
    top = "PATTERN base m RETURN m.x AS x"
    first = checked(top, base=BASE).version
    assert len(first) == 16
    assert first == checked("pattern  base m -- the same\nreturn m.x as x", base=BASE).version
    assert first != checked(top.replace("AS x", "AS y"), base=BASE).version
    assert first != checked(top, base=BASE.replace("1 s", "2 s")).version


def test_a_parsed_query_checks_like_its_text() -> None:
    parsed = parse(BASE, "q")
    assert check({"q": parsed}, SHOP) == check({"q": BASE}, SHOP)
    assert check({"q": parsed}, SHOP)["q"].version == check({"q": format_query(parsed)}, SHOP)["q"].version
