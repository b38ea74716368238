"""A query as the search reads it: branches, plans and conditions become arrays.

Enters: a checked query, the candidates of its key's store, the columns. Leaves: `Task`.
Always holds: queries that differ only in their classes share all tables but their lists (`_Form`), made once for them.
What speaks of one element alone is in its candidates; what speaks of several is tested as soon as all are bound. Slots
are bound after the last event in the order that finds least: through an index first, then the rarest; in the order of
preference where SELECT keeps one answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cep_core.engine import tables as t
from cep_core.engine.conditions import EventColumns, anonymous_condition
from cep_core.engine.drive import drive_of
from cep_core.engine.instances import Slots, expanded, only_slot, slots_of, times_instances
from cep_core.engine.lists import Candidates, IndexKey, ListKey
from cep_core.engine.program import Assembler, Instance, Place
from cep_core.engine.vocabulary import Vocabulary
from cep_core.engine.whole import is_large
from cep_core.errors import LimitError
from cep_core.language.algebra import (
    Attribute,
    Compare,
    Condition,
    Element,
    Group,
    Pattern,
    TimerAfter,
    TimerAt,
    TimerEvery,
    Window,
)
from cep_core.language.checked import CheckedQuery
from cep_core.language.variables import bare_variables, is_plain, variables
from cep_core.plan.branches import Branch, branches

_MOST = 1 << 62
MOST_GROUPINGS = 62


@dataclass(frozen=True)
class Task:
    """A query ready to be searched. ctx: its arrays, without those that a search makes anew. loops, groups, longest:
    how many numbers of FORALL, groups of a branch and members of a group there are at most. post: SELECT and CONSUME
    come after the search (timers, trailing groups): the last event does not say which member completes an answer."""

    checked: CheckedQuery
    branches: tuple[Branch, ...]
    ctx: t.Context
    vocabulary: Vocabulary
    loops: int
    groups: int
    longest: int
    mode: int
    post: bool
    alive: tuple[Any, ...]


@dataclass
class _Draft:
    """The tables while they grow."""

    candidates: Candidates
    columns: EventColumns
    assembler: Assembler
    mode: int
    tried: int  # the slot of the event that a group or a negation tries: behind all others
    lists: dict[ListKey, int] = field(default_factory=dict)
    indexes: dict[IndexKey, int] = field(default_factory=dict)
    flat: list[int] = field(default_factory=list)
    due: list[tuple[int, int]] = field(default_factory=list)

    def list(self, key: ListKey) -> int:
        return self.lists.setdefault(key, len(self.lists))

    def index(self, key: IndexKey) -> int:
        return self.indexes.setdefault(key, len(self.indexes))

    def range(self, numbers: Iterable[int] | None) -> tuple[int, int]:
        low = len(self.flat)
        self.flat.extend(numbers or ())
        return low, len(self.flat)

    def conditions(self, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
        low = len(self.due)
        self.due.extend(ranges)
        return low, len(self.due)


@dataclass(frozen=True)
class _Form:
    """What queries that differ only in their classes have in common: their tables without lists.

    ctx: those tables. classes: of the query that it was made from, as they first appear; lists, indexes: its keys;
    sizes: how the lists of its slots (slot_lists) stand to each other by size, which decides the order of its slots.
    held: what makes queries alike, so that it lives as long."""

    branches: tuple[Branch, ...]
    ctx: t.Context
    vocabulary: Vocabulary
    loops: int
    groups: int
    mode: int
    post: bool
    classes: tuple[str, ...]
    lists: tuple[ListKey, ...]
    indexes: tuple[IndexKey, ...]
    slot_lists: tuple[int, ...]
    sizes: tuple[int, ...]
    firsts: tuple[tuple[int, int, Any], ...]
    first_lists: tuple[int, ...]
    group_lists: tuple[tuple[int, ...], ...]
    held: CheckedQuery


def build(checked: CheckedQuery, candidates: Candidates, columns: EventColumns) -> Task:
    mark, classes = _mark(checked)
    for form in candidates.forms.get(mark, ()):
        lists, indexes = _own_keys(form, classes)
        places = [candidates.places(key) for key in lists]
        if form.sizes == _ranks([len(places[number]) for number in form.slot_lists]):
            return _task(checked, form, candidates, places, indexes)
    form = _form(checked, candidates, columns, classes)
    if not form.vocabulary.asks:  # a vocabulary that is asked learns new words
        candidates.forms.setdefault(mark, []).append(form)
    return _task(checked, form, candidates, [candidates.places(key) for key in form.lists], form.indexes)


def _mark(checked: CheckedQuery) -> tuple[object, tuple[str, ...]]:
    """What a query says without its classes, equal only where its conditions are the same values (language/alike.py
    makes them so: a 1 and a 1.0 are equal and do not mean the same), and its classes."""
    number: dict[str, int] = {}

    def shape(node: Pattern) -> object:
        match node:
            case Element():
                own = tuple([number.setdefault(name, len(number)) for name in node.classes])
                return own, node.variable, id(node.filter), node.quantity, node.negated, node.position
            case TimerAfter():
                return TimerAfter, shape(node.part), node.delay_us, node.variable, node.position
            case TimerAt() | TimerEvery():
                return node
            case _:
                return type(node), tuple([shape(part) for part in node.parts]), node.within_us

    query = checked.query
    said = shape(query.pattern), id(checked.disjuncts), query.select, query.consume, query.ties, checked.postponed
    return said, tuple(number)


def _own_keys(form: _Form, classes: Sequence[str]) -> tuple[tuple[ListKey, ...], tuple[IndexKey, ...]]:
    """The keys of the form's lists and indexes with a query's own classes."""
    own = dict(zip(form.classes, classes, strict=True))
    lists = tuple([(tuple(sorted([own[name] for name in names])), *rest) for names, *rest in form.lists])
    again = dict(zip(form.lists, lists, strict=True))
    return lists, tuple([(again[key], *rest) for key, *rest in form.indexes])  # type: ignore[return-value, misc]


def _ranks(sizes: Sequence[int]) -> tuple[int, ...]:
    """Each size's rank; equal sizes, equal ranks."""
    rank = {size: place for place, size in enumerate(sorted(set(sizes)))}
    return tuple([rank[size] for size in sizes])


