"""Every construct of the contract parses into the value of the algebra that it means."""

from __future__ import annotations

import pytest

from cep_core.errors import QueryError
from cep_core.language import algebra as q
from cep_core.language import format_query, parse

MINUTE = 60_000_000


def pattern(text: str) -> q.Pattern:
    return parse(f"PATTERN {text} WITHIN 1 min", "q").pattern


def where(text: str) -> q.Condition:
    condition = parse(f"PATTERN SEQ(A a, B[3] r) WHERE {text} WITHIN 1 min", "q").where
    assert condition is not None
    return condition


def one(name: str, variable: str | None, position: int = 1, negated: bool = False) -> q.Element:
    return q.Element((name,), variable, None, q.One(), negated, position)


def a(name: str) -> q.Attribute:
    return q.Attribute("a", name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A a", one("A", "a")),
        ("A", one("A", None)),
        ("`my class` `the one`", one("my class", "the one")),
        ("`tick``ed` a", one("tick`ed", "a")),
        ("ANY(A, B) x", q.Element(("A", "B"), "x", None, q.One(), False, 1)),
        ("SEQ(A a, !B b, A)", q.Seq((one("A", "a"), one("B", "b", 2, True), one("A", None, 3)))),
        ("and(A a, B b)", q.And((one("A", "a"), one("B", "b", 2)))),
        ("OR(A a, B b)", q.Or((one("A", "a"), one("B", "b", 2)))),
        ("A+ a", q.Element(("A",), "a", None, q.Group(1, None), False, 1)),
        ("A* a", q.Element(("A",), "a", None, q.Group(0, None), False, 1)),
        ("A{2,5} a", q.Element(("A",), "a", None, q.Group(2, 5), False, 1)),
        ("A{2,} a", q.Element(("A",), "a", None, q.Group(2, None), False, 1)),
        ("A{2} a", q.Element(("A",), "a", None, q.Group(2, 2), False, 1)),
        ("A[5] a", q.Element(("A",), "a", None, q.Window(5), False, 1)),
        ("TIMES_EQ(3, A a, k)", q.Element(("A",), "a", None, q.Window(3, same="k"), False, 1)),
        ("TIMES_DF(3, ANY(A, B) a, k)", q.Element(("A", "B"), "a", None, q.Window(3, different="k"), False, 1)),
        ("AT('1970-01-01T00:00:01Z') t", q.TimerAt(1_000_000, "t", 1)),
        ("AT('1970-01-01T01:00:00.5+01:00')", q.TimerAt(500_000, None, 1)),
        ("EVERY(1 hour) t", q.TimerEvery(60 * MINUTE, "t", 1)),
        (
            "AFTER(SEQ(A a, B b) WITHIN 5 min, 2 days) t",
            q.TimerAfter(q.Seq((one("A", "a"), one("B", "b", 2)), 5 * MINUTE), 2 * 1440 * MINUTE, "t", 3),
        ),
    ],
)
def test_a_pattern_means(text: str, expected: q.Pattern) -> None:
    assert pattern(text) == expected


