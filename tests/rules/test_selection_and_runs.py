"""SELECT, CONSUME, references between queries, runs and their state (language contract, Matches and Runs)."""

import pytest

import cep_core
from cep_core.errors import EventError, QueryError
from tests import naive
from tests.harness import EVALUATORS, SECOND, Case, case, check, engine_rows, events_from, naive_rows, table_of

pytestmark = pytest.mark.core

SEQ = "PATTERN SEQ(A a, B b) WITHIN 9 s "
SELECTION = (
    case(
        "recent: the last element decides first",
        "A1 A2 B3 B4 C5",
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 s SELECT recent",
        "a=A2 b=B4 c=C5",
    ),
    case(
        "earliest: the first element decides first",
        "A1 A2 B3 B4 C5",
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 s SELECT earliest",
        "a=A1 b=B3 c=C5",
    ),
    case("per completing member", "A1 B2 B3", SEQ + "SELECT recent", "a=A1 b=B2", "a=A1 b=B3"),
    case(
        "recent by pattern, not by time, in an AND",
        "A1 B2 A3 B4 C5",
        "PATTERN AND(B b, A a, C c) WITHIN 9 s SELECT recent",
        "b=B4 a=A3 c=C5",
    ),
    case(
        "what completes an AND may be any element",
        "A1 B2 A3",
        "PATTERN AND(A a, B b) WITHIN 9 s SELECT recent",
        "a=A1 b=B2",
        "a=A3 b=B2",
    ),
    case(
        "conditions come first",
        "A1{x=1} A2{x=2} B3{x=1}",
        "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 9 s SELECT recent",
        "a=A1 b=B3",
    ),
    case(
        "OR: a list that is the start of the other is smaller",
        "A1 B2",
        "PATTERN OR(B b, SEQ(A a, B c)) WITHIN 9 s SELECT earliest",
        "a=A1 c=B2",
    ),
    case("OR: recent", "A1 B2", "PATTERN OR(B b, SEQ(A a, B c)) WITHIN 9 s SELECT recent", "a=A1 c=B2"),
    case(
        "merged: all events of each element",
        "A1 A2 B3 B4 C5",
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 s SELECT merged RETURN count(a) AS n, count(b) AS m",
        "a=A1,A2 b=B3,B4 c=C5 @ 5 [1..5] -> m=2 n=2",
    ),
    case(
        "merged: an event in several elements",
        "A1 A2 A3",
        "PATTERN AND(A a, A b) WITHIN 9 s SELECT merged",
        "a=A1,A2 b=A1,A2",
        "a=A1,A2,A3 b=A1,A2,A3",
    ),
    case(
        "merged and postponed",
        "A1 A2 B3",
        "PATTERN SEQ(A a, B b, !C c) WITHIN 5 s SELECT merged",
        "a=A1,A2 b=B3 @ 8 [1..3]",
    ),
    case(
        "CONSUME used: all answers of one completing member stay",
        "A1 A2 B3 B4",
        SEQ + "CONSUME used",
        "a=A1 b=B3",
        "a=A2 b=B3",
    ),
    case(
        "CONSUME older: nothing at or before an earlier match",
        "A1 B2 A3 B4",
        SEQ + "CONSUME older",
        "a=A1 b=B2",
        "a=A3 b=B4",
    ),
    case(
        "CONSUME older drops what used would keep",
        "A1 A2 B3 B4",
        "PATTERN SEQ(A a, B b) WITHIN 9 s SELECT recent CONSUME older",
        "a=A2 b=B3",
    ),
    case(
        "CONSUME used would keep it",
        "A1 A2 B3 B4",
        "PATTERN SEQ(A a, B b) WITHIN 9 s SELECT recent CONSUME used",
        "a=A2 b=B3",
        "a=A1 b=B4",
    ),
    case("CONSUME comes before SELECT", "A1 A2 B3 B4 B5", SEQ + "SELECT recent CONSUME used", "a=A2 b=B3", "a=A1 b=B4"),
    case(
        "a match uses an event once for all its elements",
        "A1 A2 A3 A4",
        "PATTERN AND(A a, A b) WITHIN 9 s SELECT earliest CONSUME used",
        "a=A1 b=A2",
        "a=A3 b=A4",
    ),
    case(
        "recent under ties of time goes by the event order",
        "A1#2 A1~x#1 B2",
        SEQ + "SELECT recent",
        "a=A1 b=B2",
    ),
    case(
        "recent compares the end before the start",
        "A1-3 A0-4 B5",
        SEQ + "SELECT recent",
        "a=A0-4 b=B5",
    ),
    case(
        "the completing member is the greatest in event order: of equal ends the later start",
        "A1-5 B2-5",
        "PATTERN AND(A a, B b) WITHIN 9 s SELECT recent CONSUME older",
        "a=A1-5 b=B2-5 @ 5",
    ),
    case(
        "merged under OR binds each alternative",
        "A1 B2 C3",
        "PATTERN SEQ(OR(A a, B b), C c) WITHIN 9 s SELECT merged RETURN count(a) AS n, count(b) AS m",
        "a=A1 b=B2 c=C3 -> m=1 n=1",
    ),
    case(
        "cumulative: what was merged is used",
        "A1 A2 B3 A4 B5",
        SEQ + "SELECT cumulative",
        "a=A1,A2 b=B3",
        "a=A4 b=B5",
    ),
    case(
        "CONSUME older with SELECT all keeps all answers of one completing member",
        "A1 A2 B3 B4",
        SEQ + "SELECT all CONSUME older",
        "a=A1 b=B3",
        "a=A2 b=B3",
    ),
    case(
        "per partition",
        "A1@s1 B2@s1 A1~2@s2 B3@s2",
        "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 9 s CONSUME older",
        "a=A1 b=B2",
        "a=A1~2 b=B3",
    ),
)

