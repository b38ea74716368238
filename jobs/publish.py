"""Staged matches become the published ones, in one commit.

Enters: a run's staging. Leaves: composite_events with the run's range and queries replaced by the staged matches, and
a row of `runs`.
Always holds: readers see all of a run or nothing of it; a run that dies anywhere leaves the table as it was, or
published and then recorded by the next run. A repeated publish changes nothing, nor does a run that is mined again
under its id from the same tables and finds the same. Of two runs over the same range and queries that overlap in time
the first to commit wins, and the other is told so. Runs over other ranges are retried until they land.

How: what was published since the run began is looked at on one snapshot of the table, and the commit is made on that
snapshot (commit.py). A commit that came between makes Delta refuse ours, and both are done again on the new version. So
the check and the commit are one step for whoever publishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cep_core.errors import PublishError, QualityError
from jobs import tables
from jobs.commit import Snapshot, breaches, check_there, concurrent
from jobs.match_files import MatchFile
from jobs.runs import Manifest, moment, published_as, published_since, read_manifest, record, recorded
from jobs.staging import staged_files, staged_matches
from jobs.state import publish_state
from schemas import COMPOSITE_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

ATTEMPTS = 60


def publish_run(
    spark: SparkSession, settings: Settings, run_id: str, say: Callable[[str], None] = lambda _: None
) -> Manifest:
    """Publishes a staged run. Raises PublishError where another run published the same range since this one started,
    and QualityError where a check of its staged matches failed."""
    began = time.monotonic()
    manifest = read_manifest(spark, settings, run_id)
    if manifest.refused:
        raise QualityError(f"{manifest.refused}\nIt can be published once `hindsight validate {run_id}` passes")
    tables.ensure_table(spark, settings, COMPOSITE_EVENTS)
    if not _committed(spark, settings, manifest):
        files = staged_files(spark, settings, run_id)
        check_staged(spark, settings, manifest, files)
        if not manifest.pinned:
            publish_state(spark, settings, manifest, say)
        if _stands(spark, settings, manifest):
            say(f"run {run_id} has published the same {manifest.found} matches before; nothing changes")
            return manifest
        _commit(spark, settings, manifest, files)
    manifest = manifest.took("publish", time.monotonic() - began)
    if manifest.attempt not in recorded(spark, settings, [run_id]):
        record(spark, settings, manifest, "published" if manifest.found else "empty")
    say(f"published {manifest.found} matches of {len(manifest.query_versions)} queries, {manifest.range_text}")
    return manifest


def check_staged(spark: SparkSession, settings: Settings, manifest: Manifest, files: Sequence[MatchFile]) -> None:
    """Refuses a staging that is not what the run said it wrote, or that the table may not hold."""
    check_there(spark, settings, files, manifest.run_id)
    rows = sum(file.rows for file in files)
    problems = []
    if rows != manifest.found:
        problems.append(f"it holds {rows} matches, but the run found {manifest.found}")
    if files:
        staged = staged_matches(spark, settings, manifest.run_id)
        first, last = min(file.first_us for file in files), max(file.last_us for file in files)
        if not (manifest.from_us <= first and last < manifest.to_us):
            problems.append(f"it has detections from {moment(first)} to {moment(last)}, outside the run's range")
        broken = breaches(files) | Snapshot(spark, settings).unheld(staged)
        problems += [f"{count} of its rows break the constraint {name}" for name, count in broken.items()]
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


def _commit(spark: SparkSession, settings: Settings, manifest: Manifest, files: Sequence[MatchFile]) -> None:
    days = (moment(manifest.from_us)[:10], moment(manifest.to_us - 1)[:10])
    for attempt in range(ATTEMPTS):
        snapshot = Snapshot(spark, settings)
        for version, other in published_since(spark, settings, manifest.base_version):
            if other.attempt == manifest.attempt:
                return None
            if version > manifest.base_version and other.overlaps(manifest):
                message = (f"run {other.run_id} published {other.range_text} for some of the same queries while run "
                           f"{manifest.run_id} was under way; its result stands. Run again to replace it")  # fmt: skip
                record(spark, settings, manifest, "superseded", message)
                raise PublishError(message)
        try:
            return snapshot.swap(files, replaced(manifest), days, manifest.to_json())
        except Exception as error:
            if not concurrent(error):
                raise
            time.sleep(min(0.05 * 2 ** min(attempt, 6), 2.0))
    raise PublishError(f"run {manifest.run_id} could not be published: {ATTEMPTS} times another commit came between. "
                       f"Its staging is kept; publish it again (hindsight publish {manifest.run_id})")  # fmt: skip


def _stands(spark: SparkSession, settings: Settings, manifest: Manifest) -> bool:
    """Whether an earlier attempt at this run published just these rows, and they are still what the table holds. Rows
    name their run and its inputs, so equal rows are equal runs; a run without any row is told by its row of `runs`."""
    versions = (manifest.from_us, manifest.to_us, manifest.query_versions, manifest.input_versions)
    if versions not in published_as(spark, settings, manifest.run_id):
        return False
    staged = staged_matches(spark, settings, manifest.run_id)
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
