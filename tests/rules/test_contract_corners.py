"""Sentences of the contract that stand at the edge of a rule: one case each, for both evaluators."""

import pytest

import cep_core
from tests import naive
from tests.harness import EVALUATORS, SECOND, Case, case, check, engine_rows, events_from, naive_rows, table_of

pytestmark = pytest.mark.core

SEQ = "PATTERN SEQ(A a, B b) "
TIMER = "timer:1970-01-01T00:00:0{}.000000Z"
DEEP = "distance(a.x, b.x, a.x, " * 50 + "a.x + b.x" + ")" * 50  # 150 values wait for the innermost

TIMES = (
    case("ts of an interval is its end", "A1-3 A3", "PATTERN A a WHERE a.ts = a.end_ts AND a.start_ts < a.ts",
         "a=A1-3"),
    case("a moment without a zone is UTC", "A1 A2", "PATTERN A a WHERE a.ts >= '1970-01-01T00:00:02'", "a=A2"),
    case("a moment with a zone", "A1 A2", "PATTERN A a WHERE a.ts < '1970-01-01T01:00:02+01:00'", "a=A1"),
    case("a moment on the left", "A1 A2", "PATTERN A a WHERE '1970-01-01T00:00:02Z' > a.ts", "a=A1"),
    case("moments in a list", "A1 A2", "PATTERN A a WHERE a.ts NOT IN ('1970-01-01T00:00:02Z')", "a=A1"),
    case("of two events", "A1 B2 B3", SEQ + "WHERE b.ts BETWEEN a.ts AND '1970-01-01T00:00:02Z' WITHIN 9 s",
         "a=A1 b=B2"),
    case("leading negation under TIES ordered: the same time, by the tie", "B3#1 A3#2", "PATTERN SEQ(!B n, A a) "
         "WITHIN 5 s TIES ordered"),
    case("and not by the tie", "B3#2 A3#1", "PATTERN SEQ(!B n, A a) WITHIN 5 s TIES ordered", "a=A3"),
    case("trailing negation under TIES ordered", "A3#1 B3#2", "PATTERN SEQ(A a, !B n) WITHIN 5 s TIES ordered"),
    case("trailing negation of a touching interval", "A1-3 B3-4", "PATTERN SEQ(A a, !B n) WITHIN 5 s TIES ordered"),
    case("and apart", "A1-3 B3-4", "PATTERN SEQ(A a, !B n) WITHIN 5 s", "a=A1-3 @ 6"),
    case("a leading group under TIES ordered", "B3#1 B3~x#3 A3#2", "PATTERN SEQ(B* g, A a) WITHIN 5 s TIES ordered",
         "g=B3 a=A3"),
    case("a trailing group under TIES ordered", "A3#2 B3#1 B3~x#3", "PATTERN SEQ(A a, B* g) WITHIN 5 s TIES ordered",
         "a=A3 g=B3~x"),
    case("a window's events share a time", "A1#1 A1~x#2 B1#3", "PATTERN SEQ(A[2] w, B b) WITHIN 5 s TIES ordered",
         "w=A1,A1~x b=B1"),
    case("EVERY before the epoch", "A1", "PATTERN SEQ(EVERY(4 s) t, A a) WITHIN 6 s",
         "t=timer:1969-12-31T23:59:56.000000Z a=A1", f"t={TIMER.format(0)} a=A1"),
    case("an instance precedes when each member precedes each", "A1-6 B2 C4 D5 C8 D9",
         "PATTERN SEQ(AND(A a, B b), AND(C c, D d)) WITHIN 9 s", "a=A1-6 b=B2 c=C8 d=D9"),
)  # fmt: skip

VALUES = (
    case("an int beside a float is a float", "A1{x=9007199254740993}", "PATTERN A a WHERE a.x = 9007199254740992.0",
         "a=A1"),
    case("of two events too", "A1{x=9007199254740993} B2{f=9007199254740992.0}", SEQ + "WHERE a.x = b.f WITHIN 9 s",
         "a=A1 b=B2"),
    case("both are exact as ints", "A1{x=9007199254740993} B2{x=9007199254740992}", SEQ + "WHERE a.x > b.x WITHIN 9 s",
         "a=A1 b=B2"),
    case("a zero has one partition, whatever its sign", "A1{f=0.0} B2{f=-0.0}", SEQ + "WHERE [f] WITHIN 9 s",
         "a=A1 b=B2"),
    case("and equals itself", "A1{f=0.0} B2{f=-0.0}", SEQ + "WHERE a.f = b.f WITHIN 9 s", "a=A1 b=B2"),
    case("LIKE escapes with a backslash", "A1{s=a%b} A2{s=axb}", r"PATTERN A a WHERE a.s LIKE 'a\%b'", "a=A1"),
    case("LIKE of two events", "A1{s=a} B2{s=_}", SEQ + r"WHERE concat(a.s, b.s) LIKE 'a\_' WITHIN 9 s", "a=A1 b=B2"),
    case("texts compare by their bytes", "A1{s=\u00e9} A2{s=z}", "PATTERN A a WHERE a.s > 'z'", "a=A1"),
    case("of two events by their bytes", "A1{s=\uff5e} B2{s=\U0001f600}", SEQ + "WHERE a.s < b.s WITHIN 9 s",
         "a=A1 b=B2"),
    case("a deep expression", "A1{x=1} B2{x=0}", SEQ + f"WHERE {DEEP} = 1 WITHIN 9 s", "a=A1 b=B2"),
    case("a long chain of functions", "A1{x=1} B2{x=null}",
         SEQ + f"WHERE {'coalesce(b.x, ' * 30}a.x{')' * 30} = 1 WITHIN 9 s", "a=A1 b=B2"),
    case("a constant condition", "A1", "PATTERN A a WHERE 1 < 2", "a=A1"),
    case("one that is false", "A1", "PATTERN A a WHERE NULL = NULL"),
    case("IS NULL of a sum with NULL", "A1{x=null,y=1}", "PATTERN A a WHERE (a.x + a.y) IS NULL", "a=A1",
         schema={"A": {"x": "int", "y": "int"}}),
    case("names with other characters", "A1 B2",
         "PATTERN SEQ(`A` `the first`, B b) WHERE `the first`.ts < b.ts WITHIN 9 s", "the first=A1 b=B2"),
)  # fmt: skip

