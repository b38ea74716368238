"""The general matcher: any query of the contract over one partition.

Enters: a `Task` (a checked query with its branches) and a `Partition` of the store. Leaves: the query's answers with
everything that SELECT and CONSUME need.
Always holds: slots are bound rarest class first, each inside the window that the bound ones leave (SASE 4: windows and
predicates pushed down); a condition is tested as soon as all that it names is bound; groups, then conditions on them,
then negations come last, since each needs the one before (language contract, Matches).

An event is its place in the store; a timer is a negative number into `Partition.timers`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cep_core.engine.scope import Scope, bare_variables, holds, variables
from cep_core.language.algebra import Atom, Element, Group, TimerAfter, TimerAt, TimerEvery, Window
from cep_core.language.checked import CheckedQuery
from cep_core.plan.branches import Branch, GroupPlace, NegationPlace

Key = tuple[int, int, int, int]


@dataclass(frozen=True)
class Task:
    """A query as the matcher reads it. atoms: per branch, the conditions that name more than one element; the others
    are in the candidates already."""

    checked: CheckedQuery
    branches: tuple[Branch, ...]
    atoms: tuple[tuple[Atom, ...], ...]


@dataclass(frozen=True)
class Answer:
    """events: element position -> its events in event order; groups too, possibly empty. listed: the events of slots in
    pattern order."""

    branch: int
    events: dict[int, tuple[int, ...]]
    listed: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    start: int
    end: int
    completing: Key


@dataclass
class Partition:
    """candidates[branch][position]: places of the store in event order. start, end: times by place. timers: (moment,
    position) of each timer bound so far; event -1 - i is the i-th."""

    candidates: list[dict[int, list[int]]]
    start: Sequence[int]
    end: Sequence[int]
    scope: Scope
    timers: list[tuple[int, int]] = field(default_factory=list)
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def timer(self, moment: int, position: int) -> int:
        if (moment, position) not in self._numbers:
            self.timers.append((moment, position))
            self._numbers[moment, position] = -len(self.timers)
        return self._numbers[moment, position]

    def span(self, event: int) -> tuple[int, int]:
        if event < 0:
            moment = self.timers[-1 - event][0]
            return moment, moment
        return self.start[event], self.end[event]

    def key(self, event: int) -> Key:
        """Event order: a timer comes after every event of the same times."""
        if event < 0:
            moment, position = self.timers[-1 - event]
            return moment, moment, 1, position
        return self.end[event], self.start[event], 0, event


def answers(task: Task, partition: Partition) -> Iterator[Answer]:
    """Every answer, each once."""
    repeated = len(task.checked.disjuncts) > 1
    seen: set[Any] = set()
    for number in range(len(task.branches)):
        for answer in _Search(task, number, partition).run():
            if repeated:
                mark = (task.branches[number].alternative, answer.listed, answer.groups)
                if mark in seen:
                    continue
                seen.add(mark)
            yield answer


class _Search:
    """The answers of one branch in one partition."""

    def __init__(self, task: Task, number: int, partition: Partition) -> None:
        self.query = task.checked.query
        self.number = number
        self.branch = task.branches[number]
        self.partition = partition
        self.rows = partition.candidates[number]
        self.window = self.query.within_us
        self.bound: dict[int, int] = {}
        self.names = {slot.element.variable for slot in self.branch.slots} - {None}
        self.group_names = {place.element.variable for place in self.branch.groups} - {None}
        negated = {place.element.variable for place in self.branch.negations} - {None}
        self.many = frozenset(
            slot.element.variable
            for slot in self.branch.slots
            if slot.element.variable is not None and isinstance(getattr(slot.element, "quantity", None), Window)
        )
        named = [(atom, variables(atom)) for atom in task.atoms[number]]
        self.slot_atoms = [(a, v) for a, v in named if not v & (self.group_names | negated)]
        self.group_atoms = [(a, v) for a, v in named if v & self.group_names and not v & negated]
        self.negation_atoms = [(a, v) for a, v in named if v & negated]
        self.order = self._order()
        self.due = self._due()

    def _order(self) -> list[int]:
        """Events before AT and EVERY timers, rare ones first; AFTER's timers follow from the others."""

        def cost(slot: int) -> tuple[int, int, int]:
            element = self.branch.slots[slot].element
            if isinstance(element, TimerAt | TimerEvery):
                return 1, 0, slot
            return 0, len(self.rows[element.position]), slot

        slots = [s for s, slot in enumerate(self.branch.slots) if not isinstance(slot.element, TimerAfter)]
        return sorted(slots, key=cost)

    def _due(self) -> list[list[Atom]]:
        """The conditions to test once the slot at each depth is bound; the last list waits for AFTER's timers."""
        depth_of: dict[str, int] = {}
        for depth, slot in enumerate(self.order):
            name = self.branch.slots[slot].element.variable
            if name is not None:
                depth_of[name] = depth
        due: list[list[Atom]] = [[] for _ in range(len(self.order) + 1)]
        for atom, names in self.slot_atoms:
            depths = [depth_of.get(name, len(self.order)) for name in names & self.names]
            due[max(depths, default=0)].append(atom)
        return due

    def run(self) -> Iterator[Answer]:
        needed = {s.element.position for s in self.branch.slots if s.element.position in self.rows}
        if all(self.rows[position] for position in needed):
            yield from self._bind(0)

    def _bind(self, depth: int) -> Iterator[Answer]:
        if depth == len(self.order):
            yield from self._leaf()
            return
        slot = self.order[depth]
        for event in self._fitting(slot):
            self.bound[slot] = event
            if self._allowed(slot) and self._atoms_hold(self.due[depth]):
                yield from self._bind(depth + 1)
            del self.bound[slot]

    def _fitting(self, slot: int) -> Sequence[int]:
        """Candidates by time alone: those that the window of the bound slots leaves."""
        element = self.branch.slots[slot].element
        low = high = None
        if self.bound and self.window is not None:
            spans = [self.partition.span(event) for event in self.bound.values()]
            low = max(end for _, end in spans) - self.window
            high = min(start for start, _ in spans) + self.window
        if isinstance(element, TimerAt):
            return [self.partition.timer(element.moment_us, element.position)]
        if isinstance(element, TimerEvery):
            reach = self._reach() if low is None or high is None else [(low, high)]
            period = element.period_us
            moments = (t for a, b in reach for t in range(-(-a // period) * period, b + 1, period))
            return [self.partition.timer(moment, element.position) for moment in moments]
        rows = self.rows[element.position]
        if low is None or high is None:
            return rows
        ends = self.partition.end
        return rows[bisect_left(rows, low, key=ends.__getitem__) : bisect_right(rows, high, key=ends.__getitem__)]

    def _reach(self) -> list[tuple[int, int]]:
        """Where a timer can be while nothing is bound (a group is the only event): within a window of some event."""
        window = self.window or 0
        spans = sorted({self.partition.span(event) for rows in self.rows.values() for event in rows})
        merged: list[tuple[int, int]] = []
        for low, high in ((start - window, end + window) for start, end in spans):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        return merged

    def precedes(self, one: int, other: int) -> bool:
        end, start = self.partition.span(one)[1], self.partition.span(other)[0]
        if self.query.ties == "apart":
            return end < start
        return end <= start and self.partition.key(one) < self.partition.key(other)

    def _allowed(self, slot: int) -> bool:
        event = self.bound[slot]
        for other, bound in self.bound.items():
            if other == slot:
                continue
            if bound == event and event >= 0:
                return False
            if (slot, other) in self.branch.before and not self.precedes(event, bound):
                return False
            if (other, slot) in self.branch.before and not self.precedes(bound, event):
                return False
            if not self._times_hold(slot, other):
                return False
            if (slot, other) in self.branch.chain and self.partition.key(event) >= self.partition.key(bound):
                return False
            if (other, slot) in self.branch.chain and self.partition.key(event) <= self.partition.key(bound):
                return False
        return self._spans_hold(slot)

    def _times_hold(self, slot: int, other: int) -> bool:
        """TIMES_EQ and TIMES_DF, for two events of one window; both have a value."""
        element = self.branch.slots[slot].element
        if not isinstance(element, Element) or self.branch.slots[other].element.position != element.position:
            return True
        quantity = element.quantity
        if not isinstance(quantity, Window) or (name := quantity.same or quantity.different) is None:
            return True
        read = self.partition.scope.read
        equal = read(self.bound[slot], name) == read(self.bound[other], name)
        return bool(equal) == (quantity.same is not None)

    def _spans_hold(self, slot: int) -> bool:
        whole = [] if self.window is None else [(tuple(self.bound), self.window)]
        for slots, most_us in (*whole, *self.branch.spans):
            if slot in slots:
                spans = [self.partition.span(self.bound[s]) for s in slots if s in self.bound]
                if max(end for _, end in spans) - min(start for start, _ in spans) > most_us:
                    return False
        return True

    def _scope(self, groups: dict[str, tuple[int, ...]] | None = None) -> Scope:
        own: dict[str, Sequence[int]] = dict(groups or {})
        for slot in sorted(self.bound):
            name = self.branch.slots[slot].element.variable
            if name is not None:
                own[name] = (*own.get(name, ()), self.bound[slot])
        base = self.partition.scope
        return Scope(base.read, base.declares, own, self.many)

    def _atoms_hold(self, atoms: Sequence[Atom]) -> bool:
        if not atoms:
            return True
        scope = self._scope()
        return all(holds(atom, scope) for atom in atoms)

    def _leaf(self) -> Iterator[Answer]:
        kept = dict(self.bound)
        if self._timers_fit() and self._atoms_hold(self.due[-1]):
            answer = self._finished()
            if answer is not None:
                yield answer
        self.bound = kept

    def _timers_fit(self) -> bool:
        for after in self.branch.afters:
            element = self.branch.slots[after.slot].element
            moment = max(self.partition.span(self.bound[s])[1] for s in after.sources) + after.delay_us
            self.bound[after.slot] = self.partition.timer(moment, element.position)
            if not self._allowed(after.slot):
                return False
        return True

    def _finished(self) -> Answer | None:
        part = self.partition
        listed = tuple(self.bound[slot] for slot in range(len(self.branch.slots)))
        fixed = {event for event in listed if event >= 0}
        start = min(part.span(event)[0] for event in listed)
        end = max(part.span(event)[1] for event in listed)
        groups: list[tuple[int, ...]] = []
        for place in self.branch.groups:
            members = self._group(place, fixed, start, end)
            quantity = place.element.quantity
            assert isinstance(quantity, Group)
            if len(members) < quantity.low or (quantity.high is not None and len(members) > quantity.high):
                return None
            groups.append(members)
        everybody = [event for members in groups for event in members]
        if len(set(everybody)) < len(everybody):
            return None
        start = min([start, *(part.span(event)[0] for event in everybody)])
        end = max([end, *(part.span(event)[1] for event in everybody)])
        named = {p.element.variable: g for p, g in zip(self.branch.groups, groups, strict=True) if p.element.variable}
        scope = self._scope(named)
        if not all(holds(atom, scope) for atom, _ in self._aggregate_atoms()):
            return None
        for negation in self.branch.negations:
            if self._negated(negation, groups, fixed, start, end, scope):
                return None
        events: dict[int, tuple[int, ...]] = {}
        for slot, event in zip(self.branch.slots, listed, strict=True):
            events[slot.element.position] = (*events.get(slot.element.position, ()), event)
        for place, members in zip(self.branch.groups, groups, strict=True):
            events[place.element.position] = members
        completing = max(part.key(event) for event in (*listed, *everybody))
        return Answer(self.number, events, listed, tuple(groups), start, end, completing)

    def _aggregate_atoms(self) -> list[tuple[Atom, frozenset[str]]]:
        return [(a, v) for a, v in self.group_atoms if not bare_variables(a) & self.group_names]

    def _group(self, place: GroupPlace, fixed: set[int], start: int, end: int) -> tuple[int, ...]:
        """All events between the neighbours that meet the conditions which name the group bare."""
        element = place.element
        name = element.variable
        atoms = [a for a, v in self.group_atoms if name in bare_variables(a)]
        found = []
        for event in self._between(element.position, place.previous, place.following, start, end):
            if event in fixed:
                continue
            if atoms:
                scope = self._scope({name: (event,)})  # type: ignore[dict-item]
                if not all(holds(atom, scope) for atom in atoms):
                    continue
            found.append(event)
        return tuple(found)

    def _between(
        self,
        position: int,
        previous: tuple[int, ...] | None,
        following: tuple[int, ...] | None,
        start: int,
        end: int,
        previous_events: Sequence[int] = (),
        following_events: Sequence[int] = (),
    ) -> Iterator[int]:
        """Candidates after the one neighbour and before the other; an edge is bounded by the window."""
        before = list(previous_events) or [self.bound[s] for s in previous or ()]
        behind = list(following_events) or [self.bound[s] for s in following or ()]
        for event in self.rows[position]:
            own_start, own_end = self.partition.span(event)
            if not before and self.window is not None and own_start < end - self.window:
                continue
            if not behind and self.window is not None and own_end > start + self.window:
                continue
            if all(self.precedes(b, event) for b in before) and all(self.precedes(event, b) for b in behind):
                yield event

    def _negated(
        self,
        place: NegationPlace,
        groups: list[tuple[int, ...]],
        fixed: set[int],
        start: int,
        end: int,
        scope: Scope,
    ) -> bool:
        """Whether an event forbids the answer."""
        name = place.element.variable
        atoms = [a for a, v in self.negation_atoms if name in v]
        previous = groups[place.previous_group] if place.previous_group is not None else ()
        following = groups[place.following_group] if place.following_group is not None else ()
        for event in self._between(
            place.element.position, place.previous, place.following, start, end, previous, following
        ):
            if event in fixed:
                continue
            if atoms:
                own = Scope(scope.read, scope.declares, {**scope.bound, name: (event,)}, scope.many)  # type: ignore[dict-item]
                if not all(holds(atom, own) for atom in atoms):
                    continue
            return True
        return False
