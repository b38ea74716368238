"""The rules of patterns: where negation, groups and timers may stand, and when detection is postponed.

Enters: a query and its scope. Leaves: problems in the scope, and whether the query's detection is postponed.
Always holds: each rule is a sentence of the language contract (Patterns; Matches: negation, groups).
"""

from __future__ import annotations

from itertools import pairwise

from cep_core.language.algebra import (
    And,
    Element,
    Group,
    One,
    Or,
    Pattern,
    Query,
    Seq,
    TimerAfter,
    Window,
)
from cep_core.language.scope import Scope

_NESTED = "; make the inner pattern a query of its own and refer to it by its id"


def check_shape(query: Query, scope: Scope) -> bool:
    """All problems of the pattern's shape go to the scope; True where detection is postponed."""
    root = query.pattern
    if isinstance(root, Element):
        _refuse_alone(root, "alone", scope)
    _walk(root, True, scope)
    if not _grounded(root):
        message = (
            "every alternative of a pattern needs an event that is not negated, not a timer, and cannot be missing"
        )
        scope.refuse(message, root.at)
    if query.within_us is None and not _single(root):
        scope.refuse("WITHIN is missing: only a pattern of one event, or an OR of such, goes without it", query.at)
    postponed = _postponed(root)
    if postponed and query.consume != "none":
        message = (
            f"CONSUME {query.consume} does not go with postponed detection: this pattern ends in a negation or a group"
        )
        if isinstance(root, And):
            message = f"CONSUME {query.consume} does not go with postponed detection: this AND has a negation"
        scope.refuse(message, query.at)
    return postponed


def _walk(pattern: Pattern, outermost: bool, scope: Scope) -> None:
    match pattern:
        case Element():
            _element(pattern, scope)
        case Seq():
            _seq(pattern, outermost, scope)
        case And():
            for part in pattern.parts:
                if _negated(part) and not outermost:
                    scope.refuse("a negation in AND is for a query's outermost pattern only" + _NESTED, part.at)
                if _group(part):
                    scope.refuse(
                        "a group stands inside SEQ only, not in AND; A[k] takes k events in any order", part.at
                    )
        case Or():
            for part in pattern.parts:
                _refuse_alone(part, "inside OR", scope)
        case TimerAfter():
            _refuse_alone(pattern.part, "inside AFTER", scope)
            _walk(pattern.part, False, scope)
        case _:
            pass
    if isinstance(pattern, Seq | And | Or):
        for part in pattern.parts:
            _walk(part, False, scope)


def _element(element: Element, scope: Scope) -> None:
    if element.negated and not isinstance(element.quantity, One):
        scope.refuse("a negation says that there is no such event; it takes no + * {n,m} [k] or TIMES", element.at)
    if len(set(element.classes)) < len(element.classes):
        scope.refuse("a class stands twice in ANY", element.at)
    if isinstance(element.quantity, Window):
        attribute = element.quantity.same or element.quantity.different
        if attribute is not None:
            scope.attribute(element, attribute, element.at, everywhere=True)


def _seq(seq: Seq, outermost: bool, scope: Scope) -> None:
    parts = seq.parts
    for before, part in pairwise(parts):
        if _negated(before) and _negated(part):
            scope.refuse("two negations in a row; put an element between them, or use ANY for several classes", part.at)
    if not outermost:
        for part, where in ((parts[0], "first"), (parts[-1], "last")):
            if _negated(part):
                message = f"a negation that stands {where} in a SEQ is for a query's outermost pattern only"
                scope.refuse(message + _NESTED, part.at)
    bound = [part for part in parts if not _negated(part)]
    for before, part in pairwise(bound):
        if _group(before) and _group(part):
            scope.refuse("a group beside a group; put an element that is no group between them", part.at)
    if not bound:
        return
    if _group(bound[0]) and _group(bound[-1]):
        scope.refuse("a pattern may not both start and end with a group", bound[-1].at)
    if not outermost:
        for part, where in ((bound[0], "starts"), (bound[-1], "ends")):
            if _group(part):
                scope.refuse(f"a group that {where} a SEQ is for a query's outermost pattern only" + _NESTED, part.at)


def _refuse_alone(part: Pattern, where: str, scope: Scope) -> None:
    if _negated(part):
        scope.refuse(f"a negation stands inside SEQ or AND, not {where}", part.at)
    if _group(part):
        scope.refuse(f"a group stands inside SEQ only, not {where}; A[k] takes k events in any order", part.at)


def _negated(part: Pattern) -> bool:
    return isinstance(part, Element) and part.negated


def _group(part: Pattern) -> bool:
    return isinstance(part, Element) and not part.negated and isinstance(part.quantity, Group)


def _grounded(pattern: Pattern) -> bool:
    """True where every choice of the ORs binds an event. If no part of a SEQ does so alone, then the choices that fail
    each part fail it together."""
    match pattern:
        case Element():
            empty = isinstance(pattern.quantity, Group) and pattern.quantity.low == 0
            return not pattern.negated and not empty
        case TimerAfter():
            return _grounded(pattern.part)
        case Seq() | And():
            return any(_grounded(part) for part in pattern.parts)
        case Or():
            return all(_grounded(part) for part in pattern.parts)
        case _:
            return False


def _single(pattern: Pattern) -> bool:
    if isinstance(pattern, Or):
        return all(_single(part) for part in pattern.parts)
    return isinstance(pattern, Element) and isinstance(pattern.quantity, One)


def _postponed(root: Pattern) -> bool:
    if isinstance(root, And):
        return any(_negated(part) for part in root.parts)
    if not isinstance(root, Seq):
        return False
    bound = [part for part in root.parts if not _negated(part)]
    return _negated(root.parts[-1]) or (bool(bound) and _group(bound[-1]))