def _form(checked: CheckedQuery, candidates: Candidates, columns: EventColumns, classes: tuple[str, ...]) -> _Form:
    query = checked.query
    flat = branches(checked)
    post = _is_post(flat) and (query.select != "all" or query.consume != "none")
    modes = {"all": t.ALL, "recent": t.FIRST_RECENT, "earliest": t.FIRST_EARLIEST, "merged": t.MERGED}
    wide = max(len(branch.slots) for branch in flat)
    draft = _Draft(candidates, columns, Assembler(columns), t.ALL if post else modes[query.select], max(wide, 1))
    drawn = [_Branch(branch, checked, draft) for branch in flat]
    for each in drawn:
        each.compile()
    plans = [(number, *plan) for number, each in enumerate(drawn) for plan in each.plans()]
    shape = _shape(drawn, draft)
    program, vocabulary = draft.assembler.finish()
    lists = tuple(draft.lists)
    needs = [0 if vocabulary.asks else _need(plans, index) for index in range(len(draft.indexes))]
    ctx = t.Context()
    ctx.put(
        **candidates.table(query.ties == "ordered"),
        **shape,
        **_plans(plans),
        **program,
        lists_list=np.asarray([draft.lists[key[0]] for key in draft.indexes], np.int64),
        lists_need=np.asarray(needs, np.int64),
    )
    slot_lists = tuple(sorted({number for number in shape["shape_list"].ravel().tolist() if number >= 0}))
    return _Form(
        branches=flat,
        ctx=ctx,
        vocabulary=vocabulary,
        loops=draft.assembler.loops,
        groups=max((len(branch.groups) for branch in flat), default=0),
        mode=draft.mode,
        post=post,
        classes=classes,
        lists=lists,
        indexes=tuple(draft.indexes),
        slot_lists=slot_lists,
        sizes=_ranks([len(candidates.places(lists[number])) for number in slot_lists]),
        firsts=tuple([(number, order[0], flat[number].slots[order[0]].element) for number, order, *_ in plans]),
        first_lists=tuple([int(shape["shape_list"][number, order[0]]) for number, order, *_ in plans]),
        group_lists=tuple([tuple(each.group_lists) for each in drawn]),
        held=checked,
    )


