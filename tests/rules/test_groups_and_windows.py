"""Groups, k-size windows, aggregates and FORALL (language contract, Patterns, Conditions, Matches)."""

import pytest

from tests.harness import EVALUATORS, Case, case, check

pytestmark = pytest.mark.core

MIDDLE = "PATTERN SEQ(A a, B+ g, C c) WITHIN 10 s"
LEADING = "PATTERN SEQ(B* g, C c) WITHIN 5 s"
TRAILING = "PATTERN SEQ(A a, B* g) WITHIN 5 s"

GROUPS = (
    case("all between, not some", "A1 B2 B3 C4", MIDDLE, "a=A1 g=B2,B3 c=C4"),
    case("none between", "A1 C4 B5", MIDDLE),
    case("a star may be empty", "A1 C4 B5", MIDDLE.replace("+", "*"), "a=A1 c=C4"),
    case("bounds: too few", "A1 B2 C4", MIDDLE.replace("+", "{2,3}")),
    case("bounds: within", "A1 B2 B3 C4", MIDDLE.replace("+", "{2,3}"), "a=A1 g=B2,B3 c=C4"),
    case("bounds: too many, and a part of them is no group", "A1 B2 B3 C4", MIDDLE.replace("+", "{1,1}")),
    case(
        "bare conditions choose its events",
        "A1{x=1} B2{x=1} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE g.x = a.x WITHIN"),
        "a=A1 g=B2 c=C4",
    ),
    case("aggregates judge it whole", "A1 B2{x=1} B3{x=2} C4", MIDDLE.replace("WITHIN", "WHERE sum(g.x) > 3 WITHIN")),
    case(
        "and let it pass",
        "A1 B2{x=2} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE sum(g.x) > 3 WITHIN"),
        "a=A1 g=B2,B3 c=C4",
    ),
    case(
        "DNF: a group for each disjunct",
        "A1 B2{x=1} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE g.x = 1 OR g.x = 2 WITHIN"),
        "a=A1 g=B2 c=C4",
        "a=A1 g=B3 c=C4",
    ),
    case(
        "one found under several disjuncts counts once",
        "A1 B2{x=1} C4",
        MIDDLE.replace("WITHIN", "WHERE g.x = 1 OR g.x < 2 WITHIN"),
        "a=A1 g=B2 c=C4",
    ),
    case(
        "events of other elements are left out",
        "A1 B2 B3 C4",
        "PATTERN SEQ(A a, B* g, AND(B b, C c)) WITHIN 9 s",
        "a=A1 b=B2 c=C4",
        "a=A1 g=B2 b=B3 c=C4",
    ),
    case("leading: from end - WITHIN on", "B0.9 B1 B2 C6", LEADING, "g=B1,B2 c=C6 @ 6 [1..6]"),
    case("leading and empty", "C6 B7", LEADING, "c=C6 [6..6]"),
    case("trailing: to start + WITHIN, postponed", "A1 B2 B6 B6.1", TRAILING, "a=A1 g=B2,B6 @ 6 [1..6]"),
    case("trailing and empty", "A1 B7", TRAILING, "a=A1 @ 6 [1..1]"),
    case("trailing under another SELECT", "A1 B2 B6", TRAILING + " SELECT recent", "a=A1 g=B2,B6 @ 11"),
    case(
        "negations are skipped for its neighbours",
        "B1 A2 D3 B4 C5",
        "PATTERN SEQ(A a, !E e, B+ g, C c) WITHIN 9 s",
        "a=A2 g=B4 c=C5",
    ),
    case(
        "over an empty group count is 0",
        "A1 C4",
        MIDDLE.replace("+", "*").replace("WITHIN", "WHERE count(g) = 0 WITHIN"),
        "a=A1 c=C4",
    ),
    case(
        "and the others are NULL",
        "A1 C4",
        MIDDLE.replace("+", "*").replace("WITHIN", "WHERE sum(g.x) >= 0 WITHIN"),
        schema={c: {"x": "int"} for c in "ABC"},
    ),
    case(
        "NULLs are skipped",
        "A1 B2{x=null} B3{x=2} C4",
        MIDDLE + " RETURN sum(g.x) AS s, count(g) AS n, avg(g.x) AS m",
        "a=A1 g=B2,B3 c=C4 -> m=2.0 n=2 s=2",
    ),
    case("under ties only those that precede", "A1 B1 B2 C2", MIDDLE),
    case(
        "under TIES ordered those between in event order",
        "A1#1 B1#2 B2#1 C2#2",
        MIDDLE + " TIES ordered",
        "a=A1 g=B1,B2 c=C2",
    ),
    case(
        "recent: more events are greater",
        "A1 B2{x=1} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE g.x = 1 OR g.x < 9 WITHIN") + " SELECT recent",
        "a=A1 g=B2,B3 c=C4",
    ),
    case(
        "earliest: fewer are smaller",
        "A1 B2{x=1} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE g.x = 1 OR g.x < 9 WITHIN") + " SELECT earliest",
        "a=A1 g=B2 c=C4",
    ),
    case(
        "its own filter chooses its events too",
        "A1 B2{x=1} B3{x=2} C4",
        "PATTERN SEQ(A a, B(x = 2 OR x = 3)+ g, C c) WITHIN 9 s",
        "a=A1 g=B3 c=C4",
    ),
    case(
        "a group of ANY",
        "A1 B2 D3 C4",
        "PATTERN SEQ(A a, ANY(B, D)+ g, C c) WITHIN 9 s",
        "a=A1 g=B2,D3 c=C4",
    ),
    case(
        "an attribute that one class of ANY does not declare chooses nothing away",
        "A1{x=1} B2{x=9} D3 C4{x=1}",
        "PATTERN SEQ(A a, ANY(B, D)+ g, C c) WHERE g.x = a.x WITHIN 9 s",
        "a=A1 g=D3 c=C4",
        schema={"A": {"x": "int"}, "B": {"x": "int"}, "C": {"x": "int"}, "D": {}},
    ),
    case(
        "aggregates over ANY skip the classes that do not declare the attribute",
        "A1 B2{x=4} D3 C4",
        "PATTERN SEQ(A a, ANY(B, D)+ g, C c) WITHIN 9 s RETURN sum(g.x) AS s, count(g) AS n, last(g).x AS l",
        "a=A1 g=B2,D3 c=C4 -> l=4 n=2 s=4",
        schema={"A": {}, "B": {"x": "int"}, "C": {}, "D": {}},
    ),
    case(
        "first and last skip NULL",
        "A1 B2{x=null} B3{x=5} B3.5{x=6} B3.6{x=null} C4",
        MIDDLE + " RETURN first(g).x AS f, last(g).x AS l, g[1].x AS i",
        "a=A1 g=B2,B3,B3.5,B3.6 c=C4 -> f=5 i=null l=6",
    ),
    case(
        "two groups apart, compared by aggregates",
        "A1 B2 A3 B4 B5 A6",
        "PATTERN SEQ(A a, B+ g, A m, B+ h, A z) WHERE count(g) < count(h) WITHIN 9 s",
        "a=A1 g=B2 m=A3 h=B4,B5 z=A6",
    ),
    case(
        "in a nested SEQ",
        "D0 A1 B2 B3 C4",
        "PATTERN SEQ(D d, SEQ(A a, B+ g, C c) WITHIN 5 s) WITHIN 9 s",
        "d=D0 a=A1 g=B2,B3 c=C4",
    ),
    case(
        "its neighbours are whole instances",
        "A1 B2 D3 B4 C5",
        "PATTERN SEQ(AND(A a, D d), B+ g, C c) WITHIN 9 s",
        "a=A1 d=D3 g=B4 c=C5",
    ),
    case(
        "after an AFTER: from the timer on",
        "A1 B2 B5 C6",
        "PATTERN SEQ(AFTER(A a, 3 s) t, B+ g, C c) WITHIN 9 s",
        "a=A1 t=timer:1970-01-01T00:00:04.000000Z g=B5 c=C6",
    ),
    case(
        "a group's events may fill the window but not pass it",
        "A1 B2-8 C9",
        "PATTERN SEQ(A a, B* g, C c) WITHIN 7 s",
    ),
    case(
        "trailing, behind a nested part: start is that of the rest",
        "A1 D2 B6 B6.5",
        "PATTERN SEQ(AND(D d, A a), B* g) WITHIN 5 s",
        "d=D2 a=A1 g=B6 @ 6 [1..6]",
    ),
    case(
        "a match uses its group's events",
        "A1 B2 C3 A3.5 B4 C5",
        "PATTERN SEQ(A a, B+ g, C c) WITHIN 9 s CONSUME used",
        "a=A1 g=B2 c=C3",
        "a=A3.5 g=B4 c=C5",
    ),
)