BOUND = (
    case("no event twice over a window and an element", "A1 A2", "PATTERN AND(A[2] w, A a) WITHIN 9 s"),
    case("three are enough", "A1 A2 A3", "PATTERN SEQ(A[2] w, A a) WITHIN 9 s", "w=A1,A2 a=A3"),
    case("a partition without an event has no match, whatever its timers", "A1@s1 B9@s2",
         "PATTERN SEQ(A a, EVERY(4 s) t) WHERE [source] WITHIN 4 s", f"a=A1 t={TIMER.format(4)}"),
    case("a negation in AND with a condition on an element", "A3{x=1} B4{x=2} C6", "PATTERN AND(A a, !B b, C c) "
         "WHERE b.x = a.x WITHIN 5 s", "a=A3 c=C6 @ 8"),
    case("an answer under two alternatives of WHERE counts once", "A1{x=1,y=1}", "PATTERN A a WHERE a.x = 1 OR a.y = 1",
         "a=A1"),
    case("each choice of OR is an answer of its own, though they bind one event", "A1{x=1}",
         "PATTERN OR(A a, A b) WHERE a.x = 1 OR b.x = 1", "a=A1", "b=A1"),
    case("merged takes an event for several elements", "A1 A2 A3", "PATTERN SEQ(A a, A b) WITHIN 9 s SELECT merged "
         "RETURN count(a) AS n, sum(a.x) AS s", "a=A1 b=A2 -> n=1 s=null", "a=A1,A2 b=A3 -> n=2 s=null",
         schema={"A": {"x": "int"}}),
    case("a group may hold what another answer binds", "A1 B2 B3 C4", "PATTERN SEQ(A a, B* g, B b, C c) WITHIN 9 s",
         "a=A1 b=B2 c=C4", "a=A1 g=B2 b=B3 c=C4"),
    case("ANY in a window", "A1 B2 C3", "PATTERN ANY(A, B, C)[2] w WITHIN 1 s", "w=A1,B2", "w=B2,C3"),
    case("an interval longer than the window", "A1-9", "PATTERN A a WITHIN 5 s"),
)  # fmt: skip


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", TIMES + VALUES + BOUND, ids=lambda one: one.name)
def test_corner(evaluator: str, one: Case) -> None:
    check(evaluator, one)


CONSUMING = {
    "older": "PATTERN SEQ(A a, B b) WITHIN 9 s CONSUME older",
    "used, by source": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 9 s CONSUME used",
    "recent and older": "PATTERN SEQ(A a, B b) WITHIN 9 s SELECT recent CONSUME older",
    "cumulative": "PATTERN SEQ(A a, B b) WITHIN 9 s SELECT cumulative",
    "with a timer": "PATTERN SEQ(A a, B b, EVERY(1 s) t) WITHIN 9 s SELECT earliest CONSUME used",
    "with a group": "PATTERN SEQ(A a, A* g, B b) WITHIN 9 s SELECT earliest CONSUME used",
}


@pytest.mark.parametrize("cut", [2, 4, 5])
@pytest.mark.parametrize("query", CONSUMING.values(), ids=CONSUMING)
def test_state_carries_over_any_cut(query: str, cut: int) -> None:
    """The matches of two runs are those of one; and of `over`, which refers to them, too."""
    events = events_from("A1 A2@s2 B3 B4@s2 A4~x B5 B6@s2 A6~x B7")
    queries = {"q": query, "over": "PATTERN SEQ(q x, q y) WITHIN 9 s"}
    whole = naive_rows(naive.evaluate(events, queries))
    table = table_of(events)
    first, state = cep_core.mine_with_state(table, queries, end=cut * SECOND)
    second, _ = cep_core.mine_with_state(table, queries, start=cut * SECOND, state=state)
    assert sorted([*engine_rows(first), *engine_rows(second)], key=repr) == engine_rows(cep_core.mine(table, queries))
    assert {row.query_id for row in whole} >= {"q"}
    assert len(engine_rows(first)) + len(engine_rows(second)) == len(whole)
    forgotten, _ = cep_core.mine_with_state(table, queries, start=cut * SECOND)
    assert cut != 5 or engine_rows(forgotten) != engine_rows(second), "without the state something else is found"
