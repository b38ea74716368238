"""Conditions as the language contract reads them: NOT pushed down, disjunctive normal form, one atom at a time.

Enters: condition nodes of the query algebra and a `Scope`: what each variable is bound to. Leaves: booleans and values.
Always holds: this is written from the contract alone; it shares no code with the engine or with the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from cep_core.language import algebra as q
from tests.naive_values import Moment, Value, aggregate, arithmetic, as_float, call, compare, like, plain

FLIPPED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Event:
    """An event, a match of another query (`detection_ts`), or a timer (`timer` is its element's position)."""

    id: str
    event_class: str
    start: int
    end: int
    tie: Any = None
    attributes: dict[str, Value] = field(default_factory=dict, hash=False, compare=False)
    declared: frozenset[str] = frozenset()
    detection: int | None = None
    timer: int | None = None

    @cached_property
    def order(self) -> tuple[Any, ...]:
        # > Event order is by (end_ts, start_ts, tie, event_id). A timer comes after every event of the same times,
        # > timers of the same moment in the order of their elements.  [tie:] missing sorts lowest
        if self.timer is not None:
            return (self.end, self.start, 1, self.timer)
        return (self.end, self.start, 0, *((0, 0) if self.tie is None else (1, self.tie)), self.id)


class True_(Exception):
    """Raised by a name that makes its comparison true: unbound, undeclared, or an index out of range."""


@dataclass(frozen=True)
class Scope:
    """What the variables are bound to.

    events: all events of a variable; one: the event that the bare variable stands for; several: the windows, which
    stand for each of their events; numbers: the FORALL names; types: (variable, attribute) -> type; in RETURN what is
    absent is NULL. An element's own filter names its event by the empty variable.
    """

    events: dict[str, tuple[Event, ...]]
    one: dict[str, Event]
    several: frozenset[str] = frozenset()
    numbers: dict[str, int] = field(default_factory=dict)
    types: dict[tuple[str, str], str] = field(default_factory=dict)
    in_return: bool = False

    def with_one(self, variable: str, event: Event) -> Scope:
        return replace(self, one=self.one | {variable: event}, several=self.several - {variable})


# ---------------------------------------------------------------- form


def push_down(condition: q.Condition, negate: bool = False) -> q.Condition:
    # > NOT is pushed down to the comparisons first.
    match condition:
        case q.Not(inner):
            return push_down(inner, not negate)
        case q.All(parts) | q.Either(parts):
            pushed = tuple(push_down(part, negate) for part in parts)
            return q.All(pushed) if isinstance(condition, q.All) != negate else q.Either(pushed)
        case q.Compare(operator, left, right):
            return q.Compare(FLIPPED[operator], left, right) if negate else condition  # type: ignore[arg-type]
        case q.Forall():
            # the negation of a FORALL holds where its body, negated, holds for one i: see `_atom`
            negated = condition.negated != negate
            return replace(condition, body=push_down(condition.body, negated), negated=negated)
        case q.In() | q.Between() | q.Like() | q.IsNull():
            return replace(condition, negated=condition.negated != negate)
        case q.Equivalence():
            assert not negate
            return condition
    raise AssertionError(condition)


def disjuncts(condition: q.Condition | None) -> list[list[q.Condition]]:
    # > WHERE is read in disjunctive normal form P1 OR ... OR Pp
    # > IN, BETWEEN, LIKE, IS NULL and FORALL, negated or not, are single atoms
    match condition:
        case None:
            return [[]]
        case q.Either(parts):
            return [found for part in parts for found in disjuncts(part)]
        case q.All(parts):
            return [[atom for choice in choices for atom in choice] for choices in product(*map(disjuncts, parts))]
    return [[condition]]


def expressions(condition: q.Condition) -> Iterator[q.Expression]:
    """Every value in a condition, and every value in those."""
    match condition:
        case q.Compare(_, left, right):
            yield from (*_inner(left), *_inner(right))
        case q.Between(operand, low, high):
            yield from (*_inner(operand), *_inner(low), *_inner(high))
        case q.In(operand) | q.Like(operand) | q.IsNull(operand):
            yield from _inner(operand)
        case q.Forall():
            yield from (*expressions(condition.body), *([] if isinstance(condition.high, int) else [condition.high]))
        case q.All(parts) | q.Either(parts):
            for part in parts:
                yield from expressions(part)
        case q.Not(inner):
            yield from expressions(inner)


def _inner(expression: q.Expression) -> Iterator[q.Expression]:
    yield expression
    match expression:
        case q.Arithmetic(_, left, right):
            yield from (*_inner(left), *_inner(right))
        case q.Minus(operand):
            yield from _inner(operand)
        case q.Call(_, arguments):
            for argument in arguments:
                yield from _inner(argument)


def bare(condition: q.Condition) -> set[str]:
    """The variables that a condition names bare: without an index and outside an aggregate."""
    names: set[str] = set()
    for expression in expressions(condition):
        match expression:
            case q.Attribute(str(variable), _, None):
                names.add(variable)
            case q.Duration(first, first_index, second, second_index):
                names |= {first} if first_index is None else set()
                names |= {second} if second_index is None else set()
    return names


# ---------------------------------------------------------------- truth


def holds(condition: q.Condition, scope: Scope) -> bool:
    match condition:
        case q.All(parts):
            return all(holds(part, scope) for part in parts)
        case q.Either(parts):
            return any(holds(part, scope) for part in parts)
        case q.Forall():
            return _forall(condition, scope)
    # > A bare attribute of a k-size window (`w.x = 1`) must hold for each of its events.
    windows = sorted(bare(condition) & scope.several)
    scopes = [scope]
    for window in windows:
        scopes = [wider.with_one(window, event) for wider in scopes for event in scope.events[window]]
    return all(_atom(condition, each) for each in scopes)


def _forall(condition: q.Forall, scope: Scope) -> bool:
    # > FORALL i IN 1..5 (...) over a k-size window or a group; the range may end in `count(r)`
    high = condition.high
    if not isinstance(high, int):
        if high.variable not in scope.events:
            return True
        high = len(scope.events[high.variable])
    truths = [
        holds(condition.body, replace(scope, numbers=scope.numbers | {condition.name: i}))
        for i in range(condition.low, high + 1)
    ]
    return any(truths) if condition.negated else all(truths)


def _atom(atom: q.Condition, scope: Scope) -> bool:
    # > one that names an attribute that the bound event's class does not declare (possible under ANY), a variable that
    # > is not bound (OR), or an index out of range, is true.
    try:
        return _compared(atom, lambda expression: value(expression, scope))
    except True_:
        return True


def _compared(atom: q.Condition, of: Callable[[q.Expression], Value]) -> bool:
    match atom:
        case q.Compare(operator, left, right):
            return compare(operator, *(of(left), of(right)))
        case q.In(operand, constants, negated):
            found, listed = of(operand), [of(constant) for constant in constants]
            if negated:
                return all(compare("!=", found, constant) for constant in listed)
            return any(compare("=", found, constant) for constant in listed)
        case q.Between(operand, low, high, negated):
            found, least, most = of(operand), of(low), of(high)
            if negated:
                return compare("<", found, least) or compare(">", found, most)
            return compare(">=", found, least) and compare("<=", found, most)
        case q.Like(operand, pattern, negated):
            found = of(operand)
            return found is not None and like(found, pattern) != negated
        case q.IsNull(operand, negated):
            return (of(operand) is None) != negated
    raise AssertionError(atom)


# ---------------------------------------------------------------- values


def value(expression: q.Expression, scope: Scope) -> Value:
    """The value; every operand is looked at, so that a name that makes the comparison true is always found."""
    match expression:
        case q.Constant(constant):
            return plain(constant)
        case q.Attribute():
            try:
                found = attribute_of(_event(expression.variable or "", expression.index, scope), expression.name)
                return _typed(found, expression, scope)
            except True_:
                if scope.in_return:
                    return None
                raise
        case q.Duration(first, first_index, second, second_index):
            # > duration(a, b) = seconds from a's end to b's end
            try:
                return (_event(second, second_index, scope).end - _event(first, first_index, scope).end) / 1_000_000
            except True_:
                if scope.in_return:
                    return None
                raise
        case q.Aggregate(function, variable, attribute):
            if variable not in scope.events:
                if scope.in_return:
                    return None
                raise True_
            members = scope.events[variable]
            if attribute is None:
                return aggregate("count", list(range(len(members))))
            declaring = [member for member in members if attribute in member.declared]
            whole = q.Attribute(variable, attribute)
            return aggregate(function, [_typed(attribute_of(each, attribute), whole, scope) for each in declaring])
        case q.Arithmetic(operator, left, right):
            return arithmetic(operator, *(value(left, scope), value(right, scope)))
        case q.Minus(operand):
            return arithmetic("-", 0 if type_of(operand, scope) != "float" else -0.0, value(operand, scope))
        case q.Call(name, arguments):
            values = [value(argument, scope) for argument in arguments]
            return call(name, values, any(type_of(argument, scope) == "float" for argument in arguments))
    raise AssertionError(expression)


def _typed(value: Value, attribute: q.Attribute, scope: Scope) -> Value:
    """A whole number as a fraction, where another class of the element has fractions: an attribute has one type."""
    return as_float(value) if type(value) is int and type_of(attribute, scope) == "float" else value


def attribute_of(event: Event, name: str) -> Value:
    # > a point event has both equal, and `ts` names either.  (of an interval it is the end)
    if name not in event.declared:
        raise True_
    match name:
        case "event_id":
            return event.id
        case "event_class":
            return event.event_class
        case "start_ts":
            return Moment(event.start)
        case "end_ts" | "ts":
            return Moment(event.end)
    return event.attributes.get(name)


def _event(variable: str, index: q.Index | None, scope: Scope) -> Event:
    if index is None:
        if variable not in scope.one:
            raise True_
        return scope.one[variable]
    place = index.offset + (scope.numbers[index.name] if index.name is not None else 0)
    members = scope.events.get(variable, ())
    if not 1 <= place <= len(members):
        raise True_
    return members[place - 1]


def type_of(expression: q.Expression, scope: Scope) -> str:
    """'float', or anything else: what decides whether least(1, 2.5) is 1 or 1.0."""
    match expression:
        case q.Constant(constant):
            return "float" if isinstance(constant, float) else "other"
        case q.Attribute(variable, name):
            return scope.types.get((variable or "", name), "other")
        case q.Duration() | q.Call("sqrt" | "distance" | "haversine") | q.Aggregate("avg") | q.Arithmetic("/"):
            return "float"
        case q.Aggregate(function, variable, str(attribute)) if function != "count":
            return scope.types.get((variable, attribute), "other")
        case q.Arithmetic(_, left, right):
            return "float" if "float" in (type_of(left, scope), type_of(right, scope)) else "other"
        case q.Minus(operand):
            return type_of(operand, scope)
        case q.Call("abs" | "round" | "least" | "greatest" | "coalesce", arguments):
            return "float" if any(type_of(argument, scope) == "float" for argument in arguments) else "other"
    return "other"
