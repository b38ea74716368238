"""Conditions and their values: NULL, NaN, undeclared attributes, functions, LIKE, keys."""

import pytest

from tests.harness import EVALUATORS, Case, case, check

pytestmark = pytest.mark.core

X, Y = {"x": "int"}, {"y": "int"}
UNDECLARED = {"A": X, "B": Y, "C": {}}


def single(name: str, event: str, condition: str, found: bool, **rest: object) -> Case:
    """One event, one condition on it."""
    return case(name, event, f"PATTERN A a WHERE {condition}", *(("a=A1",) if found else ()), **rest)


def returned(name: str, event: str, expression: str, text: str) -> Case:
    return case(name, event, f"PATTERN A a RETURN {expression} AS r", f"a=A1 -> r={text}")


FULL = "A1{x=7,y=-7,f=2.5,s=Pear,n=null,k=true,q=NaN,m=null}"
TRUTH = (
    single("a comparison with NULL is false", FULL, "a.n = 1", False, schema={"A": {"n": "int"}}),
    single("and its negation too", FULL, "NOT a.n = 1", False, schema={"A": {"n": "int"}}),
    single("NULL = NULL is false", FULL, "a.n = a.n", False, schema={"A": {"n": "int"}}),
    single("IS NULL", FULL, "a.n IS NULL", True, schema={"A": {"n": "int"}}),
    single("NOT IS NULL", FULL, "NOT a.n IS NULL", False, schema={"A": {"n": "int"}}),
    single("NaN is NULL", FULL, "a.q IS NULL", True),
    single("NaN compares as NULL", FULL, "a.q != 1.0", False),
    single("division by zero is NULL", FULL, "a.x / 0 IS NULL", True),
    single("a remainder by zero too", FULL, "a.x % 0 IS NULL", True),
    single("int / int is a fraction", FULL, "a.x / 2 = 3.5", True),
    single("NOT over AND", FULL, "NOT (a.x = 7 AND a.y = 1)", True),
    single("NOT over OR", FULL, "NOT (a.x = 7 OR a.y = 1)", False),
    single("IN", FULL, "a.x IN (1, 7)", True),
    single("NOT IN", FULL, "a.x NOT IN (1, 7)", False),
    single("NOT IN with a NULL in the list is never true", FULL, "a.x NOT IN (1, NULL)", False),
    single("IN with a NULL in the list", FULL, "a.x IN (7, NULL)", True),
    single("BETWEEN has both ends", FULL, "a.x BETWEEN 7 AND 7", True),
    single("NOT BETWEEN", FULL, "a.x NOT BETWEEN 1 AND 6", True),
    single("LIKE", FULL, "a.s LIKE 'P_a%'", True),
    single("LIKE minds the case", FULL, "a.s LIKE 'p%'", False),
    single("NOT LIKE", FULL, "a.s NOT LIKE '%x%'", True),
    single("LIKE has to cover all", FULL, "a.s LIKE 'Pe'", False),
    single("a boolean", FULL, "a.k = true", True),
    single("texts in order of their characters", FULL, "a.s < 'Pf'", True),
    single("int and float compare by value", FULL, "a.x = 7.0", True),
    single(
        "hour and dayofweek of 1970-01-01T00:00:01, a Thursday", FULL, "hour(a.ts) = 0 AND dayofweek(a.ts) = 5", True
    ),
    single("the class and the id are attributes", FULL, "a.event_class = 'A' AND a.event_id = 'A1'", True),
    single("the source is an attribute", FULL, "a.source = 's1'", True),
    single("a filter is plain boolean", FULL, "a.x = 7", True),
)