def _need(plans: Sequence[Any], index: int) -> int:
    """The least number of slots of a window that any plan looks up in an index; 0: its bins would say no more."""
    most = [
        max((m for i, m in zip(through, more, strict=True) if i == index), default=0)
        for _, _, through, _, more, _ in plans
    ]
    need = min((m for m in most if m), default=0)
    return need if need > 1 else 0


def _task(
    checked: CheckedQuery,
    form: _Form,
    candidates: Candidates,
    places: Sequence[np.ndarray],
    indexes: Sequence[IndexKey],
) -> Task:
    query = checked.query
    ctx = form.ctx.copy()
    arrays, alive = _lists(places, [candidates.index(key) for key in indexes])
    drive = drive_of(
        form.firsts, form.first_lists, form.group_lists, dict(enumerate(places)),
        candidates.table(query.ties == "ordered"), query.within_us or 0,
    )  # fmt: skip
    ctx.put(**arrays, **drive)
    longest = max((len(places[number]) for own in form.group_lists for number in own), default=0)
    return Task(
        checked, form.branches, ctx, form.vocabulary, form.loops, form.groups, longest, form.mode, form.post, alive
    )


def _is_post(flat: Sequence[Branch]) -> bool:
    timers = any(not isinstance(slot.element, Element) for branch in flat for slot in branch.slots)
    return timers or any(place.following is None for branch in flat for place in branch.groups)


