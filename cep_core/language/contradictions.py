"""Conditions that cannot all hold: proved from constants, from NULL, and from bounds on one attribute.

Enters: atoms, each of which an answer must meet. Leaves: the two that exclude each other, as text, or None.
Always holds: what is not proved is not said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from cep_core.language.algebra import Attribute, Between, Compare, Constant, Expression, In
from cep_core.language.checked import Type
from cep_core.language.format import format_condition
from cep_core.language.times import moment_us

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
KindOf = Callable[[Expression], Type]
_ALL_WHOLE = 2**53  # below it every whole number is a float of its own
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def contradiction(atoms: Iterable[object], kind_of: KindOf) -> str | None:
    """Why the atoms cannot all hold, or None where that is not proved. `kind_of` gives an attribute's type."""
    ranges: dict[Expression, _Range] = {}
    for atom in atoms:
        if _false_alone(atom, kind_of):
            return format_condition(atom)  # type: ignore[arg-type]
        for operand, bound in _bounds(atom):
            value = _key(bound.right, kind_of(operand))
            if value is None:
                continue
            other = ranges.setdefault(operand, _Range()).add(bound, value)
            if other is not None:
                return f"{format_condition(other)} and {format_condition(bound)}"
    return None


class _Range:
    """What is known of one attribute so far: its tightest bounds, its one value, and the values that it has not. Only
    those are kept, so that a condition of thousands of terms is judged in one pass."""

    def __init__(self) -> None:
        self.low: tuple[Compare, Any] | None = None
        self.high: tuple[Compare, Any] | None = None
        self.equal: tuple[Compare, Any] | None = None
        self.unequal: dict[Any, Compare] = {}

    def add(self, bound: Compare, value: Any) -> Compare | None:
        """The earlier bound that excludes this one; otherwise None, and this one is kept."""
        sign = bound.operator
        if self.equal is not None and not _holds(sign, self.equal[1], value):
            return self.equal[0]
        if sign == "=":
            for other in (self.low, self.high):
                if other is not None and not _holds(other[0].operator, value, other[1]):
                    return other[0]
            if value in self.unequal:
                return self.unequal[value]
            self.equal = bound, value
        elif sign == "!=":
            self.unequal.setdefault(value, bound)
        elif sign in (">", ">="):
            if self.high is not None and _apart(bound, value, self.high[0], self.high[1]):
                return self.high[0]
            if self.low is None or _holds(">", value, self.low[1]) or (sign == ">" and value == self.low[1]):
                self.low = bound, value
        else:
            if self.low is not None and _apart(self.low[0], self.low[1], bound, value):
                return self.low[0]
            if self.high is None or _holds("<", value, self.high[1]) or (sign == "<" and value == self.high[1]):
                self.high = bound, value
        return None


def _apart(low: Compare, least: Any, high: Compare, most: Any) -> bool:
    """True where nothing lies between the two bounds."""
    return _holds(">", least, most) or (least == most and not (low.operator == ">=" and high.operator == "<="))


def _false_alone(atom: object, kind_of: KindOf) -> bool:
    match atom:
        case Compare(operator=sign, left=Constant(value=left), right=Constant(value=right)):
            return left is None or right is None or not _holds(sign, left, right)
        case Compare(left=left, right=right):
            return Constant(None) in (left, right)
        case In(values=values, negated=negated):
            return (
                any(value.value is None for value in values)
                if negated
                else all(value.value is None for value in values)
            )
        case Between(operand=operand, low=Constant() as low, high=Constant() as high, negated=False):
            if low.value is None or high.value is None:
                return True
            least, most = _key(low, kind_of(operand)), _key(high, kind_of(operand))
            return least is not None and most is not None and _holds(">", least, most)
        case _:
            return False


def _bounds(atom: object) -> list[tuple[Expression, Compare]]:
    """What an atom says about one attribute, as comparisons of it with constants."""
    match atom:
        case Compare(operator=sign, left=Attribute() as left, right=Constant() as right):
            return [(left, Compare(sign, left, right))]
        case Compare(operator=sign, left=Constant() as left, right=Attribute() as right):
            return [(right, Compare(_FLIPPED[sign], right, left))]  # type: ignore[arg-type]
        case Between(operand=Attribute() as operand, low=Constant() as low, high=Constant() as high, negated=False):
            return [(operand, Compare(">=", operand, low)), (operand, Compare("<=", operand, high))]
        case _:
            return []


def _key(constant: Expression, kind: Type) -> Any:
    """A constant as the attribute's type compares it: a moment as a moment, however it is written; beside a float as a
    float. None where that is not known (a text that may be a moment, beside an attribute of unknown type), where it is
    NULL, or where a large number is rounded by the comparison."""
    value = constant.value if isinstance(constant, Constant) else None
    if isinstance(value, str) and kind != "string":
        moment = moment_us(value)
        return moment if kind == "timestamp" else None if moment is not None else value
    if not isinstance(value, int | float) or abs(value) < _ALL_WHOLE or (kind == "int" and isinstance(value, int)):
        return value
    return float(value) if kind == "float" else None


def _holds(sign: str, left: object, right: object) -> bool:
    """The comparison of two constants; values of different types prove nothing, so they count as holding."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
    elif type(left) is not type(right):
        return sign not in ("<", ">")
    return bool(_OPERATORS[sign](left, right))