PAIR = "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 5 s RETURN a.x AS x"
REFERENCES = (
    case(
        "a match is an event",
        "A1{x=4} B2 C3",
        "PATTERN SEQ(pair p, C c) WITHIN 9 s RETURN p.x AS x, duration(p, c) AS d",
        "p=pair(A1,B2) c=C3 @ 3 [1..3] -> d=1.0 x=4",
        others={"pair": PAIR},
    ),
    case(
        "its class is the query's id",
        "A1{x=4} B2 C3",
        "PATTERN SEQ(ANY(pair, C) p, C c) WHERE p.event_class = 'pair' WITHIN 9 s RETURN length(p.event_id) AS n",
        "p=pair(A1,B2) c=C3 -> n=32",
        others={"pair": PAIR},
    ),
    case(
        "a field that the other class of ANY does not have",
        "A1{x=4} B2 D3 C4",
        "PATTERN SEQ(ANY(pair, D) p, C c) WHERE p.y = 5 WITHIN 9 s",
        "p=D3 c=C4",
        others={"pair": PAIR.replace("AS x", "AS y")},
        schema={"A": {"x": "int"}, "B": {}, "C": {}, "D": {}},
    ),
    case(
        "a window of matches, which may share events",
        "A1{x=1} B2 B3",
        "PATTERN pair[2] p WITHIN 9 s RETURN sum(p.x) AS s",
        "p=pair(A1,B2),pair(A1,B3) [1..3] -> s=2",
        others={"pair": PAIR},
    ),
    case(
        "what SELECT and CONSUME of the other leave",
        "A1{x=1} A1.5{x=2} B2 B3 C4",
        "PATTERN SEQ(pair p, C c) WITHIN 9 s RETURN p.x AS x",
        "p=pair(A1.5,B2) c=C4 -> x=2",
        "p=pair(A1,B3) c=C4 -> x=1",
        others={"pair": PAIR.replace("RETURN", "SELECT recent CONSUME used RETURN")},
    ),
    case(
        "a field may be NULL",
        "A1{x=null} B2 C3",
        "PATTERN SEQ(pair p, C c) WHERE p.x IS NULL WITHIN 9 s",
        "p=pair(A1,B2) c=C3",
        others={"pair": PAIR},
        schema={"A": {"x": "int"}, "B": {}, "C": {}},
    ),
    case(
        "a reference to a reference that is late",
        "A1 B2 C3 D4",
        "PATTERN SEQ(second s, D d) WITHIN 9 s",
        "s=second(late(A1,B2),C3) d=D4 @ 6 [1..4]",
        others={"late": "PATTERN SEQ(A a, B b, !E e) WITHIN 5 s", "second": "PATTERN SEQ(late p, C c) WITHIN 9 s"},
    ),
    case(
        "it spans from its start to its end",
        "A1{x=4} C1.5 B2",
        "PATTERN SEQ(C c, pair p) WITHIN 9 s",
        others={"pair": PAIR},
    ),
    case(
        "it has a source if it tests it",
        "A1@s1{x=4} B2@s1 C3@s2 C4@s1",
        "PATTERN SEQ(pair p, C c) WHERE [source] WITHIN 9 s",
        "p=pair(A1,B2) c=C4",
        others={"pair": PAIR},
    ),
    case(
        "its fields meet conditions",
        "A1{x=4} A1.5{x=5} B2 C3{x=5}",
        "PATTERN SEQ(pair p, C c) WHERE p.x = c.x WITHIN 9 s",
        "p=pair(A1.5,B2) c=C3 [1.5..3]",
        others={"pair": PAIR},
    ),
    case(
        "it may be negated", "A1{x=4} D3 A4 B5 C6", "PATTERN SEQ(D d, !pair p, C c) WITHIN 9 s", others={"pair": PAIR}
    ),
    case(
        "and let pass",
        "A1{x=4} D3 B5 C6",
        "PATTERN SEQ(D d, !pair p, C c) WITHIN 9 s",
        "d=D3 c=C6",
        others={"pair": PAIR},
    ),
    case(
        "it may be grouped",
        "D0 A1{x=4} B2 A3{x=5} B4 C6",
        "PATTERN SEQ(D d, pair+ p, C c) WITHIN 9 s RETURN sum(p.x) AS s, count(p) AS n",
        "d=D0 p=pair(A1,B2),pair(A1,B4),pair(A3,B4) c=C6 -> n=3 s=13",
        others={"pair": PAIR},
    ),
    case(
        "detection never before a member's",
        "A1 B2 C3",
        "PATTERN SEQ(late p, C c) WITHIN 9 s",
        "p=late(A1,B2) c=C3 @ 6 [1..3]",
        others={"late": "PATTERN SEQ(A a, B b, !D d) WITHIN 5 s"},
    ),
    case(
        "of a chain of three",
        "A1{x=1} B2 C3 D4",
        "PATTERN SEQ(second s, D d) WITHIN 9 s RETURN s.y AS y",
        "s=second(pair(A1,B2),C3) d=D4 [1..4] -> y=2",
        others={"second": "PATTERN SEQ(pair p, C c) WITHIN 9 s RETURN p.x + 1 AS y", "pair": PAIR},
    ),
)