class _Branch:
    """One branch: which conditions go where."""

    def __init__(self, branch: Branch, checked: CheckedQuery, draft: _Draft) -> None:
        self.branch = branch
        self.query = checked.query
        self.draft = draft
        self.names: dict[str, Place] = {}
        self.slots: Slots = {}
        for number, slot in enumerate(branch.slots):
            self.slots.setdefault(slot.element.position, []).append(number)
        for position, numbers in self.slots.items():
            element = branch.slots[numbers[0]].element
            many = isinstance(element, Element) and isinstance(element.quantity, Window)
            place = Place(tuple(numbers), timer=not isinstance(element, Element), many=many)
            self.names[element.variable or f"\0{position}"] = place
        for number, group in enumerate(branch.groups):
            self.names[group.element.variable or f"\0{group.element.position}"] = Place(group=number)
        self.group_names = {place.element.variable for place in branch.groups} - {None}
        self.negated = {place.element.variable for place in branch.negations} - {None}
        self._sort_conditions()
        self.keys = {e.position: draft.candidates.key(e, self.pushed[e.position]) for e in self._elements()}
        self.group_lists = [draft.list(self.keys[g.element.position]) for g in branch.groups]

    def _elements(self) -> list[Element]:
        own = [slot.element for slot in self.branch.slots if isinstance(slot.element, Element) and slot.index == 0]
        return [*own, *(g.element for g in self.branch.groups), *(n.element for n in self.branch.negations)]

    def _sort_conditions(self) -> None:
        elements = self._elements()
        owner = {element.variable: element for element in elements if element.variable is not None}
        self.pushed: dict[int, list[Condition]] = {element.position: [] for element in elements}
        self.instances: list[Instance] = []
        self.bare: dict[str, list[Condition]] = {}
        self.late: list[Condition] = []
        self.whole: list[Condition] = []
        for atom in self.branch.atoms:
            named = variables(atom)
            if not named & (self.group_names | self.negated):
                self.whole.append(atom)
            if len(named) == 1 and is_plain(atom) and (only := owner.get(next(iter(named)))) is not None:
                self.pushed[only.position].append(atom)
            elif named & self.negated:
                self.bare.setdefault(next(iter(named & self.negated)), []).append(atom)
            elif named & self.group_names:
                bare = bare_variables(atom) & self.group_names
                if bare:
                    self.bare.setdefault(next(iter(bare)), []).append(atom)
                else:
                    self.late.append(atom)
            else:
                self.instances.extend(expanded(atom, self.names))
        self._push_from_windows()
        for element in elements:
            if isinstance(element.quantity, Window):
                name = element.variable or f"\0{element.position}"
                self.instances.extend(times_instances(element.quantity, name, self.names[name].slots))

    def _push_from_windows(self) -> None:
        """What holds for each event of a window alone is a filter of its candidates."""
        by_slot: dict[Condition, dict[int, Instance]] = {}
        for instance in self.instances:
            slot = only_slot(instance, self.names)
            if slot is not None:
                by_slot.setdefault(anonymous_condition(instance.condition), {})[slot] = instance
        for position, numbers in self.slots.items():
            if len(numbers) < 2:
                continue
            for condition, found in by_slot.items():
                if all(number in found for number in numbers):
                    self.pushed[position].append(condition)
                    gone = [found[number] for number in numbers]
                    self.instances = [instance for instance in self.instances if instance not in gone]

    def compile(self) -> None:
        """Instructions of all conditions."""
        assembler, draft = self.draft.assembler, self.draft
        self.atoms = [
            (slots_of(instance, self.names), instance, assembler.compile(instance, self.names))
            for instance in self.instances
        ]
        self.tried: dict[str, list[tuple[int, int]]] = {
            name: [assembler.compile(Instance(atom), self._trying(name)) for atom in atoms]
            for name, atoms in self.bare.items()
        }
        self.late_range = draft.conditions([assembler.compile(Instance(atom), self.names) for atom in self.late])
        self.whole_range = draft.conditions([assembler.compile(Instance(atom), self.names) for atom in self.whole])

    def _trying(self, name: str) -> dict[str, Place]:
        """The names while a group or a negation tries an event."""
        return {**self.names, name: Place((self.draft.tried,), tried=True)}

    def plans(self) -> list[Any]:
        """(order, index, outer, more, due) for each slot that the last event may stand in."""
        events = [s for s, slot in enumerate(self.branch.slots) if isinstance(slot.element, Element)]
        timers = [s for s, slot in enumerate(self.branch.slots) if isinstance(slot.element, TimerAt | TimerEvery)]
        behind = {i for i, j in self.branch.before | self.branch.chain if j in events}
        lasts = [slot for slot in events if slot not in behind]
        if not events:
            lasts, timers = timers[:1], timers[1:]
        return [self._plan(last, [s for s in events if s != last], timers) for last in lasts]

    def _plan(self, last: int, rest: list[int], timers: list[int]) -> Any:
        order, index, outer = [last], [-1], [-1]
        if self.draft.mode == t.FIRST_RECENT:
            rest = sorted(rest, reverse=True)
        while rest:
            found = [(slot, self._index(slot, order)) for slot in rest]
            if self.draft.mode in (t.ALL, t.MERGED):
                found.sort(key=lambda pair: (pair[1] is None, self._size(pair[0]), -pair[0]))
            slot, looked = found[0]
            rest.remove(slot)
            order.append(slot)
            index.append(-1 if looked is None else self.draft.index(looked[0]))
            outer.append(-1 if looked is None else looked[1])
        for slot in timers:
            order.append(slot)
            index.append(-1)
            outer.append(-1)
        due: list[tuple[int, int]] = []
        known: set[int] = set()
        left = list(self.atoms)
        for slot in order:
            known.add(slot)
            due.append(self.draft.conditions([where for own, _, where in left if own <= known]))
            left = [atom for atom in left if not atom[0] <= known]
        due.append(self.draft.conditions([where for _, _, where in left]))
        # Slots of one window that are looked for in one place need as many candidates there.
        drawn = [(self.branch.slots[s].element.position, i, o) for s, i, o in zip(order, index, outer, strict=True)]
        more = [drawn[depth:].count(own) for depth, own in enumerate(drawn)]
        return order, index, outer, more, due

    def _size(self, slot: int) -> int:
        return len(self.draft.candidates.places(self.keys[self.branch.slots[slot].element.position]))

    def _index(self, slot: int, known: Sequence[int]) -> tuple[IndexKey, int] | None:
        """An index of the slot's candidates by an attribute that must equal one of a bound slot."""
        for own, instance, _ in self.atoms:
            if slot not in own or len(own) != 2 or not own <= {slot, *known}:
                continue
            terms = equal_terms(instance, self.names, self.draft.columns)
            if terms is not None:
                (one, first), (other, second) = terms
                mine, its = (first, second) if one == slot else (second, first)
                key = self.keys[self.branch.slots[slot].element.position]
                return (key, mine, its), other if one == slot else one
        return None

    def element_row(self, element: Element, previous: Any, following: Any, groups: tuple[int, int]) -> list[int]:
        """A row of Shape.group or Shape.negation."""
        key = self.keys[element.position]
        conditions = self.tried.get(element.variable or "", [])
        index, outer = -1, -1
        for atom in self.bare.get(element.variable or "", ()):
            terms = equal_terms(Instance(atom), self._trying(element.variable or ""), self.draft.columns)
            if terms is not None and self.draft.tried in (terms[0][0], terms[1][0]):
                (one, first), (other, second) = terms
                mine, its = (first, second) if one == self.draft.tried else (second, first)
                index, outer = self.draft.index((key, mine, its)), other if one == self.draft.tried else one
                break
        low, high = 0, _MOST
        if isinstance(element.quantity, Group):
            low, high = element.quantity.low, _MOST if element.quantity.high is None else element.quantity.high
        return [
            self.draft.list(key), index, outer, *self.draft.range(previous), *self.draft.range(following),
            *self.draft.conditions(conditions), low, high, *groups,
        ]  # fmt: skip


