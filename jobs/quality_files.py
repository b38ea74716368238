"""The Parquet files behind a DataFrame, opened without Spark's own reader, and what their statistics say.

Enters: DataFrames that are whole tables. Leaves: paths of this machine's file system, each with what Delta's log knows
of the file; figures from footers; a pass of Python over files, spread over Spark's tasks.
Always holds: a path stands for a file of which every row is a row of the DataFrame. Anything else (a select, a filter,
rows that Delta has deleted without rewriting their file, renamed columns, another file system) has no such files:
None, and Spark reads it. A statistic is used only as a bound, and only where its writer says that it is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.quality_tally import Batches

BATCH_ROWS = 1 << 15  # what stays in a core's cache while it is looked at
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a table. `stats`: those of Delta's log, as they stand there; empty where it has none."""

    path: str
    size: int
    stats: str = ""


def local_files(frame: DataFrame) -> list[str] | None:
    """The paths of a DataFrame that is all rows of some files; None where it is not, or they are not on this machine's
    file system."""
    relation = _relation(frame)
    if relation is None or _is_delta(relation):
        return None
    return _local(sorted(frame.inputFiles()))


def stored_files(frame: DataFrame) -> list[StoredFile] | None:
    """The same with what is known of each, of Delta tables too."""
    relation = _relation(frame)
    if relation is None or relation.partitionSchema().length():
        return None
    if not _is_delta(relation):
        files = relation.location().allFiles()
        sizes = {str(files.apply(n).getPath()): int(files.apply(n).getLen()) for n in range(files.size())}
        paths = _local(sizes)
        if paths is None:
            return None
        return [StoredFile(path, size) for path, size in zip(paths, sizes.values(), strict=True)]
    from pyspark.sql import DataFrame as Rows

    index = relation.location()
    snapshot = index.getSnapshot()
    if snapshot.metadata().columnMappingMode().name() != "none":
        return None
    added = Rows(snapshot.allFiles().toDF(), frame.sparkSession)
    rows = added.selectExpr("path", "size", "stats", "deletionVector IS NOT NULL").collect()
    root = str(index.path())
    paths = _local(path if ":" in path else f"{root}/{path}" for path, *_ in rows)
    if paths is None or any(deleted for *_, deleted in rows):
        return None
    return [StoredFile(path, size, stats or "") for path, (_, size, stats, _) in zip(paths, rows, strict=True)]


def in_parts(
    spark: SparkSession, files: Sequence[str], look: Callable[[Sequence[str]], Batches], schema: str
) -> DataFrame:
    """What `look` says of the files, each file in one task: a DataFrame."""
    parts = max(1, min(len(files), spark.sparkContext.defaultParallelism))
    dealt = [tuple(files[n::parts]) for n in range(parts)]

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from look(dealt[number])

    return spark.range(0, parts, 1, parts).mapInArrow(run, schema)


def outside(file: pq.ParquetFile, group: int, start: str, end: str, low_us: int, high_us: int) -> bool:
    """Whether the statistics of a row group show that no row touches [low, high)."""
    ends, starts = span_us(file, group, end), span_us(file, group, start)
    return (ends is not None and ends[1] < low_us) or (starts is not None and starts[0] >= high_us)


def nulls(file: pq.ParquetFile, group: int, column: str) -> int | None:
    """How many values are not there; None where the footer does not say it."""
    statistics = _statistics(file, group, column)
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


def span_us(file: pq.ParquetFile, group: int, column: str, unit_us: int = 1) -> tuple[int, int] | None:
    """The least and the greatest time of a column as microseconds; None where the footer does not say them. Times of
    96 bits have no order in Parquet, and so no statistics."""
    statistics = _statistics(file, group, column)
    if statistics is None or not statistics.has_min_max or statistics.physical_type not in ("INT64", "INT32"):
        return None
    kind = file.schema_arrow.field(column).type
    if pa.types.is_timestamp(kind):
        scale = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}[kind.unit]
    elif pa.types.is_integer(kind):
        scale = (unit_us, 1)
    else:
        return None
    low, high = (int(end) * scale[0] // scale[1] for end in (statistics.min_raw, statistics.max_raw))
    return low, high


def logged_span_us(stats: dict[str, Any], column: str, unit_us: int) -> tuple[int, int] | None:
    """The same from Delta's log, whose times are cut to milliseconds; None where a value may not be there."""
    low, high = (stats.get(part, {}).get(column) for part in ("minValues", "maxValues"))
    if low is None or high is None or stats.get("nullCount", {}).get(column) != 0:
        return None
    if isinstance(low, str):
        ends = [(datetime.fromisoformat(text) - _EPOCH) // datetime.resolution for text in (low, high)]
        return ends[0], ends[1] + 999
    return int(low) * unit_us, int(high) * unit_us


def parsed(stats: str) -> dict[str, Any]:
    return dict(json.loads(stats)) if stats else {}


def _statistics(file: pq.ParquetFile, group: int, column: str) -> Any:
    names = file.schema_arrow.names
    if column not in names:
        return None
    described = file.metadata.row_group(group)
    for n in range(described.num_columns):
        if described.column(n).path_in_schema == column:
            found = described.column(n)
            return found.statistics if found.is_stats_set else None
    return None


def _relation(frame: DataFrame) -> Any:
    """Spark's relation of files, where the DataFrame is nothing but its rows; None otherwise."""
    plan: Any = frame._jdf.queryExecution().analyzed()
    while plan.nodeName() in ("Project", "SubqueryAlias"):
        plan = plan.children().apply(0)
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    kind = relation.getClass()  # Delta has one of its own, without a name
    of_files = "HadoopFsRelation" in (kind.getSimpleName(), kind.getSuperclass().getSimpleName())
    return relation if of_files else None


def _is_delta(relation: Any) -> bool:
    return "delta" in str(relation.location().getClass().getName())


def _local(addresses: Iterable[str]) -> list[str] | None:
    found = []
    for address in addresses:
        parts = urlparse(address)
        if parts.scheme not in ("", "file"):
            return None
        found.append(unquote(parts.path))
    return found