@pytest.mark.parametrize("text", ["A(x = 1)+ a", "A+(x = 1) a"])
def test_a_filter_stands_before_or_behind_the_quantity(text: str) -> None:
    own = q.Compare("=", q.Attribute(None, "x"), q.Constant(1))
    assert pattern(text) == q.Element(("A",), "a", own, q.Group(1, None), False, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.x = 1", q.Compare("=", a("x"), q.Constant(1))),
        ("a.x <> 1.5", q.Compare("!=", a("x"), q.Constant(1.5))),
        ("a.x + -2 > 0", q.Compare(">", q.Arithmetic("+", a("x"), q.Constant(-2)), q.Constant(0))),
        ("-a.x < 0", q.Compare("<", q.Minus(a("x")), q.Constant(0))),
        (
            "a.x - 1 - 2 = 0",
            q.Compare("=", q.Arithmetic("-", q.Arithmetic("-", a("x"), q.Constant(1)), q.Constant(2)), q.Constant(0)),
        ),
        (
            "a.x + 2 * 3 = 0",
            q.Compare("=", q.Arithmetic("+", a("x"), q.Arithmetic("*", q.Constant(2), q.Constant(3))), q.Constant(0)),
        ),
        ("a.s = 'it''s'", q.Compare("=", a("s"), q.Constant("it's"))),
        ("a.ok = TRUE", q.Compare("=", a("ok"), q.Constant(True))),
        ("a.x IN (1, -2, NULL)", q.In(a("x"), (q.Constant(1), q.Constant(-2), q.Constant(None)))),
        ("a.x NOT IN (1)", q.In(a("x"), (q.Constant(1),), True)),
        ("a.x BETWEEN 1 AND 2 + 3", q.Between(a("x"), q.Constant(1), q.Arithmetic("+", q.Constant(2), q.Constant(3)))),
        ("a.s NOT LIKE 'a%'", q.Like(a("s"), "a%", True)),
        ("a.x IS NOT NULL", q.IsNull(a("x"), True)),
        ("(a.x) = 1", q.Compare("=", a("x"), q.Constant(1))),
        ("NOT a.x = 1", q.Not(q.Compare("=", a("x"), q.Constant(1)))),
        ("[source]", q.Equivalence((("source", None),))),
        ("[s, x = 3]", q.Equivalence((("s", None), ("x", q.Constant(3))))),
        ("count(r) = 3", q.Compare("=", q.Aggregate("count", "r", None), q.Constant(3))),
        ("SUM(r.x) = 3", q.Compare("=", q.Aggregate("sum", "r", "x"), q.Constant(3))),
        ("last(r).x = 3", q.Compare("=", q.Aggregate("last", "r", "x"), q.Constant(3))),
        ("abs(a.x) = 3", q.Compare("=", q.Call("abs", (a("x"),)), q.Constant(3))),
        ("duration(a, r[2]) < 3", q.Compare("<", q.Duration("a", None, "r", q.Index(None, 2)), q.Constant(3))),
        ("r[2].x = 3", q.Compare("=", q.Attribute("r", "x", q.Index(None, 2)), q.Constant(3))),
        (
            "FORALL i IN 1..count(r) (r[i+1].x > r[i].x)",
            q.Forall(
                "i",
                1,
                q.Aggregate("count", "r", None),
                q.Compare(">", q.Attribute("r", "x", q.Index("i", 1)), q.Attribute("r", "x", q.Index("i", 0))),
            ),
        ),
        ("a.select = 1", q.Compare("=", a("select"), q.Constant(1))),
    ],
)
def test_a_condition_means(text: str, expected: q.Condition) -> None:
    assert where(text) == expected


def test_and_binds_tighter_than_or_and_both_are_flat() -> None:
    x, y, z = (q.Compare("=", a(name), q.Constant(1)) for name in "xyz")
    assert where("a.x = 1 OR a.y = 1 AND a.z = 1") == q.Either((x, q.All((y, z))))
    assert where("(a.x = 1 AND a.y = 1) AND a.z = 1") == q.All((x, y, z))
    assert where("(a.x = 1 OR a.y = 1) AND a.z = 1") == q.All((q.Either((x, y)), z))