def equal_terms(
    instance: Instance, names: dict[str, Place], columns: EventColumns
) -> tuple[tuple[int, str], tuple[int, str]] | None:
    """((slot, attribute), (slot, attribute)) of an equality of two events' attributes, as an index can use it."""
    atom = instance.condition
    if not (isinstance(atom, Compare) and atom.operator == "="):
        return None
    terms = []
    for side in (atom.left, atom.right):
        if not isinstance(side, Attribute) or columns.declared(side.name) is not None:
            return None
        own = slots_of(Instance(side, instance.at, instance.numbers), names)  # type: ignore[arg-type]
        place = names.get(side.variable or "")
        if len(own) != 1 or place is None or place.timer or place.group >= 0:
            return None
        if place.many and side.index is None and side.variable not in dict(instance.at):
            return None
        terms.append((next(iter(own)), side.name))
    kinds = {columns.attribute(name).type for _, name in terms}
    if terms[0][0] == terms[1][0] or len(kinds) != 1 or not kinds <= {"int", "string", "timestamp"}:
        return None
    if any(is_large(columns.attribute(name).data) for _, name in terms):
        return None
    return terms[0], terms[1]


def _shape(drawn: Sequence[_Branch], draft: _Draft) -> dict[str, np.ndarray]:
    count = len(drawn)
    wide = max(max((len(each.branch.slots) for each in drawn), default=1), 1)
    kind, lists = np.zeros((count, wide), np.int64), np.full((count, wide), -1, np.int64)
    amount, position = np.zeros((count, wide), np.int64), np.zeros((count, wide), np.int64)
    relation = np.zeros((count, wide, wide), np.int64)
    rows: dict[str, list[list[int]]] = {name: [] for name in ("span", "after", "group", "negation", "emit")}
    ranges = {name: np.zeros((count, 2), np.int64) for name in rows}
    for number, each in enumerate(drawn):
        branch = each.branch
        before = {name: len(held) for name, held in rows.items()}
        for slot, held in enumerate(branch.slots):
            element = held.element
            position[number, slot] = element.position
            match element:
                case Element():
                    lists[number, slot] = draft.list(each.keys[element.position])
                case TimerAt():
                    kind[number, slot], amount[number, slot] = t.AT, element.moment_us
                case TimerEvery():
                    kind[number, slot], amount[number, slot] = t.EVERY, element.period_us
                case TimerAfter():
                    kind[number, slot], amount[number, slot] = t.AFTER, element.delay_us
        for i, j in branch.chain:
            relation[number, i, j], relation[number, j, i] = t.EARLIER, t.LATER
        for i, j in branch.before:
            relation[number, i, j], relation[number, j, i] = t.PRECEDES, t.FOLLOWS
        rows["span"] += [[*draft.range(slots), most] for slots, most in branch.spans]
        rows["after"] += [[after.slot, *draft.range(after.sources)] for after in branch.afters]
        rows["group"] += [each.element_row(g.element, g.previous, g.following, (-1, -1)) for g in branch.groups]
        for n in branch.negations:
            groups = [-1 if group is None else group for group in (n.previous_group, n.following_group)]
            rows["negation"].append(each.element_row(n.element, n.previous, n.following, (groups[0], groups[1])))
        members = [(held.element.position, 0, slot) for slot, held in enumerate(branch.slots)]
        members += [(place.element.position, 1, group) for group, place in enumerate(branch.groups)]
        rows["emit"] += [[which, own, at - 1] for at, which, own in sorted(members)]
        for name, low in before.items():
            ranges[name][number] = low, len(rows[name])
    grouped = [frozenset(g.element.position for g in each.branch.groups) for each in drawn]
    kinds = {positions: number for number, positions in enumerate(dict.fromkeys(grouped))}
    if len(kinds) > MOST_GROUPINGS:
        raise LimitError(f"query {drawn[0].query.id}: more than {MOST_GROUPINGS} ways to bind its groups; split its OR")
    bound = [tuple(sorted({*each.slots, *(g.element.position for g in each.branch.groups)})) for each in drawn]
    ranks = {positions: rank for rank, positions in enumerate(sorted(set(bound)))}
    arrays = {
        "slots": np.asarray([len(each.branch.slots) for each in drawn], np.int64),
        "alternative": np.asarray([each.branch.alternative for each in drawn], np.int64),
        "rank": np.asarray([ranks[positions] for positions in bound], np.int64),
        "grouping": np.asarray([kinds[positions] for positions in grouped], np.int64),
        "kind": kind,
        "list": lists,
        "amount": amount,
        "position": position,
        "relation": relation,
        **{f"{name}s": held for name, held in ranges.items()},
        "late": np.asarray([each.late_range for each in drawn], np.int64).reshape(-1, 2),
        "whole": np.asarray([each.whole_range for each in drawn], np.int64).reshape(-1, 2),
        "span": np.asarray(rows["span"], np.int64).reshape(-1, 3),
        "after": np.asarray(rows["after"], np.int64).reshape(-1, 3),
        "group": np.asarray(rows["group"], np.int64).reshape(-1, t.COLUMNS),
        "negation": np.asarray(rows["negation"], np.int64).reshape(-1, t.COLUMNS),
        "emit": np.asarray(rows["emit"], np.int64).reshape(-1, 3),
        "due": np.asarray(draft.due, np.int64).reshape(-1, 2),
        "flat": np.asarray(draft.flat, np.int64),
    }
    return {f"shape_{name}": array for name, array in arrays.items()}