VALUES = (
    returned("the remainder has the dividend's sign", FULL, "a.y % 3", "-1"),
    returned("int stays int", FULL, "a.x * 2 - 1", "13"),
    returned("int and float give float", FULL, "a.x + a.f", "9.5"),
    returned("a sign", FULL, "-a.y", "7"),
    returned("plus a signed number", FULL, "a.x + -2", "5"),
    returned("round goes half up", FULL, "round(a.f)", "3.0"),
    returned("away from zero below it", FULL, "round(-a.f)", "-3.0"),
    returned("round to digits", FULL, "round(a.x / 8, 2)", "0.88"),
    returned("round of an int", FULL, "round(a.x)", "7"),
    returned("floor gives an int", FULL, "floor(-a.f)", "-3"),
    returned("ceil gives an int", FULL, "ceil(a.f)", "3"),
    returned("sqrt", FULL, "sqrt(a.x + 2)", "3.0"),
    returned("sqrt of less than zero is NULL", FULL, "sqrt(a.y)", "null"),
    returned("least skips NULL", FULL, "least(a.x, a.f, a.q)", "2.5"),
    returned("greatest has the widest type", FULL, "greatest(a.x, a.f)", "7.0"),
    returned("coalesce", FULL, "coalesce(a.q, a.f, 1.0)", "2.5"),
    returned("coalesce has the widest type", FULL, "coalesce(a.q, a.x)", "7.0"),
    returned("lower and upper", FULL, "concat(lower(a.s), upper(a.s))", "pearPEAR"),
    returned("length", FULL, "length(a.s)", "4"),
    returned("abs", FULL, "abs(a.y)", "7"),
    returned("distance", FULL, "distance(0, 0, 3, a.x - 3)", "5.0"),
    returned("haversine in metres: one degree of the equator", FULL, "round(haversine(0, 0, 0, a.x - 6))", "111195.0"),
    returned("a boolean", FULL, "a.k", "true"),
    returned("a time", FULL, "a.ts", "1970-01-01T00:00:01.000000Z"),
    returned("concat with NULL is NULL", FULL, "concat(a.s, lower(a.m))", "null"),
    returned("a long remainder of fractions", FULL, "5.5 % -2", "1.5"),
    returned("round to tens", FULL, "round(a.x * 5, -1)", "40"),
    returned("upper of a letter that becomes two", FULL, "upper('stra\u00dfe')", "STRASSE"),
    returned("NULL in, NULL out", FULL, "a.x + a.q", "null"),
)

ANY_A_B = "PATTERN SEQ(ANY(A, B) a, C c) WHERE "
NAMES = (
    case(
        "an attribute that the class does not declare makes it true",
        "A1{x=1} B2{y=1} C3",
        ANY_A_B + "a.x = 2 WITHIN 9 s",
        "a=B2 c=C3",
        schema=UNDECLARED,
    ),
    case("negated or not", "A1{x=1} B2{y=1} C3", ANY_A_B + "NOT a.x = 1 WITHIN 9 s", "a=B2 c=C3", schema=UNDECLARED),
    case("IS NULL too", "A1{x=1} B2{y=1} C3", ANY_A_B + "a.x IS NULL WITHIN 9 s", "a=B2 c=C3", schema=UNDECLARED),
    case(
        "declared and NULL is not undeclared",
        "A1{x=null} B2{y=1} C3",
        ANY_A_B + "a.x = 1 WITHIN 9 s",
        "a=B2 c=C3",
        schema=UNDECLARED,
    ),
    case(
        "in a filter too",
        "A1{x=1} B2{y=1} C3",
        "PATTERN SEQ(ANY(A, B)(x = 2) a, C c) WITHIN 9 s",
        "a=B2 c=C3",
        schema=UNDECLARED,
    ),
    case(
        "each event of a window for itself",
        "A1{x=1} B2{y=1} B3{y=1}",
        "PATTERN ANY(A, B)[2] w WHERE w.x = 2 WITHIN 9 s",
        "w=B2,B3",
        schema=UNDECLARED,
    ),
    case(
        "a chain of equalities",
        "A1{x=1} B2{y=1} A3{x=2} C4",
        "PATTERN SEQ(A a, B b, A c) WHERE a.x = b.y AND b.y = c.x - 1 WITHIN 9 s",
        "a=A1 b=B2 c=A3",
        schema=UNDECLARED,
    ),
    case(
        "a remainder over two events",
        "A1{x=7} B2{y=3} B3{y=2} B4{y=0}",
        "PATTERN SEQ(A a, B b) WHERE a.x % b.y = 1 WITHIN 9 s",
        "a=A1 b=B2",
        "a=A1 b=B3",
    ),
    case(
        "and with the dividend's sign",
        "A1{x=-7} B2{y=3} B3{y=-2}",
        "PATTERN SEQ(A a, B b) WHERE a.x % b.y = -1 WITHIN 9 s",
        "a=A1 b=B2",
        "a=A1 b=B3",
    ),
    case(
        "a large product of two events",
        "A1{x=3000000000} B2{y=2000000000} B3{y=-2000000000}",
        "PATTERN SEQ(A a, B b) WHERE a.x * b.y = 6000000000000000000 WITHIN 9 s",
        "a=A1 b=B2",
    ),
    case(
        "duration",
        "A1 B3",
        "PATTERN SEQ(A a, B b) WHERE duration(a, b) = 2 WITHIN 9 s RETURN duration(b, a) AS d",
        "a=A1 b=B3 -> d=-2.0",
    ),
    case(
        "duration counts from end to end",
        "A1-2 B3-6",
        "PATTERN SEQ(A a, B b) WITHIN 9 s RETURN duration(a, b) AS d",
        "a=A1-2 b=B3-6 -> d=4.0",
    ),
)

