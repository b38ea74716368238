"""What the runs so far have covered: which queries still lack results for a range.

Enters: the table `runs`. Leaves: `Coverage`.
Always holds: a range counts as covered by the newest run over each part of it, in that run's version of the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

Span = tuple[int, int, str]  # from_us, to_us, version


def covered(spans: Iterable[Span], version: str, from_us: int, to_us: int) -> bool:
    """Whether [from, to) was published in this version, and not in another one since. `spans` oldest first.

    >>> covered([(0, 5, "a"), (5, 9, "a")], "a", 2, 7), covered([(0, 9, "a"), (3, 4, "b")], "a", 2, 7)
    (True, False)
    """
    open_parts = [(from_us, to_us)]
    for start, end, found in reversed(list(spans)):
        left = []
        for a, b in open_parts:
            if start >= b or end <= a:
                left.append((a, b))
                continue
            if found != version:
                return False
            left += [(x, y) for x, y in ((a, start), (end, b)) if x < y]
        open_parts = left
    return not open_parts


@dataclass(frozen=True)
class Coverage:
    """What runs have published: (from_us, to_us, query -> version), oldest first."""

    runs: tuple[tuple[int, int, Mapping[str, str]], ...]

    def lacking(self, versions: Mapping[str, str], from_us: int, to_us: int) -> tuple[str, ...]:
        """The queries whose version has no published results for the whole of [from, to), sorted.

        >>> Coverage(((0, 5, {"q": "1"}), (5, 9, {"q": "1", "r": "2"}))).lacking({"q": "1", "r": "2"}, 4, 9)
        ('r',)
        """
        spans: dict[str, list[Span]] = {}
        for start, end, published in self.runs:
            if start < to_us and end > from_us:
                for query, version in published.items():
                    spans.setdefault(query, []).append((start, end, version))
        return tuple(sorted(q for q, v in versions.items() if not covered(spans.get(q, ()), v, from_us, to_us)))


def coverage(
    spark: SparkSession, settings: Settings, from_us: int, to_us: int, pins: Mapping[str, int] | None = None
) -> Coverage:
    """The published runs that touch [from, to), read once. What a pinned run published is of older tables: it counts as
    results of no version. With `pins`, results count where they are of just these versions of the input tables."""
    from pyspark.sql import functions as F

    known = tables.read(spark, settings, "runs")
    pinned = F.col("pinned") if "pinned" in known.columns else F.lit(None)  # a table made before that column
    rows = (
        known.where("outcome IN ('published', 'empty')")
        .where((F.unix_micros("from_ts") < to_us) & (F.unix_micros("to_ts") > from_us))
        .select(F.unix_micros("from_ts").alias("a"), F.unix_micros("to_ts").alias("b"), "finished_at", "query_versions",
                "input_versions", F.coalesce(pinned, F.lit(False)).alias("pinned"))
        .collect()
    )  # fmt: skip
    rows.sort(key=lambda row: row["finished_at"])
    counts = [row["pinned"] is False if pins is None else row["input_versions"] == dict(pins) for row in rows]
    return Coverage(tuple(
        (row["a"], row["b"], row["query_versions"] if counted else dict.fromkeys(row["query_versions"], ""))
        for row, counted in zip(rows, counts, strict=True)
    ))  # fmt: skip
