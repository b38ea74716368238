"""What is allowed but probably not meant: the warnings of a query.

Enters: a query that the contract allows, its disjuncts, its keys and its scope. Leaves: sentences.
Always holds: a warning never changes what the query returns. Always-false is proved, never guessed
(contradictions.py), and only from conditions that cannot be true for want of a variable or an attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from cep_core.language.algebra import (
    All,
    Arithmetic,
    Atom,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Constant,
    Element,
    Expression,
    Group,
    In,
    Like,
    Minus,
    One,
    Or,
    Pattern,
    Query,
    TimerAfter,
    Window,
)
from cep_core.language.checked import Chain, Type
from cep_core.language.contradictions import contradiction
from cep_core.language.normal import push_down
from cep_core.language.rules import Mention, mentions
from cep_core.language.scope import Scope, leaves
from cep_core.language.times import format_duration


def find_warnings(
    query: Query,
    disjuncts: tuple[tuple[Atom, ...], ...],
    key: Mapping[str, Constant | None],
    chains: tuple[Chain, ...],
    scope: Scope,
    history_us: Mapping[str, int] | None,
) -> tuple[str, ...]:
    """The warnings, in the order of the contract's clauses. `key` has the value that each key attribute must have."""
    found: list[str] = []
    if not key and not any(chain.whole for chain in chains) and not _single(query.pattern):
        found.append(
            "no key: all events form one partition; add an equivalence test such as [source] if it is meant so"
        )
    found += _filters(scope)
    facts = _facts(disjuncts, scope)
    found += _where(facts, _required(key, scope), scope)
    found += _indices(facts, scope)
    within = query.within_us
    if within is not None:
        for node, _ in leaves(query.pattern):
            if isinstance(node, TimerAfter) and node.delay_us > within:
                delay = format_duration(node.delay_us)
                found.append(f"never matches: AFTER waits {delay}, longer than WITHIN {format_duration(within)}")
        for name in sorted({name for element in scope.elements for name in element.classes}):
            history = (history_us or {}).get(name)
            if history is not None and within > history:
                found.append(
                    f"WITHIN {format_duration(within)} is longer than the history of {name}, {format_duration(history)}"
                )
    return tuple(dict.fromkeys(found))


def _single(pattern: Pattern) -> bool:
    if isinstance(pattern, Or):
        return all(_single(part) for part in pattern.parts)
    return isinstance(pattern, Element) and isinstance(pattern.quantity, One)


def _filters(scope: Scope) -> list[str]:
    found = []
    for element in scope.elements:
        if element.filter is None:
            continue
        pushed = push_down(element.filter)
        atoms = pushed.conditions if isinstance(pushed, All) else (pushed,)
        certain = [atom for atom in atoms if _declared_by_all(atom, element, scope)]
        why = contradiction(certain, partial(_kind, scope=scope, own=element))
        if why is not None:
            found.append(f"the filter of {' or '.join(element.classes)} is always false: {why}")
    return found


def _declared_by_all(atom: Condition, element: Element, scope: Scope) -> bool:
    """Under ANY a comparison with an attribute that a class lacks is true, so it proves nothing."""
    if not isinstance(atom, Compare | In | Between | Like):
        return False
    if isinstance(atom, Compare):
        operands: tuple[Expression, ...] = (atom.left, atom.right)
    else:
        operands = (atom.operand, atom.low, atom.high) if isinstance(atom, Between) else (atom.operand,)
    return not any(scope.lacking(element.classes, name) for value in operands for name in _names(value))


def _names(value: Expression) -> Iterator[str]:
    """The attributes that a value of an element's own filter asks for."""
    match value:
        case Attribute(name=name):
            yield name
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _names(argument)
        case Arithmetic(left=left, right=right):
            yield from _names(left)
            yield from _names(right)
        case Minus(operand=operand):
            yield from _names(operand)
        case _:
            return


@dataclass(frozen=True, slots=True)
class _Fact:
    """What is known of one atom. certain: it cannot be true for want of a variable, an attribute or an index. loose: it
    speaks of events that need not be there, so it chooses them and refuses no answer."""

    atom: Atom
    mentions: tuple[Mention, ...]
    certain: bool
    loose: bool


def _facts(disjuncts: tuple[tuple[Atom, ...], ...], scope: Scope) -> list[list[_Fact]]:
    """The atoms of each disjunct; one that stands in several is judged once."""
    known: dict[int, _Fact] = {}
    for atoms in disjuncts:
        for atom in atoms:
            if id(atom) not in known:
                known[id(atom)] = _fact(atom, scope)
    return [[known[id(atom)] for atom in atoms] for atoms in disjuncts]


def _fact(atom: Atom, scope: Scope) -> _Fact:
    certain, loose = isinstance(atom, Compare | In | Between | Like), False
    found = tuple(mentions(atom))
    for each in found:
        binding = scope.bindings[each.variable]
        known = each.attribute is None or scope.everywhere(binding, each.attribute)
        certain = certain and known and each.index is None and not binding.optional
        loose = loose or binding.kind == "negated" or (binding.kind == "group" and each.form == "bare")
    return _Fact(atom, found, certain, loose)


def _where(disjuncts: list[list[_Fact]], given: list[Compare], scope: Scope) -> list[str]:
    found: list[str] = []
    kind_of = partial(_kind, scope=scope)
    choosing = [(name, each) for name, each in scope.bindings.items() if each.kind in ("negated", "group")]
    empty = 0
    for facts in disjuncts:
        why = contradiction([*given, *(fact.atom for fact in facts if fact.certain and not fact.loose)], kind_of)
        if why is not None:
            empty += 1
            found.append(f"always false: {why}")
            continue
        for name, binding in choosing:
            own = (
                fact.atom
                for fact in facts
                if fact.certain and fact.loose and any(each.variable == name for each in fact.mentions)
            )
            why = contradiction(own, kind_of)
            if why is None:
                continue
            if binding.kind == "negated":
                found.append(f"the negation of {name} excludes nothing, its condition is always false: {why}")
                continue
            found.append(f"the group {name} is always empty, its condition is always false: {why}")
            if isinstance(binding.node, Element) and isinstance(binding.node.quantity, Group):
                empty += binding.node.quantity.low > 0
    if empty and empty == len(disjuncts):
        found.insert(0, "never matches: its WHERE is always false")
    return found


def _kind(value: Expression, scope: Scope, own: Element | None = None) -> Type:
    """The type of an attribute; "null" where it is not known."""
    if not isinstance(value, Attribute):
        return "null"
    node = own if value.variable is None else scope.bindings[value.variable].node
    return "null" if node is None else scope.attribute(node, value.name, value.at)


def _required(key_values: Mapping[str, Constant | None], scope: Scope) -> list[Compare]:
    """What `[attr = 'v']` says of each positive element."""
    return [
        Compare("=", Attribute(name, attribute), value)
        for attribute, value in key_values.items()
        if value is not None
        for name, binding in scope.bindings.items()
        if binding.kind in ("one", "window") and not binding.optional
    ]


def _indices(disjuncts: list[list[_Fact]], scope: Scope) -> list[str]:
    found = []
    for each in (each for facts in disjuncts for fact in facts for each in fact.mentions if each.index is not None):
        node, index = scope.bindings[each.variable].node, each.index
        size = node.quantity.size if isinstance(node, Element) and isinstance(node.quantity, Window) else None
        if size is not None and index is not None and index.name is None and index.offset > size:
            name = f"{each.variable}[{index.offset}]"
            found.append(f"{each.variable} has {size} events, so a condition on {name} is always true")
    return found
