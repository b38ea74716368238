"""A checked query's pattern as branches: flat slots with constraints, no OR and no nesting left.

Enters: a CheckedQuery. Leaves: its branches, one for each choice of every OR and each disjunct of WHERE (language
contract, Patterns and Conditions). Always holds: a query's answers are the union of its branches' answers.

A nested pattern needs no instance of its own: "an instance precedes another when each of its members precedes each of
the other's" is a set of pairs of slots, and a nested WITHIN is a span over a set of slots. AFTER's timer is a slot
whose time follows from others; it stands for its part in the order (its `face`), while spans count all members.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product

from cep_core.language.algebra import (
    And,
    Atom,
    Element,
    Group,
    One,
    Or,
    Pattern,
    Seq,
    Timer,
    TimerAfter,
    TimerAt,
    TimerEvery,
    Window,
)
from cep_core.language.checked import CheckedQuery


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one event. `index` counts within a k-size window, from 0. Slots are numbered in pattern order."""

    element: Element | Timer
    index: int = 0


@dataclass(frozen=True, slots=True)
class After:
    """The timer in `slot` is `delay_us` after the last end of the slots in `sources`."""

    slot: int
    sources: tuple[int, ...]
    delay_us: int


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A group and its neighbours' slots; None is the pattern's edge."""

    element: Element
    previous: tuple[int, ...] | None
    following: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class NegationPlace:
    """A negated element. In SEQ its neighbours are a group (by its number, if it is not empty), else slots, else the
    edge (None). `anywhere` is the negation of AND."""

    element: Element
    previous: tuple[int, ...] | None
    previous_group: int | None
    following: tuple[int, ...] | None
    following_group: int | None
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to answer a query. `before` holds pairs (i, j): slot i precedes slot j; `chain`: i comes before j in
    event order, as the events of a k-size window do. `spans`: these slots' members span at most so long."""

    alternative: int
    slots: tuple[Slot, ...]
    before: frozenset[tuple[int, int]]
    chain: frozenset[tuple[int, int]]
    spans: tuple[tuple[tuple[int, ...], int], ...]
    afters: tuple[After, ...]
    groups: tuple[GroupPlace, ...]
    negations: tuple[NegationPlace, ...]
    atoms: tuple[Atom, ...] = ()


def branches(checked: CheckedQuery) -> tuple[Branch, ...]:
    """All branches of a query: its pattern's alternatives times its WHERE's disjuncts."""
    flat = [_flatten(tree, number) for number, tree in enumerate(_alternatives(checked.query.pattern))]
    return tuple(replace(branch, atoms=atoms) for branch in flat for atoms in checked.disjuncts)


def _alternatives(node: Pattern) -> list[Pattern]:
    """The node once for each choice of every OR below it."""
    match node:
        case Or(parts=parts, within_us=within_us):
            chosen = [tree for part in parts for tree in _alternatives(part)]
            return chosen if within_us is None else [And((tree,), within_us) for tree in chosen]
        case Seq() | And():
            return [replace(node, parts=parts) for parts in product(*map(_alternatives, node.parts))]
        case TimerAfter():
            return [replace(node, part=part) for part in _alternatives(node.part)]
        case _:
            return [node]


@dataclass
class _Draft:
    """The branch while it is being flattened."""

    slots: list[Slot] = field(default_factory=list)
    before: set[tuple[int, int]] = field(default_factory=set)
    chain: set[tuple[int, int]] = field(default_factory=set)
    spans: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    afters: list[After] = field(default_factory=list)
    groups: list[GroupPlace] = field(default_factory=list)
    negations: list[NegationPlace] = field(default_factory=list)


# A flattened part: all its members, and the members that stand for it in the order.
_Part = tuple[tuple[int, ...], tuple[int, ...]]


