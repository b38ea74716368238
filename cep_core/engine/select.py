"""SELECT and CONSUME: which answers of a partition are matches.

Enters: the answers of one query in one partition, and what earlier runs consumed. Leaves: matches in the order of their
completing members; the state is updated.
Always holds: answers are taken by completing member in event order; those of one member are dropped, selected and
consumed together (language contract, Matches).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from cep_core.language.algebra import Query

Key = tuple[int, int, int, int]  # end, start, 1 for a timer, place or position
Lasting = tuple[int, int, int, int, str]  # end, start, 1 for a timer, tie or position, id


@dataclass
class Consumed:
    """What earlier matches of one partition took: ids of used events, or the completing member of the latest match as
    (end, start, timer, tie, id)."""

    used: dict[str, int] = field(default_factory=dict)  # event id -> its end
    latest: Lasting | None = None


@dataclass(frozen=True)
class Answer:
    """events: element position -> its events in event order; groups too, possibly empty. listed: the events of slots in
    pattern order. An event is its place in the store, a timer (moment, position)."""

    branch: int
    events: dict[int, tuple[Any, ...]]
    listed: tuple[Any, ...]
    groups: tuple[tuple[Any, ...], ...]
    start: int
    end: int
    completing: Key


class Order(Protocol):
    """Event order inside the store (`key`), across runs (`lasting`), ids and ends of events."""

    def key(self, event: Any) -> Key: ...
    def lasting(self, event: Any) -> Lasting: ...
    def event_id(self, event: int) -> str: ...
    def end(self, event: int) -> int: ...


def select(query: Query, found: list[Answer], order: Order, consumed: Consumed | None) -> Iterator[list[Answer]]:
    """The answers of each match: one, or under `merged` all that it is made of."""
    found.sort(key=lambda answer: answer.completing)
    for _, group in groupby(found, key=lambda answer: answer.completing):
        left = list(group)
        if consumed is not None:
            left = [answer for answer in left if not _taken(query, answer, order, consumed)]
        if not left:
            continue
        match query.select:
            case "all":
                chosen = [[answer] for answer in left]
            case "recent":
                chosen = [[_best(left, order, recent=True)]]
            case "earliest":
                chosen = [[_best(left, order, recent=False)]]
            case _:
                chosen = [left]
        if consumed is not None:
            _consume(chosen, order, consumed)
        yield from chosen


def _events(answer: Answer) -> list[int]:
    return [event for events in answer.events.values() for event in events if isinstance(event, int)]


def _taken(query: Query, answer: Answer, order: Order, consumed: Consumed) -> bool:
    if query.consume == "used":
        return any(order.event_id(event) in consumed.used for event in _events(answer))
    latest = consumed.latest
    return latest is not None and any(order.lasting(event) <= latest for event in _events(answer))


def _consume(chosen: list[list[Answer]], order: Order, consumed: Consumed) -> None:
    for answers in chosen:
        for answer in answers:
            events = _events(answer)
            consumed.used.update((order.event_id(event), order.end(event)) for event in events)
            everybody = [event for members in answer.events.values() for event in members]
            consumed.latest = order.lasting(max(everybody, key=order.key))


def _best(answers: list[Answer], order: Order, recent: bool) -> Answer:
    """Lists compare from the last element back (recent: greatest wins) or from the first on (earliest: smallest wins);
    then groups, by size and by members; then the elements that stand first in the pattern."""
    step = -1 if recent else 1

    def rank(answer: Answer) -> tuple[object, ...]:
        listed = [order.key(event) for event in answer.listed[::step]]
        groups = [(len(group), [order.key(event) for event in group[::step]]) for group in answer.groups[::step]]
        return listed, groups

    ranked = [(rank(answer), answer) for answer in answers]
    top = max(rank for rank, _ in ranked) if recent else min(rank for rank, _ in ranked)
    return min((answer for rank, answer in ranked if rank == top), key=lambda answer: sorted(answer.events))
