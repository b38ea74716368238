"""The normal form of conditions: NOT at the atoms, and WHERE as a union of conjunctions.

Enters: a condition as written. Leaves: the same condition without any Not, and its disjuncts.
Always holds: a negated comparison is its opposite, a negated IN, BETWEEN, LIKE, IS NULL or FORALL is one atom with its
flag turned (a FORALL's body keeps its own sense; only the Nots inside it are pushed down). No disjunct is absorbed by
another: under a negated element `b.x = 1` and `b.x = 1 AND b.y = 2` exclude different answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as OneOf
from typing import assert_never

from cep_core.language.algebra import (
    All,
    And,
    Atom,
    Between,
    Compare,
    Condition,
    Either,
    Element,
    Equivalence,
    Forall,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Pattern,
    Query,
    Seq,
    TimerAfter,
)
from cep_core.language.problems import Refusal

MOST_DISJUNCTS = 64
_OPPOSITE: dict[str, OneOf["=", "!=", "<", "<=", ">", ">="]] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}


def push_down(condition: Condition, negate: bool = False) -> Condition:
    """The condition (or its opposite) without any Not."""
    match condition:
        case Not():
            return push_down(condition.condition, not negate)
        case Compare():
            if not negate:
                return condition
            return Compare(_OPPOSITE[condition.operator], condition.left, condition.right, condition.at)
        case In() | Between() | Like() | IsNull():
            return replace(condition, negated=not condition.negated) if negate else condition
        case Forall():
            return replace(condition, body=push_down(condition.body), negated=condition.negated != negate)
        case All() | Either():
            parts = tuple(push_down(part, negate) for part in condition.conditions)
            return _joined(parts, isinstance(condition, All) != negate, condition)
        case Equivalence():
            return condition
        case _:
            assert_never(condition)


def _joined(parts: tuple[Condition, ...], conjunction: bool, origin: All | Either) -> Condition:
    kind: type[All | Either] = All if conjunction else Either
    flat: list[Condition] = []
    for part in parts:
        flat.extend(part.conditions if isinstance(part, kind) else (part,))
    return kind(tuple(flat), origin.at)


def disjuncts(where: Condition | None) -> tuple[tuple[Atom, ...], ...]:
    """WHERE in disjunctive normal form, equal disjuncts once; the equivalence tests at its top are left out.

    Raises a Refusal as soon as there are more than 64, so that a small text never costs a large product.
    """
    if where is None:
        return ((),)
    terms = where.conditions if isinstance(where, All) else (where,)
    rest = tuple(term for term in terms if not isinstance(term, Equivalence))
    if all(isinstance(term, Compare) for term in rest):  # most queries
        return (_once(rest),)  # type: ignore[arg-type]
    pushed = tuple(push_down(term) for term in rest)
    return _product(pushed, where)


def _disjuncts(condition: Condition, where: Condition) -> tuple[tuple[Atom, ...], ...]:
    if isinstance(condition, All):
        return _product(condition.conditions, where)
    if isinstance(condition, Either):
        found = [each for part in condition.conditions for each in _disjuncts(part, where)]
        return _distinct(found, where)
    return ((condition,),)  # type: ignore[return-value]


def _product(conditions: tuple[Condition, ...], where: Condition) -> tuple[tuple[Atom, ...], ...]:
    result: tuple[tuple[Atom, ...], ...] = ((),)
    # Plain atoms come first: they add no disjunct, and may make later ones equal.
    for condition in sorted(conditions, key=lambda each: isinstance(each, Either)):
        factor = _disjuncts(condition, where)
        result = _distinct([_once(left + right) for left in result for right in factor], where)
    return result


def _distinct(found: list[tuple[Atom, ...]], where: Condition) -> tuple[tuple[Atom, ...], ...]:
    kept: dict[frozenset[Atom], tuple[Atom, ...]] = {}
    for atoms in found:
        kept.setdefault(frozenset(atoms), atoms)
        if len(kept) > MOST_DISJUNCTS:
            message = (
                f"this condition has more than {MOST_DISJUNCTS} alternatives once it is written as P1 OR P2 OR ...; "
                "use IN for lists of values, an element's own filter, or several queries"
            )
            raise Refusal(message, where.at)
    return tuple(kept.values())


def _once(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    return tuple(dict.fromkeys(atoms)) if len(atoms) > 1 else atoms


def with_pushed_filters(query: Query) -> Query:
    """The query with every element's own filter free of Not."""
    pattern = _pushed(query.pattern)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


def _pushed(pattern: Pattern) -> Pattern:
    match pattern:
        case Element():
            if pattern.filter is None or isinstance(pattern.filter, Compare):
                return pattern
            return replace(pattern, filter=push_down(pattern.filter))
        case Seq() | And() | Or():
            parts = tuple(_pushed(part) for part in pattern.parts)
            same = all(new is old for new, old in zip(parts, pattern.parts, strict=True))
            return pattern if same else replace(pattern, parts=parts)
        case TimerAfter():
            part = _pushed(pattern.part)
            return pattern if part is pattern.part else replace(pattern, part=part)
        case _:
            return pattern
