"""Laws that hold between runs of the engine: sharing, input order, cuts, buckets, slices and chunks must be invisible.

Enters: a random case. Leaves: two lists of matches that must be equal, the first by the plain way, the second by
another; `REFUSED` in a list's place where a RETURN field did not fit 64 bits.
Always holds: the naive meaning takes no part here, except in `naive_cuts`, which holds naive.py itself to the law of
runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import cep_core
from cep_core.engine.identity import match_id
from cep_core.engine.walk import walk
from cep_core.errors import EvaluationError
from cep_core.language import check, parse
from jobs.reach import closure, consumes, lookback_us
from tests import naive
from tests.harness import Row, engine_rows, naive_rows, run_engine, table_of
from tests.naive_answers import split_where
from tests.naive_patterns import elements_of
from tests.naive_values import Overflow
from tests.random_cases import RandomCase

REFUSED = "refused"


def or_refused(run: Callable[[], Any]) -> Any:
    """What a way of running gives, or that it is refused."""
    try:
        return run()
    except (EvaluationError, Overflow):
        return REFUSED


_last: list[tuple[RandomCase, bool, Any]] = []


def plain(case: RandomCase, ranged: bool = True) -> Any:
    """The table of the plain run, in the case's range or in all time; kept for the next law over the same case."""
    ranged = ranged and (case.start is not None or case.end is not None)
    for known, how, table in _last:
        if known is case and how == ranged:
            return table
    if _last and _last[0][0] is not case:
        _last.clear()
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    start, end = (case.start, case.end) if ranged else (None, None)
    events = table_of(case.events, case.schema)
    found = or_refused(lambda: cep_core.mine(events, dict(case.queries), start, end, schema=declared))
    _last.append((case, ranged, found))
    return found


def _rows(table: Any) -> Any:
    return table if isinstance(table, str) else engine_rows(table)


def shared_is_alone(case: RandomCase) -> tuple[Any, Any]:
    """What a query returns never depends on which other queries run beside it."""

    def alone() -> list[Row]:
        found = []
        for name in case.queries:
            own = case.only(name)
            rows = run_engine(own.events, own.queries, own.start, own.end, own.schema)
            found += [row for row in rows if row.query_id == name]
        return sorted(found, key=repr)

    return or_refused(alone), _rows(plain(case))


def families_are_alone(case: RandomCase) -> tuple[Any, Any]:
    """Queries that differ only in their classes are checked and made into tables once: nobody sees it."""
    attributes = {name: kind for own in case.schema.values() for name, kind in own.items()}
    schema = dict.fromkeys(case.schema, attributes)
    classes = sorted(schema)
    queries = {}
    for name, text in case.queries.items():
        if not set(case.queries) & set(re.findall(r"\w+", text)):
            for turn in range(len(classes)):
                turned = {own: classes[(place + turn) % len(classes)] for place, own in enumerate(classes)}
                queries[f"{name}_{turn}"] = re.sub(r"\w+", lambda word: turned.get(word[0], word[0]), text)  # noqa: B023

    def mined(chosen: dict[str, str]) -> list[Row]:
        return run_engine(case.events, chosen, case.start, case.end, schema)

    def alone() -> list[Row]:
        return sorted((row for name, text in queries.items() for row in mined({name: text})), key=repr)

    return or_refused(alone), or_refused(lambda: sorted(mined(queries), key=repr))


def any_row_order(case: RandomCase) -> tuple[Any, Any]:
    """Rows in any order, and rows given twice, give the same table, byte for byte."""
    rng = Random(case.seed)
    shuffled = rng.sample(case.events, len(case.events)) + rng.sample(case.events, len(case.events) // 3)
    declared = {name: list(attributes) for name, attributes in case.schema.items()}

    def mined(events: Any) -> list[Any]:
        table = table_of(events, case.schema)
        return cep_core.mine(table, dict(case.queries), case.start, case.end, schema=declared).to_pylist()  # type: ignore[no-any-return]

    table = plain(case)
    return table if isinstance(table, str) else table.to_pylist(), or_refused(lambda: mined(shuffled))


def any_columns(case: RandomCase) -> tuple[Any, Any]:
    """Texts in any of Arrow's forms, columns in any order and number of chunks, times in nanoseconds, and columns that
    no class declares, though RETURN has fields of their names, change nothing."""
    rng = Random(case.seed)
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    table = table_of(case.events, case.schema)
    for name in {"n", "m", "d", "f"} - {attribute for attributes in case.schema.values() for attribute in attributes}:
        kind = rng.choice((pa.int32(), pa.float32(), pa.string(), pa.bool_(), pa.uint64(), pa.date32()))
        values = [rng.choice((None, 0, 1)) for _ in range(len(table))]
        table = table.append_column(name, pa.array(values, pa.int64()).cast(pa.int32()).cast(kind))
    columns = {}
    for name in rng.sample(table.column_names, len(table.column_names)):
        column, cut = table.column(name), rng.randint(0, len(table))
        if pa.types.is_string(column.type):
            form = rng.choice((pa.string(), pa.large_string(), pa.string_view(), None))
            column = column.dictionary_encode() if form is None else column.cast(form)
        if name in ("start_ts", "end_ts"):
            column = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp(rng.choice(("us", "ns")), "UTC"))
        columns[name] = pa.chunked_array([*column.slice(0, cut).chunks, *column.slice(cut).chunks], column.type)
    other = pa.table(columns)

    def mined() -> Any:
        return cep_core.mine(other, dict(case.queries), case.start, case.end, schema=declared).to_pylist()

    whole = plain(case)
    return whole if isinstance(whole, str) else whole.to_pylist(), or_refused(mined)