WINDOWS = (
    case("any k of them", "A1 A2 A3", "PATTERN A[2] w WITHIN 9 s", "w=A1,A2", "w=A1,A3", "w=A2,A3"),
    case("however they overlap", "A1-5 A2-3", "PATTERN A[2] w WITHIN 9 s", "w=A2-3,A1-5 [1..5]"),
    case("within the window", "A1 A2 A9", "PATTERN A[2] w WITHIN 5 s", "w=A1,A2"),
    case(
        "events that end together: the earlier start is first", "A2-5 A1-5", "PATTERN A[2] w WITHIN 9 s", "w=A1-5,A2-5"
    ),
    case("its own filter", "A1{x=1} A2{x=2} A3{x=1}", "PATTERN A(x = 1)[2] w WITHIN 9 s", "w=A1,A3"),
    case(
        "an index out of range is true, negated or not",
        "A1{x=1} A2{x=2}",
        "PATTERN A[2] w WHERE w[3].x = 7 AND NOT w[3].x = 7 WITHIN 9 s",
        "w=A1,A2",
    ),
    case(
        "two windows of one class share no event",
        "A1 A2 A3",
        "PATTERN AND(A[2] v, A w) WITHIN 9 s",
        "v=A1,A2 w=A3",
        "v=A1,A3 w=A2",
        "v=A2,A3 w=A1",
    ),
    case(
        "TIMES_EQ with a filter and ANY",
        "A1{x=1,y=5} B2{x=1,y=5} A3{x=1,y=0} B4{x=2,y=5}",
        "PATTERN TIMES_EQ(2, ANY(A, B)(y > 1) w, x) WITHIN 9 s",
        "w=A1,B2",
    ),
    case(
        "FORALL over two windows side by side",
        "A1{x=1} A2{x=2} B3{x=1} B4{x=2} B5{x=3}",
        "PATTERN SEQ(A[2] v, B[2] w) WHERE FORALL i IN 1..2 (v[i].x = w[i].x) WITHIN 9 s",
        "v=A1,A2 w=B3,B4",
    ),
    case(
        "FORALL with the previous",
        "A1{x=1} A2{x=2} A3{x=1}",
        "PATTERN A[2] w WHERE FORALL i IN 2..count(w) (w[i-1].x < w[i].x) WITHIN 9 s",
        "w=A1,A2",
    ),
    case(
        "FORALL with NULL is not for all",
        "A1{x=1} A2{x=null} A3{x=1}",
        "PATTERN A[2] w WHERE FORALL i IN 1..2 (w[i].x = 1) WITHIN 9 s",
        "w=A1,A3",
    ),
    case("ties do not part them", "A1~x A1~y", "PATTERN A[2] w WITHIN 9 s", "w=A1~x,A1~y"),
    case(
        "a bare attribute holds for each",
        "A1{x=1} A2{x=2} A3{x=1}",
        "PATTERN A[2] w WHERE w.x = 1 WITHIN 9 s",
        "w=A1,A3",
    ),
    case("negated too", "A1{x=1} A2{x=2} A3{x=3}", "PATTERN A[2] w WHERE NOT w.x = 1 WITHIN 9 s", "w=A2,A3"),
    case(
        "two windows: each with each",
        "A1{x=1} A2{x=2} B3{x=3} B4{x=2}",
        "PATTERN AND(A[2] v, B[2] w) WHERE v.x < w.x WITHIN 9 s",
    ),
    case(
        "two windows that hold",
        "A1{x=1} A2{x=2} B3{x=3} B4{x=4}",
        "PATTERN AND(A[2] v, B[2] w) WHERE v.x < w.x WITHIN 9 s",
        "v=A1,A2 w=B3,B4",
    ),
    case("in a SEQ all of them precede", "A1 A2 B2 B3", "PATTERN SEQ(A[2] w, B b) WITHIN 9 s", "w=A1,A2 b=B3"),
    case(
        "TIMES_EQ skips NULL",
        "A1{x=1} A2{x=null} A3{x=null} A4{x=1}",
        "PATTERN TIMES_EQ(2, A w, x) WITHIN 9 s",
        "w=A1,A4",
    ),
    case(
        "TIMES_DF", "A1{x=1} A2{x=1} A3{x=2} A4{x=null}", "PATTERN TIMES_DF(2, A w, x) WITHIN 9 s", "w=A1,A3", "w=A2,A3"
    ),
    case(
        "FORALL with the next",
        "A1{x=1} A2{x=2} A3{x=1}",
        "PATTERN A[2] w WHERE FORALL i IN 1..1 (w[i].x < w[i+1].x) WITHIN 9 s",
        "w=A1,A2",
    ),
    case(
        "FORALL: an index out of range is true",
        "A1{x=1} A2{x=2}",
        "PATTERN A[2] w WHERE FORALL i IN 1..2 (w[i].x < w[i+1].x) WITHIN 9 s",
        "w=A1,A2",
    ),
    case(
        "FORALL to count",
        "A1{x=1} A2{x=2} A3{x=1}",
        "PATTERN A[2] w WHERE FORALL i IN 1..count(w) (w[i].x = 1) WITHIN 9 s",
        "w=A1,A3",
    ),
    case(
        "NOT FORALL: one does not",
        "A1{x=1} A2{x=2} A3{x=1}",
        "PATTERN A[2] w WHERE NOT FORALL i IN 1..2 (w[i].x = 1) WITHIN 9 s",
        "w=A1,A2",
        "w=A2,A3",
    ),
    case(
        "FORALL over a group",
        "A1 B2{x=1} B3{x=2} C4",
        MIDDLE.replace("WITHIN", "WHERE FORALL i IN 1..count(g) (g[i].x < g[i+1].x) WITHIN"),
        "a=A1 g=B2,B3 c=C4",
    ),
    case(
        "FORALL over an empty group is true",
        "A1 C4",
        MIDDLE.replace("+", "*").replace("WITHIN", "WHERE FORALL i IN 1..count(g) (g[i].x = 9) WITHIN"),
        "a=A1 c=C4",
        schema={c: {"x": "int"} for c in "ABC"},
    ),
    case(
        "an index by number",
        "A1{x=2} A2{x=1}",
        "PATTERN A[2] w WHERE w[1].x > w[2].x WITHIN 9 s RETURN w[2].x AS x",
        "w=A1,A2 -> x=1",
    ),
    case(
        "aggregates of a window",
        "A1{x=1} A2{x=2} A3{x=4}",
        "PATTERN A[2] w WHERE sum(w.x) = 5 WITHIN 9 s RETURN first(w).x AS f, last(w).x AS l, max(w.x) AS m",
        "w=A1,A3 -> f=1 l=4 m=4",
    ),
    case(
        "recent compares from the last down",
        "A1 A2 A3 A4",
        "PATTERN A[3] w WITHIN 9 s SELECT recent",
        "w=A1,A2,A3",
        "w=A2,A3,A4",
    ),
    case(
        "earliest from the first up",
        "A1 A2 A3 A4",
        "PATTERN A[3] w WITHIN 9 s SELECT earliest",
        "w=A1,A2,A3",
        "w=A1,A2,A4",
    ),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", GROUPS, ids=lambda one: one.name)
def test_group(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", WINDOWS, ids=lambda one: one.name)
def test_window(evaluator: str, one: Case) -> None:
    check(evaluator, one)
