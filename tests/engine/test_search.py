"""Cases that the search once got wrong, and what it promises beside the meaning: chunks, limits, no enumeration."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

import cep_core
from cep_core.errors import LimitError
from tests.harness import events_from, run_engine, run_naive

pytestmark = pytest.mark.core

ONCE_WRONG = {
    "an index reaches over partitions": (
        "D13{x=0} C18{x=0} D5{x=1}",
        "PATTERN SEQ(D d, C e) WHERE [x] AND d.source = e.source WITHIN 10 s",
    ),
    "an unbound variable beside a window": (
        "D1 B2 B4",
        "PATTERN SEQ(OR(D b, D(k != false) c), B[2] d) WHERE c.s = d.s WITHIN 7 s",
    ),
    "a group with a consumed event": (
        "C9-13 D13-17 D18-19",
        "PATTERN SEQ(C{0,1} c, D b) WITHIN 16 s CONSUME older",
    ),
    "two windows looked up by each other": (
        "A1{x=1} A2{x=2} B3{x=1} B4{x=2} B5{x=3}",
        "PATTERN SEQ(A[2] v, B[2] w) WHERE FORALL i IN 1..2 (v[i].x = w[i].x) WITHIN 9 s",
    ),
    "new strings out of two events": (
        "A1{s=a} B2{s=b} A3{s=b} B4{s=ab} C5{s=ab} C6{s=bab}",
        "PATTERN SEQ(A a, B b, C c) WHERE concat(a.s, b.s) = c.s AND upper(concat(a.s, b.s)) >= 'AB' WITHIN 9 s",
    ),
}


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_case_once_wrong(name: str) -> None:
    events, query = ONCE_WRONG[name]
    schema = {c: {"x": "int", "s": "string", "k": "bool"} for c in "ABCD"}
    expected = run_naive(events_from(events), {"q": query}, schema=schema)
    assert expected
    assert run_engine(events_from(events), {"q": query}, schema=schema) == expected


def _dense(count: int) -> pa.Table:
    numbers = list(range(count))
    return pa.table(
        {
            "event_id": [f"e{n:05d}" for n in numbers],
            "source": ["s"] * count,
            "event_class": ["A"] * count,
            "ts": [n * 1_000_000 for n in numbers],
        }
    )


def test_an_explosive_query_comes_in_chunks_that_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cep_core.run.ANSWERS_PER_CHUNK", 500)
    monkeypatch.setattr("cep_core.engine.matcher.ROOM", 64)
    monkeypatch.setattr("cep_core.engine.matcher.MOST_ROOM", 64)
    query = {"q": "PATTERN A[4] a WITHIN 14 s"}
    whole = cep_core.mine(_dense(40), query)
    parts = list(cep_core.mine_chunks(_dense(40), query))
    assert len(parts) > 10
    assert max(len(part) for part in parts) < 1000
    ids = [row for part in parts for row in part.column("match_id").to_pylist()]
    assert sorted(ids) == sorted(whole.column("match_id").to_pylist())
    assert len(set(ids)) == len(ids) == 26 * 364 + 1001  # 3 of the next 14 events; then those near the end


@pytest.mark.parametrize("limit", [100, {"q": 100}])
def test_a_query_over_its_limit_is_named_with_its_partition(limit: object) -> None:
    query = {"q": "PATTERN A[3] a WHERE [source] WITHIN 9 s"}
    with pytest.raises(LimitError, match="query q: more than 100 answers in partition source=s"):
        cep_core.mine(_dense(40), query, limit=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("select", ["recent", "earliest"])
def test_selecting_one_answer_does_not_enumerate_the_others(select: str) -> None:
    """20 events of each of 8 elements: 20 to the power of 7 answers for the last event, of which one is kept."""
    count = 160
    table = _dense(count).set_column(2, "event_class", pa.array([f"A{n // 20}" for n in range(count)]))
    elements = ", ".join(f"A{n} v{n}" for n in range(8))
    query = f"PATTERN SEQ({elements}) WHERE v0.source = v7.source WITHIN 1 hour SELECT {select}"
    assert len(cep_core.mine(table, {"q": query})) == 20


def test_a_reader_of_chunks_keeps_its_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cep_core.run.ANSWERS_PER_CHUNK", 500)
    seen = [gc.isenabled() for _ in cep_core.mine_chunks(_dense(60), {"q": "PATTERN A[3] a WITHIN 20 s"})]
    assert len(seen) > 1
    assert all(seen)
    assert gc.isenabled()


def test_windows_of_a_family_consume_alone_and_together() -> None:
    """Lists of different sizes, bins that fill, empty and are consumed, over many partitions."""
    random = np.random.default_rng(5)
    count = 3000
    events = pa.table(
        {
            "event_id": [f"e{n:05d}" for n in range(count)],
            "source": [f"s{n}" for n in random.integers(0, 3, count)],
            "event_class": [f"T{n}" for n in random.choice(5, count, p=[0.3, 0.25, 0.2, 0.15, 0.1])],
            "ts": random.permutation(count) // 2 * 1_000_000,
            "x": [None if n == 3 else int(n) for n in random.integers(0, 4, count)],
            "y": random.integers(0, 50, count),
        }
    )
    queries = {}
    for select in ("all", "recent", "earliest", "merged"):
        for consume in ("none", "used", "older"):
            for number, (a, b, c) in enumerate([(0, 1, 2), (1, 0, 3), (2, 1, 0), (4, 0, 1)]):
                queries[f"{select}_{consume}_{number}"] = (
                    f"PATTERN SEQ(T{a}[2] a, T{b} b, T{c} c) WHERE a.x = b.x AND b.y < c.y AND [source] "
                    f"WITHIN {50 + number} s SELECT {select} CONSUME {consume}"
                )
    together = cep_core.mine(events, queries)
    alone = pa.concat_tables(cep_core.mine(events, {name: text}) for name, text in queries.items())
    assert together.equals(alone)
    without_index = {name: text.replace("a.x = b.x", "a.x + 0 = b.x") for name, text in queries.items()}
    assert together.equals(cep_core.mine(events, without_index))
    found = set(together["query_id"].to_pylist())
    assert len(found) == len(queries)
