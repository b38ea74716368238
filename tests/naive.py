"""The naive meaning of a query: a brute-force reading of the language contract, sentence by sentence.

Enters: events as dicts (`event_id, source, event_class, start_ts, end_ts`, optional `tie`, `attributes`), queries as
text or as values of the algebra, a range of detection times and the state of the run before. Leaves: every match, as
`Match`. Always holds: clear over fast, and no code of cep_core.engine, cep_core.plan or the checker. The lines marked
`>` are the contract's own sentences; the code under them does what they say and nothing else. Patterns are in
naive_patterns.py, answers in naive_answers.py, conditions in naive_conditions.py, values in naive_values.py; here are
runs, partitions, SELECT and CONSUME.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cep_core.errors import EventError, QueryError
from cep_core.language import algebra as q
from cep_core.language import parse
from tests.naive_answers import Answer, answers_of, split_where
from tests.naive_conditions import Event, Scope, attribute_of, type_of, value
from tests.naive_patterns import elements_of, is_postponed
from tests.naive_values import Value, compare, plain, text

Elements = tuple[tuple[str, tuple[str, ...]], ...]
Ids = Callable[[str, Elements], str]
BUILTIN = frozenset({"event_id", "event_class", "start_ts", "end_ts", "ts"})


@dataclass(frozen=True)
class Match:
    """One match: `elements` are the bound elements in pattern order with their events' ids, `fields` RETURN as text."""

    query_id: str
    elements: Elements
    start_ts: int
    end_ts: int
    detection_ts: int
    fields: dict[str, str | None] = field(hash=False)


@dataclass
class State:
    """What CONSUME queries carry from run to run: per query and partition; and their matches, for referring queries."""

    used: dict[tuple[str, Any], frozenset[str]] = field(default_factory=dict)
    older: dict[tuple[str, Any], tuple[Any, ...]] = field(default_factory=dict)
    matches: dict[str, tuple[Event, ...]] = field(default_factory=dict)


def sha_id(query_id: str, elements: Elements) -> str:
    return hashlib.sha256(repr((query_id, elements)).encode()).hexdigest()[:32]


def evaluate(
    events: Iterable[Mapping[str, Any]],
    queries: Mapping[str, str | q.Query],
    start: int | None = None,
    end: int | None = None,
    schema: Mapping[str, Any] | None = None,
    state: State | None = None,
    ids: Ids = sha_id,
) -> list[Match]:
    """Exactly the matches with start <= detection_ts < end, each once, ordered by query, detection and members."""
    return evaluate_with_state(events, queries, start, end, schema, state, ids)[0]


def evaluate_with_state(
    events: Iterable[Mapping[str, Any]],
    queries: Mapping[str, str | q.Query],
    start: int | None = None,
    end: int | None = None,
    schema: Mapping[str, Any] | None = None,
    state: State | None = None,
    ids: Ids = sha_id,
) -> tuple[list[Match], State]:
    parsed = {name: parse(one, name) if isinstance(one, str) else one for name, one in queries.items()}
    events = list(events)
    types = _types(events, schema)
    known = _primitives(events, schema)
    # > A query id equal to a class name [is an error]
    if both := parsed.keys() & ({event.event_class for event in known} | set(schema or ())):
        raise QueryError(f"ids that are classes: {sorted(both)}")
    state = state or State()
    after = State(dict(state.used), dict(state.older), dict(state.matches))
    matches: list[Match] = []
    for name in _referred_first(parsed):
        found, composite = _run(parsed[name], known, types, start, end, state, after, ids)
        matches += found
        # > the id of another query: each match of that query is an event
        known += composite
    return sorted(matches, key=lambda m: (m.query_id, m.detection_ts, m.elements)), after


# ---------------------------------------------------------------- events


