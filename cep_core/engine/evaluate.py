"""One query over a table of events, whatever it says: from the store to matches.

Enters: checked queries, `Events` with their columns, the detection range and the state. Leaves: `Found`: matches as
numbers, with their RETURN fields.
Always holds: every partition is answered alone; what a query finds does not depend on the queries beside it. Stores,
candidates and columns are made once and shared by all queries of the call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.engine.conditions import EventColumns
from cep_core.engine.held import Held
from cep_core.engine.keys import key_codes
from cep_core.engine.lists import Candidates
from cep_core.engine.matcher import Chunk, Taken, chunks
from cep_core.engine.order import Ordered, order
from cep_core.engine.returns import Flat, returned
from cep_core.engine.select import Answer, Consumed, Key, Lasting, select
from cep_core.engine.task import Task, build
from cep_core.engine.values import Vector, compare, constant
from cep_core.engine.whole import is_large
from cep_core.language.algebra import Element, Pattern, Timer, TimerAfter
from cep_core.language.checked import CheckedQuery

ROOM = 1 << 16  # matches that are selected before they go on
DETECTION = "__detection_us"  # a column of events that are matches: when they were detected
_LOWEST = -(2**63)


@dataclass(frozen=True)
class Found:
    """n matches of one query, flat (returns.py), with when each is detected int64[n], and its fields."""

    flat: Flat
    detection: np.ndarray
    fields: dict[str, Vector]

    def within(self, wanted: Range) -> Found:
        """Only the matches of the range."""
        keep = wanted.holds(self.detection)
        if keep.all():
            return self
        sizes = np.diff(self.flat.offsets)
        members, rows = np.repeat(keep, sizes), np.flatnonzero(keep)
        offsets = np.cumsum([0, *sizes[keep]]).astype(np.int64)
        empty = {position: bound[keep] for position, bound in self.flat.empty.items()}
        flat = Flat(offsets, self.flat.element[members], self.flat.member[members], self.flat.timers, empty)
        return Found(flat, self.detection[keep], {name: vector.take(rows) for name, vector in self.fields.items()})


@dataclass(frozen=True)
class Range:
    """Detection times [start, end); None is open."""

    start: int | None
    end: int | None

    def holds(self, moments: np.ndarray) -> np.ndarray:
        """bool[n]."""
        kept = np.ones(len(moments), bool)
        if self.start is not None:
            kept &= moments >= self.start
        if self.end is not None:
            kept &= moments < self.end
        return kept


@dataclass
class Keyed:
    """The store of a key, its candidates, and what its partitions are called."""

    store: Ordered
    candidates: Candidates
    names: Callable[[], list[str]]
    spare: np.ndarray | None = None

    def marks(self) -> np.ndarray:
        """int64[m], all 0: what CONSUME used marks. One array serves all queries, each clears what it marked: fresh
        pages for every query would cost more than its search."""
        taken, self.spare = self.spare, None
        return np.zeros(self.store.count, np.int64) if taken is None else taken

    def give_back(self, marks: np.ndarray, places: np.ndarray) -> None:
        """After a search whose events are all among these places."""
        marks[places] = 0
        self.spare = marks

    @cached_property
    def number_of(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names())}

    @cached_property
    def place_of(self) -> np.ndarray:
        """int64[n]: row -> place, -1 for rows that are in no partition."""
        places = np.full(self.candidates.columns.events.count, -1, np.int64)
        places[self.store.row] = np.arange(self.store.count)
        return places


class Evaluation:
    """Evaluates queries over one table of events. timers: the moments of all timers that matches bind."""

    def __init__(self, columns: EventColumns) -> None:
        self.columns = columns
        self.events = columns.events
        self.timers: list[int] = []
        self._timer_numbers: dict[int, int] = {}
        self._keyed: dict[Any, Keyed] = {}

    def matches(
        self, checked: CheckedQuery, within: Range, consumed: dict[str, Consumed], limit: int, note: bool
    ) -> Iterator[Found]:
        """consumed: partition -> what it consumed; is brought up to date where `note` asks for it."""
        keyed = self.keyed(checked)
        task = build(checked, keyed.candidates, self.columns)
        detected = self._detected()
        taken = self._taken(checked, task, keyed, consumed)
        found = chunks(task, within.start, within.end, limit, taken, detected, lambda part: keyed.names()[part])
        if task.post:
            yield from self._selected(checked, task, keyed, found, within, consumed, detected)
            return
        for chunk in found:
            yield self._found(checked, task, chunk)
        if note:
            self._consumed(checked, task, keyed, taken, consumed, within.end)
        if len(taken.used):
            keyed.give_back(taken.used, task.ctx["lists_place"])

    # ------------------------------------------------------------ stores

    def keyed(self, checked: CheckedQuery) -> Keyed:
        """The events in partition and event order, by the query's key."""
        mark = (checked.key, checked.key_values)
        if mark not in self._keyed:
            store, names = self._ordered(checked)
            self._keyed[mark] = Keyed(store, Candidates(store, self.columns), names)
        return self._keyed[mark]

    def _ordered(self, checked: CheckedQuery) -> tuple[Ordered, Callable[[], list[str]]]:
        if not checked.key:
            return order(self.events), lambda: [""]
        arrays = [
            self.events.attribute(name) if name == "source" else _plain(self.columns.attribute(name))
            for name in checked.key
        ]
        codes = key_codes(arrays)
        for name, wanted in zip(checked.key, checked.key_values, strict=True):
            if wanted is not None:
                same, valid = compare("=", self.columns.attribute(name), constant(wanted, len(codes)))
                codes = np.where(same & valid, codes, -1).astype(np.int32)
        if any(wanted is not None for wanted in checked.key_values):
            kept = np.unique(codes[codes >= 0])
            codes = np.where(codes >= 0, np.searchsorted(kept, np.maximum(codes, 0)), -1).astype(np.int32)
        store = order(self.events, codes)
        held: list[str] = []

        def names() -> list[str]:
            if not held:
                firsts = store.row[store.offsets[:-1]] if len(store.row) else np.zeros(0, np.int32)
                texts = [self.columns.attribute(name).take(firsts).texts() for name in checked.key]
                named = zip(*texts, strict=True)
                held.extend(", ".join(f"{k}={t}" for k, t in zip(checked.key, own, strict=True)) for own in named)
            return held

        return store, names

    def _detected(self) -> np.ndarray | None:
        """int64[n]: when those events were detected that are themselves matches."""
        if DETECTION not in self.columns.names:
            return None
        vector = self.columns.attribute(DETECTION)
        return np.where(vector.valid, vector.data, _LOWEST).astype(np.int64)

    # ------------------------------------------------------------ consumption

    def _taken(self, checked: CheckedQuery, task: Task, keyed: Keyed, consumed: dict[str, Consumed]) -> Taken:
        consume = "none" if task.post else checked.query.consume
        store = keyed.store
        used = keyed.marks() if consume == "used" else np.zeros(0, np.int64)
        older = store.offsets[:-1].copy() if consume == "older" else np.zeros(0, np.int64)
        if not consumed or consume == "none":
            return Taken(used, older)
        parts = {keyed.number_of[name]: own for name, own in consumed.items() if name in keyed.number_of}
        before = sorted({event for own in parts.values() for event in own.used})
        if consume == "used" and before:
            ids = self.events.event_id
            rows = np.flatnonzero(np.asarray(pc.is_in(ids, value_set=pa.array(before, ids.type))))
            places = keyed.place_of[rows]
            numbers = np.searchsorted(store.offsets, places, side="right") - 1
            for row, place, part in zip(rows.tolist(), places.tolist(), numbers.tolist(), strict=True):
                if place >= 0 and part in parts and ids[row].as_py() in parts[part].used:
                    used[place] = 1
        for part, own in parts.items() if consume == "older" else ():
            if own.latest is not None:
                held = range(int(store.offsets[part]), int(store.offsets[part + 1]))
                latest = own.latest
                older[part] = held.start + bisect_right(held, latest, key=lambda p: self._lasting(keyed, p))
        return Taken(used, older)

    def _consumed(
        self, checked: CheckedQuery, task: Task, keyed: Keyed, taken: Taken, consumed: dict[str, Consumed],
        end_us: int | None,
    ) -> None:  # fmt: skip
        """Notes what the run has consumed, of used events those that an answer after its end can still reach."""
        store = keyed.store
        if checked.query.consume == "used":
            places = np.unique(task.ctx["lists_place"])
            places = places[taken.used[places] > 1]
            if end_us is not None and checked.query.within_us is not None:
                places = places[store.end[places] >= end_us - checked.query.within_us]
            parts = np.searchsorted(store.offsets, places, side="right") - 1
            ids = self.events.event_id.take(pa.array(store.row[places])).to_pylist()
            names = keyed.names() if len(places) else []
            for part, event, end in zip(parts.tolist(), ids, store.end[places].tolist(), strict=True):
                consumed.setdefault(names[part], Consumed()).used[str(event)] = end
        elif checked.query.consume == "older":
            for part in np.flatnonzero(taken.older > store.offsets[:-1]).tolist():
                own = consumed.setdefault(keyed.names()[part], Consumed())
                last = self._lasting(keyed, int(taken.older[part]) - 1)
                own.latest = last if own.latest is None else max(own.latest, last)

    def _lasting(self, keyed: Keyed, place: int) -> Lasting:
        """An event's place in event order, across runs."""
        row = int(keyed.store.row[place])
        tie = _LOWEST if self.events.tie is None else int(self.events.tie[row])
        return (
            int(keyed.store.end[place]), int(keyed.store.start[place]), 0, tie, str(self.events.event_id[row].as_py())
        )  # fmt: skip

    # ------------------------------------------------------------ matches

    def _found(self, checked: CheckedQuery, task: Task, chunk: Chunk) -> Found:
        member = chunk.member
        if len(chunk.moment):
            numbers = np.asarray([self._timer(moment) for moment in chunk.moment.tolist()], np.int64)
            timer = member < 0
            member = member.copy()
            member[timer] = self.events.count + numbers[-1 - member[timer]]
        empty = {
            position: (chunk.groupings & sum(1 << number for number in numbers)) != 0
            for position, numbers in _groupings(task).items()
        }
        return self._with_fields(checked, chunk.offsets, chunk.element, member, chunk.detection, empty)

    def _with_fields(
        self, checked: CheckedQuery, offsets: np.ndarray, element: np.ndarray, member: np.ndarray,
        detection: np.ndarray, empty: dict[int, np.ndarray],
    ) -> Found:  # fmt: skip
        flat = Flat(offsets, element, member, np.asarray(self.timers, np.int64), empty)
        fields: dict[str, Vector] = {}
        if checked.query.returns:
            positions = {e.variable: e.position for e in elements(checked.query.pattern) if e.variable is not None}
            fields = returned(checked, positions, flat, self.columns)
        return Found(flat, detection, fields)

    def _timer(self, moment: int) -> int:
        if moment not in self._timer_numbers:
            self._timer_numbers[moment] = len(self.timers)
            self.timers.append(moment)
        return self._timer_numbers[moment]

    # ------------------------------------------------------------ selection after the search

    def _selected(
        self, checked: CheckedQuery, task: Task, keyed: Keyed, found: Iterator[Chunk], within: Range,
        consumed: dict[str, Consumed], detected: np.ndarray | None,
    ) -> Iterator[Found]:  # fmt: skip
        """SELECT and CONSUME of answers whose completing member is known only now: by partition, then by completing
        member. All answers are held as numbers, those of one completing member as values."""
        held = Held(list(found), task, keyed)
        keys = Keys(self, keyed)
        made = _Made({position: [] for position in _groupings(task)})
        for part, rows in held.groups():
            own = [held.answer(row) for row in rows]
            taken = None
            if checked.query.consume != "none":  # only matches that are detected in the range consume
                taken = consumed.setdefault(keyed.names()[part], Consumed())
                kept = within.holds(np.asarray([answer.end for answer in own], np.int64))
                own = [answer for answer, keep in zip(own, kept.tolist(), strict=True) if keep]
            for chosen in select(checked.query, own, keys, taken):
                bound = _united(chosen, keys.key)
                places = [e for events in bound.values() for e in events if isinstance(e, int)]
                when = _detection(checked, chosen)
                if detected is not None:
                    when = max([when, *detected[keyed.store.row[places]].tolist()])
                made.add(bound, when, lambda event: self._member(keyed, event))
                if len(made.detection) == ROOM:
                    yield self._with_fields(checked, *made.taken()).within(within)
        if made.detection:
            yield self._with_fields(checked, *made.taken()).within(within)

    def _member(self, keyed: Keyed, event: Any) -> int:
        """A place or a timer as a match has it: a row, or from their count on a timer."""
        if isinstance(event, int):
            return int(keyed.store.row[event])
        return self.events.count + self._timer(event[0])


