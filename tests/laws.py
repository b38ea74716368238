"""Laws that hold between runs of the engine: sharing, input order, cuts and buckets must be invisible in the matches.

Enters: a random case. Leaves: two lists of matches that must be equal, the first by the plain way, the second by
another.
Always holds: the naive meaning takes no part here, except in `naive_cuts`, which holds naive.py itself to the law of
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import cep_core
from cep_core.engine.identity import match_id
from cep_core.language import parse
from tests import naive
from tests.harness import Row, engine_rows, naive_rows, run_engine, table_of
from tests.naive_answers import split_where
from tests.naive_patterns import elements_of
from tests.random_cases import RandomCase


def shared_is_alone(case: RandomCase) -> tuple[list[Row], list[Row]]:
    """What a query returns never depends on which other queries run beside it."""
    together = run_engine(case.events, case.queries, case.start, case.end, case.schema)
    alone = []
    for name in case.queries:
        own = case.only(name)
        rows = run_engine(own.events, own.queries, own.start, own.end, own.schema)
        alone += [row for row in rows if row.query_id == name]
    return sorted(alone, key=repr), together


def any_row_order(case: RandomCase) -> tuple[Any, Any]:
    """Rows in any order, and rows given twice, give the same table, byte for byte."""
    rng = Random(case.seed)
    shuffled = rng.sample(case.events, len(case.events)) + rng.sample(case.events, len(case.events) // 3)
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    tables = [
        cep_core.mine(table_of(events, case.schema), dict(case.queries), case.start, case.end, schema=declared)
        for events in (case.events, shuffled)
    ]
    return tables[0].to_pylist(), tables[1].to_pylist()


def any_cut(case: RandomCase) -> tuple[list[Row], list[Row]]:
    """For any cut of a range into runs, with the state carried, the union of the runs is the run over the whole
    range.
    """
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    table = table_of(case.events, case.schema)
    whole = engine_rows(cep_core.mine(table, dict(case.queries), schema=declared))
    rows: list[Row] = []
    state = None
    for start, end in _cuts(case):
        found, state = cep_core.mine_with_state(table, dict(case.queries), start, end, schema=declared, state=state)
        rows += engine_rows(found)
    return whole, sorted(rows, key=repr)


def naive_cuts(case: RandomCase) -> tuple[list[Row], list[Row]]:
    """The same law for naive.py."""
    events, queries = list(case.events), dict(case.queries)
    whole = naive_rows(naive.evaluate(events, queries, schema=case.schema, ids=match_id))
    matches: list[naive.Match] = []
    state = None
    for start, end in _cuts(case):
        found, state = naive.evaluate_with_state(events, queries, start, end, case.schema, state, match_id)
        matches += found
    return whole, naive_rows(matches)


def any_buckets(case: RandomCase) -> tuple[list[Row], list[Row]]:
    """Queries that all test [source] give the same matches bucket by bucket; others are left out."""
    keyed = {name: text for name, text in case.queries.items() if _by_source(text)}
    keyed = {name: text for name, text in keyed.items() if _refers_within(text, keyed, case)}
    if not keyed:
        return [], []
    whole = run_engine(case.events, keyed, case.start, case.end, case.schema)
    rows: list[Row] = []
    for source in sorted({str(event["source"]) for event in case.events}):
        bucket = [event for event in case.events if str(event["source"]) == source]
        rows += run_engine(bucket, keyed, case.start, case.end, case.schema)
    return whole, sorted(rows, key=repr)


def _cuts(case: RandomCase) -> list[tuple[int | None, int | None]]:
    rng = Random(case.seed + 1)
    first = min((event["start_ts"] for event in case.events), default=0)
    last = max((event["end_ts"] for event in case.events), default=0) + 30_000_000
    moments = sorted({rng.randrange(first, last, 500_000) for _ in range(rng.randint(1, 3))})
    edges: list[int | None] = [None, *moments, None]
    return list(pairwise(edges))


def _by_source(text: str) -> bool:
    key, _ = split_where(parse(text, "q").where)
    return "source" in [name for name, _ in key]


def _refers_within(text: str, keyed: dict[str, str], case: RandomCase) -> bool:
    referred = {
        c for e in elements_of(parse(text, "q").pattern) for c in getattr(e, "classes", ()) if c in case.queries
    }
    return referred <= set(keyed)


LAWS: dict[str, Callable[[RandomCase], tuple[Any, Any]]] = {
    "shared": shared_is_alone,
    "order": any_row_order,
    "cuts": any_cut,
    "naive_cuts": naive_cuts,
    "buckets": any_buckets,
}
