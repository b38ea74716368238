"""Ranges of time as people write them, and the range that a history spans.

Enters: texts such as `2026-01-31`, `2026-01-31T12:00:00Z`, `6 hours`. Leaves: microseconds since the epoch, UTC.
Always holds: a text without a zone is UTC; what cannot be read is refused with an example of what can.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cep_core.errors import DeclarationError, EventError
from jobs.catalogue import Workload
from jobs.reach import delay_us

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from jobs.declarations import Declarations
    from jobs.settings import Settings

DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"ms": 1_000, "s": 1_000_000, "min": 60_000_000, "hour": 3_600_000_000, "day": DAY_US, "week": 7 * DAY_US}


def parse_moment(text: str) -> datetime:
    """A date or a time of the ISO form.

    >>> parse_moment("2026-01-31").isoformat()
    '2026-01-31T00:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise DeclarationError(f"{text!r} is no time; write 2026-01-31 or 2026-01-31T12:00:00Z") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def parse_us(text: str) -> int:
    """A time as microseconds.

    >>> parse_us("1970-01-01T00:00:01Z")
    1000000
    """
    return (parse_moment(text) - _EPOCH) // datetime.resolution


def parse_duration(text: str) -> int:
    """A duration as the query language writes them.

    >>> parse_duration("6 hours"), parse_duration("1 day")
    (21600000000, 86400000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|hours?|days?|weeks?)\s*", text)
    if not found or float(found[1]) == 0:
        raise DeclarationError(f"{text!r} is no duration; write 6 hours, 1 day or 30 min")
    unit = found[2] if found[2] in _UNITS else found[2].rstrip("s")
    return round(float(found[1]) * _UNITS[unit])


def history_range(
    spark: SparkSession, settings: Settings, workload: Workload, versions: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """The whole days that hold every detection that the history can give."""
    from pyspark.sql import functions as F

    from jobs.primitives import read_primitives

    events = read_primitives(spark, settings, workload.declarations, workload.classes, (), None, None, versions)
    first, last = events.agg(F.min("end_ts"), F.max("end_ts")).collect()[0]
    if first is None:
        raise EventError(
            f"the tables of {', '.join(workload.classes)} hold no events; give --from and --to to mine anyway"
        )
    latest = last + max((delay_us(name, workload.checked) for name in workload.versions), default=0)
    return first // DAY_US * DAY_US, (latest // DAY_US + 1) * DAY_US


def histories(spark: SparkSession, settings: Settings, declarations: Declarations) -> dict[str, int]:
    """Class -> how much time the table behind it spans, in microseconds; only the times are read. An empty one is left
    out."""
    from pyspark.sql import functions as F

    from jobs.primitives import micros, source_frame

    found: dict[str, int] = {}
    for source in declarations.sources:
        frame = source_frame(spark, settings, declarations, source)
        start, end = (micros(frame, expression, source.unit) for expression in (source.start, source.end))
        first, last = frame.agg(F.min(start), F.max(end)).collect()[0]
        if first is not None and last is not None:
            found |= dict.fromkeys((each.name for each in source.classes), last - first)
    return found
