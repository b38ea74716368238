"""The instances of a pattern over one partition: every way to bind it, tried one after the other.

Enters: a pattern and the events of one partition in event order. Leaves: `Instance`s.
Always holds: an instance binds the positive elements that are no groups; it keeps where the groups and negations stand
between them, for naive_answers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

from cep_core.language import algebra as q
from tests.naive_conditions import Event, Scope, attribute_of, holds, push_down
from tests.naive_values import moment_text

TIMER_ATTRIBUTES = frozenset({"event_id", "start_ts", "end_ts", "ts"})


MOST_TRIED = 1_000_000  # ways to bind one part; more would take minutes and gigabytes


class TooManyBindings(Exception):
    """Trying every way to bind a pattern would not end: nothing is said about such a case."""


@dataclass(frozen=True)
class Instance:
    """A part's elements, without groups.

    stands: the members that have to precede and to follow where the part is in a SEQ; rows: each SEQ in it, with its
    positive parts replaced by their instances; negations: the negated elements of each AND in it.
    """

    bound: dict[int, tuple[Event, ...]]
    stands: tuple[Event, ...]
    rows: tuple[tuple[q.Element | Instance, ...], ...] = ()
    negations: tuple[q.Element, ...] = ()

    @property
    def members(self) -> list[Event]:
        return [event for events in self.bound.values() for event in events]


def elements_of(pattern: q.Pattern) -> Iterator[q.Element | q.TimerAt | q.TimerEvery | q.TimerAfter]:
    """Every element, in reading order."""
    match pattern:
        case q.Seq(parts) | q.And(parts) | q.Or(parts):
            for part in parts:
                yield from elements_of(part)
        case q.TimerAfter(part):
            yield from elements_of(part)
            yield pattern
        case _:
            yield pattern


def is_postponed(query: q.Query) -> bool:
    """Trailing `!B` and trailing group of the outermost SEQ; `!B` of the outermost AND."""
    match query.pattern:
        case q.Seq(parts):
            last = parts[-1]
            return isinstance(last, q.Element) and (last.negated or isinstance(last.quantity, q.Group))
        case q.And(parts):
            return any(isinstance(part, q.Element) and part.negated for part in parts)
    return False


class Filters:
    """The events that each element may bind."""

    def __init__(self, events: list[Event], types: dict[tuple[str, str], str]) -> None:
        self.events = events
        self._types = types
        self._known: dict[int, list[Event]] = {}

    def of(self, element: q.Element) -> list[Event]:
        # > A(cond) a: the same, with a filter on its own attributes; on any element, negated, grouped and windowed
        # > ones too
        # > ANY(A, B) x: one event of any of these classes; wherever a class may stand
        # > an element's own filter is plain boolean
        if element.position not in self._known:
            found = [event for event in self.events if event.event_class in element.classes]
            if element.filter is not None:
                pushed = push_down(element.filter)
                names = {"", element.variable or ""}
                found = [
                    event
                    for event in found
                    if holds(
                        pushed, Scope(dict.fromkeys(names, (event,)), dict.fromkeys(names, event), types=self._types)
                    )
                ]
            self._known[element.position] = found
        return self._known[element.position]


# ---------------------------------------------------------------- order and spans


def precedes(x: Event, y: Event, ties: q.Ties) -> bool:
    # > Precedes, written x ≺ y below: x.end_ts < y.start_ts. Under TIES ordered it is instead x.end_ts <= y.start_ts
    # > and x before y in event order
    if ties == "ordered":
        return x.end <= y.start and x.order < y.order
    return x.end < y.start


def all_precede(xs: Iterable[Event], ys: Iterable[Event], ties: q.Ties) -> bool:
    # > An instance with several members precedes another when each of its members precedes each of the other's.
    ys = list(ys)
    return all(precedes(x, y, ties) for x in xs for y in ys)


def fits(members: list[Event], within: int | None) -> bool:
    # > max(end_ts) - min(start_ts) <= WITHIN over its members
    # > a nested SEQ/AND/OR, with its own optional WITHIN d: an instance spans from its first start to its last end
    return within is None or max(e.end for e in members) - min(e.start for e in members) <= within


def _least(first: int | None, second: int | None) -> int | None:
    return min((span for span in (first, second) if span is not None), default=None)


def are_distinct(members: list[Event]) -> bool:
    # > No event is bound twice in one answer. A timer ... may be bound twice
    ids = [event.id for event in members if event.timer is None]
    return len(ids) == len(set(ids))


# ---------------------------------------------------------------- instances


def instances_of(pattern: q.Pattern, query: q.Query, within: int | None, meets: Filters) -> list[Instance]:
    match pattern:
        case q.Element(quantity=q.One()):
            # > A a: one event of class A, bound to `a`
            return [Instance({pattern.position: (event,)}, (event,)) for event in meets.of(pattern)]
        case q.Element(quantity=q.Window() as window):
            # > A[k] a: k different events of A, any k of them, however they overlap; a[1] ... a[k] in event order
            _refuse_many(comb(len(meets.of(pattern)), window.size))
            chosen = [c for c in combinations(meets.of(pattern), window.size) if fits(list(c), within)]
            return [Instance({pattern.position: c}, c) for c in chosen if _times(window, c)]
        case q.TimerAt(moment):
            # > AT('2026-01-01T00:00:00Z') t: a timer at that moment, present in every partition
            return [_timer(pattern.position, moment)]
        case q.TimerEvery(period):
            # > EVERY(1 hour) t: a timer at every multiple of the period since the epoch, present in every partition
            assert within is not None
            first = min(event.start for event in meets.events) - within
            last = max(event.end for event in meets.events) + within
            moments = range(-(-first // period) * period, last + 1, period)
            return [_timer(pattern.position, moment) for moment in moments]
        case q.TimerAfter(part, delay):
            return [
                joined
                for instance in instances_of(part, query, within, meets)
                for joined in [_after(instance, pattern.position, delay)]
                if fits(joined.members, within)
            ]
        case q.Or(parts):
            # > OR(p1, ..., pn): an instance of one of them; each instance is an answer of its own
            inner = _least(within, pattern.within_us)
            found = [instance for part in parts for instance in instances_of(part, query, inner, meets)]
            return [instance for instance in found if fits(instance.members, inner)]
        case q.Seq() | q.And():
            return _joined(pattern, query, _least(within, pattern.within_us), meets)
    raise AssertionError(pattern)


def _refuse_many(ways: int) -> None:
    if ways > MOST_TRIED:
        raise TooManyBindings(f"{ways} ways to bind a part")


def _times(window: q.Window, events: tuple[Event, ...]) -> bool:
    # > TIMES_EQ(n, A a, attr), TIMES_DF(n, A a, attr): A[n] a whose events all have the same non-null value of attr /
    # > pairwise different non-null values
    name = window.same or window.different
    if name is None:
        return True
    values = [attribute_of(event, name) if name in event.declared else None for event in events]
    return None not in values and len(set(values)) == (1 if window.same else len(values))


def _timer(position: int, moment: int) -> Instance:
    # > A timer is a member like an event (id `timer:2026-01-01T00:00:00.000000Z`), but no row of any table
    timer = Event(f"timer:{moment_text(moment)}", "", moment, moment, declared=TIMER_ATTRIBUTES, timer=position)
    return Instance({position: (timer,)}, (timer,))


def _after(instance: Instance, position: int, delay: int) -> Instance:
    # > AFTER(p, 2 days) t: for each instance of p, a timer that long after its end; its members are p's and the timer;
    # > as a part of a SEQ it precedes and follows as a point at the timer's time; every span counts all its members
    timer = _timer(position, max(event.end for event in instance.members) + delay)
    return Instance(instance.bound | timer.bound, timer.stands, instance.rows, instance.negations)


def _joined(pattern: q.Seq | q.And, query: q.Query, within: int | None, meets: Filters) -> list[Instance]:
    # > SEQ(p1, ..., pn): one instance of each, each preceding the next
    # > AND(p1, ..., pn): one instance of each, in any order (AND(A a, A b) yields both bindings of two events)
    positive = [part for part in pattern.parts if not _is_negated(part) and not is_group(part)]
    found: list[tuple[Instance, ...]] = [()]
    for part in positive:
        instances = instances_of(part, query, within, meets)
        _refuse_many(len(found) * len(instances))
        found = [
            (*before, instance)
            for before in found
            for instance in instances
            if not before or isinstance(pattern, q.And) or all_precede(before[-1].stands, instance.stands, query.ties)
            for members in [[event for each in (*before, instance) for event in each.members]]
            if are_distinct(members) and fits(members, within)
        ]
    return [_whole(pattern, instances) for instances in found]


def _whole(pattern: q.Seq | q.And, instances: tuple[Instance, ...]) -> Instance:
    bound = {place: events for instance in instances for place, events in instance.bound.items()}
    rows = tuple(row for instance in instances for row in instance.rows)
    negations = tuple(element for instance in instances for element in instance.negations)
    if isinstance(pattern, q.And):
        negations += tuple(part for part in pattern.parts if isinstance(part, q.Element) and part.negated)
    else:
        left = iter(instances)
        apart = [part if _is_negated(part) or is_group(part) else None for part in pattern.parts]
        rows += (tuple(part if isinstance(part, q.Element) else next(left) for part in apart),)
    return Instance(bound, tuple(event for events in bound.values() for event in events), rows, negations)


def _is_negated(part: q.Pattern) -> bool:
    return isinstance(part, q.Element) and part.negated


def is_group(part: q.Pattern) -> bool:
    return isinstance(part, q.Element) and isinstance(part.quantity, q.Group)
