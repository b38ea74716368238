"""Functions of single values whose exact meaning is Spark SQL's: rounding, LIKE, parts of a timestamp."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

import numpy as np

_HOUR_US = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def round_half_up(value: float, digits: int = 0) -> float | int:
    """Spark's round: half away from zero, on the decimal digits that print the number. A zero has no sign.

    >>> round_half_up(2.675, 2), round_half_up(-0.5), round_half_up(25, -1), round_half_up(-0.4)
    (2.68, -1.0, 30, 0.0)
    """
    if isinstance(value, int):
        if digits >= 0:
            return value
        if -digits > len(str(abs(value))):
            return 0
        unit = 10**-digits
        whole = (2 * abs(value) + unit) // (2 * unit) * unit
        return -whole if value < 0 else whole
    if value != value or value in (float("inf"), float("-inf")):
        return value
    exact = Decimal(repr(value))
    if digits >= -exact.as_tuple().exponent:  # type: ignore[operator]
        return value + 0.0
    if digits < -400:  # beyond all floats
        return 0.0
    return float(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)) + 0.0


def like(text: str, pattern: str) -> bool:
    r"""SQL LIKE: `%` any run, `_` one character, a backslash takes the next character as it is.

    >>> like("food-1", "food%"), like("a%b", r"a\%_"), like("ab", "a")
    (True, True, False)
    """
    parts = _like_parts(pattern)
    row = [True] + [False] * len(text)
    for part in parts:
        if part is None:  # any run
            seen = False
            for place, ok in enumerate(row):
                seen = seen or ok
                row[place] = seen
        else:
            row = [False] + [row[i] and (part == "" or part == text[i]) for i in range(len(text))]
    return row[-1]


@lru_cache(maxsize=4096)
def _like_parts(pattern: str) -> tuple[str | None, ...]:
    """None for %, '' for _, else the character itself."""
    parts: list[str | None] = []
    escaped = False
    for char in pattern:
        if escaped:
            parts.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            parts.append(None if char == "%" else "" if char == "_" else char)
    return tuple(parts)


def moment_us(text: str) -> int:
    """Microseconds since the epoch of a moment in ISO form; one without a zone is UTC.

    >>> moment_us("1970-01-01T00:00:01Z"), moment_us("1970-01-01")
    (1000000, 0)
    """
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // timedelta(microseconds=1)


def hour_of_day(time_us: np.ndarray) -> np.ndarray:
    """0 to 23, in UTC."""
    return time_us // _HOUR_US % 24


def day_of_week(time_us: np.ndarray) -> np.ndarray:
    """1 is Sunday, as Spark counts; the epoch was a Thursday."""
    return (time_us // (24 * _HOUR_US) + 4) % 7 + 1
