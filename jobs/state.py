"""What CONSUME queries carry over the boundaries between runs.

Enters: the engine's state after a run, as an Arrow table with a column `query_id`. Leaves: rows of the table `state`,
one per query version and boundary, and for a run the nearest boundary from which it can go on.
Always holds: a state at T is what one run over all detections before T would leave; it says nothing about who published
what, so it is written before the matches and a kill in between does no harm. A run without a usable state goes back to
the beginning of the history (or refuses, naming the range that must run first), so no order of runs finds others.
A rerun that leaves another state at its end than before, or publishes other matches (its input has changed), removes
the later states of that query: they were made from what is no longer so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cep_core.errors import PublishError
from jobs import tables
from jobs.encode import from_stream, to_stream
from jobs.runs import Manifest, moment, staging_path
from jobs.staging import staged_matches
from schemas import STATE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

BEGINNING_US = -62_000_000_000_000_000  # in the year 5: before any history
_STAGED = "query_id string, content binary, origin_us bigint"


def nearest_state(
    spark: SparkSession, settings: Settings, versions: Mapping[str, str], latest_us: int
) -> tuple[int, bytes] | None:
    """(boundary, state of all these queries there) of the latest boundary up to `latest_us` that all of them have."""
    from pyspark.sql import functions as F

    rows = tables.read(spark, settings, "state").where(F.col("query_id").isin(sorted(versions)))
    rows = rows.where(F.unix_micros("boundary_ts") <= latest_us)
    known: dict[int, set[str]] = {}
    for row in rows.select("query_id", "query_version", F.unix_micros("boundary_ts").alias("at")).collect():
        if versions[row["query_id"]] == row["query_version"]:
            known.setdefault(row["at"], set()).add(row["query_id"])
    shared = [boundary for boundary, found in known.items() if found == set(versions)]
    if not shared:
        return None
    boundary = max(shared)
    at = rows.where(F.unix_micros("boundary_ts") == boundary).select("query_id", "query_version", "content").collect()
    parts = {
        row["query_id"]: bytes(row["content"] or b"") for row in at if versions[row["query_id"]] == row["query_version"]
    }
    return boundary, join_states(parts[name] for name in sorted(parts))


def join_states(contents: Iterable[bytes]) -> bytes:
    """States of several queries, or of several buckets, as one. Nothing consumed is the empty table."""
    found = [from_stream(content) for content in contents if content]
    found = [state for state in found if len(state)] or found[:1]
    if not found:
        return to_stream(pa.table({"query_id": pa.array([], pa.string())}))
    return to_stream(pa.concat_tables(found, promote_options="permissive"))


def split_state(content: bytes, queries: Iterable[str]) -> dict[str, bytes]:
    """The part of each query, in an order that does not depend on how the run was cut; empty: nothing consumed."""
    state = from_stream(content)
    parts = {}
    for name in sorted(queries):
        own = state.filter(pc.equal(state.column("query_id").cast(pa.string()), name)) if len(state) else state
        keys = [(column.name, "ascending") for column in own.schema if not pa.types.is_nested(column.type)]
        parts[name] = to_stream(own.sort_by(keys).combine_chunks()) if len(own) else b""
    return parts


def stage_state(
    spark: SparkSession, settings: Settings, run_id: str, parts: Mapping[str, bytes], origin_us: int
) -> None:
    """Beside the staged matches, until they are published."""
    rows = [(name, bytearray(content), origin_us) for name, content in sorted(parts.items())]
    frame = spark.createDataFrame(rows, _STAGED).coalesce(1)
    frame.write.mode("append").parquet(staging_path(settings, run_id, "state"))


def publish_state(
    spark: SparkSession, settings: Settings, manifest: Manifest, say: Callable[[str], None] = lambda _: None
) -> None:
    """The staged states at the run's end; states that they make wrong go away in the same commit."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        staged = spark.read.schema(_STAGED).parquet(staging_path(settings, manifest.run_id, "state"))
        rows = {row["query_id"]: row for row in staged.collect()}
    except PySparkException:
        return  # no query of the run consumes
    if not rows:
        return
    before = _before(spark, settings, manifest, tuple(rows))
    changed = {name for name, row in rows.items() if name in before and before[name] != bytes(row["content"])}
    changed |= _changed_matches(spark, settings, manifest, tuple(rows))
    quoted = {name: "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in rows}
    condition = (
        f"(query_id IN ({', '.join(quoted[name] for name in sorted(rows))}) "
        f"AND boundary_ts > TIMESTAMP'{moment(manifest.from_us)}' "
        f"AND boundary_ts <= TIMESTAMP'{moment(manifest.to_us)}')"
    )
    if changed:
        names = ", ".join(quoted[name] for name in sorted(changed))
        condition += f" OR (query_id IN ({names}) AND boundary_ts > TIMESTAMP'{moment(manifest.to_us)}')"
        say(f"the past of {', '.join(sorted(changed))} has changed: run the ranges after {moment(manifest.to_us)} "
            f"again, or later runs will find other matches than the table has")  # fmt: skip
    values = [
        (name, manifest.query_versions.get(name) or _referred(manifest, name), manifest.to_us, row["origin_us"],
         row["content"], manifest.run_id, manifest.input_versions)
        for name, row in sorted(rows.items())
    ]  # fmt: skip
    frame = spark.createDataFrame(values, "query_id string, query_version string, b bigint, o bigint, content binary, "
                                          "run_id string, input_versions map<string,bigint>")  # fmt: skip
    frame = frame.withColumn("boundary_ts", F.timestamp_micros("b")).withColumn("origin_ts", F.timestamp_micros("o"))
    write_with_retry(lambda: tables.replace_where(
        spark, settings, STATE, frame.drop("b", "o").coalesce(1), condition
    ))  # fmt: skip


def write_with_retry(write: Callable[[], None], attempts: int = 30) -> None:
    """Again while other commits come in between: these writes depend on nothing that another run writes."""
    for attempt in range(attempts):
        try:
            return write()
        except Exception as error:
            if "oncurrent" not in f"{type(error).__name__} {error}":
                raise
            time.sleep(min(0.05 * 2 ** min(attempt, 5), 1.5))
    raise PublishError(f"the state could not be written: {attempts} times another commit came in between; run it again")


def _before(spark: SparkSession, settings: Settings, manifest: Manifest, names: tuple[str, ...]) -> dict[str, bytes]:
    """The states that these versions have at the run's end already."""
    from pyspark.sql import functions as F

    frame = tables.read(spark, settings, "state").where(F.col("query_id").isin(*names))
    frame = frame.where(F.unix_micros("boundary_ts") == manifest.to_us)
    rows = frame.select("query_id", "query_version", "content").collect()
    return {
        row["query_id"]: bytes(row["content"] or b"")
        for row in rows
        if manifest.query_versions.get(row["query_id"]) == row["query_version"]
    }


def _changed_matches(spark: SparkSession, settings: Settings, manifest: Manifest, names: tuple[str, ...]) -> set[str]:
    """Queries that had published matches of this version in the range, and now have others."""
    from pyspark.sql import functions as F

    staged = staged_matches(spark, settings, manifest.run_id)
    detected = F.unix_micros("detection_ts")
    published = tables.read(spark, settings, "composite_events").where(
        (detected >= manifest.from_us) & (detected < manifest.to_us)
    )
    both = []
    for frame in (published, staged):
        own = frame.where(F.col("query_id").isin(*names))
        both.append({
            (row["query_id"], row["query_version"]): (row["n"], row["h"])
            for row in own.groupBy("query_id", "query_version")
            .agg(F.count("*").alias("n"), F.sum(F.xxhash64("match_id").cast("decimal(38,0)")).alias("h")).collect()
        })  # fmt: skip
    old, new = both
    return {name for (name, version), seen in old.items()
            if manifest.query_versions.get(name) == version and new.get((name, version)) != seen}  # fmt: skip


def _referred(manifest: Manifest, name: str) -> str:
    raise PublishError(f"run {manifest.run_id} has a state of {name}, which it did not mine; mine the range again")
