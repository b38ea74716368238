"""Staged matches become the published ones, in one commit.

Enters: a run's staging. Leaves: composite_events with the run's range and queries replaced by the staged matches, and
a row of `runs`.
Always holds: readers see all of a run or nothing of it; a run that dies anywhere leaves the table as it was, or
published and then recorded by the next run. A repeated publish changes nothing, nor does a run that is mined again
under its id from the same tables and finds the same. Of two runs over the same range and queries that overlap in time
the first to commit wins, and the other is told so. Runs over other ranges are retried until they land.

How: every publish carries the Delta transaction (app `hindsight-publish`, version = the table's version that it was
checked against + 1). A commit that came between the check and ours makes Delta either refuse ours or skip it; in both
cases the check is made again on the new version. So the check and the commit are one step for whoever publishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cep_core.errors import PublishError, QualityError
from jobs import tables
from jobs.runs import Manifest, moment, published_as, published_since, read_manifest, record, recorded, staging_path
from jobs.state import publish_state
from schemas import COMPOSITE_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

ATTEMPTS = 60
_APP = "hindsight-publish"


def publish_run(
    spark: SparkSession, settings: Settings, run_id: str, say: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Publishes a staged run. Raises PublishError where another run published the same range since this one started,
    and QualityError where a check of its staged matches failed."""
    began = time.monotonic()
    manifest = read_manifest(spark, settings, run_id)
    if manifest.refused:
        raise QualityError(f"{manifest.refused}\nIt can be published once `hindsight validate {run_id}` passes")
    staged = staged_matches(spark, settings, run_id)
    check_staged(staged, manifest)
    tables.ensure_table(spark, settings, COMPOSITE_EVENTS)
    if not _committed(spark, settings, manifest):
        if not manifest.pinned:
            publish_state(spark, settings, manifest, say)
        if _stands(spark, settings, manifest, staged):
            say(f"run {run_id} has published the same {manifest.found} matches before; nothing changes")
            return manifest
        _commit(spark, settings, manifest, staged)
    manifest = manifest.took("publish", time.monotonic() - began)
    if manifest.attempt not in recorded(spark, settings, [run_id]):
        record(spark, settings, manifest, "published" if manifest.found else "empty")
    say(f"published {manifest.found} matches of {len(manifest.query_versions)} queries, {manifest.range_text}")
    return manifest


def staged_matches(spark: SparkSession, settings: Settings, run_id: str) -> DataFrame:
    """The staged matches in the columns of composite_events."""
    schema = ", ".join(f"`{c.name}` {c.type}" for c in COMPOSITE_EVENTS.columns)
    return spark.read.schema(schema).parquet(staging_path(settings, run_id, "matches"))


def check_staged(staged: DataFrame, manifest: Manifest) -> None:
    """Refuses a staging that is not what the run said it wrote."""
    from pyspark.sql import functions as F

    row = staged.agg(
        F.count("*").alias("rows"), F.countDistinct(F.xxhash64("match_id")).alias("ids"),
        F.min(F.unix_micros("detection_ts")).alias("first"), F.max(F.unix_micros("detection_ts")).alias("last"),
    ).collect()[0]  # fmt: skip
    problems = []
    if row["rows"] != manifest.found:
        problems.append(f"it holds {row['rows']} matches, but the run found {manifest.found}")
    # As many hashes as rows: no id repeats. Fewer: two ids may share a hash, so the ids themselves are counted.
    if row["ids"] != row["rows"] and (repeated := row["rows"] - staged.select("match_id").distinct().count()):
        problems.append(f"{repeated} of its match ids repeat")
    if row["rows"] and not (manifest.from_us <= row["first"] and row["last"] < manifest.to_us):
        problems.append(
            f"it has detections from {moment(row['first'])} to {moment(row['last'])}, outside the run's range"
        )
    if problems:
        raise PublishError(f"the staging of run {manifest.run_id} is not sound: {'; '.join(problems)}. Nothing was "
                           f"published; mine the range again")  # fmt: skip


def replaced(manifest: Manifest) -> str:
    """The condition on composite_events that a run replaces; its dates keep other days out of the commit."""
    first, last = moment(manifest.from_us), moment(manifest.to_us - 1)
    ids = ", ".join(
        "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in sorted(manifest.query_versions)
    )
    return (
        f"detection_date >= DATE'{first[:10]}' AND detection_date <= DATE'{last[:10]}' "
        f"AND detection_ts >= TIMESTAMP'{first}' AND detection_ts < TIMESTAMP'{moment(manifest.to_us)}' "
        f"AND query_id IN ({ids})"
    )


def _commit(spark: SparkSession, settings: Settings, manifest: Manifest, staged: DataFrame) -> None:
    checked = manifest.base_version
    for attempt in range(ATTEMPTS):
        newest = tables.version(spark, settings, "composite_events")
        for version, other in published_since(spark, settings, checked):
            if other.attempt == manifest.attempt:
                return
            if version > manifest.base_version and other.overlaps(manifest):
                message = (f"run {other.run_id} published {other.range_text} for some of the same queries while run "
                           f"{manifest.run_id} was under way; its result stands. Run again to replace it")  # fmt: skip
                record(spark, settings, manifest, "superseded", message)
                raise PublishError(message)
        options = {"txnAppId": _APP, "txnVersion": str(newest + 1), "userMetadata": manifest.to_json()}
        try:
            tables.replace_where(spark, settings, COMPOSITE_EVENTS, staged, replaced(manifest), options)
        except Exception as error:
            if not concurrent(error):
                raise
            time.sleep(min(0.05 * 2 ** min(attempt, 6), 2.0))
    raise PublishError(f"run {manifest.run_id} could not be published: {ATTEMPTS} times another commit came between. "
                       f"Its staging is kept; publish it again (hindsight publish {manifest.run_id})")  # fmt: skip


def concurrent(error: Exception) -> bool:
    """Whether Delta refused a commit because of another one."""
    text = f"{type(error).__name__} {error}"
    return "Concurrent" in text or "DELTA_CONCURRENT" in text or "ProtocolChanged" in text


def _stands(spark: SparkSession, settings: Settings, manifest: Manifest, staged: DataFrame) -> bool:
    """Whether an earlier attempt at this run published just these rows, and they are still what the table holds. Rows
    name their run and its inputs, so equal rows are equal runs; a run without any row is told by its row of `runs`."""
    versions = (manifest.from_us, manifest.to_us, manifest.query_versions, manifest.input_versions)
    if versions not in published_as(spark, settings, manifest.run_id):
        return False
    published = tables.read(spark, settings, "composite_events").where(replaced(manifest))
    new, old = (_comparable(rows) for rows in (staged, published))
    return old.count() == manifest.found and new.exceptAll(old).isEmpty()


def _comparable(rows: DataFrame) -> DataFrame:
    """Spark compares no maps; their text it does."""
    return rows.selectExpr(
        *(f"to_json({c.name}) AS {c.name}" if c.type.startswith("map<") else c.name for c in COMPOSITE_EVENTS.columns)
    )


def _committed(spark: SparkSession, settings: Settings, manifest: Manifest) -> bool:
    later = published_since(spark, settings, manifest.base_version)
    return any(other.attempt == manifest.attempt for _, other in later)
