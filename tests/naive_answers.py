"""The answers of one query over one partition: its instances, with their groups, where negations and conditions hold.

Enters: a query, its WHERE split by `split_where`, and the events of one partition in event order. Leaves: `Answer`s,
each once. Always holds: positive elements that are no groups are bound first; groups follow from them, and negations
from both, each under one disjunct of WHERE at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from cep_core.language import algebra as q
from tests.naive_conditions import Event, Scope, bare, disjuncts, holds, push_down
from tests.naive_patterns import Filters, Instance, all_precede, are_distinct, elements_of, fits, instances_of, is_group
from tests.naive_values import Value, plain


@dataclass(frozen=True)
class Answer:
    """bound: position of the element -> its events; groups: the positions that are groups."""

    bound: dict[int, tuple[Event, ...]]
    groups: frozenset[int]

    @property
    def members(self) -> list[Event]:
        return [event for events in self.bound.values() for event in events]


def split_where(where: q.Condition | None) -> tuple[list[tuple[str, Value]], list[list[q.Condition]]]:
    """The key as (attribute, required value or None), and the disjuncts of the rest."""
    # > [The equivalence test] stands only as a top-level AND term
    terms = list(where.conditions) if isinstance(where, q.All) else [where] if where is not None else []
    key = [
        (name, None if constant is None else plain(constant.value))
        for term in terms
        if isinstance(term, q.Equivalence)
        for name, constant in term.terms
    ]
    rest = [push_down(term) for term in terms if not isinstance(term, q.Equivalence)]
    return key, disjuncts(q.All(tuple(rest)) if rest else None)


def answers_of(
    query: q.Query, branches: list[list[q.Condition]], events: list[Event], types: dict[tuple[str, str], str]
) -> list[Answer]:
    meets = Filters(events, types)
    found: dict[tuple[tuple[int, tuple[str, ...]], ...], Answer] = {}
    for instance in instances_of(query.pattern, query, query.within_us, meets):
        for atoms in branches:
            answer = _completed(instance, atoms, query, meets, types)
            if answer is not None:
                # > the query's answers are the union of the answers under each Pi (one found under several counts
                # > once).
                found[tuple((p, tuple(e.id for e in answer.bound[p])) for p in sorted(answer.bound))] = answer
    return list(found.values())


def _completed(
    instance: Instance, atoms: list[q.Condition], query: q.Query, meets: Filters, types: dict[tuple[str, str], str]
) -> Answer | None:
    """The instance with its groups, if negations and conditions hold under this disjunct."""
    fixed = {event.id for event in instance.members if event.timer is None}
    names = {e.position: e for e in elements_of(query.pattern)}
    absent = [part for row in instance.rows for part in row if isinstance(part, q.Element)] + list(instance.negations)
    scope = _scope(instance.bound, names, types)
    bound = dict(instance.bound)
    for row in instance.rows:
        for place, part in enumerate(row):
            if isinstance(part, q.Element) and is_group(part):
                group = _group(row, place, part, instance, fixed, atoms, scope, query, meets)
                # > and whose number is within the bounds
                assert isinstance(part.quantity, q.Group)
                low, high = part.quantity.low, part.quantity.high
                if len(group) < low or (high is not None and len(group) > high):
                    return None
                bound[part.position] = group
    answer = Answer(bound, frozenset(bound) - frozenset(instance.bound))
    if not are_distinct(answer.members) or not fits(answer.members, query.within_us):
        return None
    whole = _scope(bound, names, types)
    for row in instance.rows:
        for place, part in enumerate(row):
            if not isinstance(part, q.Element) or not part.negated:
                continue
            if _negated(part, _between(row, place, part, answer, query, meets), fixed, atoms, whole):
                return None
    for part in instance.negations:
        # > In AND: none with b.start_ts >= end_ts - WITHIN and b.end_ts <= start_ts + WITHIN
        start, end, within = _times_of(answer.members, query)
        around = [b for b in meets.of(part) if b.start >= end - within and b.end <= start + within]
        if _negated(part, around, fixed, atoms, whole):
            return None
    settled = {part.variable for part in absent if part.variable is not None}
    rest = [atom for atom in atoms if not bare(atom) & settled]
    return answer if all(holds(atom, whole) for atom in rest) else None


def _scope(
    bound: dict[int, tuple[Event, ...]],
    elements: dict[int, q.Element | q.TimerAt | q.TimerEvery | q.TimerAfter],
    types: dict[tuple[str, str], str],
) -> Scope:
    events, one, several = {}, {}, set()
    for position, members in bound.items():
        element = elements[position]
        if element.variable is None:
            continue
        events[element.variable] = members
        if isinstance(element, q.Element) and isinstance(element.quantity, q.Window):
            several.add(element.variable)
        elif not is_group(element):
            one[element.variable] = members[0]
    return Scope(events, one, frozenset(several), types=types)


def _times_of(members: list[Event], query: q.Query) -> tuple[int, int, int]:
    # > start_ts and end_ts are the answer's.
    assert query.within_us is not None
    return min(e.start for e in members), max(e.end for e in members), query.within_us


def _group(
    row: tuple[q.Element | Instance, ...],
    place: int,
    part: q.Element,
    instance: Instance,
    fixed: set[str],
    atoms: list[q.Condition],
    scope: Scope,
    query: q.Query,
    meets: Filters,
) -> tuple[Event, ...]:
    # > Groups are maximal: ALL events of the class between the neighbours (p ≺ b ≺ n) that meet the conditions that
    # > name the group's variable bare Negations are skipped when finding a group's neighbours, and when deciding which
    # > groups lead or trail
    left = next((p for p in row[:place][::-1] if isinstance(p, Instance)), None)
    right = next((p for p in row[place + 1 :] if isinstance(p, Instance)), None)
    found = meets.of(part)
    if left is not None:
        found = [b for b in found if all_precede(left.stands, [b], query.ties)]
    else:
        # > Leading group: with b.start_ts >= end_ts - WITHIN.
        _, end, within = _times_of(instance.members, query)
        found = [b for b in found if b.start >= end - within]
    if right is not None:
        found = [b for b in found if all_precede([b], right.stands, query.ties)]
    else:
        # > Trailing group: with b.end_ts <= start_ts + WITHIN, where start_ts is that of the rest
        start, _, within = _times_of(instance.members, query)
        found = [b for b in found if b.end <= start + within]
    # > Events bound by non-group elements are ignored by the answer's negations and left out of its groups.
    found = [b for b in found if b.id not in fixed]
    if part.variable is not None:
        named = [atom for atom in atoms if part.variable in bare(atom)]
        found = [b for b in found if all(holds(atom, scope.with_one(part.variable, b)) for atom in named)]
    return tuple(found)


def _between(
    row: tuple[q.Element | Instance, ...], place: int, part: q.Element, answer: Answer, query: q.Query, meets: Filters
) -> list[Event]:
    # > SEQ(.., p, !B b, n, ..): there is no b with p ≺ b ≺ n, where p and n are the whole instances of the nearest
    # > bound elements.
    start, end, within = _times_of(answer.members, query)
    p = next((stands for other in row[:place][::-1] if (stands := _stands(other, answer))), ())
    n = next((stands for other in row[place + 1 :] if (stands := _stands(other, answer))), ())
    found = [b for b in meets.of(part) if all_precede(p, [b], query.ties) and all_precede([b], n, query.ties)]
    if not p:
        # > Leading !B: none with b.start_ts >= end_ts - WITHIN and b ≺ first.
        found = [b for b in found if b.start >= end - within]
    if not n:
        # > Trailing !B: none with last ≺ b and b.end_ts <= start_ts + WITHIN
        found = [b for b in found if b.end <= start + within]
    return found


def _stands(part: q.Element | Instance, answer: Answer) -> tuple[Event, ...]:
    if isinstance(part, Instance):
        return part.stands
    # > a group that is not empty then bounds the negation beside it.
    return () if part.negated else answer.bound[part.position]


def _negated(part: q.Element, found: list[Event], fixed: set[str], atoms: list[q.Condition], scope: Scope) -> bool:
    # > Negation: there is no b (meeting the conditions that mention it)
    # > Events bound by non-group elements are ignored by the answer's negations
    # > A consumed event still negates.
    named = [atom for atom in atoms if part.variable is not None and part.variable in bare(atom)]
    return any(
        b.id not in fixed and all(holds(atom, scope.with_one(part.variable or "", b)) for atom in named) for b in found
    )
