"""The checker refuses what the contract does not allow: one case or more for each of its sentences."""

from __future__ import annotations

import pytest

from tests.language.shop import checked, refused

POSTPONED = "PATTERN SEQ(A a, !B b) WHERE [source] WITHIN 1 min RETURN a.x AS x"

REFUSED = [
    # Shape of a query
    ("PATTERN SEQ(A a, B b)", "WITHIN is missing"),
    ("PATTERN A[2] a", "WITHIN is missing"),
    ("PATTERN OR(A a, B[2] b)", "WITHIN is missing"),
    ("PATTERN OR(A a, SEQ(B b, C c) WITHIN 1 min)", "WITHIN is missing"),
    # Patterns: names
    ("PATTERN Aa a", 'unknown class "Aa"; did you mean "A"?'),
    ("PATTERN Nothing a", "no declared event class and no query's id"),
    ("PATTERN ANY(A, Bb) a", 'unknown class "Bb"; did you mean "B"?'),
    ("PATTERN ANY(A, A) a", "a class stands twice in ANY"),
    ("PATTERN SEQ(A a, B a) WITHIN 1 s", 'the variable "a" stands twice'),
    ("PATTERN OR(A a, B a)", 'the variable "a" stands twice'),
    ("PATTERN A `1`", "a variable may not be a number"),
    # Patterns: negation
    ("PATTERN !A a", "a negation stands inside SEQ or AND, not alone"),
    ("PATTERN OR(A a, !B b) WITHIN 1 s", "a negation stands inside SEQ or AND, not inside OR"),
    ("PATTERN SEQ(A a, AFTER(!B b, 1 s) t) WITHIN 1 s", "a negation stands inside SEQ or AND, not inside AFTER"),
    ("PATTERN SEQ(A a, !B b, !C c, A d) WITHIN 1 s", "two negations in a row"),
    ("PATTERN SEQ(A a, !B+ b, A d) WITHIN 1 s", "it takes no + * {n,m} [k]"),
    ("PATTERN SEQ(A a, !B[2] b, A d) WITHIN 1 s", "it takes no + * {n,m} [k]"),
    ("PATTERN SEQ(A a, !TIMES_EQ(2, B b, x), A d) WITHIN 1 s", "it takes no + * {n,m} [k] or TIMES"),
    ("PATTERN SEQ(A a, SEQ(!B b, C c)) WITHIN 1 s", "first in a SEQ is for a query's outermost pattern only"),
    ("PATTERN SEQ(A a, SEQ(C c, !B b)) WITHIN 1 s", "last in a SEQ is for a query's outermost pattern only"),
    ("PATTERN OR(SEQ(!B b, C c), A a) WITHIN 1 s", "first in a SEQ is for a query's outermost pattern only"),
    ("PATTERN SEQ(A a, AND(C c, !B b)) WITHIN 1 s", "in AND is for a query's outermost pattern only"),
    ("PATTERN AFTER(AND(C c, !B b), 1 s) t WITHIN 1 min", "in AND is for a query's outermost pattern only"),
    # Patterns: groups
    ("PATTERN A+ a WITHIN 1 s", "a group stands inside SEQ only, not alone"),
    ("PATTERN AND(A a, B+ b) WITHIN 1 s", "a group stands inside SEQ only, not in AND"),
    ("PATTERN OR(A a, B* b) WITHIN 1 s", "a group stands inside SEQ only, not inside OR"),
    ("PATTERN AFTER(A+ a, 1 s) t WITHIN 1 min", "a group stands inside SEQ only, not inside AFTER"),
    ("PATTERN SEQ(A a, B+ b, C+ c, A d) WITHIN 1 s", "a group beside a group"),
    ("PATTERN SEQ(A a, B+ b, !A n, C{1,2} c, A d) WITHIN 1 s", "a group beside a group"),
    ("PATTERN SEQ(A+ a, B b, C+ c) WITHIN 1 s", "may not both start and end with a group"),
    ("PATTERN SEQ(!A n, A+ a, B b, C+ c, !A m) WITHIN 1 s", "may not both start and end with a group"),
    ("PATTERN SEQ(A+ a) WITHIN 1 s", "may not both start and end with a group"),
    ("PATTERN SEQ(SEQ(A+ a, B b), C c) WITHIN 1 s", "a group that starts a SEQ is for a query's outermost"),
    ("PATTERN AND(SEQ(A a, B+ b), C c) WITHIN 1 s", "a group that ends a SEQ is for a query's outermost"),
    # Patterns: something must be there
    ("PATTERN EVERY(1 hour) t WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN SEQ(AT('2026-01-01') t, !A a) WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN SEQ(A* a, EVERY(1 hour) t) WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN SEQ(A{0,3} a, EVERY(1 hour) t) WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN OR(A a, EVERY(1 hour) t) WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN AFTER(EVERY(1 hour) e, 1 s) t WITHIN 1 s", "every alternative of a pattern needs an event"),
    ("PATTERN TIMES_EQ(2, A a, nope) WITHIN 1 s", 'no attribute "nope"'),
    ("PATTERN TIMES_DF(2, ANY(A, C) a, only_c) WITHIN 1 s", 'class A has no attribute "only_c"'),
    # CONSUME and postponed detection
    ("PATTERN SEQ(A a, !B b) WITHIN 1 s CONSUME used", "CONSUME used does not go with postponed detection"),
    ("PATTERN SEQ(A a, B+ b) WITHIN 1 s CONSUME older", "CONSUME older does not go with postponed detection"),
    ("PATTERN SEQ(A a, B+ b, !C c) WITHIN 1 s SELECT chronicle", "does not go with postponed detection"),
    ("PATTERN AND(A a, !B b) WITHIN 1 s CONSUME used", "this AND has a negation"),
    # Conditions: names
    ("PATTERN SEQ(Alpha a, B b) WHERE b.x = alpha.x WITHIN 1 s", 'unknown variable "alpha"'),
    ("PATTERN SEQ(A first_one, B b) WHERE b.x = frst_one.x WITHIN 1 s", 'did you mean "first_one"?'),
    ("PATTERN A a WHERE a.xx = 1", 'class A has no attribute "xx"; did you mean "x"?'),
    ("PATTERN A(idd = '1') a", 'class A has no attribute "idd"; did you mean "id"?'),
    ("PATTERN ANY(A, B) a WHERE a.only_c = 1", 'the classes A, B have no attribute "only_c"'),
    ("PATTERN ANY(A, D) a WHERE a.x = 1", 'attribute "x" is int in some and string in other classes'),
    ("PATTERN SEQ(A a, EVERY(1 s) t) WHERE t.x = 1 WITHIN 1 s", 'a timer has no attribute "x"'),
    # Conditions: equivalence tests
    ("PATTERN AND(A a, B b) WHERE [source] OR a.x = 1 WITHIN 1 s", "only as a top-level AND term"),
    ("PATTERN AND(A a, B b) WHERE NOT [source] WITHIN 1 s", "only as a top-level AND term"),
    ("PATTERN AND(A a, B b) WHERE a.x = 1 AND (b.x = 1 OR [source]) WITHIN 1 s", "only as a top-level AND term"),
    ("PATTERN A[2] a WHERE FORALL i IN 1..2 ([id]) WITHIN 1 s", "only as a top-level AND term"),
    ("PATTERN A([id]) a", "only as a top-level AND term"),
    ("PATTERN AND(A a, B b, C c) WHERE [only_c] WITHIN 1 s", 'the classes A, B have no attribute "only_c"'),
    ("PATTERN SEQ(A a, !B b, A c) WHERE [ok] WITHIN 1 s", 'class B has no attribute "ok"'),
    ("PATTERN SEQ(A a, B+ b, A c) WHERE [ok] WITHIN 1 s", 'class B has no attribute "ok"'),
    ("PATTERN AND(A a, ANY(A, B) b) WHERE [ok] WITHIN 1 s", 'class B has no attribute "ok"'),
    ("PATTERN AND(A a, D d) WHERE [id] WITHIN 1 s", "[id] compares the string of some classes with the int of D"),
    ("PATTERN AND(A a, B b) WHERE [x = 'one'] WITHIN 1 s", "a text does not compare with a whole number"),
    ("PATTERN AND(A a, B b) WHERE [x = NULL] WITHIN 1 s", "with NULL never holds"),
    ("PATTERN AND(A a, B b) WHERE [x = 1] AND [x = 2] WITHIN 1 s", "two different values"),
    # Conditions: FORALL and indices
    ("PATTERN A a WHERE a[1].x = 1", '"a" is no k-size window and no group, so it has no index'),
    ("PATTERN A[2] r WHERE r[0].x = 1 WITHIN 1 s", "are counted from 1"),
    ("PATTERN A[2] r WHERE r[i].x = 1 WITHIN 1 s", 'unknown index "i"; only FORALL'),
    ("PATTERN A[2] r WHERE FORALL idx IN 1..2 (r[idy].x = 1) WITHIN 1 s", 'did you mean "idx"?'),
    ("PATTERN A[2] r WHERE FORALL r IN 1..2 (r[r].x = 1) WITHIN 1 s", "already the name of something else"),
    ("PATTERN A[2] r WHERE FORALL i IN 1..2 (FORALL i IN 1..2 (r[i].x = 1)) WITHIN 1 s", "already the name of"),
    ("PATTERN A[2] r WHERE FORALL i IN 0..2 (r[i].x = 1) WITHIN 1 s", "starts at 1 or later"),
    ("PATTERN A[2] r WHERE FORALL i IN 2..1 (r[i].x = 1) WITHIN 1 s", "the range 2..1 is empty"),
    ("PATTERN AND(A a, A[2] r) WHERE FORALL i IN 1..count(a) (r[i].x = 1) WITHIN 1 s", "so it has no aggregate"),
    ("PATTERN A[2] r WHERE FORALL i IN 1..count(s) (r[i].x = 1) WITHIN 1 s", 'unknown variable "s"'),
    ("PATTERN AND(A a, A[2] r) WHERE FORALL i IN 1..2 (a[i].x = 1) WITHIN 1 s", "so it has no index"),
    # Conditions: aggregates, groups, negated variables
    ("PATTERN A a WHERE sum(a.x) = 1", "so it has no aggregate; write a.attribute"),
    ("PATTERN SEQ(A a, !B b, A c) WHERE count(b) = 0 WITHIN 1 s", "so it has no aggregate"),
    ("PATTERN SEQ(A a, B+ g, A m, B+ h, A z) WHERE g.x = h.x WITHIN 1 s", "may not name another group"),
    ("PATTERN SEQ(A a, B+ g, A m, B+ h, A z) WHERE g.x = count(h) WITHIN 1 s", "may not name another group"),
    ("PATTERN SEQ(A a, B+ g, A m, B+ h, A z) WHERE g.x = h[1].x WITHIN 1 s", "may not name another group"),
    ("PATTERN SEQ(A a, B+ g, A z) WHERE g.x > avg(g.x) WITHIN 1 s", "may not name an aggregate of the same group"),
    ("PATTERN SEQ(A a, B+ g, A z) WHERE g.x > g[1].x WITHIN 1 s", "may not name single events of the same group"),
    ("PATTERN SEQ(A a, B+ g, A m, !C n, A z) WHERE g.x = n.x WITHIN 1 s", 'the negated variable "n" is compared'),
    ("PATTERN SEQ(A a, !B n, A m, !C o, A z) WHERE n.x = o.x WITHIN 1 s", "one negated variable only"),
    ("PATTERN SEQ(A[2] w, !B n, A z) WHERE n.x = w.x WITHIN 1 s", "use first(w).x, max(w.x)"),
    ("PATTERN SEQ(A[2] w, !B n, A z) WHERE n.x = w[1].x WITHIN 1 s", "use first(w).x, max(w.x)"),
    ("PATTERN SEQ(A[2] w, !B n, A z) WHERE FORALL i IN 1..2 (n.x = w[i].x) WITHIN 1 s", "single-event elements"),
    ("PATTERN SEQ(A[2] w, A z) WHERE duration(w, z) > 1 WITHIN 1 s", "duration needs one of them, such as w[1]"),
    ("PATTERN SEQ(A a, B+ g, A z) WHERE duration(a, g) > 1 WITHIN 1 s", "duration needs one of them"),
    ("PATTERN AND(A a, B b) WHERE duration(a, c) > 1 WITHIN 1 s", 'unknown variable "c"'),
    # RETURN
    ("PATTERN A[2] w WITHIN 1 s RETURN w.x AS x", "RETURN needs one value: w[1].x, first(w).x"),
    ("PATTERN SEQ(A a, B+ g, A z) WITHIN 1 s RETURN g.x AS x", "RETURN needs one value"),
    ("PATTERN SEQ(A a, !B n, A z) WITHIN 1 s RETURN n.x AS x", "there is no such event to return"),
    ("PATTERN SEQ(A a, !B n, A z) WITHIN 1 s RETURN duration(a, n) AS x", "there is no such event to return"),
    ("PATTERN SEQ(A a, !B n, A z) WITHIN 1 s SELECT merged RETURN count(n) AS x", "there is no such event to return"),
    ("PATTERN A a RETURN sum(a.x) AS x", "so it has no aggregate"),
    ("PATTERN A a RETURN a[1].x AS x", "so it has no index"),
    ("PATTERN A[2] w WITHIN 1 s RETURN w[i].x AS x", "only FORALL gives an index a name"),
    ("PATTERN A a RETURN a.x AS v, a.y AS V", "stands twice"),
    ("PATTERN A a RETURN a.x AS end_ts", 'every match has its own "end_ts"'),
    ("PATTERN A a WHERE [source] RETURN a.x AS source", '[source] already gives every match its "source"'),
    ("PATTERN AND(A a, B b) WITHIN 1 s SELECT merged RETURN a.x AS x", "RETURN uses aggregates only"),
    ("PATTERN AND(A a, B b) WITHIN 1 s SELECT merged RETURN duration(a, b) AS x", "RETURN uses aggregates only"),
    ("PATTERN AND(A[2] a, B b) WITHIN 1 s SELECT cumulative RETURN a[1].x AS x", "RETURN uses aggregates only"),
    ("PATTERN AND(A a, B b) WHERE sum(a.x) > 1 WITHIN 1 s SELECT merged", "so it has no aggregate"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(text: str, message: str) -> None:
    shown = refused(text)
    assert message in shown
    assert shown.rstrip().endswith("^")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(late l, A a) WITHIN 1 s SELECT recent", "may only SELECT all and CONSUME none"),
        ("PATTERN SEQ(late l, A a) WITHIN 1 s CONSUME used", "may only SELECT all and CONSUME none"),
        ("PATTERN SEQ(A a, !late l, B b) WITHIN 1 s", "may not be negated"),
        ("PATTERN SEQ(A a, late+ l, B b) WITHIN 1 s", "may not be grouped"),
        ("PATTERN SEQ(A a, !ANY(B, late) l, B b) WITHIN 1 s", "may not be negated"),
        ("PATTERN SEQ(A a, !later l, B b) WITHIN 1 s", "may not be negated"),
    ],
)
def test_a_reference_to_a_postponed_query_is_refused_where_it_must_be_complete(text: str, message: str) -> None:
    assert message in refused(text, late=POSTPONED, later="PATTERN late l RETURN l.x AS x")


