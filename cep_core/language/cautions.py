"""What is allowed but probably not meant: the warnings of a query.

Enters: a query that the contract allows, its disjuncts, its keys and its scope. Leaves: sentences.
Always holds: a warning never changes what the query returns. Always-false is proved, never guessed
(contradictions.py), and only from conditions that cannot be true for want of a variable or an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from cep_core.language.algebra import (
    All,
    Atom,
    Attribute,
    Between,
    Compare,
    Constant,
    Element,
    Expression,
    Group,
    In,
    Like,
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
from cep_core.language.rules import mentions
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
    found += _where(disjuncts, _required(key, scope), scope)
    found += _indices(disjuncts, scope)
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


def _declared_by_all(atom: object, element: Element, scope: Scope) -> bool:
    """Under ANY a comparison with an attribute that a class lacks is true, so it proves nothing."""
    if not isinstance(atom, Compare | In | Between | Like):
        return False
    operands = (atom.left, atom.right) if isinstance(atom, Compare) else (atom.operand,)
    for operand in operands:
        if isinstance(operand, Attribute):
            for name in element.classes:
                declared = scope.declared.get(name)
                if declared is not None and operand.name not in declared:
                    return False
    return True


def _where(disjuncts: tuple[tuple[Atom, ...], ...], given: list[Compare], scope: Scope) -> list[str]:
    found: list[str] = []
    kind_of = partial(_kind, scope=scope)
    empty = 0
    for atoms in disjuncts:
        certain = [atom for atom in atoms if _certain(atom, scope)]
        why = contradiction([*given, *(atom for atom in certain if not _loose(atom, scope))], kind_of)
        if why is not None:
            empty += 1
            found.append(f"always false: {why}")
            continue
        for name, binding in scope.bindings.items():
            if binding.kind not in ("negated", "group"):
                continue
            own = [atom for atom in certain if any(each.variable == name for each in mentions(atom))]
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


def _certain(atom: Atom, scope: Scope) -> bool:
    """True where the atom cannot be true for want of a variable or an attribute."""
    if not isinstance(atom, Compare | In | Between | Like):
        return False
    for operand in (atom.left, atom.right) if isinstance(atom, Compare) else (atom.operand,):
        if isinstance(operand, Attribute) and operand.variable is not None:
            binding = scope.bindings[operand.variable]
            if operand.index is not None or not scope.everywhere(binding, operand.name):
                return False
    return all(not scope.bindings[each.variable].optional for each in mentions(atom))


def _kind(value: Expression, scope: Scope, own: Element | None = None) -> Type:
    """The type of an attribute; "null" where it is not known."""
    if not isinstance(value, Attribute):
        return "null"
    node = own if value.variable is None else scope.bindings[value.variable].node
    return "null" if node is None else scope.attribute(node, value.name, value.at)


def _loose(atom: Atom, scope: Scope) -> bool:
    """True where the atom speaks of events that need not be there: it then chooses them, and refuses no answer."""
    return any(
        scope.bindings[each.variable].kind == "negated"
        or (scope.bindings[each.variable].kind == "group" and each.form == "bare")
        for each in mentions(atom)
    )


def _required(key_values: Mapping[str, Constant | None], scope: Scope) -> list[Compare]:
    """What `[attr = 'v']` says of each positive element."""
    return [
        Compare("=", Attribute(name, attribute), value)
        for attribute, value in key_values.items()
        if value is not None
        for name, binding in scope.bindings.items()
        if binding.kind in ("one", "window") and not binding.optional
    ]


def _indices(disjuncts: tuple[tuple[Atom, ...], ...], scope: Scope) -> list[str]:
    found = []
    for each in (each for atoms in disjuncts for atom in atoms for each in mentions(atom)):
        node, index = scope.bindings[each.variable].node, each.index
        size = node.quantity.size if isinstance(node, Element) and isinstance(node.quantity, Window) else None
        if size is not None and index is not None and index.name is None and index.offset > size:
            name = f"{each.variable}[{index.offset}]"
            found.append(f"{each.variable} has {size} events, so a condition on {name} is always true")
    return found
