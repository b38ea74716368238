"""Negation in each position (language contract, Matches): middle, leading, trailing, in AND, beside groups."""

import pytest

from tests.harness import EVALUATORS, Case, case, check

pytestmark = pytest.mark.core

MIDDLE = "PATTERN SEQ(A a, !B b, C c) WITHIN 10 s"
LEADING = "PATTERN SEQ(!B b, A a, C c) WITHIN 5 s"
TRAILING = "PATTERN SEQ(A a, C c, !B b) WITHIN 5 s"
IN_AND = "PATTERN AND(A a, !B b, C c) WITHIN 5 s"

CASES = (
    case("middle: none between", "A1 C3 B4", MIDDLE, "a=A1 c=C3 @ 3"),
    case("middle: one between", "A1 B2 C3", MIDDLE),
    case("middle: at the neighbours' own times it is not between", "A1 B1 B3 C3", MIDDLE, "a=A1 c=C3"),
    case("middle: under TIES ordered it is, where the event order says so", "A1#1 B1#2 C3", MIDDLE + " TIES ordered"),
    case("middle: ordered before the neighbour", "A1#2 B1#1 C3", MIDDLE + " TIES ordered", "a=A1 c=C3"),
    case("middle: an interval that only overlaps does not lie between", "A1-2 B2-3 C4", MIDDLE, "a=A1-2 c=C4"),
    case(
        "middle: of the neighbours' whole instances", "A1 D2 B3 C4", "PATTERN SEQ(AND(A a, D d), !B b, C c) WITHIN 10 s"
    ),
    case(
        "middle: between the instance's members does not count",
        "A1 B2 D3 C4",
        "PATTERN SEQ(AND(A a, D d), !B b, C c) WITHIN 10 s",
        "a=A1 d=D3 c=C4",
    ),
    case("leading: from end - WITHIN on, inclusive", "B1 A3 C6", LEADING),
    case("leading: before that it does not count", "B0.9 A3 C6", LEADING, "a=A3 c=C6 @ 6"),
    case("leading: by its start", "B0.5-2 A3 C6", LEADING, "a=A3 c=C6"),
    case("leading: with the first element's time it is not before it", "B3 A3 C6", LEADING, "a=A3 c=C6"),
    case("trailing: postponed by the window", "A1 C3 B7", TRAILING, "a=A1 c=C3 @ 6 [1..3]"),
    case("trailing: up to start + WITHIN, inclusive", "A1 C3 B6", TRAILING),
    case("trailing: by its end", "A1 C3 B5-7", TRAILING, "a=A1 c=C3 @ 6"),
    case("trailing: under another SELECT from the end on", "A1 C3", TRAILING + " SELECT recent", "a=A1 c=C3 @ 8"),
    case("AND: a window before the end", "B1 A3 C6", IN_AND),
    case("AND: and not longer ago", "B0.9 A3 C6", IN_AND, "a=A3 c=C6 @ 8"),
    case("AND: between", "C3 B4 A6", IN_AND),
    case("AND: a window behind the start", "A3 C6 B8", IN_AND),
    case("AND: and not later", "A3 C6 B8.1", IN_AND, "a=A3 c=C6 @ 8"),
    case(
        "an event bound by the answer does not negate it",
        "A1 B2 C3",
        "PATTERN AND(B x, C c, !B b) WITHIN 5 s",
        "x=B2 c=C3",
    ),
    case("but another one does", "A1 B2 B2.5 C3", "PATTERN AND(B x, C c, !B b) WITHIN 5 s"),
    case(
        "the first of two B is not between p and n",
        "A1 B2 C3",
        "PATTERN SEQ(A a, B x, !B b, C c) WITHIN 5 s",
        "a=A1 x=B2 c=C3",
    ),
    case(
        "only those that meet the conditions",
        "A1{x=1} B2{x=2} C3",
        MIDDLE.replace("WITHIN", "WHERE b.x = a.x WITHIN"),
        "a=A1 c=C3",
    ),
    case("one that meets them", "A1{x=1} B2{x=1} C3", MIDDLE.replace("WITHIN", "WHERE b.x = a.x WITHIN")),
    case("its own filter", "A1 B2{x=2} C3", "PATTERN SEQ(A a, !B(x = 1) b, C c) WITHIN 10 s", "a=A1 c=C3"),
    case(
        "a NULL meets no comparison",
        "A1{x=1} B2{x=null} C3",
        MIDDLE.replace("WITHIN", "WHERE b.x != a.x WITHIN"),
        "a=A1 c=C3",
    ),
    case(
        "the key holds for it too", "A1@s1 B2@s2 C3@s1", MIDDLE.replace("WITHIN", "WHERE [source] WITHIN"), "a=A1 c=C3"
    ),
    case(
        "DNF: no b with 1, or no b with 2",
        "A1 B2{x=1} C3",
        MIDDLE.replace("WITHIN", "WHERE b.x = 1 OR b.x = 2 WITHIN"),
        "a=A1 c=C3",
    ),
    case("DNF: one of each", "A1 B2{x=1} B2.5{x=2} C3", MIDDLE.replace("WITHIN", "WHERE b.x = 1 OR b.x = 2 WITHIN")),
    case("IN is one atom", "A1 B2{x=1} C3", MIDDLE.replace("WITHIN", "WHERE b.x IN (1, 2) WITHIN")),
    case(
        "NOT is pushed down first: no b with x != 1 or y != 2 becomes two disjuncts",
        "A1 B2{x=1,y=3} C3",
        MIDDLE.replace("WITHIN", "WHERE NOT (b.x = 1 AND b.y = 2) WITHIN"),
        "a=A1 c=C3",
    ),
    case(
        "NOT BETWEEN is one atom: no b outside",
        "A1 B2{x=0} C3",
        MIDDLE.replace("WITHIN", "WHERE NOT (b.x BETWEEN 1 AND 2) WITHIN"),
    ),
    case(
        "NOT IN, NOT LIKE and IS NOT NULL too",
        "A1 B2{x=1,s=no} C3",
        MIDDLE.replace("WITHIN", "WHERE b.x NOT IN (2, 3) AND b.s NOT LIKE 'y%' AND b.x IS NOT NULL WITHIN"),
    ),
    case(
        "a filter is plain boolean, no part of the normal form: no b with 1 and none with 2",
        "A1 B2{x=1} C3",
        "PATTERN SEQ(A a, !B(x = 1 OR x = 2) b, C c) WITHIN 9 s",
    ),
    case(
        "an attribute that its class does not declare is met",
        "A1{x=1} D2 C3",
        "PATTERN SEQ(A a, !ANY(B, D) b, C c) WHERE b.x = a.x WITHIN 9 s",
        schema={"A": {"x": "int"}, "B": {"x": "int"}, "C": {}, "D": {}},
    ),
    case(
        "compared with an aggregate",
        "A1{x=1} A2{x=4} B3{x=3} C4",
        "PATTERN SEQ(A[2] w, !B b, C c) WHERE b.x > max(w.x) WITHIN 9 s",
        "w=A1,A2 c=C4",
    ),
    case(
        "with the aggregate of the group beside it",
        "A1 D2{x=2} D3{x=2} B4{x=4} C5",
        "PATTERN SEQ(A a, D+ g, !B b, C c) WHERE b.x = sum(g.x) WITHIN 9 s",
    ),
    case(
        "in a nested SEQ",
        "D0 A1 B2 C3",
        "PATTERN SEQ(D d, SEQ(A a, !B b, C c)) WITHIN 9 s",
    ),
    case(
        "in an alternative of OR",
        "A1 B2 C3 D4",
        "PATTERN OR(SEQ(A a, !B b, C c), D d) WITHIN 9 s",
        "d=D4",
    ),
    case(
        "a condition on an unbound variable beside it is met",
        "A1{x=1} B2{x=9} C3",
        "PATTERN SEQ(OR(A a, D d), !B b, C c) WHERE b.x = d.x WITHIN 9 s",
    ),
    case(
        "several in an AND",
        "A3 C4 B5",
        "PATTERN AND(A a, !B b, C c, !D d) WITHIN 5 s",
    ),
    case("leading: by the answer's end, not the first's", "B0 A3 C6", LEADING, "a=A3 c=C6"),
    case(
        "leading and trailing at once",
        "B0 A3 C6 B9",
        "PATTERN SEQ(!B b, A a, C c, !B d) WITHIN 5 s",
        "a=A3 c=C6 @ 8",
    ),
    case(
        "an event that only touches the timer's moment",
        "A1 B4 C9",
        "PATTERN SEQ(AFTER(A a, 3 s) t, !B b, C c) WITHIN 9 s",
        "a=A1 t=timer:1970-01-01T00:00:04.000000Z c=C9",
    ),
    case("an empty group beside it bounds nothing", "A1 B2 C4", "PATTERN SEQ(A a, D* g, !B b, C c) WITHIN 9 s"),
    case(
        "a group that is not empty does",
        "A1 B2 D3 C4",
        "PATTERN SEQ(A a, D* g, !B b, C c) WITHIN 9 s",
        "a=A1 g=D3 c=C4",
    ),
    case("leading beside an empty group", "B1 C4", "PATTERN SEQ(D* g, !B b, C c) WITHIN 9 s"),
    case("leading beside a full group", "B1 D2 C4", "PATTERN SEQ(D* g, !B b, C c) WITHIN 9 s", "g=D2 c=C4"),
    case("before a leading group", "B1 D2 C4", "PATTERN SEQ(!B b, D* g, C c) WITHIN 9 s"),
    case("before a trailing group that is empty: it trails", "A1 B4", "PATTERN SEQ(A a, !B b, D* g) WITHIN 5 s"),
    case(
        "a consumed event still negates",
        "A0 B1 C2 C3",
        "PATTERN SEQ(ANY(A, B) a, !B b, C c) WITHIN 9 s CONSUME used",
        "a=B1 c=C2",
    ),
    case("ANY of two classes", "A1 D2 C3", "PATTERN SEQ(A a, !ANY(B, D) b, C c) WITHIN 9 s"),
    case(
        "after an AFTER: from the timer on",
        "A1 B2 C9",
        "PATTERN SEQ(AFTER(A a, 3 s) t, !B b, C c) WITHIN 9 s",
        "a=A1 t=timer:1970-01-01T00:00:04.000000Z c=C9",
    ),
    case("and behind it", "A1 B5 C9", "PATTERN SEQ(AFTER(A a, 3 s) t, !B b, C c) WITHIN 9 s"),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_negation(evaluator: str, one: Case) -> None:
    check(evaluator, one)
