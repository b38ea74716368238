"""The engine's front door: events and queries in, matches out.

Enters: a table of events, a query set (texts, or `prepare`d once), a detection range, and the state of CONSUME queries.
Leaves: the table of matches (engine/output.py) and the state after the run.
Always holds: exactly the matches with start <= detection_ts < end, each once (language contract, Runs). Queries that
the shared walk can answer (SEQ, AND and OR of single elements with one key) are walked together; all others go through
the general matcher. Which way a query goes never shows in its matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cep_core.engine.conditions import EventColumns
from cep_core.engine.evaluate import DETECTION, Evaluation, Found, Range
from cep_core.engine.identity import match_id
from cep_core.engine.load import RESERVED, load
from cep_core.engine.output import SCHEMA, Answers, matches_table, timer_id
from cep_core.engine.scope import Moment
from cep_core.engine.select import Consumed
from cep_core.engine.state import STATE, consumed_from, state_rows
from cep_core.engine.values import type_of
from cep_core.engine.walk import walk
from cep_core.errors import QueryError
from cep_core.language import CheckedQuery, check, parse
from cep_core.language.algebra import Element, Pattern, Query, TimerAfter
from cep_core.language.checked import Schema
from cep_core.plan.simple import Simple, simple_networks, simple_query

ANSWERS_PER_PARTITION = 10_000_000


@dataclass(frozen=True)
class Prepared:
    """A query set, checked once; picklable."""

    queries: dict[str, CheckedQuery]
    declares: dict[str, frozenset[str]] | None


def prepare(queries: Mapping[str, str | Query], schema: Mapping[str, Any] | None) -> Prepared:
    """Checks the queries. schema: class -> its attributes, as a list of names or a dict of types; None: not known."""
    typed: Schema | None = None
    if schema is not None:
        typed = {name: dict(own) if isinstance(own, Mapping) else {} for name, own in schema.items()}
    declares = None if schema is None else {name: frozenset(own) | {"source"} for name, own in schema.items()}
    return Prepared(check(queries, typed), declares)


def mine(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    state: pa.Table | None = None,
    limit: int = ANSWERS_PER_PARTITION,
) -> pa.Table:
    """The matches of all queries with start <= detection_ts < end, as a table."""
    return mine_with_state(events, queries, start, end, schema, state, limit)[0]


def mine_chunks(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    limit: int = ANSWERS_PER_PARTITION,
) -> Iterator[pa.Table]:
    """The same as `mine`, part by part."""
    yield from _Run(events, queries, start, end, schema, None, limit).tables()


def mine_with_state(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    state: pa.Table | None = None,
    limit: int = ANSWERS_PER_PARTITION,
) -> tuple[pa.Table, pa.Table]:
    """The matches, and the state of the CONSUME queries after the run."""
    run = _Run(events, queries, start, end, schema, state, limit)
    tables = list(run.tables())
    place = {name: number for number, name in enumerate(run.order)}
    table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
    order = np.argsort([place[name] for name in table.column("query_id").to_pylist()], kind="stable")
    return table.take(pa.array(order)), run.state()


class _Run:
    """One call: queries in the order of their references, each level's matches events for the next."""

    def __init__(self, events: Any, queries: Any, start: Any, end: Any, schema: Any, state: Any, limit: int) -> None:
        self.table = pa.Table.from_pandas(events, preserve_index=False) if isinstance(events, pd.DataFrame) else events
        self.range = Range(_moment(start), _moment(end))
        self.limit = limit
        if isinstance(queries, Prepared):
            self.prepared = queries
        else:
            self.prepared = prepare(queries, _schema(self.table, queries, schema))
        self.order = list(queries.queries if isinstance(queries, Prepared) else queries)
        self.declares = dict(self.prepared.declares or {})
        self.checked = self.prepared.queries
        self.referred = {name for query in self.checked.values() for name in query.refers_to}
        self.consumed: dict[str, dict[str, Consumed]] = {}
        self.carried: dict[str, list[dict[str, Any]]] = {}
        if state is not None and len(state):
            self.consumed, self.carried = consumed_from(state)

    def tables(self) -> Iterator[pa.Table]:
        base = [q for q in self.checked.values() if not q.refers_to]
        simple = {q.query.id: s for q in base if (s := simple_query(q)) and q.query.id not in self.referred}
        if simple:
            yield from self._walk({name: self.checked[name] for name in simple}, simple)
        for name, query in self.checked.items():
            if name not in simple:
                yield self._matched(query)

    def _walk(self, queries: dict[str, CheckedQuery], simple: dict[str, Simple]) -> Iterator[pa.Table]:
        classes = sorted({c for query in queries.values() for c in _classes(query.query.pattern)})
        events = load(self.table, classes)
        columns = EventColumns(events, self.declares or None)
        evaluation = Evaluation(columns, self.limit)
        lo = -(2**62) if self.range.start is None else self.range.start
        hi = 2**62 if self.range.end is None else self.range.end
        ids = [name for name in self.order if name in queries]
        names = [list(simple[name].names) for name in ids]
        found: list[Answers] = []
        for checked, items, network in simple_networks([(queries[n], simple[n]) for n in ids], evaluation, columns):
            limits = np.full(len(ids), self.limit, np.int64)
            del checked
            found.extend(walk(items, network, lo, hi, ids, limits))
        yield matches_table(events, found, ids, names)

    def _matched(self, checked: CheckedQuery) -> pa.Table:
        query = checked.query
        classes = sorted(_classes(query.pattern))
        events = load(self.table, classes)
        evaluation = Evaluation(EventColumns(events, self.declares or None), self.limit)
        consuming = query.consume != "none"
        open_range = query.id in self.referred and not consuming
        within = Range(None, None) if open_range else self.range
        found = list(evaluation.matches(checked, within, self.consumed.setdefault(query.id, {})))
        if query.id in self.referred:
            self._refer(checked, events, evaluation, found)
        if open_range:
            found = [match for match in found if self.range.holds(match.detection)]
        return _table(query, events, evaluation, found)

    def _refer(self, checked: CheckedQuery, events: Any, evaluation: Evaluation, found: Sequence[Found]) -> None:
        """Makes the matches events of the class that is the query's id."""
        name = checked.query.id
        source = "source" in checked.key
        rows = list(self.carried.get(name, ()))
        known = {row["event_id"] for row in rows}
        timers = evaluation.timers
        for match in found:
            elements = [(e, [_event_id(events, timers, m) for m in members]) for e, members in match.elements]
            first = next(m for _, members in match.elements for m in members if m < events.count)
            row = {
                "event_id": match_id(name, elements),
                "source": events.attribute("source")[first].as_py() if source else None,
                "event_class": name,
                "start_ts": match.start,
                "end_ts": match.end,
                DETECTION: match.detection,
                **{key: x.us if isinstance(x, Moment) else x for key, x in match.fields.items()},
            }
            if row["event_id"] not in known:
                rows.append(row)
        self.carried[name] = rows
        self.declares[name] = frozenset(n for n, _ in checked.fields) | ({"source"} if source else set())
        self.table = _with_matches(self.table, rows, checked)

    def state(self) -> pa.Table:
        rows = []
        for name, parts in self.consumed.items():
            query = self.checked[name].query if name in self.checked else None
            if query is None or query.consume == "none":
                continue
            carried = self.carried.get(name, []) if name in self.referred else []
            rows.extend(state_rows(query, parts, carried, self.range.end))
        return pa.Table.from_pylist(rows, STATE)