@dataclass(frozen=True)
class Keys:
    """Event order inside the store (`key`), across runs (`lasting`), ids and ends of events. An event is its place, a
    timer (moment, position)."""

    evaluation: Evaluation
    keyed: Keyed

    def key(self, event: Any) -> Key:
        if isinstance(event, int):
            return int(self.keyed.store.end[event]), int(self.keyed.store.start[event]), 0, event
        return event[0], event[0], 1, event[1]

    def lasting(self, event: Any) -> Lasting:
        if isinstance(event, int):
            return self.evaluation._lasting(self.keyed, event)
        return event[0], event[0], 1, event[1], ""

    def event_id(self, event: int) -> str:
        return str(self.evaluation.events.event_id[int(self.keyed.store.row[event])].as_py())

    def end(self, event: int) -> int:
        return int(self.keyed.store.end[event])


@dataclass
class _Made:
    """Matches while they are made, flat; empty: position of a group -> which of them bind it."""

    empty: dict[int, list[bool]]
    offsets: list[int] = field(default_factory=lambda: [0])
    element: list[int] = field(default_factory=list)
    member: list[int] = field(default_factory=list)
    detection: list[int] = field(default_factory=list)

    def add(self, bound: dict[int, tuple[Any, ...]], detection: int, member_of: Callable[[Any], int]) -> None:
        for position, events in sorted(bound.items()):
            self.element.extend([position - 1] * len(events))
            self.member.extend(map(member_of, events))
        self.offsets.append(len(self.member))
        self.detection.append(detection)
        for position, bound_there in self.empty.items():
            bound_there.append(position in bound)

    def taken(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[int, np.ndarray]]:
        """Offsets, elements, members, detection and what is bound, of all so far; none are left."""
        empty = {position: np.asarray(own, bool) for position, own in self.empty.items()}
        found = (
            np.asarray(self.offsets, np.int64), np.asarray(self.element, np.int32), np.asarray(self.member, np.int32),
            np.asarray(self.detection, np.int64), empty,
        )  # fmt: skip
        self.empty = {position: [] for position in empty}
        self.offsets, self.element, self.member, self.detection = [0], [], [], []
        return found


