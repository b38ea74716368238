"""RETURN fields as attributes, beside columns of the same name and another type: each keeps its own type and value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cep_core
from cep_core.errors import EvaluationError
from tests.harness import EVALUATORS, case, check

pytestmark = pytest.mark.core

OVER = "PATTERN SEQ(inner i, C c) WITHIN 1 min RETURN i.x AS y"
DAY = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = pa.array(["a", "b", "c"])


def events(x: pa.Array, **columns: Any) -> pa.Table:
    """Two As and a C, a second apart, with the attribute x."""
    plain = {"event_id": ["1", "2", "3"], "source": ["s"] * 3, "event_class": ["A", "A", "C"]}
    return pa.table({**plain, "ts": [0, 1_000_000, 2_000_000], **columns, "x": x})


def read(table: pa.Table, inner: str, outer: str = OVER, **rest: Any) -> list[str | None]:
    found = cep_core.mine(table, {"inner": inner, "q": outer}, **rest).to_pylist()
    return [dict(match["fields"])["y"] for match in found if match["query_id"] == "q"]


@pytest.mark.parametrize(
    ("x", "returned", "expected"),
    [
        (pa.array([5, 6, 7], pa.int32()), "a.x * 1000000000", ["5000000000", "6000000000"]),
        (pa.array([5, 6, 7], pa.uint8()), "-a.x", ["-5", "-6"]),
        (pa.array([5, 2**64 - 1, 7], pa.uint64()), "a.x % 4 - 4", ["-3", "-1"]),
        (pa.array([Decimal("1.25")] * 3, pa.decimal128(5, 2)), "a.x / 3", [repr(1.25 / 3)] * 2),
        (pa.array([0.5, 0.25, 1], pa.float32()), "a.x / 3", [repr(0.5 / 3), repr(0.25 / 3)]),
        (TEXTS, "length(a.x)", ["1", "1"]),
        (pa.array([1, 2, 3]), "a.event_id", ["1", "2"]),
        (pa.array([1, 2, 3]), "a.x / 4", ["0.25", "0.5"]),
        (pa.array([1.5, 2, 3]), "floor(a.x)", ["1", "2"]),
        (pa.array([True, False, True]), "length(a.event_id) + 1", ["2", "2"]),
        (pa.array([date(2026, 1, 1)] * 3), "a.ts", ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:01.000000Z"]),
        (pa.array([DAY] * 3, pa.timestamp("s", "UTC")), "a.x", ["2026-01-01T00:00:00.000000Z"] * 2),
        (TEXTS.dictionary_encode(), "a.x", ["a", "b"]),
        (TEXTS.cast(pa.large_string()), "upper(a.x)", ["A", "B"]),
        (TEXTS.cast(pa.string_view()), "concat(a.x, a.x)", ["aa", "bb"]),
        (pa.nulls(3), "a.event_id", ["1", "2"]),
    ],
    ids=str,
)
def test_a_field_keeps_its_type_beside_a_column_of_its_name(x: pa.Array, returned: str, expected: list[str]) -> None:
    assert read(events(x), f"PATTERN A a RETURN {returned} AS x") == expected


@pytest.mark.parametrize(
    "outer",
    [
        "PATTERN SEQ(inner i, C c) WHERE i.x + 1 = 2 AND c.x = 'c' WITHIN 1 min RETURN i.x + 1 AS y",
        "PATTERN SEQ(inner(x = 1) i, C(x = 'c') c) WITHIN 1 min RETURN i.x + 1 AS y",
        "PATTERN SEQ(inner[1] i, C c) WHERE sum(i.x) = 1 AND FORALL n IN 1..1 (i[n].x < 2) WITHIN 1 min "
        "RETURN max(i.x) + 1 AS y",
        "PATTERN SEQ(A a, inner* g, C c) WHERE g.x = 1 AND a.x = 'b' WITHIN 1 min RETURN count(g) + 2 AS y",
    ],
)
def test_conditions_read_the_field_and_the_column_each_as_its_class_has_it(outer: str) -> None:
    found = read(events(TEXTS), "PATTERN A a RETURN length(a.x) AS x", outer)
    assert found
    assert set(found) == {"2"}


def test_keys_windows_and_chains_read_fields() -> None:
    table, inner = events(pa.array([7, 7, 9])), "PATTERN A a RETURN a.x / 2 AS x"
    assert read(table, inner, "PATTERN TIMES_EQ(2, inner i, x) WITHIN 1 min RETURN i[1].x AS y") == ["3.5"]
    assert read(table, inner, "PATTERN inner[2] i WHERE [x] WITHIN 1 min RETURN i[2].x AS y") == ["3.5"]
    assert read(table, inner, "PATTERN SEQ(inner i, inner j) WHERE i.x = j.x WITHIN 1 min RETURN j.x AS y") == ["3.5"]
    whole = "PATTERN A a RETURN a.x * 1.0 AS x"  # a whole number and a fraction are equal, and so are their partitions
    assert read(table, whole, "PATTERN SEQ(A a, inner i) WHERE [x] WITHIN 1 min RETURN i.x AS y") == ["7.0"]
    assert read(table, whole, "PATTERN SEQ(A a, inner i) WHERE a.x = i.x WITHIN 1 min RETURN i.x AS y") == ["7.0"]


def test_a_query_without_a_match_gives_its_fields_a_type_too() -> None:
    table = events(pa.array([date(2026, 1, 1)] * 3))
    assert read(table, "PATTERN B b RETURN 1.5 AS x", "PATTERN inner i WHERE i.x + 1 > 2 RETURN i.x AS y") == []
    assert read(table, "PATTERN B b RETURN 1.5 AS x", "PATTERN SEQ(C c, !inner i) WHERE i.x + 1 > 2 WITHIN 1 s "
                "RETURN c.event_id AS y") == ["3"]  # fmt: skip


@pytest.mark.parametrize("returned", ["NULL", "a.none"])
def test_a_field_of_no_known_type_is_null(returned: str) -> None:
    queries = {"inner": f"PATTERN A a RETURN {returned} AS n", "q": "PATTERN inner i WHERE i.n + 1 > 2 OR i.n IS NULL"}
    found = cep_core.mine(events(TEXTS), cep_core.prepare(queries, None))
    assert [match["query_id"] for match in found.to_pylist()] == ["inner", "inner", "q", "q"]


def test_a_field_called_source_is_the_source_of_what_tests_it() -> None:
    queries = {
        "inner": "PATTERN A a RETURN length(a.x) + 3 AS source",
        "middle": "PATTERN SEQ(inner i, inner j) WHERE [source] WITHIN 1 min",
        "q": "PATTERN SEQ(middle m, C c) WHERE m.source + 1 = 5 WITHIN 1 min RETURN m.source AS y",
    }
    for mode in ("", " CONSUME used"):
        queries["middle"] += mode
        found = cep_core.mine(events(TEXTS), queries).to_pylist()
        assert [dict(match["fields"])["y"] for match in found if match["query_id"] == "q"] == ["4"]
    queries["q"] = queries["q"].replace("= 5", "= 6")
    assert "q" not in cep_core.mine(events(TEXTS), queries)["query_id"].to_pylist()


def test_two_queries_return_one_name_with_different_types() -> None:
    queries = {
        "whole": "PATTERN A a RETURN length(a.x) AS n",
        "text": "PATTERN A a RETURN a.x AS n",
        "q": "PATTERN AND(whole w, text t, C c) WHERE w.n = 1 AND t.n = 'b' WITHIN 1 min RETURN w.n + 1 AS y, t.n AS z",
    }
    found = cep_core.mine(events(TEXTS), queries).to_pylist()
    assert [dict(match["fields"]) for match in found if match["query_id"] == "q"] == [{"y": "2", "z": "b"}] * 2


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_an_element_of_both_reads_whole_numbers_as_fractions(evaluator: str) -> None:
    one = case(
        "ANY of a class with whole numbers and a query with fractions",
        "A1{x=3} C2{x=1}",
        "PATTERN SEQ(ANY(A, half) a, C c) WHERE a.x > 1 WITHIN 9 s RETURN a.x AS y",
        "a=A1 c=C2 -> y=3.0",
        "a=half(A1) c=C2 -> y=1.5",
        others={"half": "PATTERN A a RETURN a.x / 2 AS x"},
        schema={"A": {"x": "int"}, "C": {"x": "int"}},
    )
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_class_that_does_not_declare_the_field_is_asked_nothing(evaluator: str) -> None:
    one = case(
        "a column of another class has the field's name and another type",
        "A1{n=7} B2{x=no} C3{n=8}",
        "PATTERN SEQ(ANY(A, size) a, C c) WHERE a.x > 5 WITHIN 9 s",
        "a=A1 c=C3",
        "a=size(A1) c=C3",
        others={"size": "PATTERN A a RETURN a.n AS x"},
        schema={"A": {"n": "int"}, "B": {"x": "string"}, "C": {"n": "int"}},
    )
    check(evaluator, one)


def test_what_no_type_holds_is_refused_where_types_were_not_known_before() -> None:
    prepared = cep_core.prepare(
        {"inner": "PATTERN A a RETURN length(a.x) AS x", "q": "PATTERN ANY(A, inner) i WHERE i.x = 1"}, None
    )
    with pytest.raises(EvaluationError, match="x is string in some and int in other events of ANY"):
        cep_core.mine(events(TEXTS), prepared)


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_times_of_any_unit_stand_beside_those_of_matches(unit: str) -> None:
    times = pa.array([0, 1, 2], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    for name in (("ts",), ("start_ts", "end_ts")):
        table = events(TEXTS).drop_columns("ts")
        for each in name:
            table = table.append_column(each, times)
        outer = "PATTERN SEQ(inner i, C c) WITHIN 1 min RETURN duration(i, c) AS y"
        assert read(table, "PATTERN A a RETURN a.x AS x", outer) == ["2.0", "1.0"]


def test_ids_and_sources_of_any_type_stand_beside_those_of_matches() -> None:
    keyed = "PATTERN SEQ(inner i, C c) WHERE [source] WITHIN 1 min RETURN i.source AS y"
    sources = {
        "coded": pa.array(["s"] * 3).dictionary_encode(),
        "numbers": pa.array([4] * 3),
        "view": pa.array(["s"] * 3).cast(pa.string_view()),
    }
    for source in sources.values():
        table = events(TEXTS).set_column(1, "source", source).set_column(0, "event_id", pa.array([1, 2, 3]))
        found = read(table, "PATTERN A a WHERE [source] RETURN a.x AS x", keyed)
        assert found == [str(source[0].as_py())] * 2
