"""The conditions of one answer: expressions over the events that are bound, value by value.

Enters: a `Scope`: which events each variable has. Leaves: values (None is NULL) and truth.
Always holds: the meaning is the contract's: a comparison with NULL is false; one that names an unbound variable, an
undeclared attribute or an index out of range is true. Nothing is evaluated by the host language.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cep_core.engine.scalars import like, moment_us, round_half_up
from cep_core.engine.values import EARTH_METRES
from cep_core.language.algebra import (
    Aggregate,
    All,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Constant,
    Duration,
    Either,
    Expression,
    Forall,
    In,
    Index,
    IsNull,
    Like,
    Minus,
)
from cep_core.language.normal import push_down

_LOW, _HIGH = -(2**63), 2**63


@dataclass(frozen=True)
class Moment:
    """A timestamp, kept apart from numbers."""

    us: int


class Vacuous(Exception):
    """The comparison names something that is not there: it is true."""


@dataclass
class Scope:
    """bound: variable -> its events (one for a single element); many: the variables that are windows, whose bare
    attributes speak of each event. read(event, attribute) gives a value; declares(event, attribute) says whether there
    is one. An event is a row, or a timer as a negative number."""

    read: Any
    declares: Any
    bound: dict[str, Sequence[int]] = field(default_factory=dict)
    many: frozenset[str] = frozenset()
    indices: Mapping[str, int] = field(default_factory=dict)
    lenient: bool = False  # what is not there is NULL, as RETURN has it


def holds(condition: Condition, scope: Scope) -> bool:
    match condition:
        case All(conditions=parts):
            return all(holds(part, scope) for part in parts)
        case Either(conditions=parts):
            return any(holds(part, scope) for part in parts)
        case Forall():
            return _forall(condition, scope)
    windows = sorted(bare_variables(condition) & scope.many & scope.bound.keys())
    if not windows:
        return _atom(condition, scope)
    for events in product(*(scope.bound[name] for name in windows)):
        narrowed = {name: (event,) for name, event in zip(windows, events, strict=True)}
        one = replace(scope, bound={**scope.bound, **narrowed}, many=scope.many - set(windows))
        if not _atom(condition, one, scope):
            return False
    return True


def bare_variables(node: Condition | Expression) -> frozenset[str]:
    """Variables whose attributes stand without an index or an aggregate."""
    match node:
        case Attribute(variable=variable, index=None):
            return frozenset() if variable is None else frozenset((variable,))
        case Duration():
            sides = ((node.first, node.first_index), (node.second, node.second_index))
            return frozenset(name for name, index in sides if index is None)
        case Forall(body=body):
            return bare_variables(body)
        case _:
            return frozenset().union(*map(bare_variables, _children(node)))


def variables(node: Condition | Expression) -> frozenset[str]:
    """Every variable that is named."""
    match node:
        case Attribute(variable=variable):
            return frozenset() if variable is None else frozenset((variable,))
        case Aggregate(variable=variable):
            return frozenset((variable,))
        case Duration(first=first, second=second):
            return frozenset((first, second))
        case Forall(body=body, high=high):
            return variables(body) | (variables(high) if isinstance(high, Aggregate) else frozenset())
        case _:
            return frozenset().union(*map(variables, _children(node)))


def is_plain(node: Condition | Expression) -> bool:
    """Whether it has only bare attributes: no index, aggregate, duration or FORALL."""
    match node:
        case Attribute(index=index):
            return index is None
        case Aggregate() | Duration() | Forall():
            return False
        case _:
            return all(map(is_plain, _children(node)))


def _children(node: Condition | Expression) -> tuple[Any, ...]:
    match node:
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            return (left, right)
        case In(operand=operand) | Like(operand=operand) | IsNull(operand=operand) | Minus(operand=operand):
            return (operand,)
        case Between(operand=operand, low=low, high=high):
            return (operand, low, high)
        case Call(arguments=parts) | All(conditions=parts) | Either(conditions=parts):
            return parts
        case _:
            return ()


def _forall(condition: Forall, scope: Scope) -> bool:
    high = condition.high
    if isinstance(high, Aggregate):
        if high.variable not in scope.bound:
            return True
        high = len(scope.bound[high.variable])
    body = push_down(condition.body, condition.negated)
    steps = (
        holds(body, replace(scope, indices={**scope.indices, condition.name: i}))
        for i in range(condition.low, high + 1)
    )
    return any(steps) if condition.negated else all(steps)


def _atom(atom: Condition, scope: Scope, whole: Scope | None = None) -> bool:
    whole = whole or scope
    try:
        match atom:
            case Compare(operator=operator, left=left, right=right):
                return _compare(operator, value(left, scope, whole), value(right, scope, whole))
            case In(operand=operand, values=values, negated=negated):
                x = value(operand, scope, whole)
                if x is None:
                    return False
                found = any(_compare("=", x, item.value) for item in values)
                return found if not negated else not found and all(item.value is not None for item in values)
            case Between(operand=operand, low=low, high=high, negated=negated):
                x, a, b = (value(part, scope, whole) for part in (operand, low, high))
                if negated:
                    return _compare("<", x, a) or _compare(">", x, b)
                return _compare(">=", x, a) and _compare("<=", x, b)
            case Like(operand=operand, pattern=pattern, negated=negated):
                x = value(operand, scope, whole)
                return x is not None and like(x, pattern) != negated
            case IsNull(operand=operand, negated=negated):
                return (value(operand, scope, whole) is None) != negated
    except Vacuous:
        return True
    raise AssertionError(f"not an atom: {atom}")


def _compare(operator: str, x: Any, y: Any) -> bool:
    if x is None or y is None:
        return False
    if isinstance(x, Moment) or isinstance(y, Moment):
        x, y = (side.us if isinstance(side, Moment) else moment_us(side) for side in (x, y))
    elif isinstance(x, float) != isinstance(y, float):
        x, y = float(x), float(y)  # as Spark: an int beside a float is a float
    match operator:
        case "=":
            return bool(x == y)
        case "!=":
            return bool(x != y)
        case "<":
            return bool(x < y)
        case "<=":
            return bool(x <= y)
        case ">":
            return bool(x > y)
        case _:
            return bool(x >= y)


def value(node: Expression, scope: Scope, whole: Scope | None = None) -> Any:
    """The value of an expression. `whole` still has all events of a variable that `scope` narrows to one."""
    whole = whole or scope
    match node:
        case Constant():
            return node.value
        case Attribute() | Duration() | Aggregate():
            try:
                return _leaf(node, scope, whole)
            except Vacuous:
                if scope.lenient:
                    return None
                raise
        case Minus(operand=operand):
            return _arithmetic("-", 0, value(operand, scope, whole))
        case Arithmetic(operator=operator, left=left, right=right):
            return _arithmetic(operator, value(left, scope, whole), value(right, scope, whole))
        case Call(name=name, arguments=arguments):
            return _call(name, [value(argument, scope, whole) for argument in arguments])
    raise AssertionError(f"not an expression: {node}")


def _leaf(node: Attribute | Duration | Aggregate, scope: Scope, whole: Scope) -> Any:
    match node:
        case Attribute(variable=variable, name=name, index=index):
            return _read(_event(variable, index, scope, whole), name, scope)
        case Duration():
            first = _event(node.first, node.first_index, scope, whole)
            second = _event(node.second, node.second_index, scope, whole)
            return (scope.read(second, "end_ts").us - scope.read(first, "end_ts").us) / 1e6
        case Aggregate():
            return _aggregate(node, whole)


def _event(variable: str | None, index: Index | None, scope: Scope, whole: Scope) -> int:
    assert variable is not None
    if index is None:
        events = scope.bound.get(variable)
        if events is None:
            raise Vacuous
        return events[0]
    events = whole.bound.get(variable)
    place = index.offset + (scope.indices[index.name] if index.name is not None else 0)
    if events is None or not 1 <= place <= len(events):
        raise Vacuous
    return events[place - 1]


def _read(event: int, name: str, scope: Scope) -> Any:
    if not scope.declares(event, name):
        raise Vacuous
    return scope.read(event, name)


def _aggregate(node: Aggregate, scope: Scope) -> Any:
    events = scope.bound.get(node.variable)
    if events is None:
        raise Vacuous
    if node.function == "count":
        return len(events)
    name = node.attribute
    known = [x for e in events if scope.declares(e, name) and (x := scope.read(e, name)) is not None]
    if not known:
        return None
    match node.function:
        case "first":
            return known[0]
        case "last":
            return known[-1]
        case "min" | "max":
            pick = min if node.function == "min" else max
            return pick(known, key=lambda x: x.us) if isinstance(known[0], Moment) else pick(known)
    total = known[0]
    for x in known[1:]:
        total = total + x
    if node.function == "avg":
        return _number(float(total) / len(known))
    return _number(total)


def _number(x: Any) -> Any:
    """NaN, and an integer that leaves 64 bits, are NULL."""
    if isinstance(x, float):
        return None if math.isnan(x) else x
    return x if _LOW <= x < _HIGH else None


def _arithmetic(operator: str, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    match operator:
        case "+":
            return _number(x + y)
        case "-":
            return _number(x - y)
        case "*":
            return _number(x * y)
        case "/":
            return None if y == 0 else _number(float(x) / float(y))
        case _:
            if y == 0 or (isinstance(x, float) and math.isinf(x)):
                return None
            if isinstance(x, float) or isinstance(y, float):
                return _number(math.fmod(x, y))
            return abs(x) % abs(y) * (-1 if x < 0 else 1)


def _call(name: str, given: list[Any]) -> Any:
    if name in ("coalesce", "least", "greatest"):
        known = [x for x in given if x is not None]
        if not known:
            return None
        if name != "coalesce":
            pick = min if name == "least" else max
            chosen = pick(known, key=lambda x: x.us) if isinstance(known[0], Moment) else pick(known)
        else:
            chosen = known[0]
        mixed = any(isinstance(x, float) for x in given)
        return float(chosen) if mixed and isinstance(chosen, int) else chosen
    if any(x is None for x in given):
        return None
    x = given[0]
    match name:
        case "abs":
            return _number(abs(x))
        case "sqrt":
            return None if x < 0 else math.sqrt(x)
        case "floor" | "ceil":
            if isinstance(x, float) and math.isinf(x):
                return None
            return _number(math.floor(x) if name == "floor" else math.ceil(x))
        case "round":
            return round_half_up(x, given[1] if len(given) > 1 else 0)
        case "hour":
            return x.us // 3_600_000_000 % 24
        case "dayofweek":
            return (x.us // 86_400_000_000 + 4) % 7 + 1
        case "length":
            return len(x)
        case "lower":
            return x.lower()
        case "upper":
            return x.upper()
        case "concat":
            return "".join(given)
        case "distance":
            x1, y1, x2, y2 = map(float, given)
            return _number(math.sqrt((x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1)))
    lat1, lon1, lat2, lon2 = map(float, given)
    p1, p2 = math.radians(lat1), math.radians(lat2)
    a = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return _number(2 * EARTH_METRES * math.asin(math.sqrt(min(1.0, a))))
