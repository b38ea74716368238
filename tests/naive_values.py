"""Values as the language contract wants them: plain Python, one rule after the other, no code of the engine.

Enters: values of attributes and constants (None, bool, int, float, str, `Moment`). Leaves: values.
Always holds: NaN never leaves (it is NULL, as is division by zero); whole numbers are exact, however large; only one
that a match returns must fit 64 bits, or the run is refused. NULL is None here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT64 = range(-(2**63), 2**63)
EARTH_RADIUS_M = 6_371_008.8  # the mean radius; haversine gives metres


@dataclass(frozen=True, order=True)
class Moment:
    """A timestamp."""

    us: int

    def date(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.us)


Value = None | bool | int | float | str | Moment


class Overflow(Exception):
    """A whole number outside 64 bits in RETURN."""


def plain(value: object) -> Value:
    """A value as it stands in an event: NaN is NULL, a datetime is a Moment."""
    # > NaN and division by zero are NULL.
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime):
        return Moment(moment_us(value))
    assert value is None or isinstance(value, bool | int | float | str | Moment), value
    return value


def moment_us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def moment_text(us: int) -> str:
    return (EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def text(value: Value) -> str | None:
    """A RETURN field as composite_events keeps it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int():
            if value not in INT64:
                raise Overflow(f"{value} does not fit 64 bits")
            return str(value)
        case float():
            return repr(value)
        case str():
            return value
        case Moment():
            return moment_text(value.us)


def compare(operator: str, left: Value, right: Value) -> bool:
    # > Then a comparison with NULL is false
    if left is None or right is None:
        return False
    if isinstance(left, Moment) and isinstance(right, str):
        right = Moment(moment_us(datetime.fromisoformat(right)))
    if isinstance(right, Moment) and isinstance(left, str):
        left = Moment(moment_us(datetime.fromisoformat(left)))
    left, right = _alike(left, right)
    match operator:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right  # type: ignore[operator]
        case "<=":
            return left <= right  # type: ignore[operator]
        case ">":
            return left > right  # type: ignore[operator]
        case ">=":
            return left >= right  # type: ignore[operator]
    raise AssertionError(operator)


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Spark SQL: an int beside a float becomes one."""
    if isinstance(left, float) and isinstance(right, int):
        return left, as_float(right)
    return (as_float(left), right) if isinstance(left, int) and isinstance(right, float) else (left, right)


def as_float(value: int | float) -> float:
    """The nearest float; beyond all of them an infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Spark SQL's arithmetic: int and int give int (but `/` gives float), `%` has the sign of the dividend."""
    if left is None or right is None:
        return None
    left, right = _alike(left, right)
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    match operator:
        case "+":
            return plain(left + right)
        case "-":
            return plain(left - right)
        case "*":
            return plain(left * right)
        case "/":
            return None if right == 0 else plain(as_float(left) / as_float(right))
        case "%":
            if right == 0:
                return None
            if isinstance(left, float) or isinstance(right, float):
                return None if math.isinf(left) else math.fmod(left, right)
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
    raise AssertionError(operator)


def call(name: str, arguments: list[Value], gives_float: bool) -> Value:
    """A function of the contract; `gives_float`: one argument has the type float, so the result has it too."""
    if name in ("coalesce", "least", "greatest"):
        known = [argument for argument in arguments if argument is not None]
        if not known:
            return None
        if gives_float:
            known = [as_float(argument) for argument in known]  # type: ignore[arg-type]
        if name == "coalesce":
            return known[0]
        return min(known) if name == "least" else max(known)
    if any(argument is None for argument in arguments):
        return None
    match name, arguments:
        case "abs", [x]:
            return plain(abs(x))  # type: ignore[arg-type]
        case "round", [x]:
            return _round(x, 0)
        case "round", [x, int(digits)]:
            return _round(x, digits)
        case "floor" | "ceil", [int(x) | float(x)]:
            if math.isinf(x):
                return None  # there is no such whole number
            return plain(math.floor(x) if name == "floor" else math.ceil(x))
        case "sqrt", [x]:
            return None if x < 0 else math.sqrt(as_float(x))  # type: ignore[operator, arg-type]
        case "lower", [str(x)]:
            return x.lower()
        case "upper", [str(x)]:
            return x.upper()
        case "length", [str(x)]:
            return len(x)
        case "concat", _:
            return "".join(str(argument) for argument in arguments)
        case "hour", [Moment() as moment]:
            return moment.date().hour
        case "dayofweek", [Moment() as moment]:
            return moment.date().isoweekday() % 7 + 1  # Sunday is 1
        case "distance", [x1, y1, x2, y2]:
            dx, dy = as_float(x2) - as_float(x1), as_float(y2) - as_float(y1)  # type: ignore[arg-type]
            return plain(math.sqrt(dx * dx + dy * dy))
        case "haversine", [lat1, lon1, lat2, lon2]:
            if any(math.isinf(angle) for angle in arguments):  # type: ignore[arg-type]
                return None
            degrees = (as_float(angle) for angle in (lat1, lon1, lat2, lon2))  # type: ignore[arg-type]
            a, b, c, d = (math.radians(angle) for angle in degrees)
            h = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
            return plain(2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, h))))
    raise AssertionError(f"{name} of {arguments}")


def _round(x: Value, digits: int) -> Value:
    """Half away from zero, on the decimal digits that the number is written with."""
    assert isinstance(x, int | float)
    if isinstance(x, float) and math.isinf(x):
        return x
    if isinstance(x, int) and digits >= 0:
        return x
    with localcontext(prec=2000):
        unit = Decimal(1).scaleb(-digits)
        rounded = (Decimal(repr(x)) / unit).quantize(Decimal(1), ROUND_HALF_UP) * unit
    return int(rounded) if isinstance(x, int) else float(rounded) + 0.0  # Spark has no -0.0 here


def like(value: Value, pattern: str) -> bool:
    """SQL LIKE: `%` any run, `_` one character, backslash escapes."""
    return isinstance(value, str) and _like(value, pattern)


def _like(value: str, pattern: str) -> bool:
    if not pattern:
        return not value
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(_like(value[cut:], rest) for cut in range(len(value) + 1))
    if head == "_":
        return bool(value) and _like(value[1:], rest)
    if head == "\\" and rest:
        head, rest = rest[0], rest[1:]
    return value[:1] == head and _like(value[1:], rest)


def aggregate(function: str, values: list[Value]) -> Value:
    # > NULLs are skipped; over an empty group count is 0 and the others are NULL.
    if function == "count":
        return len(values)
    known = [value for value in values if value is not None]
    if not known:
        return None
    match function:
        case "sum" | "avg":
            total: Value = 0  # Spark SQL: of -0.0 alone the sum is 0.0
            for value in known:
                total = arithmetic("+", total, value)
            return total if function == "sum" else arithmetic("/", total, len(known))
        case "min":
            return min(known)
        case "max":
            return max(known)
        case "first":
            return known[0]
        case "last":
            return known[-1]
    raise AssertionError(function)