@pytest.mark.parametrize(
    ("text", "duration_us"),
    [
        ("90 s", 90_000_000),
        ("5 min", 300_000_000),
        ("3 hours", 10_800_000_000),
        ("1.5 hours", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("250 ms", 250_000),
        ("0.1 s", 100_000),
        ("5MIN", 300_000_000),
        ("0 s", 0),
    ],
)
def test_a_duration_is_exact(text: str, duration_us: int) -> None:
    assert parse(f"PATTERN AND(A, B) WITHIN {text}", "q").within_us == duration_us


def test_clauses_come_in_any_order_keywords_in_any_case_and_comments_are_left_out() -> None:
    text = "pattern SEQ(A a, B b) -- two\nwithin 1 min select RECENT ties ordered\nreturn a.x as x where a.x = b.x"
    query = parse(text, "q")
    assert (query.within_us, query.select, query.ties, query.returns) == (MINUTE, "recent", "ordered", ((a("x"), "x"),))
    assert query.where is not None


@pytest.mark.parametrize(
    ("name", "select", "consume"),
    [("chronicle", "earliest", "used"), ("continuous", "all", "used"), ("cumulative", "merged", "used")],
)
def test_snoops_contexts_are_names_for_pairs(name: str, select: str, consume: str) -> None:
    query = parse(f"PATTERN AND(A, B) WITHIN 1 s SELECT {name}", "q")
    assert (query.select, query.consume) == (select, consume)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "expected PATTERN at the start", 1, 1),
        ("PATERN A a", 'did you mean "PATTERN"?', 1, 1),
        ("PATTERN SEQ(A a, B b", 'expected "," or ")" in SEQ(...)', 1, 21),
        ("PATTERN A a\nWHRE a.x = 1", 'did you mean "WHERE"?', 2, 1),
        ("PATTERN A a WHERE a.x = 1 WHERE a.x = 2", "WHERE stands twice", 1, 27),
        ("PATTERN AND(A, B) WITHIN 5 minuts", 'did you mean "minutes"?', 1, 28),
        ("PATTERN AND(A, B) WITHIN 0.5 us", "not a whole number of microseconds", 1, 26),
        ("PATTERN AND(A, B) WITHIN 99999999 weeks", "or more than", 1, 26),
        ("PATTERN AND(A, B) WITHIN 1 s SELECT resent", 'did you mean "recent"?', 1, 37),
        ("PATTERN AND(A, B) WITHIN 1 s SELECT chronicle CONSUME used", "CONSUME stands twice", 1, 47),
        ("PATTERN AND(A, B) WITHIN 1 s CONSUME used SELECT chronicle", "already says CONSUME used", 1, 43),
        ("PATTERN A a WHERE a.x == 1", 'did you mean "="?', 1, 23),
        ("PATTERN A a WHERE 1 < a.x < 3", "comparisons do not chain", 1, 27),
        ("PATTERN A a WHERE a.ok", "write = true behind it", 1, 19),
        ("PATTERN A a WHERE (a.x = 1) = 2", "expected a value here", 1, 19),
        ("PATTERN A a WHERE x = 1", "write variable.attribute", 1, 19),
        ("PATTERN A(a.x = 1) a", "plainly", 1, 11),
        ("PATTERN A(count(a) = 1) a", "no place in an element's own filter", 1, 11),
        ("PATTERN A(FORALL i IN 1..2 (x = 1)) a", "no place in an element's own filter", 1, 11),
        ("PATTERN A a WHERE absolute(a.x) = 1", 'unknown function "absolute"', 1, 19),
        ("PATTERN A a WHERE cuont(a) = 1", 'did you mean "count"?', 1, 19),
        ("PATTERN A[3] a WHERE count(a.x) = 1", "write count(a)", 1, 29),
        ("PATTERN A[3] a WHERE first(a.x) = 1", "write first(a).attribute", 1, 29),
        ("PATTERN A[3] a WHERE sum(a) = 1", "sum needs an attribute", 1, 27),
        ("PATTERN A a WHERE a.s = 'open", "no closing quote", 1, 25),
        ('PATTERN A a WHERE a.s = "x"', "double quotes have no meaning", 1, 25),
        ("PATTERN A a WHERE a.x = 9223372036854775808", "does not fit 64 bits", 1, 25),
        ("PATTERN A a WHERE a.x = 1e999", "too large", 1, 25),
        ("PATTERN A a WHERE a.s LIKE a.s", "expected the pattern of LIKE", 1, 28),
        ("PATTERN A a WHERE a.x IN ()", "expected a constant", 1, 27),
        ("PATTERN A[0] a", "at least one event", 1, 10),
        ("PATTERN SEQ(A, B{3,2} b, C)", "n <= m", 1, 17),
        ("PATTERN SEQ(A, B{0,0} b, C)", "m at least 1", 1, 17),
        ("PATTERN SEQ(A, B+* b)", "a second quantity", 1, 18),
        ("PATTERN A(x = 1)(x = 2)", "a second filter", 1, 17),
        ("PATTERN TIMES_EQ(3, A[2] a, x)", "already says how many", 1, 22),
        ("PATTERN SEQ(A, !SEQ(B, C), D)", "only a class can be negated", 1, 17),
        ("PATTERN AT('soon') t", "is no moment", 1, 12),
        ("PATTERN AT('2026-02-30') t", "is no moment", 1, 12),
        ("PATTERN EVERY(0 s) t", "longer than 0", 1, 15),
        ("PATTERN A select", "expected what to select", 1, 17),
        ("PATTERN SEQ(A in, B)", "needs backquotes", 1, 15),
        ("PATTERN A a RETURN a.x", "expected AS", 1, 23),
        ("PATTERN A a; ", "semicolon", 1, 12),
        ("PATTERN " + "SEQ(" * 100, "levels deep", 1, 253),
        ("PATTERN A a WHERE " + "(" * 100, "levels deep", 1, 80),
        ("PATTERN A a WHERE " + "NOT " * 100 + "a.x = 1", "levels deep", 1, 263),
        ("PATTERN A a WHERE a.x = 0" + " + 1" * 300, "more than 200 operators", 1, 827),
    ],
)
def test_a_text_that_is_no_query_is_refused_at_its_place(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text, "bad one")
    shown = str(caught.value)
    assert message in shown
    assert shown.startswith(f"query bad one, line {line}, column {column}: "), shown
    assert shown.endswith("^")


def test_the_canonical_text_is_one_clause_a_line_without_defaults() -> None:
    text = "pattern seq(A(x=1)+ a,!B b, C c) where not(a.x<1 or [source])and 1=1 within 90 s return -(-1) as y"
    assert format_query(parse(text, "q")).split("\n") == [
        "PATTERN SEQ(A(x = 1)+ a, !B b, C c)",
        "WHERE NOT (a.x < 1 OR [source]) AND 1 = 1",
        "WITHIN 90 s",
        "RETURN -(-1) AS y",
    ]
