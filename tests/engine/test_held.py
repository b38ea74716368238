"""Answers that are held until SELECT and CONSUME can judge them: the limit names them, memory stays small."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest

import cep_core
from cep_core.errors import LimitError
from tests.harness import run_engine, run_naive

pytestmark = pytest.mark.core

HELD = {
    "a trailing group, recent": "PATTERN SEQ(A a, A b, B* g) WHERE [source] WITHIN 60 s SELECT recent",
    "a trailing group, merged": "PATTERN SEQ(A a, A b, B* g) WHERE [source] WITHIN 60 s SELECT merged",
    "a timer, consuming": "PATTERN SEQ(A a, A b, EVERY(70 s) t) WHERE [source] WITHIN 80 s CONSUME used",
    "a timer, earliest": "PATTERN AFTER(SEQ(A a, A b), 2 s) t WHERE [source] WITHIN 80 s SELECT earliest",
}


def _dense(count: int, sources: int = 1) -> pa.Table:
    """Events of A, one a second in each source: count * (count - 1) / 2 pairs a source."""
    total = count * sources
    return pa.table({
        "event_id": [f"a{number}" for number in range(total)],
        "source": [f"s{number % sources}" for number in range(total)],
        "event_class": ["A"] * total,
        "ts": [number // sources * 1_000_000 for number in range(total)],
    })  # fmt: skip


@pytest.mark.parametrize("query", HELD.values(), ids=HELD)
def test_the_limit_holds_for_answers_that_wait(query: str) -> None:
    """It names the query, the partition and the count; one answer more is allowed by a limit one higher."""
    events = _dense(10)
    with pytest.raises(LimitError, match="query q: more than 44 answers in partition source=s0"):
        cep_core.mine(events, {"q": query}, limit=44)
    with pytest.raises(LimitError, match="query q: more than 44 answers in partition source=s0"):
        list(cep_core.mine_chunks(events, {"q": query}, limit={"q": 44}))
    assert cep_core.mine(events, {"q": query}, limit=45).num_rows > 0


@pytest.mark.parametrize("query", HELD.values(), ids=HELD)
def test_what_waits_is_selected_as_the_contract_says(query: str) -> None:
    table = _dense(9, 2)
    events = [
        {**row, "start_ts": row["ts"], "end_ts": row["ts"], "tie": None, "attributes": {}} for row in table.to_pylist()
    ]
    assert run_engine(events, {"q": query}) == run_naive(events, {"q": query})


def test_answers_that_wait_take_little_memory() -> None:
    """Every pair waits for its timer, and is small while it waits: as values these took twice as much."""
    query = "PATTERN AFTER(SEQ(A a, A b), 2 s) t WITHIN 300 s SELECT recent"
    events = _dense(250)
    cep_core.mine(_dense(5), {"q": query})
    tracemalloc.start()
    found = cep_core.mine(events, {"q": query}).num_rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found > 0
    assert peak < 22e6
