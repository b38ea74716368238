"""Plan-based composite event detection: the running person (2.2) and the load spike (5.4), with the operators of
2.2.
"""

import pytest

from tests.harness import EVALUATORS, SECOND, case, check

pytestmark = [pytest.mark.core, pytest.mark.parametrize("evaluator", EVALUATORS)]
MINUTE = 60 * SECOND


def test_running_person(evaluator: str) -> None:
    """seq(PD1, PD2; 3) where the person is the same and the distance at least 12."""
    query = (
        "PATTERN SEQ(Person a, Person b) WHERE a.person_id = b.person_id AND distance(a.x, a.y, b.x, b.y) >= 12 WITHIN "
        "3 s "
        "RETURN b.x AS x, b.y AS y, a.person_id AS person_id"
    )
    events = (
        "Person0{person_id=1,x=0.0,y=0.0} Person1{person_id=1,x=12.0,y=0.0} Person2{person_id=2,x=50.0,y=50.0} "
        "Person3{person_id=1,x=12.0,y=9.0} Person4{person_id=1,x=12.0,y=11.9}"
    )
    expected = ("a=Person0 b=Person1 -> person_id=1 x=12.0 y=0.0", "a=Person0 b=Person3 -> person_id=1 x=12.0 y=9.0")
    check(evaluator, case("running", events, query, *expected))


def test_load_spike(evaluator: str) -> None:
    """More than half of the nodes idle, then more than half active, within 30 minutes: aggregated primitives."""
    query = (
        "PATTERN SEQ(MostlyIdle i, MostlyActive a) WHERE i.share > 0.5 AND a.share > 0.5 WITHIN 30 min "
        "RETURN duration(i, a) AS seconds"
    )
    events = "MostlyIdle0{share=0.6} MostlyIdle20{share=0.4} MostlyActive25{share=0.7} MostlyActive31{share=0.9}"
    check(evaluator, case("spike", events, query, "i=MostlyIdle0 a=MostlyActive25 -> seconds=1500.0", unit=MINUTE))


def test_spike_as_a_query_over_queries(evaluator: str) -> None:
    """The counts themselves as queries: three of five nodes, pairwise different, in one minute."""
    idle = "PATTERN TIMES_DF(3, Idle n, node) WITHIN 1 min SELECT merged RETURN count(n) AS nodes"
    active = "PATTERN TIMES_DF(3, Active n, node) WITHIN 1 min SELECT merged RETURN count(n) AS nodes"
    spike = "PATTERN SEQ(idle i, active a) WITHIN 30 min RETURN i.nodes AS idle, a.nodes AS active"
    events = (
        "Idle0{node=1} Idle0.2{node=2} Idle0.3{node=2} Idle0.5{node=3} Active0.7{node=4} "
        "Active9{node=1} Active9.1{node=2} Active9.2{node=3} Active9.3{node=4}"
    )
    rows = EVALUATORS[evaluator]
    from tests.harness import events_from

    found = rows(events_from(events, MINUTE), {"idle": idle, "active": active, "spike": spike})
    spikes = [row for row in found if row.query_id == "spike"]
    assert [dict(row.fields) for row in spikes] == [{"idle": "4", "active": "3"}, {"idle": "4", "active": "4"}]
    assert [(row.start_ts, row.end_ts) for row in spikes] == [(0, round(9.2 * MINUTE)), (0, round(9.3 * MINUTE))]


def test_negation_inside_and_looks_a_window_around(evaluator: str) -> None:
    """2.2 (i): no such event from max(end) - w to min(end) + w."""
    query = "PATTERN AND(A a, B b, !C c) WITHIN 5 s"
    for events, found in (
        ("C0 A5 B7", True),
        ("C3 A5 B7", False),
        ("A5 C6 B7", False),
        ("A5 B7 C10", False),
        ("A5 B7 C11", True),
    ):
        check(evaluator, case(events, events, query, *(("a=A5 b=B7 @ 10",) if found else ())))