def any_cut(case: RandomCase) -> tuple[Any, Any]:
    """For any cut of a range into runs, the state carried, the union of the runs is the run over the whole range."""
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    table = table_of(case.events, case.schema)

    def runs() -> list[Row]:
        rows: list[Row] = []
        state = None
        for start, end in _cuts(case):
            found, state = cep_core.mine_with_state(table, dict(case.queries), start, end, schema=declared, state=state)
            rows += engine_rows(found)
        return sorted(rows, key=repr)

    return _rows(plain(case, ranged=False)), or_refused(runs)


def naive_cuts(case: RandomCase) -> tuple[Any, Any]:
    """The same law for naive.py."""
    events, queries = list(case.events), dict(case.queries)

    def runs() -> list[Row]:
        matches: list[naive.Match] = []
        state = None
        for start, end in _cuts(case):
            found, state = naive.evaluate_with_state(events, queries, start, end, case.schema, state, match_id)
            matches += found
        return naive_rows(matches)

    whole = or_refused(lambda: naive_rows(naive.evaluate(events, queries, schema=case.schema, ids=match_id)))
    return whole, or_refused(runs)


def any_buckets(case: RandomCase) -> tuple[Any, Any]:
    """Queries that all test [source] give the same matches bucket by bucket; others are left out."""
    keyed = {name: text for name, text in case.queries.items() if _by_source(text)}
    keyed = {name: text for name, text in keyed.items() if _refers_within(text, keyed, case)}
    if not keyed:
        return [], []

    def buckets() -> list[Row]:
        rows: list[Row] = []
        for source in sorted({str(event["source"]) for event in case.events}):
            bucket = [event for event in case.events if str(event["source"]) == source]
            rows += run_engine(bucket, keyed, case.start, case.end, case.schema)
        return sorted(rows, key=repr)

    whole = _rows(plain(case))
    whole = whole if whole == REFUSED else [row for row in whole if row.query_id in keyed]
    if whole == REFUSED and len(keyed) < len(case.queries):  # another query may be the one that is refused
        whole = or_refused(lambda: run_engine(case.events, keyed, case.start, case.end, case.schema))
    return whole, or_refused(buckets)


def any_slices(case: RandomCase) -> tuple[Any, Any]:
    """For any cut into time slices, each with only the events that its queries can look at, the union of the slices is
    the run over the whole range; queries whose matches depend on earlier ones are left out."""
    checked = check(case.queries, case.schema, to_mine=True)  # type: ignore[arg-type]
    free = {name: text for name, text in case.queries.items() if not consumes(name, checked)}

    def slices() -> list[Row]:
        rows: list[Row] = []
        for name in free:
            queries = {other: case.queries[other] for other in closure([name], checked)}
            back = lookback_us(name, checked)
            for start, end in _cuts(case):
                events = [
                    event
                    for event in case.events
                    if (start is None or event["end_ts"] >= start - back) and (end is None or event["end_ts"] < end)
                ]
                found = run_engine(events, queries, start, end, case.schema)
                rows += [row for row in found if row.query_id == name]
        return sorted(rows, key=repr)

    whole = _rows(plain(case, ranged=False))
    if whole == REFUSED or len(free) < len(case.queries):  # another query may be the one that is refused
        whole = or_refused(lambda: run_engine(case.events, free, None, None, case.schema)) if free else []
    return whole, or_refused(slices)


def any_chunks(case: RandomCase) -> tuple[Any, Any]:
    """Answers that leave in chunks of a few are those that leave all at once."""
    declared = {name: list(attributes) for name, attributes in case.schema.items()}
    table = table_of(case.events, case.schema)

    def chunks() -> list[Row]:
        with (
            patch("cep_core.run.ANSWERS_PER_CHUNK", 1),
            patch("cep_core.engine.evaluate.ROOM", 2),
            patch("cep_core.engine.matcher.ROOM", 2),
            patch("cep_core.engine.matcher.MOST_ROOM", 2),
            patch("cep_core.engine.shared.walk", partial(walk, chunk=2)),
        ):
            parts = list(cep_core.mine_chunks(table, dict(case.queries), case.start, case.end, schema=declared))
        return sorted((row for part in parts for row in engine_rows(part)), key=repr)

    return _rows(plain(case)), or_refused(chunks)


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
    "families": families_are_alone,
    "order": any_row_order,
    "columns": any_columns,
    "cuts": any_cut,
    "naive_cuts": naive_cuts,
    "buckets": any_buckets,
    "slices": any_slices,
    "chunks": any_chunks,
}