RANGES = (
    case("detected before the range", "A1 B2 B4", SEQ, "a=A1 b=B4", start=3),
    case("the start belongs to it", "A1 B3", SEQ, "a=A1 b=B3", start=3),
    case("the end does not", "A1 B3", SEQ, end=3),
    case("postponed matches belong where they are detected", "A1 B2", "PATTERN SEQ(A a, !B b) WITHIN 5 s", start=6),
    case("and are there", "A1 B7", "PATTERN SEQ(A a, !B b) WITHIN 5 s", "a=A1 @ 6", start=6, end=7),
    case("only matches of the range consume", "A1 B2 B4", SEQ + "CONSUME used", "a=A1 b=B4", start=3),
)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", SELECTION, ids=lambda one: one.name)
def test_selection(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", REFERENCES, ids=lambda one: one.name)
def test_reference(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("one", RANGES, ids=lambda one: one.name)
def test_range(evaluator: str, one: Case) -> None:
    check(evaluator, one)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_rows_that_share_an_id_and_differ_are_refused(evaluator: str) -> None:
    events = events_from("A1{x=1} A1{x=2}")
    with pytest.raises(EventError, match="A1"):
        EVALUATORS[evaluator](events, {"q": "PATTERN A a"})


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("schema", [None, {"A": {}}, {"A": {}, "B": {}}], ids=["no schema", "not declared", "declared"])
def test_an_id_that_is_a_class_is_refused(evaluator: str, schema: dict[str, dict[str, str]] | None) -> None:
    """The matches of B would be events of the class B, as others are already. A class that is only named is none."""
    queries = {"B": "PATTERN A a", "q": "PATTERN SEQ(A a, B b) WITHIN 9 s"}
    with pytest.raises(QueryError, match="B"):
        EVALUATORS[evaluator](events_from("A1 B2"), queries, schema=schema)
    if schema is None or "B" not in schema:
        assert len(EVALUATORS[evaluator](events_from("A1 A2"), queries, schema=schema)) == 3


CONSUMING = "PATTERN SEQ(A a, B b) WITHIN 9 s SELECT earliest CONSUME used"


@pytest.mark.parametrize("cut", [1, 3, 4, 5])
def test_state_carries_what_was_consumed(cut: int) -> None:
    """Chronicle over a cut: (A1 B3), (A2 B4) and no third; without the state the second run would start anew."""
    events = events_from("A1 A2 B3 B4 B5")
    whole = naive_rows(naive.evaluate(events, {"q": CONSUMING}))
    first, state = naive.evaluate_with_state(events, {"q": CONSUMING}, end=cut * SECOND)
    second, _ = naive.evaluate_with_state(events, {"q": CONSUMING}, start=cut * SECOND, state=state)
    assert naive_rows([*first, *second]) == whole
    table = table_of(events)
    found, carried = cep_core.mine_with_state(table, {"q": CONSUMING}, end=cut * SECOND)
    rest, _ = cep_core.mine_with_state(table, {"q": CONSUMING}, start=cut * SECOND, state=carried)
    assert sorted([*engine_rows(found), *engine_rows(rest)], key=repr) == whole
    assert len(whole) == 2
