"""Groups by key, and tasks from counts: every event goes wherever a match may need it, every match is found once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cep_core.language import check
from jobs.distribute import Group, Layout, cut_times, group_queries, lay_out

pytestmark = pytest.mark.core

SCHEMA = {name: {"x": "int", "y": "int", "user": "string", "f": "float"} for name in "ABC"}


def groups_of(**texts: str) -> dict[str, Group]:
    queries = check(texts, SCHEMA)
    return {name: group for group in group_queries(texts, queries, SCHEMA) for name in group.targets}


def test_source_comes_first_and_other_keys_by_the_queries_they_serve() -> None:
    found = groups_of(
        one="PATTERN SEQ(A a, B b) WHERE [user, source] WITHIN 1 s",
        two="PATTERN SEQ(A a, B b) WHERE [user] WITHIN 1 s",
        three="PATTERN SEQ(B a, C b) WHERE [user, x] WITHIN 1 s",
        four="PATTERN SEQ(B a, C b) WITHIN 1 s",
    )
    assert set(found["one"].key_of.values()) == {"source"}
    assert found["two"] is found["three"]
    assert found["two"].key_of == {"A": "user", "B": "user", "C": "user"}
    assert found["four"].key_of == {}


def test_a_reference_shares_calls_only_where_it_carries_the_key() -> None:
    found = groups_of(
        base="PATTERN SEQ(A a, B b) WHERE [user] WITHIN 1 s RETURN a.user AS user",
        other="PATTERN SEQ(A a, B b) WHERE [user] WITHIN 1 s RETURN concat(a.user, 'x') AS user",
        same="PATTERN SEQ(base p, C c) WHERE [user] WITHIN 1 s",
        different="PATTERN SEQ(other p, C c) WHERE [user] WITHIN 1 s",
    )
    assert found["same"] is found["base"]
    assert set(found["same"].key_of.values()) == {"user"}
    assert found["different"].key_of == {}
    assert found["different"].queries == ("different", "other")


def test_equalities_that_chain_over_all_elements_are_a_key() -> None:
    found = groups_of(
        chain="PATTERN SEQ(A a, B b, !C c) WHERE a.x = b.y AND c.x = a.x AND a.f > 1 WITHIN 1 s",
        through_negation="PATTERN SEQ(A a, !C c, B b) WHERE a.x = c.x AND c.x = b.x WITHIN 1 s",
        in_one_disjunct="PATTERN SEQ(A a, B b) WHERE a.x = b.x OR a.y = 1 WITHIN 1 s",
        two_ways="PATTERN SEQ(A a, A b) WHERE a.x = b.y WITHIN 1 s",
        kinds="PATTERN SEQ(A a, B b) WHERE a.x = b.f WITHIN 1 s",
        older="PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 1 s SELECT recent CONSUME older",
    )
    assert found["chain"].key_of == {"A": "x", "B": "y", "C": "x"}
    for name in ("through_negation", "in_one_disjunct", "two_ways", "kinds", "older"):
        assert found[name].key_of == {}, name


def test_queries_that_consume_are_kept_apart() -> None:
    found = groups_of(
        eats="PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 s CONSUME used",
        free="PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 s",
        on_eats="PATTERN SEQ(eats a, B b) WHERE [source] WITHIN 2 s",
    )
    assert found["eats"].stateful
    assert not found["free"].stateful
    assert found["on_eats"] is not found["eats"]
    assert found["on_eats"].settle_us == 3_000_000


def tasks_of(layout: Layout, fine: int, time_us: int) -> list[int]:
    """The tasks that an event goes to, as jobs.route computes it in Spark."""
    first, strip = int(layout.first_task[fine]), int(layout.strip_of[fine])
    if strip < 0:
        return [first]
    cells = layout.slices.shape[1]

    def later(moment: int) -> int:
        return int(layout.slices[strip, min(max((moment - layout.low_us) // layout.cell_us, 0), cells - 1)])

    return list(range(first + later(time_us), first + later(time_us + layout.group.lookback_us) + 1))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_detection_has_one_task_and_that_task_gets_all_it_needs(data: st.DataObject) -> None:
    keyed = data.draw(st.booleans())
    fines, cells = (8, 6) if keyed else (1, 24)
    start, length = data.draw(st.integers(-50, 50)), data.draw(st.integers(1, 400))
    lookback, limit = data.draw(st.integers(0, 120)), data.draw(st.integers(1, 40))
    end = start + length
    group = Group(0, ("q",), ("q",), ("A",), {"A": "source"} if keyed else {}, lookback, False, 0)
    low = start - lookback
    cell = max(-(-(end - low) // cells), 1)
    events = data.draw(st.lists(st.tuples(st.integers(0, fines - 1), st.integers(low, end - 1)), max_size=120))
    counts = np.zeros((fines, cells), np.int64)
    for fine, moment in events:
        counts[fine, min((moment - low) // cell, cells - 1)] += 1
    import jobs.distribute as module

    small, module.SMALL_CALL_ROWS = module.SMALL_CALL_ROWS, 5
    try:
        layout = lay_out(group, counts, low, cell, start, end, limit, data.draw(st.integers(1, 4)), 3)
    finally:
        module.SMALL_CALL_ROWS = small
    by_number = {task.number: task for task in layout.tasks}
    assert sorted(by_number) == list(range(3, 3 + len(by_number)))
    for fine, moment in events:
        sent = tasks_of(layout, fine, moment)
        assert len(set(sent)) == len(sent)
        for detection in range(max(moment, start), min(moment + lookback, end - 1) + 1):
            owners = [
                n for n in _tasks_of_fine(layout, fine) if by_number[n].start_us <= detection < by_number[n].end_us
            ]
            assert len(owners) == 1
            assert owners[0] in sent


def _tasks_of_fine(layout: Layout, fine: int) -> list[int]:
    first, strip = int(layout.first_task[fine]), int(layout.strip_of[fine])
    return [first] if strip < 0 else list(range(first, first + int(layout.slices[strip].max()) + 1))


def test_a_hot_key_is_cut_in_time_and_the_rest_is_not() -> None:
    counts = np.full((1024, 64), 10, np.int64)
    counts[7] = 10_000
    group = Group(0, ("q",), ("q",), ("A",), {"A": "source"}, 2, False, 0)
    layout = lay_out(group, counts, 0, 1, 2, 64, 150_000, 2, 0)
    assert set(np.flatnonzero(layout.strip_of >= 0)) == {7}
    assert max(task.rows for task in layout.tasks) <= 190_000
    assert len(layout.tasks) < 20


def test_a_query_that_consumes_is_never_cut_side_by_side() -> None:
    counts = np.full((1024, 64), 10_000, np.int64)
    group = Group(0, ("q",), ("q",), ("A",), {"A": "source"}, 2, True, 0)
    assert not lay_out(group, counts, 0, 1, 2, 64, 1_000, 2, 0).sliced


def test_slices_are_as_long_as_a_window_that_is_itself_too_large() -> None:
    edges = cut_times(np.full(100, 100, np.int64), 0, 1, 20, 100, 20, 1_000)
    assert [b - a for a, b in pairwise(edges)] == [20, 20, 20, 20]