ALLOWED = [
    "PATTERN A a",
    "PATTERN OR(A a, OR(B b, C))",
    "PATTERN SEQ(!A a, B b, !C c) WITHIN 1 s",
    "PATTERN SEQ(!A a, B+ b, C c) WITHIN 1 s",
    "PATTERN SEQ(A a, !B b, C* c, !B d, A e) WITHIN 1 s",
    "PATTERN AND(A a, !B b, !C c) WITHIN 1 s SELECT recent",
    "PATTERN SEQ(A a, SEQ(B b, !C c, A d) WITHIN 1 s, OR(B e, SEQ(A f, C* g, A h))) WITHIN 1 min CONSUME used",
    "PATTERN SEQ(A+ a, EVERY(1 day) t) WITHIN 1 day RETURN t.ts AS day, duration(a[1], t) AS seconds",
    "PATTERN SEQ(A[3] a, B b) WHERE a.x = b.x AND a[1].y < a[3].y AND max(a.x) > b.x WITHIN 1 s RETURN a[2].x AS x",
    "PATTERN SEQ(A a, B+ g, C c) WHERE g.x = a.x AND g.x < c.x AND count(g) > avg(g.y) WITHIN 1 s",
    "PATTERN SEQ(A a, B+ g, !C n, A z) WHERE n.x > sum(g.x) AND n.x = n.only_c AND duration(a, n) < 5 WITHIN 1 s",
    "PATTERN SEQ(A a, B+ g, A m, B+ h, A z) WHERE count(g) = count(h) AND g[1].x = h[1].x WITHIN 1 s",
    "PATTERN ANY(A, C) a WHERE a.only_c = 1 AND a.y > 1",
    "PATTERN AND(A a, B[2] b) WITHIN 1 s SELECT merged RETURN count(a) AS n, first(a).x + sum(b.x) AS x",
    "PATTERN late[2] l WHERE [source] WITHIN 1 hour RETURN l[1].x AS x",
    "PATTERN A a WHERE a.at > '2026-01-01' AND a.at BETWEEN '2026-01-01T00:00:00Z' AND a.ts AND a.at IN ('2026-01-02')",
    "PATTERN TIMES_DF(3, ANY(A, B)(x > 1) a, id) WITHIN 1 min",
    "PATTERN A a RETURN a.source AS source",
    "PATTERN A[2] r WHERE NOT FORALL i IN 1..1 (NOT r[i+1].x > r[i].x AND FORALL j IN 1..2 (r[j].x = 1)) WITHIN 1 s",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_allowed(text: str) -> None:
    assert checked(text, late=POSTPONED).query is not None


@pytest.mark.parametrize(
    ("text", "postponed"),
    [
        ("PATTERN SEQ(A a, !B b) WITHIN 1 s", True),
        ("PATTERN SEQ(A a, B+ b) WITHIN 1 s", True),
        ("PATTERN SEQ(A a, B* b, !C c) WITHIN 1 s", True),
        ("PATTERN AND(A a, !B b) WITHIN 1 s", True),
        ("PATTERN SEQ(!B b, A a) WITHIN 1 s", False),
        ("PATTERN SEQ(B+ b, A a) WITHIN 1 s", False),
        ("PATTERN SEQ(A a, !B b, C c) WITHIN 1 s", False),
        ("PATTERN SEQ(late l, A a) WITHIN 1 s", False),
    ],
)
def test_postponed(text: str, postponed: bool) -> None:
    assert checked(text, late=POSTPONED).postponed is postponed
