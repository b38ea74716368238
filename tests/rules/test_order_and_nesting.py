"""Event order, ties, intervals, AND, OR, ANY, nesting and timers (language contract, Events and Patterns)."""

import pytest

from tests.harness import EVALUATORS, Case, case, check

pytestmark = pytest.mark.core

T4 = "timer:1970-01-01T00:00:04.000000Z"
ORDER = (
    case("equal times do not precede", "A1 B1", "PATTERN SEQ(A a, B b) WITHIN 5 s"),
    case("under TIES ordered the tie does", "A1#1 B1#2", "PATTERN SEQ(A a, B b) WITHIN 5 s TIES ordered", "a=A1 b=B1"),
    case("a missing tie sorts lowest", "A1 B1#-5", "PATTERN SEQ(A a, B b) WITHIN 5 s TIES ordered", "a=A1 b=B1"),
    case(
        "then the event_id",
        "A1~2 A1~1 A1~3",
        "PATTERN SEQ(A a, A b) WITHIN 5 s TIES ordered",
        "a=A1~1 b=A1~2",
        "a=A1~1 b=A1~3",
        "a=A1~2 b=A1~3",
    ),
    case("intervals that touch: apart", "A1-3 B3-5", "PATTERN SEQ(A a, B b) WITHIN 9 s"),
    case(
        "intervals that touch: ordered", "A1-3 B3-5", "PATTERN SEQ(A a, B b) WITHIN 9 s TIES ordered", "a=A1-3 b=B3-5"
    ),
    case("intervals that overlap never precede", "A1-4 B3-5", "PATTERN SEQ(A a, B b) WITHIN 9 s TIES ordered"),
    case("the window counts from first start to last end", "A1-3 B4-6", "PATTERN SEQ(A a, B b) WITHIN 4 s"),
    case("and may be full", "A1-3 B4-6", "PATTERN SEQ(A a, B b) WITHIN 5 s", "a=A1-3 b=B4-6 [1..6]"),
    case(
        "the first start need not be the first end's",
        "A1-9 B2-3",
        "PATTERN AND(A a, B b) WITHIN 9 s",
        "a=A1-9 b=B2-3 @ 9 [1..9]",
    ),
    case("rows that share an id are one event", "A1 A1 B2", "PATTERN SEQ(A a, B b) WITHIN 9 s", "a=A1 b=B2"),
    case("AND yields both bindings", "A1 A2", "PATTERN AND(A a, A b) WITHIN 9 s", "a=A1 b=A2", "a=A2 b=A1"),
    case("no event twice", "A1", "PATTERN AND(A a, A b) WITHIN 9 s"),
    case("OR: each instance an answer", "A1 B2", "PATTERN OR(A a, B b)", "a=A1", "b=B2"),
    case("OR: the same event through two elements", "A1", "PATTERN OR(A a, A b)", "a=A1", "b=A1"),
    case("ANY binds one element", "A1 B2", "PATTERN ANY(A, B) x", "x=A1", "x=B2"),
    case(
        "an element without a variable has its position",
        "A1 B2 C3",
        "PATTERN SEQ(A, !D, B b, C) WITHIN 9 s",
        "1=A1 b=B2 4=C3",
    ),
    case("a nested window", "A1 B2 C9", "PATTERN SEQ(SEQ(A a, B b) WITHIN 1 s, C c) WITHIN 9 s", "a=A1 b=B2 c=C9"),
    case("a nested window too short", "A1 B3 C9", "PATTERN SEQ(SEQ(A a, B b) WITHIN 1 s, C c) WITHIN 9 s"),
    case("a nested AND precedes whole", "B2 A3 C3 C4", "PATTERN SEQ(AND(A a, B b), C c) WITHIN 9 s", "a=A3 b=B2 c=C4"),
    case(
        "a window of its own on a nested OR",
        "A1 B3 C4 D5",
        "PATTERN SEQ(OR(SEQ(A a, B b), C c) WITHIN 1 s, D d) WITHIN 9 s",
        "c=C4 d=D5",
    ),
    case(
        "a nested window longer than the query's changes nothing",
        "A1 B3 C4",
        "PATTERN SEQ(SEQ(A a, B b) WITHIN 9 s, C c) WITHIN 2 s",
    ),
    case(
        "a nested part spans from first start to last end",
        "A1-3 B2-6 C5 C7",
        "PATTERN SEQ(AND(A a, B b), C c) WITHIN 9 s",
        "a=A1-3 b=B2-6 c=C7 [1..7]",
    ),
    case("no event twice over nested parts", "A1 A2", "PATTERN AND(A a, AND(A b, A c)) WITHIN 9 s"),
    case(
        "an OR in an OR, and two answers of one event through ANY and its class",
        "A1 B2",
        "PATTERN OR(OR(A a, B b), ANY(A, B) x)",
        "a=A1",
        "b=B2",
        "x=A1",
        "x=B2",
    ),
    case(
        "a query with one element and a window of its own",
        "A1-4 A2-9",
        "PATTERN A a WITHIN 3 s",
        "a=A1-4 [1..4]",
    ),
    case(
        "an unbound variable makes an aggregate's comparison true",
        "A1{x=1} A2{x=1} B3",
        "PATTERN OR(A[2] w, B b) WHERE sum(w.x) > 5 WITHIN 9 s",
        "b=B3",
    ),
    case(
        "and one in a function or a duration",
        "A1{x=1} B2{x=2} C3{x=7}",
        "PATTERN SEQ(OR(A a, B b), C c) WHERE greatest(b.x, c.x) = 1 AND duration(b, c) > 100 WITHIN 9 s",
        "a=A1 c=C3",
    ),
    case(
        "the key holds for each alternative",
        "A1{k=1} B2{k=2} C3{k=1}",
        "PATTERN SEQ(OR(A a, B b), C c) WHERE [k] WITHIN 9 s",
        "a=A1 c=C3",
    ),
    case("a nested OR", "A1 B2 C3", "PATTERN SEQ(OR(A a, B b), C c) WITHIN 9 s", "a=A1 c=C3", "b=B2 c=C3"),
    case(
        "a variable that is not bound is true",
        "A1{x=1} B2{x=2} C3",
        "PATTERN SEQ(OR(A a, B b), C c) WHERE a.x = 1 AND b.x = 1 WITHIN 9 s",
        "a=A1 c=C3",
    ),
    case(
        "negated or not",
        "A1{x=1} B2{x=2} C3",
        "PATTERN SEQ(OR(A a, B b), C c) WHERE a.x IS NULL WITHIN 9 s",
        "b=B2 c=C3",
    ),
    case(
        "and in RETURN it is NULL",
        "A1{x=1} B2{x=2} C3",
        "PATTERN SEQ(OR(A a, B b), C c) WITHIN 9 s RETURN a.x AS x",
        "a=A1 c=C3 -> x=1",
        "b=B2 c=C3 -> x=null",
    ),
)

