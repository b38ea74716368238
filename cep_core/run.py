"""The engine's front door: events and queries in, matches out.

Enters: a table of events, a query set (texts, or `prepare`d once), a detection range, and the state of CONSUME queries.
Leaves: the table of matches (engine/output.py) and the state after the run.
Always holds: exactly the matches with start <= detection_ts < end, each once (language contract, Runs). Queries that
the shared walk can answer (SEQ, AND and OR of single elements with one key) are walked together; all others go through
the general matcher, over shared stores and candidates. Which way a query goes never shows in its matches.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.engine.conditions import EventColumns
from cep_core.engine.evaluate import DETECTION, Evaluation, Found, Range, elements
from cep_core.engine.fields import read_from, with_matches
from cep_core.engine.load import RESERVED, Events, load
from cep_core.engine.output import SCHEMA, SCHEMA_WITH_SOURCE, Answers, matches_table
from cep_core.engine.refer import event_columns, matches_as_events
from cep_core.engine.returns import field_texts
from cep_core.engine.select import Consumed
from cep_core.engine.shared import walked
from cep_core.engine.state import STATE, consumed_from, state_rows
from cep_core.engine.values import type_of
from cep_core.language import CheckedQuery, check
from cep_core.language.algebra import Element, Pattern, Query
from cep_core.language.checked import Schema
from cep_core.plan.simple import simple_query

ANSWERS_PER_PARTITION = 10_000_000
ANSWERS_PER_CHUNK = 1 << 19

_WORD = re.compile(r"(\w+)|`([^`]*)`")

Limit = int | Mapping[str, int]  # most answers of a query in a partition; by query id, where they differ


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
    with _without_collection():
        return Prepared(check(queries, typed, to_mine=True), declares)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Thousands of queries are a million small values that stay for the whole call: looking through them for cycles
    again and again takes a third of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def mine(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    state: pa.Table | None = None,
    limit: Limit = ANSWERS_PER_PARTITION,
) -> pa.Table:
    """The matches of all queries with start <= detection_ts < end, as a table."""
    with _without_collection():
        return _Run(events, queries, start, end, schema, state, limit).table_of_all()


def mine_chunks(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    limit: Limit = ANSWERS_PER_PARTITION,
    sources: bool = False,
) -> Iterator[pa.Table]:
    """The same as `mine`, part by part, in memory that does not grow with the number of matches. The order of all rows
    together is not fixed. sources: with a column `source` more, of matches whose query tests [source]."""
    with _without_collection():
        tables = _chunks(_Run(events, queries, start, end, schema, None, limit, sources=sources))
    while True:
        with _without_collection():  # never while the caller works with a table
            table = next(tables, None)
        if table is None:
            return
        yield table


def _chunks(run: _Run) -> Iterator[pa.Table]:
    for part in run.parts():
        held: list[Answers] = []
        for answers in part.answers:
            held.append(answers)
            if sum(len(one.query) for one in held) >= ANSWERS_PER_CHUNK:
                yield part.table(held)
                held = []
        if held:
            yield part.table(held)


def mine_with_state(
    events: pa.Table | pd.DataFrame,
    queries: Mapping[str, str] | Prepared,
    start: Any = None,
    end: Any = None,
    schema: Mapping[str, Any] | None = None,
    state: pa.Table | None = None,
    limit: Limit = ANSWERS_PER_PARTITION,
    sources: bool = False,
) -> tuple[pa.Table, pa.Table]:
    """The matches, and the state of the CONSUME queries after the run. sources: as of `mine_chunks`."""
    with _without_collection():
        run = _Run(events, queries, start, end, schema, state, limit, keeps_state=True, sources=sources)
        return run.table_of_all(), run.state()


@dataclass(frozen=True)
class _Part:
    """The answers of one level of references, over one table of events."""

    run: _Run
    events: Events
    evaluation: Evaluation
    answers: Iterator[Answers]

    def table(self, answers: Sequence[Answers]) -> pa.Table:
        timers = np.asarray(self.evaluation.timers, np.int64)
        return matches_table(self.events, answers, self.run.order, self.run.names, timers, self.run.sourced)


class _Run:
    """One call: queries level by level of their references, each level's matches events for the next."""

    def __init__(
        self, events: Any, queries: Any, start: Any, end: Any, schema: Any, state: Any, limit: Limit,
        keeps_state: bool = False, sources: bool = False,
    ) -> None:  # fmt: skip
        self.keeps_state = keeps_state
        self.table = pa.Table.from_pandas(events, preserve_index=False) if isinstance(events, pd.DataFrame) else events
        self.range = Range(_moment(start), _moment(end))
        if isinstance(queries, Prepared):
            self.prepared = queries
        else:
            self.prepared = prepare(queries, _schema(self.table, queries, schema))
        self.order = list(queries.queries if isinstance(queries, Prepared) else queries)
        self.number = {name: number for number, name in enumerate(self.order)}
        self.declares = dict(self.prepared.declares or {})
        self.checked = dict(self.prepared.queries)
        self.sourced = np.array(["source" in self.checked[n].key for n in self.order], bool) if sources else None
        self.names = [[e.name for e in elements(self.checked[name].query.pattern)] for name in self.order]
        most = limit if isinstance(limit, Mapping) else dict.fromkeys(self.order, limit)
        self.limit = {name: most.get(name, ANSWERS_PER_PARTITION) for name in self.order}
        self.referred = {name for query in self.checked.values() for name in query.refers_to}
        self.places: dict[str, dict[str, str]] = {}
        self.consumed: dict[str, dict[str, Consumed]] = {}
        self.carried: dict[str, list[dict[str, Any]]] = {}
        if state is not None and len(state):
            self.consumed, self.carried = consumed_from(state)

    def table_of_all(self) -> pa.Table:
        tables = [part.table(list(part.answers)) for part in self.parts()]
        schema = SCHEMA if self.sourced is None else SCHEMA_WITH_SOURCE
        table = pa.concat_tables(tables) if tables else schema.empty_table()
        if len(tables) > 1:
            place = pc.index_in(table.column("query_id"), pa.array(self.order, pa.string())).to_numpy()
            table = table.take(pa.array(np.argsort(place, kind="stable")))
        return table

    def parts(self) -> Iterator[_Part]:
        for number, level in enumerate(self._levels()):
            level = [self._read(query) for query in level]
            classes = sorted({c for query in level for c in _classes(query.query.pattern)})
            events = load(self.table, classes, self.order if number == 0 else ())
            evaluation = Evaluation(EventColumns(events, self.declares or None))
            yield _Part(self, events, evaluation, self._answers(level, events, evaluation))

    def _read(self, query: CheckedQuery) -> CheckedQuery:
        """The query by the columns in which the fields of the matches that it reads stand."""
        found, self.table = read_from(query, self.table, self.places, self.declares)
        self.checked[query.query.id] = found
        return found

    def _levels(self) -> list[list[CheckedQuery]]:
        """A query stands one level above all that it refers to."""
        height: dict[str, int] = {}
        for name, query in self.checked.items():  # what is referred to comes first
            height[name] = 1 + max((height[other] for other in query.refers_to), default=-1)
        levels: list[list[CheckedQuery]] = [[] for _ in range(1 + max(height.values(), default=-1))]
        for name in self.order:
            levels[height[name]].append(self.checked[name])
        return levels

    def _answers(self, level: list[CheckedQuery], events: Events, evaluation: Evaluation) -> Iterator[Answers]:
        simple = {
            query.query.id: found
            for query in level
            if query.query.id not in self.referred and not query.refers_to and (found := simple_query(query))
        }
        if simple:
            chosen = [(self.number[name], self.checked[name], found) for name, found in simple.items()]
            yield from walked(chosen, evaluation, self.range, self.order, self.limit)
        for query in level:
            if query.query.id not in simple:
                yield from self._matched(query, events, evaluation)

    def _matched(self, checked: CheckedQuery, events: Events, evaluation: Evaluation) -> Iterator[Answers]:
        name = checked.query.id
        consumed = self.consumed.setdefault(name, {})
        if name not in self.referred:
            for found in evaluation.matches(checked, self.range, consumed, self.limit[name], self.keeps_state):
                yield self._numbered(name, found)
            return
        # Others read these matches as events, whenever they were detected; what is consumed comes with the state.
        within = self.range if checked.query.consume != "none" else Range(None, None)
        held = list(evaluation.matches(checked, within, consumed, self.limit[name], self.keeps_state))
        self._refer(checked, events, evaluation, held)
        for found in held:
            yield self._numbered(name, found.within(self.range))

    def _numbered(self, name: str, found: Found) -> Answers:
        flat = found.flat
        fields = field_texts(self.checked[name], found.fields) if found.fields else None
        query = np.full(flat.count, self.number[name], np.int32)
        return Answers(
            query, offsets=flat.offsets, slot=flat.element, member=flat.member, detection=found.detection,
            fields=fields,
        )  # fmt: skip

    def _refer(self, checked: CheckedQuery, events: Events, evaluation: Evaluation, found: Sequence[Found]) -> None:
        """Makes the matches events of the class that is the query's id."""
        name = checked.query.id
        tested = dict(zip(self.prepared.queries[name].key, checked.key, strict=True))  # attribute -> its column
        source = tested.get("source")
        names = self.names[self.number[name]]
        matches = matches_as_events(checked, events, found, names, evaluation.timers, source)
        if checked.query.consume != "none":
            kinds = event_columns(checked) | ({"source": _plain_type(self.table, source)} if source else {})
            rows = {row["event_id"]: row for row in self.carried.get(name, ())}
            rows |= {row["event_id"]: row for row in _plain_rows(matches)}
            self.carried[name] = list(rows.values())
            matches = _from_rows(self.carried[name], kinds)
        self.declares[name] = frozenset(n for n, _ in checked.fields) | ({"source"} if source else set())
        self.table, self.places[name] = with_matches(self.table, matches)

    def state(self) -> pa.Table:
        rows = []
        for name, parts in self.consumed.items():
            query = self.checked[name].query if name in self.checked else None
            if query is None or query.consume == "none":
                continue
            carried = self.carried.get(name, []) if name in self.referred else []
            rows.extend(state_rows(query, parts, carried, self.range.end))
        return pa.Table.from_pylist(rows, STATE)