KEYS = (
    case("[attr]", "A1{x=1} B2{x=2} B3{x=1}", "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9 s", "a=A1 b=B3"),
    case(
        "a NULL is in no partition",
        "A1{x=null} B2{x=null} A3{x=1} B4{x=1}",
        "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9 s",
        "a=A3 b=B4",
    ),
    case(
        "NaN neither",
        "A1{x=NaN} B2{x=NaN} A3{x=0.5} B4{x=0.5}",
        "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9 s",
        "a=A3 b=B4",
    ),
    case(
        "[attr = 'v']", "A1{x=1} B2{x=1} A3{x=2} B4{x=2}", "PATTERN SEQ(A a, B b) WHERE [x = 2] WITHIN 9 s", "a=A3 b=B4"
    ),
    case(
        "[attr1, attr2]",
        "A1{x=1,y=1} B2{x=1,y=2} B3{x=1,y=1}",
        "PATTERN SEQ(A a, B b) WHERE [x, y] WITHIN 9 s",
        "a=A1 b=B3",
    ),
    case(
        "groups and windows too",
        "A1{x=1} B2{x=2} B3{x=1} C4{x=1}",
        "PATTERN SEQ(A a, B+ g, C c) WHERE [x] WITHIN 9 s",
        "a=A1 g=B3 c=C4",
    ),
    case(
        "SELECT in each partition",
        "A1{x=1} A2{x=2} B3{x=1} B3~2{x=2}",
        "PATTERN SEQ(A a, B b) WHERE [x] WITHIN 9 s SELECT recent",
        "a=A1 b=B3",
        "a=A2 b=B3~2",
    ),
    case("a single element", "A1{x=1} A2{x=null}", "PATTERN A a WHERE [x]", "a=A1"),
    case("[source]", "A1@s1 B2@s2 B3@s1", "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 9 s", "a=A1 b=B3"),
    case(
        "a source that is NULL", "A1@null B2@null A3 B4", "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 9 s", "a=A3 b=B4"
    ),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", TRUTH, ids=lambda one: one.name)
def test_truth(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", VALUES, ids=lambda one: one.name)
def test_value(evaluator: str, one: Case) -> None:
    check(evaluator, one)


ZEROS = (
    returned("the sign of a zero is kept by a minus, as in Spark", "A1{z=0.0}", "-a.z", "-0.0"),
    returned("and lost by round, as in Spark", "A1{z=0.4}", "round(-1 * a.z)", "0.0"),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", ZEROS, ids=lambda one: one.name)
def test_zero(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", NAMES, ids=lambda one: one.name)
def test_name(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", KEYS, ids=lambda one: one.name)
def test_key(evaluator: str, one: Case) -> None:
    check(evaluator, one)
