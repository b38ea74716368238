"""Whole numbers are exact, however large; only what a match returns must fit 64 bits."""

import pyarrow as pa
import pytest

import cep_core
from cep_core.errors import EvaluationError
from tests.harness import EVALUATORS, Case, case, check, events_from, table_of
from tests.naive_values import Overflow

pytestmark = pytest.mark.core

MOST, LEAST = 2**63 - 1, -(2**63)
LARGE = f"A1{{x={MOST}}} A2{{x={MOST - 1}}} B3{{x={LEAST}}} B4{{x=1}}"


def pair(name: str, condition: str, *matches: str, events: str = LARGE) -> Case:
    """Two events, one condition on both: the machine computes it."""
    return case(name, events, f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9 s", *matches)


def one(name: str, condition: str, *matches: str, events: str = LARGE) -> Case:
    """One event, one condition on it: columns compute it."""
    return case(name, events, f"PATTERN A a WHERE {condition}", *matches)


EXACT = (
    one("a sum beyond 64 bits", f"a.x + 1 > {MOST}", "a=A1"),
    one("and back", f"a.x + 1 - 1 = {MOST}", "a=A1"),
    one("a product", f"a.x * a.x > a.x * {MOST - 1}", "a=A1"),
    one("its square root of whole numbers", "a.x * a.x % a.x = 0", "a=A1", "a=A2"),
    one("a remainder of a large number", f"(a.x * 2 + 1) % {MOST} = 1", "a=A1"),
    one("and as a float", "a.x * 2 = 18446744073709551614.0", "a=A1", "a=A2"),
    one("a large quotient", "a.x * 4 / a.x = 4", "a=A1", "a=A2"),
    one("a large number is in no list of small ones", "a.x + 1 IN (1, 2)"),
    one("nor of its wrapped self", f"a.x + 1 NOT IN ({LEAST})", "a=A1", "a=A2"),
    one("between", f"a.x + 1 BETWEEN {MOST} AND a.x * 2", "a=A1", "a=A2"),
    one("least and greatest", "greatest(a.x * 2, 1) > least(a.x * 2, a.x * 3 - a.x - 1)", "a=A1", "a=A2"),
    one("a constant alone", f"{MOST} * {MOST} > a.x", "a=A1", "a=A2"),
    one("rounded to tens", f"round(a.x, -19) > {MOST}", "a=A1", "a=A2"),
    one("floor of a large fraction", "floor(1e30) = 1000000000000000019884624838656.0", "a=A1", "a=A2"),
    one("floor of an infinity is NULL", "floor(1e308 * 10) IS NULL", "a=A1", "a=A2"),
    pair("a sum of two events", f"a.x + b.x > {MOST}", "a=A1 b=B4"),
    pair("a difference", f"a.x - b.x > {MOST}", "a=A1 b=B3", "a=A2 b=B3"),
    pair("and back", "a.x - b.x + b.x = a.x", "a=A1 b=B3", "a=A1 b=B4", "a=A2 b=B3", "a=A2 b=B4"),
    pair("two large ones", "a.x - b.x > 1.8e19 AND a.x * 2 = a.x - b.x - 1", "a=A1 b=B3"),
    pair("a product of two events", "a.x * b.x < 0", "a=A1 b=B3", "a=A2 b=B3"),
    pair("of four", f"a.x * b.x * a.x * b.x > {MOST} * 2", "a=A1 b=B3", "a=A2 b=B3", "a=A1 b=B4", "a=A2 b=B4"),
    pair("a remainder of two events", "(a.x - b.x) % 2 = 1", "a=A1 b=B3", "a=A2 b=B4"),
    pair("the lowest by -1", "b.x % (a.x - a.x - b.x / b.x) = 0 AND b.x < 0", "a=A1 b=B3", "a=A2 b=B3"),
    pair("the lowest by another", f"b.x % (a.x - {MOST - 5}) = -3", "a=A1 b=B3", events=LARGE.replace("A2", "C2")),
    pair("its absolute value", "abs(a.x - a.x + b.x) > a.x", "a=A1 b=B3", "a=A2 b=B3"),
    pair("of one with a minus", "-(a.x - a.x + b.x) > a.x", "a=A1 b=B3", "a=A2 b=B3"),
    pair("least of two events", "least(a.x - b.x, a.x) = a.x", "a=A1 b=B3", "a=A2 b=B3"),
    pair("greatest of two events", f"greatest(b.x, a.x - b.x) > {MOST}", "a=A1 b=B3", "a=A2 b=B3"),
    pair("coalesce", f"coalesce(a.x - b.x, 0) > {MOST}", "a=A1 b=B3", "a=A2 b=B3"),
    pair("a large column beside another event", f"a.x * 4 + b.x > {MOST} * 4", "a=A1 b=B4"),
    pair("in a list", f"a.x - b.x NOT IN (-1, {MOST - 1}, {MOST - 2})", "a=A1 b=B3", "a=A2 b=B3"),
    pair("in a list of floats", "a.x - b.x IN (18446744073709551615.0)", "a=A1 b=B3", "a=A2 b=B3"),
    pair("as a float", "a.x - b.x + 0.5 > 1.8e19", "a=A1 b=B3", "a=A2 b=B3"),
    pair("not NULL", "(a.x - b.x) IS NOT NULL AND b.x < 0", "a=A1 b=B3", "a=A2 b=B3"),
    pair(
        "floor of a large fraction of two",
        f"floor(a.x * 4.0 + b.x) > {MOST} * 2",
        *("a=A1 b=B3", "a=A1 b=B4", "a=A2 b=B3", "a=A2 b=B4"),
    ),
    pair("rounded", f"round(a.x - b.x, -1) > {MOST} * 2", "a=A1 b=B3"),
    case(
        "the sum of a window",
        LARGE,
        f"PATTERN SEQ(A[2] w, B b) WHERE sum(w.x) = {MOST} + {MOST - 1} AND avg(w.x) > 9e18 WITHIN 9 s",
        "w=A1,A2 b=B3",
        "w=A1,A2 b=B4",
    ),
    case(
        "the sum of a group",
        f"C0 A1{{x={MOST}}} A2{{x={MOST}}} A3{{x={LEAST}}} B4",
        f"PATTERN SEQ(C c, A+ g, B b) WHERE sum(g.x) = {MOST - 1} WITHIN 9 s RETURN sum(g.x) AS s",
        f"c=C0 g=A1,A2,A3 b=B4 -> s={MOST - 1}",
    ),
    case(
        "FORALL over a group",
        f"C0 A1{{x={MOST}}} A2{{x={MOST}}} B4",
        f"PATTERN SEQ(C c, A+ g, B b) WHERE FORALL i IN 1..count(g) (g[i].x + g[i+1].x > {MOST}) WITHIN 9 s",
        "c=C0 g=A1,A2 b=B4",
    ),
    case(
        "a negation",
        f"A1{{x={MOST}}} B2{{x=1}} C3",
        f"PATTERN SEQ(A a, !B b, C c) WHERE a.x + b.x > {MOST} WITHIN 9 s",
    ),
    case(
        "an average of a return",
        LARGE,
        "PATTERN A[2] w WITHIN 9 s RETURN avg(w.x) AS m",
        "w=A1,A2 -> m=9.223372036854776e+18",
    ),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", EXACT, ids=lambda one: one.name)
def test_exact(evaluator: str, one: Case) -> None:
    check(evaluator, one)


BIG = "PATTERN A a RETURN a.x * 2 AS y"


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize(
    ("query", "found"),
    [
        (f"PATTERN SEQ(big g, C c) WHERE g.y > {MOST} AND g.y * 2 - g.y = g.y WITHIN 20 s RETURN g.y / 4 AS y", 4),
        (f"PATTERN SEQ(big g, C c) WHERE g.y - c.x = {MOST} WITHIN 20 s RETURN g.y - c.x AS y", 2),
        ("PATTERN SEQ(big f, big g, C c) WHERE f.y = g.y WITHIN 20 s RETURN f.y - g.y AS y", 2),
        ("PATTERN AFTER(SEQ(big f, big g), 10 s) t WHERE [y] WITHIN 20 s", 1),
        ("PATTERN SEQ(TIMES_EQ(2, big f, y), C c) WHERE sum(f.y) / 4 = min(f.y) / 2 WITHIN 20 s", 2),
    ],
)
def test_a_referring_query_reads_it_exactly(evaluator: str, query: str, found: int) -> None:
    """The matches of `big` are detected before the range: they are read, not returned."""
    events = events_from(f"A1{{x={MOST}}} A2{{x={MOST}}} A3{{x=1}} C9{{x={MOST}}} C15{{x=0}}")
    rows = EVALUATORS[evaluator](events, {"q": query, "big": BIG}, start=8_000_000)
    assert len(rows) == found


REFUSED = {
    "one event": "PATTERN A a RETURN a.x * 2 AS y",
    "two events": "PATTERN SEQ(A a, A b) WHERE a.x > 1 WITHIN 9 s RETURN a.x + b.x AS y",
    "a sum": "PATTERN A[2] w WITHIN 9 s RETURN sum(w.x) AS y",
    "selected": "PATTERN SEQ(A a, A b) WITHIN 9 s SELECT recent RETURN a.x + b.x AS y",
    "merged": "PATTERN SEQ(A a, A b) WITHIN 9 s SELECT merged RETURN sum(a.x) + sum(b.x) AS y",
    "postponed": "PATTERN SEQ(A a, !B b) WITHIN 500 ms RETURN abs(-a.x - 2) AS y",
    "a floor": "PATTERN A a RETURN floor(a.x * 2.0) AS y",
}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_a_field_that_does_not_fit_64_bits_is_refused(evaluator: str, query: str) -> None:
    with pytest.raises((EvaluationError, Overflow)):
        EVALUATORS[evaluator](events_from(LARGE), {"q": query})


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_only_in_a_match_of_the_range(evaluator: str, query: str) -> None:
    """Whether a run is refused depends on its own matches only."""
    assert EVALUATORS[evaluator](events_from(LARGE), {"q": query}, start=100_000_000) == []


def test_the_error_names_query_and_field() -> None:
    with pytest.raises(EvaluationError, match=r"query q: RETURN a\.x \* 2 AS y is 1844\d+ .* 64 bits; return a float"):
        cep_core.mine(table_of(events_from(LARGE)), {"q": REFUSED["one event"]})


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (f"a.u > {MOST} AND b.u = a.u", 1),
        ("[u]", 1),
        ("a.u - b.u = 0 AND a.u % 10 = 5", 1),
        ("[u = 5]", 0),
        ("a.u + b.u IS NULL", 1),
    ],
)
def test_an_unsigned_column_is_exact(where: str, found: int) -> None:
    events = pa.table({
        "event_id": ["1", "2", "3"],
        "source": ["s"] * 3,
        "event_class": ["A", "B", "B"],
        "ts": [1, 2, 3],
        "u": pa.array([2**64 - 1, 2**64 - 1, None], pa.uint64()),
    })  # fmt: skip
    assert cep_core.mine(events, {"q": f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 1 s"}).num_rows == found


def test_a_long_search_over_large_numbers_is_exact() -> None:
    """Thousands of different large products, asked for in many rounds, with answers in several chunks."""
    base, count = 4_000_000_000, 120
    names = ["A"] * count + ["B"] * count
    events = pa.table({
        "event_id": [f"e{i}" for i in range(2 * count)],
        "source": ["s"] * 2 * count,
        "event_class": names,
        "ts": [i * 1000 for i in range(2 * count)],
        "x": [base + i * 7919 for i in range(2 * count)],
    })  # fmt: skip
    least = (base + 60 * 7919) * (base + 180 * 7919)
    query = f"PATTERN SEQ(A a, B b) WHERE a.x * b.x > {base + 60 * 7919} * {base + 180 * 7919} WITHIN 1 min"
    expected = sum((base + i * 7919) * (base + j * 7919) > least for i in range(count) for j in range(count, 2 * count))
    assert least > 2**63
    assert expected > 5000
    assert cep_core.mine(events, {"q": query}).num_rows == expected
    assert sum(part.num_rows for part in cep_core.mine_chunks(events, {"q": query})) == expected