def _plain_type(table: pa.Table, column: str) -> pa.DataType:
    kind = table.schema.field(column).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain_rows(matches: pa.Table) -> list[dict[str, Any]]:
    """Rows that JSON can hold: times as microseconds."""
    moments = [field.name for field in matches.schema if pa.types.is_timestamp(field.type)]
    for name in moments:
        place = matches.column_names.index(name)
        matches = matches.set_column(place, name, matches.column(name).cast(pa.int64()))
    rows: list[dict[str, Any]] = matches.to_pylist()
    return rows


def _from_rows(rows: list[dict[str, Any]], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    columns = {}
    for name, kind in kinds.items():
        held = pa.int64() if pa.types.is_timestamp(kind) else kind
        columns[name] = pa.array([row.get(name) for row in rows], held).cast(kind)
    return pa.table(columns)


def _classes(pattern: Pattern) -> set[str]:
    return {name for element in elements(pattern) if isinstance(element, Element) for name in element.classes}


def _named(queries: Mapping[str, str | Query]) -> set[str]:
    """Every word of the queries that may be a class. Nothing is parsed for it: `check` does that, once."""
    names: set[str] = set()
    for query in queries.values():
        if isinstance(query, Query):
            names |= _classes(query.pattern)
        else:
            names.update(word or quoted for word, quoted in _WORD.findall(query))
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
        return dict.fromkeys(_named(queries) - queries.keys(), types)
    whole: Schema = {}
    for name, own in declared.items():
        kinds = own if isinstance(own, Mapping) else {}
        whole[name] = {a: kinds.get(a) or types.get(a) or "string" for a in own}
        if types.get("source", "string") != "string":
            whole[name].setdefault("source", types["source"])
    return whole


__all__ = ["ANSWERS_PER_PARTITION", "DETECTION", "Prepared", "mine", "mine_chunks", "mine_with_state", "prepare"]
