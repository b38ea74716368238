"""Conditions taken apart, so that each piece is tested as soon as the slots that it names are bound.

Enters: an atom of WHERE over slots. Leaves: `Instance`s whose conjunction is the atom: a FORALL once per number, a bare
window once per slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cep_core.engine.conditions import attributes
from cep_core.engine.program import Instance, Place
from cep_core.language.algebra import (
    Aggregate,
    All,
    Attribute,
    Compare,
    Condition,
    Duration,
    Either,
    Expression,
    Forall,
    Index,
    Window,
)
from cep_core.language.normal import push_down
from cep_core.language.variables import bare_variables, children, is_flat, variables

Slots = dict[int, list[int]]  # position of an element -> its slots
_MOST = 64


def expanded(condition: Condition, names: Mapping[str, Place]) -> list[Instance]:
    """The pieces of a condition."""
    return _expanded(Instance(condition), names)


def _expanded(whole: Instance, names: Mapping[str, Place]) -> list[Instance]:
    match whole.condition:
        case All(conditions=parts):
            return [one for part in parts for one in _expanded(Instance(part, whole.at, whole.numbers), names)]
        case Forall(negated=False, low=low, name=name, body=body) as node:
            high = node.high
            if isinstance(high, Aggregate):
                place = names.get(high.variable)
                if place is None or place.group >= 0:
                    return [whole]
                high = len(place.slots)
            if high - low >= _MOST:
                return [whole]
            inner = push_down(body)
            return [
                one
                for number in range(low, high + 1)
                for one in _expanded(Instance(inner, whole.at, (*whole.numbers, (name, number))), names)
            ]
        case Either() | Forall():
            return [whole]
    if not variables(whole.condition) <= names.keys():
        return []  # it names what this branch does not bind: it is true
    spread = [
        name
        for name in sorted(bare_variables(whole.condition))
        if name in names and names[name].many and name not in dict(whole.at)
    ]
    if not spread:
        return [whole]
    return [
        one
        for slot in names[spread[0]].slots
        for one in _expanded(Instance(whole.condition, (*whole.at, (spread[0], slot)), whole.numbers), names)
    ]


def times_instances(window: Window, name: str, slots: tuple[int, ...]) -> list[Instance]:
    """TIMES_EQ: each event's value is that of the first; TIMES_DF: the values differ pairwise."""
    attribute = window.same or window.different
    if attribute is None:
        return []
    pairs = [(0, j) for j in range(1, len(slots))]
    if window.different:
        pairs = [(i, j) for i in range(len(slots)) for j in range(i + 1, len(slots))]
    sides = [[Attribute(name, attribute, Index(None, place + 1)) for place in pair] for pair in pairs]
    return [Instance(Compare("=" if window.same else "!=", left, right)) for left, right in sides]


def slots_of(instance: Instance, names: Mapping[str, Place]) -> frozenset[int]:
    """The slots that must be bound before it can be tested."""
    at, numbers = dict(instance.at), dict(instance.numbers)

    def named(variable: str | None, index: Index | None) -> tuple[int, ...]:
        place = names.get(variable or "")
        if place is None:
            return ()
        if index is None:
            return (at[variable],) if variable in at else place.slots
        if index.name is not None and index.name not in numbers:
            return place.slots
        number = index.offset + (numbers[index.name] if index.name is not None else 0)
        return place.slots[number - 1 : number] if number >= 1 else ()

    def walk(node: Condition | Expression) -> set[int]:
        match node:
            case Attribute(variable=variable, index=index):
                return set(named(variable, index))
            case Duration():
                return {*named(node.first, node.first_index), *named(node.second, node.second_index)}
            case Aggregate(variable=variable):
                return set(names[variable].slots) if variable in names else set()
            case Forall(body=body, high=high):
                return walk(body) | (walk(high) if isinstance(high, Aggregate) else set())
        return {slot for child in children(node) for slot in walk(child)}

    return frozenset(walk(instance.condition))


def only_slot(instance: Instance, names: Mapping[str, Place]) -> int | None:
    """The slot that every attribute of it belongs to, if it says nothing else."""
    if not is_flat(instance.condition):
        return None
    own = {slots_of(replace(instance, condition=leaf), names) for leaf in attributes(instance.condition)}  # type: ignore[arg-type]
    if len(own) != 1:
        return None
    slots = next(iter(own))
    return next(iter(slots)) if len(slots) == 1 else None