def _flatten(tree: Pattern, number: int) -> Branch:
    draft = _Draft()
    if isinstance(tree, Element) and not isinstance(tree.quantity, Group):
        _part(tree, draft)
    elif isinstance(tree, Element):  # a lone group is a SEQ of itself
        _seq(Seq((tree,)), draft)
    else:
        _part(tree, draft)
    return Branch(
        number,
        tuple(draft.slots),
        frozenset(draft.before),
        frozenset(draft.chain),
        tuple(draft.spans),
        tuple(draft.afters),
        tuple(draft.groups),
        tuple(draft.negations),
    )


def _part(node: Pattern, draft: _Draft) -> _Part:
    match node:
        case Element(quantity=One()) | TimerAt() | TimerEvery():
            draft.slots.append(Slot(node))
            own: tuple[int, ...] = (len(draft.slots) - 1,)
            return own, own
        case Element(quantity=Window(size=size)):
            first = len(draft.slots)
            draft.slots.extend(Slot(node, index) for index in range(size))
            own = tuple(range(first, first + size))
            draft.chain.update((i, j) for i in own for j in own if i < j)
            return own, own
        case TimerAfter():
            members, _ = _part(node.part, draft)
            draft.slots.append(Slot(node))
            timer = len(draft.slots) - 1
            draft.afters.append(After(timer, members, node.delay_us))
            return (*members, timer), (timer,)
        case Seq():
            part = _seq(node, draft)
        case And():
            part = _and(node, draft)
        case _:
            raise AssertionError(f"not a part of a flat pattern: {node}")
    if node.within_us is not None:
        draft.spans.append((part[0], node.within_us))
    return part


def _and(node: And, draft: _Draft) -> _Part:
    if len(node.parts) == 1:  # an OR's choice under the OR's WITHIN: it stands as it would without
        return _part(node.parts[0], draft)
    members: list[int] = []
    for part in node.parts:
        if isinstance(part, Element) and part.negated:
            draft.negations.append(NegationPlace(part, None, None, None, None, anywhere=True))
        else:
            members.extend(_part(part, draft)[0])
    return tuple(members), tuple(members)


def _seq(node: Seq, draft: _Draft) -> _Part:
    members: list[int] = []
    # Each part in order: the slots that stand for it, or the number of its group, or nothing for a negation.
    faces: list[tuple[int, ...] | None] = []
    group_of: list[int | None] = []
    for part in node.parts:
        face: tuple[int, ...] | None = None
        group: int | None = None
        if isinstance(part, Element) and part.negated:
            pass
        elif isinstance(part, Element) and isinstance(part.quantity, Group):
            group = len(draft.groups)
            draft.groups.append(GroupPlace(part, None, None))
        else:
            own, face = _part(part, draft)
            members.extend(own)
        faces.append(face)
        group_of.append(group)
    solid = [face for face in faces if face is not None]
    for i, earlier in enumerate(solid):
        for later in solid[i + 1 :]:
            draft.before.update(product(earlier, later))
    for place, part in enumerate(node.parts):
        left, right = faces[:place][::-1], faces[place + 1 :]
        previous = next((face for face in left if face is not None), None)
        following = next((face for face in right if face is not None), None)
        number = group_of[place]
        if number is not None:
            draft.groups[number] = GroupPlace(part, previous, following)  # type: ignore[arg-type]
        elif isinstance(part, Element) and part.negated:
            draft.negations.append(
                NegationPlace(
                    part,
                    previous,
                    _adjacent_group(faces[:place][::-1], group_of[:place][::-1]),
                    following,
                    _adjacent_group(faces[place + 1 :], group_of[place + 1 :]),
                )
            )
    return tuple(members), tuple(members)


def _adjacent_group(faces: list[tuple[int, ...] | None], groups: list[int | None]) -> int | None:
    """The group that stands nearer than any other positive part, if there is one."""
    for face, group in zip(faces, groups, strict=True):
        if group is not None:
            return group
        if face is not None:
            return None
    return None