def _groupings(task: Task) -> dict[int, set[int]]:
    """Position of a group -> the groupings that have it."""
    found: dict[int, set[int]] = {}
    for branch, number in zip(task.branches, task.ctx["shape_grouping"].tolist(), strict=True):
        for place in branch.groups:
            found.setdefault(place.element.position, set()).add(number)
    return found


def _united(chosen: list[Answer], key: Callable[[Any], Key]) -> dict[int, tuple[Any, ...]]:
    bound: dict[int, tuple[Any, ...]] = {}
    for answer in chosen:
        for position, events in answer.events.items():
            bound[position] = tuple(sorted({*bound.get(position, ()), *events}, key=key))
    return bound


def _detection(checked: CheckedQuery, chosen: list[Answer]) -> int:
    start, end = min(answer.start for answer in chosen), max(answer.end for answer in chosen)
    if not checked.postponed:
        return end
    return (start if checked.query.select == "all" else end) + (checked.query.within_us or 0)


def elements(pattern: Pattern) -> list[Element | Timer]:
    """Every element and timer in reading order."""
    if isinstance(pattern, TimerAfter):
        return [*elements(pattern.part), pattern]
    parts = getattr(pattern, "parts", None)
    return [pattern] if parts is None else [e for part in parts for e in elements(part)]  # type: ignore[list-item]


def _plain(vector: Vector) -> pa.Array:
    """The vector's values as an Arrow array to be coded: equal values, equal codes."""
    if is_large(vector.data):
        return pa.array([str(x) if ok else None for x, ok in zip(vector.data, vector.valid, strict=True)], pa.string())
    return pa.array(vector.data, mask=~vector.valid)


__all__ = ["DETECTION", "Evaluation", "Found", "Keyed", "Range", "elements"]