TIMERS = (
    case("AT", "A1 B6", "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t, B b) WITHIN 9 s", f"a=A1 t={T4} b=B6"),
    case(
        "AT in every partition",
        "A1@s1 A2@s2",
        "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t) WHERE [source] WITHIN 9 s",
        f"a=A1 t={T4} @ 4",
        f"a=A2 t={T4} @ 4",
    ),
    case("EVERY", "A3 B5", "PATTERN SEQ(A a, EVERY(2 s) t, B b) WITHIN 9 s", f"a=A3 t={T4} b=B5"),
    case(
        "EVERY up to the window",
        "A3",
        "PATTERN SEQ(A a, EVERY(2 s) t) WITHIN 3 s",
        f"a=A3 t={T4} [3..4]",
        f"a=A3 t={T4.replace('04', '06')} [3..6]",
    ),
    case(
        "EVERY in every partition",
        "A3@s1 A3~2@s2",
        "PATTERN SEQ(A a, EVERY(4 s) t) WHERE [source] WITHIN 2 s",
        f"a=A3 t={T4}",
        f"a=A3~2 t={T4}",
    ),
    case(
        "one timer may be bound twice",
        "A3",
        "PATTERN AND(A a, EVERY(4 s) t, AT('1970-01-01T00:00:04Z') u) WITHIN 1 s",
        f"a=A3 t={T4} u={T4}",
    ),
    case(
        "AFTER counts from the end of an interval",
        "A1-2 B5",
        "PATTERN SEQ(AFTER(A a, 2 s) t, B b) WITHIN 9 s",
        f"a=A1-2 t={T4} b=B5 [1..5]",
    ),
    case(
        "AFTER an alternative of OR",
        "A1 B2",
        "PATTERN AFTER(OR(A a, B b), 2 s) t WITHIN 9 s",
        f"a=A1 t={T4.replace('04', '03')}",
        f"b=B2 t={T4}",
    ),
    case(
        "AFTER a timer after an event",
        "A1",
        "PATTERN AFTER(AFTER(A a, 1 s) t, 2 s) u WITHIN 9 s",
        f"a=A1 t={T4.replace('04', '02')} u={T4} @ 4",
    ),
    case(
        "a timer in RETURN",
        "A1",
        "PATTERN AFTER(A a, 3 s) t WITHIN 9 s RETURN t.ts AS due, duration(a, t) AS wait, t.event_id AS id",
        f"a=A1 t={T4} -> due=1970-01-01T00:00:04.000000Z id={T4} wait=3.0",
    ),
    case("EVERY before the first event", "A5", "PATTERN AND(A a, EVERY(4 s) t) WITHIN 2 s", f"a=A5 t={T4} [4..5]"),
    case(
        "a timer comes after every event of its time",
        "A4",
        "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t) WITHIN 9 s TIES ordered",
        f"a=A4 t={T4}",
    ),
    case("and an event not after it", "A4", "PATTERN SEQ(AT('1970-01-01T00:00:04Z') t, A a) WITHIN 9 s TIES ordered"),
    case(
        "timers of one moment in the order of their elements",
        "A1",
        "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t, EVERY(4 s) u) WITHIN 5 s TIES ordered",
        f"a=A1 t={T4} u={T4}",
    ),
    case(
        "but not the other way round",
        "A1",
        "PATTERN SEQ(A a, EVERY(4 s) u, AT('1970-01-01T00:00:04Z') t) WITHIN 3 s TIES apart",
    ),
    case("AFTER", "A1 B2 B5", "PATTERN SEQ(AFTER(A a, 3 s) t, B b) WITHIN 9 s", f"a=A1 t={T4} b=B5 [1..5]"),
    case(
        "AFTER follows as a point: its part may lie before",
        "A1 B2",
        "PATTERN SEQ(B b, AFTER(A a, 3 s) t) WITHIN 9 s",
        f"b=B2 a=A1 t={T4} @ 4 [1..4]",
    ),
    case("and the span counts its part", "A1 B2", "PATTERN SEQ(B b, AFTER(A a, 3 s) t) WITHIN 2 s"),
    case(
        "AFTER of a sequence counts from its end",
        "A0 B1",
        "PATTERN AFTER(SEQ(A a, B b), 3 s) t WITHIN 9 s",
        f"a=A0 b=B1 t={T4} @ 4",
    ),
    case("AFTER in an AND", "A1 B2 A9", "PATTERN AND(AFTER(A a, 3 s) t, B b) WITHIN 3 s", f"a=A1 t={T4} b=B2"),
    case(
        "nothing happened for three seconds",
        "A1 B2 A3 A9",
        "PATTERN SEQ(A a, !ANY(A, B) b, EVERY(4 s) t) WITHIN 4 s",
        f"a=A3 t={T4}",
        "a=A9 t=timer:1970-01-01T00:00:12.000000Z",
    ),
    case(
        "a timer completes a match",
        "A1 A2",
        "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t) WITHIN 9 s SELECT recent",
        f"a=A2 t={T4} @ 4",
    ),
    case(
        "a timer is never consumed: used",
        "A1 A2 B5 B6",
        "PATTERN SEQ(A a, AT('1970-01-01T00:00:04Z') t, B b) WITHIN 9 s SELECT chronicle",
        f"a=A1 t={T4} b=B5",
        f"a=A2 t={T4} b=B6",
    ),
    case(
        "a timer is never consumed: older",
        "A5 A6",
        "PATTERN SEQ(AT('1970-01-01T00:00:04Z') t, A a) WITHIN 9 s CONSUME older",
        f"t={T4} a=A5",
        f"t={T4} a=A6",
    ),
    case(
        "a timer's time in a condition",
        "A1 A3",
        "PATTERN AND(A a, EVERY(2 s) t) WHERE t.ts > a.ts WITHIN 1 s",
        "a=A1 t=" + T4.replace("04", "02"),
        f"a=A3 t={T4}",
    ),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", ORDER, ids=lambda one: one.name)
def test_order_and_nesting(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", TIMERS, ids=lambda one: one.name)
def test_timer(evaluator: str, one: Case) -> None:
    check(evaluator, one)