def _plans(plans: Sequence[Any]) -> dict[str, np.ndarray]:
    deep = max((len(order) for _, order, *_ in plans), default=1)
    order, through, outer, more, ahead = (np.full((len(plans), deep), -1, np.int64) for _ in range(5))
    due = np.zeros((len(plans), deep + 1, 2), np.int64)
    for number, (_, own, indexes, outers, left, conditions) in enumerate(plans):
        for table, row in ((order, own), (through, indexes), (outer, outers), (more, left)):
            table[number, : len(own)] = row
        due[number, : len(conditions)] = conditions
        for depth in range(len(own) - 1, 0, -1):
            if indexes[depth] >= 0 and left[depth] > 1:
                ahead[number, own.index(outers[depth])] = depth
    return {
        "plans_branch": np.asarray([number for number, *_ in plans], np.int64),
        "plans_depth": np.asarray([len(own) for _, own, *_ in plans], np.int64),
        "plans_order": order,
        "plans_through": through,
        "plans_outer": outer,
        "plans_more": more,
        "plans_ahead": ahead,
        "plans_due": due,
    }


def _lists(
    lists: Sequence[np.ndarray], indexes: Sequence[tuple[np.ndarray, ...]]
) -> tuple[dict[str, np.ndarray], tuple[Any, ...]]:
    none = np.empty(0, np.int32)
    parts = [none, *lists]
    held, firsts, looked, own = [none], [np.empty(0, np.int64)], [], []
    base = [0]
    shift = 0
    for places, first, outer, inner in indexes:
        held.append(places)
        firsts.append(first + shift)
        looked.append(outer)
        own.append(inner)
        shift += len(places)
        base.append(base[-1] + len(first))
    arrays = {
        "lists_place": np.concatenate(parts),
        "lists_first": np.cumsum([len(part) for part in parts]).astype(np.int64),
        "lists_held": np.concatenate(held),
        "lists_code_first": np.concatenate(firsts),
        "lists_base": np.asarray(base, np.int64),
        "lists_looked": np.asarray([codes.ctypes.data for codes in looked], np.int64),
        "lists_own": np.asarray([codes.ctypes.data for codes in own], np.int64),
    }
    return arrays, (*looked, *own)