def _primitives(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> list[Event]:
    everywhere = {name for row in rows for name in row.get("attributes", {})}
    found: dict[str, tuple[Mapping[str, Any], Event]] = {}
    for row in rows:
        name = row["event_class"]
        # > schema: class -> attributes that it declares (default: each class declares every attribute column)
        declares = everywhere if schema is None else set(schema.get(name, ()))
        event = Event(
            id=row["event_id"],
            event_class=name,
            start=row["start_ts"],
            end=row["end_ts"],
            tie=row.get("tie"),
            attributes={k: plain(v) for k, v in row.get("attributes", {}).items()} | {"source": plain(row["source"])},
            # > `source` is an attribute that every event has.
            declared=frozenset(declares | {"source"} | BUILTIN),
        )
        # > Rows that share an event_id are one event; if such rows differ, the run is refused.
        seen = found.setdefault(event.id, (row, event))
        if seen[1] != event or seen[1].attributes != event.attributes:
            raise EventError(f"rows with the event_id {event.id} differ")
    return [event for _, event in found.values()]


def _types(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> dict[tuple[str, str], str]:
    """(class, attribute) -> 'float' where it is; from the schema, or else from the values: one column an attribute."""
    floats = {k for row in rows for k, v in row.get("attributes", {}).items() if isinstance(v, float)}
    found = {(row["event_class"], name): "float" for row in rows for name in floats}
    for name, declared in (schema or {}).items():
        if isinstance(declared, dict):
            found |= {(name, attribute): kind for attribute, kind in declared.items()}
    return found


def _referred_first(queries: dict[str, q.Query]) -> list[str]:
    """The ids, each behind those that it refers to."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name not in ordered:
            for element in elements_of(queries[name].pattern):
                for referred in element.classes if isinstance(element, q.Element) else ():
                    if referred in queries:
                        visit(referred)
            ordered.append(name)

    for name in sorted(queries):
        visit(name)
    return ordered


# ---------------------------------------------------------------- one query


def _run(
    query: q.Query,
    known: list[Event],
    types: dict[tuple[str, str], str],
    start: int | None,
    end: int | None,
    before: State,
    after: State,
    ids: Ids,
) -> tuple[list[Match], list[Event]]:
    """The matches of one query in the range, and its matches as events for the queries that refer to it."""
    key, branches = split_where(query.where)
    scope_types = _variable_types(query, types)
    classes = {c for e in elements_of(query.pattern) if isinstance(e, q.Element) for c in e.classes}
    mine = sorted((event for event in known if event.event_class in classes), key=lambda event: event.order)
    composite: list[Event] = list(before.matches.get(query.id, ())) if query.consume != "none" else []
    found: list[Match] = []
    for partition, members in _partitions(mine, key).items():
        answers = answers_of(query, branches, members, scope_types)
        by_completing: dict[tuple[Any, ...], list[Answer]] = {}
        for answer in answers:
            # > its completing member is the greatest in event order
            by_completing.setdefault(max(member.order for member in answer.members), []).append(answer)
        # > CONSUME, applied per partition in the order of completing members
        for completing in sorted(by_completing):
            alike = by_completing[completing]
            if query.consume != "none":
                # > only matches detected in the range consume
                alike = [answer for answer in alike if _inside(_detection(query, [answer]), start, end)]
                alike = _unconsumed(query, (query.id, partition), alike, after)
            for chosen in _selected(query, alike):
                match = _match(query, chosen, scope_types, start, end)
                event = _composite(query, match, partition, key, chosen, scope_types, ids)
                composite.append(event)
                _consume(query, (query.id, partition), chosen, completing, after)
                # > returns exactly the matches with start <= detection_ts < end, each once
                if _inside(match.detection_ts, start, end):
                    found.append(match)
    if query.consume != "none":
        after.matches[query.id] = tuple(composite)
    for expression, name in query.returns:
        types[query.id, name] = _return_type(expression, scope_types)
    return found, composite


def _inside(moment: int, start: int | None, end: int | None) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)


def _partitions(events: list[Event], key: list[tuple[str, Value]]) -> dict[tuple[Value, ...], list[Event]]:
    # > [attr], [attr1, attr2]: equivalence test: every element, negated and grouped ones too, has the same non-null
    # > value.
    # > [attr = 'v']: and the value is v. It partitions the events; a query without one has a single partition.
    found: dict[tuple[Value, ...], list[Event]] = {}
    for event in events:
        values = tuple(attribute_of(event, name) for name, _ in key)
        wanted = all(v is None or compare("=", mine, v) for mine, (_, v) in zip(values, key, strict=True))
        if None not in values and wanted:
            found.setdefault(values, []).append(event)
    return found


def _variable_types(query: q.Query, types: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for element in elements_of(query.pattern):
        if isinstance(element, q.Element) and element.variable is not None:
            for (name, attribute), kind in types.items():
                if name in element.classes and (kind == "float" or (element.variable, attribute) not in found):
                    found[element.variable, attribute] = kind
    return found


# ---------------------------------------------------------------- SELECT, CONSUME


def _unconsumed(query: q.Query, place: tuple[str, Any], answers: list[Answer], state: State) -> list[Answer]:
    kept = []
    for answer in answers:
        # > [a timer] may be bound twice and is never consumed
        events = [member for member in answer.members if member.timer is None]
        # > `used` drops, before SELECT, every answer with an event that an earlier match of this query used
        if query.consume == "used" and any(event.id in state.used.get(place, ()) for event in events):
            continue
        # > `older` drops every answer with an event at or before the completing member of an earlier match.
        if query.consume == "older" and place in state.older and any(e.order <= state.older[place] for e in events):
            continue
        kept.append(answer)
    return kept


def _consume(query: q.Query, place: tuple[str, Any], chosen: Answer, completing: tuple[Any, ...], state: State) -> None:
    if query.consume == "used":
        ids = frozenset(member.id for member in chosen.members if member.timer is None)
        state.used[place] = state.used.get(place, frozenset()) | ids
    if query.consume == "older":
        state.older[place] = completing


def _selected(query: q.Query, answers: list[Answer]) -> list[Answer]:
    # > SELECT, among the answers of a partition with the same completing member: `all` keeps each
    if query.select == "all" or not answers:
        return answers
    if query.select == "merged":
        return [_merged(answers)]
    # > `recent` keeps the one whose members, listed from the last bound element of the pattern back to the first, are
    # > greatest in event order at the first difference; `earliest` the one whose members, listed from the first bound
    # > element on, are smallest (a list that is the start of the other counts as smaller)
    # Answers that are equal in all this bind the same events through different choices of an OR: the earlier stays.
    answers = sorted(answers, key=lambda answer: sorted(answer.bound))
    if query.select == "recent":
        return [max(answers, key=lambda answer: (_listed(answer, True), _grouped(answer, True)))]
    return [min(answers, key=lambda answer: (_listed(answer, False), _grouped(answer, False)))]


def _listed(answer: Answer, backwards: bool) -> list[tuple[Any, ...]]:
    listed = [e.order for place in sorted(answer.bound) if place not in answer.groups for e in answer.bound[place]]
    return listed[::-1] if backwards else listed


def _grouped(answer: Answer, backwards: bool) -> list[tuple[int, list[tuple[Any, ...]]]]:
    # > groups compare only after all else is equal (more events are greater, then their members)
    step = -1 if backwards else 1
    places = sorted(answer.groups)[::step]
    return [(len(answer.bound[p]), [e.order for e in answer.bound[p]][::step]) for p in places]


def _merged(answers: list[Answer]) -> Answer:
    # > `merged` makes one match that binds each element to all the events that it has in them (an event may then stand
    # > in several elements; times are the extremes)
    bound: dict[int, tuple[Event, ...]] = {}
    for place in sorted({place for answer in answers for place in answer.bound}):
        events = {event.order: event for answer in answers for event in answer.bound.get(place, ())}
        bound[place] = tuple(events[order] for order in sorted(events))
    return Answer(bound, frozenset().union(*(answer.groups for answer in answers)))


# ---------------------------------------------------------------- matches


def _detection(query: q.Query, answers: list[Answer]) -> int:
    # > its detection_ts is its end_ts unless postponed, and never before that of a member that is itself a match of
    # > another query.
    members = [member for answer in answers for member in answer.members]
    moment = max(member.end for member in members)
    if is_postponed(query):
        # > Postponed means detection_ts = start_ts + WITHIN (start_ts of the rest, for a trailing group) under SELECT
        # > all, and end_ts + WITHIN under any other SELECT.
        assert query.within_us is not None
        rest = [e for answer in answers for p in answer.bound if p not in answer.groups for e in answer.bound[p]]
        first = min(member.start for member in (rest if _trailing_group(query) else members))
        moment = (first if query.select == "all" else moment) + query.within_us
    return max([moment, *(member.detection for member in members if member.detection is not None)])


def _trailing_group(query: q.Query) -> bool:
    if not isinstance(query.pattern, q.Seq):
        return False
    positive = [p for p in query.pattern.parts if not (isinstance(p, q.Element) and p.negated)]
    return isinstance(positive[-1], q.Element) and isinstance(positive[-1].quantity, q.Group)


def _match(
    query: q.Query, answer: Answer, types: dict[tuple[str, str], str], start: int | None, end: int | None
) -> Match:
    """The fields are written out only of a match in the range: one that does not fit 64 bits is refused then."""
    detection = _detection(query, [answer])
    scope = _return_scope(query, answer, types)
    returned = query.returns if _inside(detection, start, end) else ()
    names = {element.position: element.name for element in elements_of(query.pattern)}
    return Match(
        query_id=query.id,
        elements=tuple((names[p], tuple(e.id for e in answer.bound[p])) for p in sorted(answer.bound)),
        # > Its start_ts and end_ts are those extremes
        start_ts=min(member.start for member in answer.members),
        end_ts=max(member.end for member in answer.members),
        detection_ts=detection,
        fields={name: text(value(expression, scope)) for expression, name in returned},
    )


def _return_scope(query: q.Query, answer: Answer, types: dict[tuple[str, str], str]) -> Scope:
    named = {e.variable: answer.bound[e.position] for e in elements_of(query.pattern) if e.position in answer.bound}
    events = {variable: bound for variable, bound in named.items() if variable is not None}
    one = {variable: bound[0] for variable, bound in events.items() if len(bound) == 1}
    return Scope(events, one, types=types, in_return=True)


def _return_type(expression: q.Expression, types: dict[tuple[str, str], str]) -> str:
    return type_of(expression, Scope({}, {}, types=types))


def _composite(
    query: q.Query,
    match: Match,
    partition: tuple[Value, ...],
    key: list[tuple[str, Value]],
    chosen: Answer,
    types: dict[tuple[str, str], str],
    ids: Ids,
) -> Event:
    # > each match of that query is an event: class = that id, event_id = match_id, its start_ts and end_ts, its RETURN
    # > fields as attributes, and its source if it tests `[source]`
    scope = _return_scope(query, chosen, types)
    attributes = {name: value(expression, scope) for expression, name in query.returns}
    names = [name for name, _ in key]
    if "source" in names:
        attributes.setdefault("source", partition[names.index("source")])
    return Event(
        id=ids(query.id, match.elements),
        event_class=query.id,
        start=match.start_ts,
        end=match.end_ts,
        attributes=attributes,
        declared=frozenset(attributes) | BUILTIN,
        detection=match.detection_ts,
    )