def _table(query: Query, events: Any, evaluation: Evaluation, found: Sequence[Found]) -> pa.Table:
    names = [element.name for element in _elements(query.pattern)]
    place = {name: number for number, name in enumerate(names)}
    members = [[(place[e], m) for e, own in match.elements for m in own] for match in found]
    offsets = np.cumsum([0, *map(len, members)]).astype(np.int64)
    flat = [pair for own in members for pair in own]
    fields = {name: pa.array([_text(match.fields[name]) for match in found], pa.string()) for _, name in query.returns}
    answers = Answers(
        np.zeros(len(found), np.int32),
        offsets=offsets,
        slot=np.asarray([slot for slot, _ in flat], np.int32),
        member=np.asarray([member for _, member in flat], np.int32),
        detection=np.asarray([match.detection for match in found], np.int64),
        fields=fields or None,
    )
    return matches_table(events, [answers], [query.id], [names], np.asarray(evaluation.timers, np.int64))


def _text(result: Any) -> str | None:
    match result:
        case None:
            return None
        case bool():
            return "true" if result else "false"
        case float():
            return repr(result)
        case Moment():
            return pd.Timestamp(result.us, unit="us").strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(result)


def _event_id(events: Any, timers: list[int], member: int) -> str:
    if member >= events.count:
        return timer_id(timers[member - events.count])
    return str(events.event_id[member].as_py())


_ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "null": pa.string(),
}


def _with_matches(table: pa.Table, rows: list[dict[str, Any]], checked: CheckedQuery) -> pa.Table:
    """The events with the matches below them."""
    if "ts" in table.column_names:
        times = table.column("ts")
        table = table.drop_columns("ts").append_column("start_ts", times).append_column("end_ts", times)
    columns: dict[str, pa.Array] = {}
    for name in table.column_names:
        kind = table.schema.field(name).type
        values = [row.get(name) for row in rows]
        columns[name] = pa.array(values, kind)
    own = {DETECTION: pa.int64(), **{name: _ARROW[kind] for name, kind in checked.fields}}
    for name, kind in own.items():
        if name not in columns:
            columns[name] = pa.array([row.get(name) for row in rows], kind)
            table = table.append_column(name, pa.nulls(len(table), kind))
    more = pa.table({name: columns[name] for name in table.column_names})
    return pa.concat_tables([table, more], promote_options="permissive")


def _elements(pattern: Pattern) -> list[Any]:
    """Every element and timer in reading order."""
    if isinstance(pattern, TimerAfter):
        return [*_elements(pattern.part), pattern]
    parts = getattr(pattern, "parts", None)
    return [pattern] if parts is None else [e for part in parts for e in _elements(part)]


def _classes(pattern: Pattern) -> set[str]:
    return {name for element in _elements(pattern) if isinstance(element, Element) for name in element.classes}


def _named(queries: Mapping[str, str | Query]) -> set[str]:
    """Every class that the queries name; a text that does not parse names none, and `check` will say why."""
    names: set[str] = set()
    for name, query in queries.items():
        with suppress(QueryError):
            names |= _classes((query if isinstance(query, Query) else parse(query, name)).pattern)
    return names


def _moment(moment: Any) -> int | None:
    if moment is None or isinstance(moment, int):
        return moment
    stamp = pd.Timestamp(moment)
    stamp = stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp
    return int(stamp.as_unit("us").value)


def _schema(table: pa.Table, queries: Mapping[str, str | Query], declared: Mapping[str, Any] | None) -> Schema:
    """class -> attribute -> type, from the columns; `declared` says which of them each class has."""
    attributes = [name for name in table.column_names if name not in RESERVED and not name.startswith("__")]
    types = {name: type_of(table.schema.field(name).type) or "null" for name in attributes}
    if declared is None:
        return {name: dict(types) for name in _named(queries) - queries.keys()}
    whole: Schema = {}
    for name, own in declared.items():
        kinds = own if isinstance(own, Mapping) else {}
        whole[name] = {a: kinds.get(a) or types.get(a) or "string" for a in own}
        if types.get("source", "string") != "string":
            whole[name].setdefault("source", types["source"])
    return whole
