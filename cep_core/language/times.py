"""Durations and moments as the language writes them.

Enters: the number and unit of a duration, or an ISO 8601 text. Leaves: whole microseconds, and back.
Always holds: `format_duration` and `format_moment` give a text that reads back as the same number of microseconds.
A moment without an offset is UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

UNITS_US: dict[str, int] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
UNIT_NAMES: dict[str, int] = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), UNITS_US["us"]),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), UNITS_US["ms"]),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), UNITS_US["s"]),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), UNITS_US["min"]),
    **dict.fromkeys(("h", "hour", "hours"), UNITS_US["hour"]),
    **dict.fromkeys(("d", "day", "days"), UNITS_US["day"]),
    **dict.fromkeys(("w", "week", "weeks"), UNITS_US["week"]),
}
LONGEST_US = 10_000 * 366 * UNITS_US["day"]  # far below int64, so that a time plus a duration never overflows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)


def duration_us(number: str, unit: str) -> int | None:
    """Microseconds of e.g. `1.5`, `hours`; None where they are not a whole number or beyond all use."""
    exact = Decimal(number) * UNIT_NAMES[unit.lower()]
    whole = int(exact) if exact <= LONGEST_US else -1
    return whole if whole == exact else None


def format_duration(duration: int) -> str:
    """In the largest unit that gives a whole number."""
    for unit, size in reversed(UNITS_US.items()):
        if duration and duration % size == 0:
            count = duration // size
            return f"{count} {unit}{'s' if count != 1 and size >= UNITS_US['hour'] else ''}"
    return "0 s"


def moment_us(text: str) -> int | None:
    """Microseconds since the epoch of an ISO 8601 date or time; None where the text is none."""
    if not _MOMENT.fullmatch(text.strip()):
        return None
    try:
        moment = datetime.fromisoformat(re.sub(r"\s+(?=Z|[+-]\d{2}:?\d{2}$)", "", text.strip()))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None


def format_moment(moment: int) -> str:
    """`2026-01-01T00:00:00Z`, with six decimals where there are any."""
    text = (_EPOCH + timedelta(microseconds=moment)).replace(tzinfo=None).isoformat()
    return text + "Z"
