"""The demo: raw tables written, all its queries mined by the usual job, and the result held against what was planted.

Enters: Spark, settings, sizes. Leaves: the raw tables and composite_events in the lake, a report on stdout, and whether
every planted match was found once.
Always holds: a second demo of the same size changes nothing: the raw tables are not written again, and publishing
replaces the matches of the same range.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cep_core.language import load_catalogue
from jobs import tables
from jobs.catalogue import load_workload
from jobs.console import counted, log, progress
from jobs.demo.generator import generate, mined_range_us, write_tables
from jobs.demo.report import Sample, told_end, told_matches, told_places
from jobs.demo.truth import Found, compare
from jobs.demo.world import DAY_US
from jobs.exit_codes import FAILED, OK
from jobs.inputs import input_versions
from jobs.mine import mine
from jobs.runs import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from jobs.settings import Settings

SAMPLES = 2


def run_demo(spark: SparkSession, settings: Settings, events: int, days: int, seed: int) -> int:
    """All of it; the exit code."""
    worlds = generate(events, days, seed)
    planted = [match for world in worlds for match in world.planted]
    queries = tuple(sorted({match.query_id for match in planted}))
    with progress("writing the raw tables", after_s=settings.progress_after_s, spark=spark):
        raw = write_tables(spark, settings, worlds)
    rows = sum(table.rows.num_rows for world in worlds for table in world.tables)
    log.info("%s in %s, with %s planted", counted(rows, "row"), counted(len(raw), "raw table"),
             counted(len(planted), "match", "matches"))  # fmt: skip
    with progress("looking at the tables", after_s=settings.progress_after_s, spark=spark):
        start, end = _range(spark, settings, days, queries)
        request = Request(start, end, queries, run_id=_run_id(spark, settings, queries, start, end))
    with progress("mining", after_s=settings.progress_after_s, spark=spark):
        mine(spark, settings, request, say=log.info)
    published = tables.read(spark, settings, "composite_events").where(F.col("query_id").isin(*queries))
    with progress("comparing with what was planted", after_s=settings.progress_after_s, spark=spark):
        verdicts = compare(planted, _found(published))
        samples = _samples(published)
    results = {name: tables.table_name(settings, name) for name in ("composite_events", "runs")}
    for line in told_matches(load_catalogue(settings.path(settings.queries)), verdicts, samples):
        print(line)
    for line in told_places(settings, raw, results, os.environ.get("HINDSIGHT_PROGRAM", "hindsight")):
        print(line)
    print(f"\n{told_end(verdicts)}")
    return OK if all(verdict.good for verdict in verdicts.values()) else FAILED


def _range(spark: SparkSession, settings: Settings, days: int, queries: Iterable[str]) -> tuple[int, int]:
    """The demo's days; and, after a demo over more days, those too, so that nothing of it is left behind."""
    start, end = mined_range_us(days)
    if tables.table_exists(spark, settings, "composite_events"):
        published = tables.read(spark, settings, "composite_events").where(F.col("query_id").isin(*queries))
        last = published.agg(F.max(F.unix_micros("detection_ts"))).collect()[0][0]
        if last is not None:
            end = max(end, (last // DAY_US + 1) * DAY_US)
    return start, end


def _run_id(spark: SparkSession, settings: Settings, queries: tuple[str, ...], start: int, end: int) -> str:
    """The same for the same tables, queries and range: so a second demo is the same run, not another one."""
    workload = load_workload(settings, queries)
    versions = input_versions(spark, settings, workload.declarations, workload.classes, None)
    content = json.dumps([start, end, sorted(workload.versions.items()), sorted(versions.items())])
    return f"demo-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _found(published: DataFrame) -> list[Found]:
    rows = published.select(
        "query_id", "match_id", F.expr("transform(members, m -> struct(m.event_class, m.event_id))").alias("members")
    )
    return [
        Found(row["query_id"], row["match_id"], tuple((m["event_class"], m["event_id"]) for m in row["members"]))
        for row in rows.toLocalIterator()
    ]


def _samples(published: DataFrame) -> dict[str, list[Sample]]:
    """The first two matches of each query, by time and id."""
    from pyspark.sql import Window

    order = Window.partitionBy("query_id").orderBy("detection_ts", "match_id")
    rows = published.withColumn("place", F.row_number().over(order)).where(F.col("place") <= SAMPLES).orderBy("place")
    samples: dict[str, list[Sample]] = {}
    for row in rows.collect():
        samples.setdefault(row["query_id"], []).append(_sample(row))
    return samples


def _sample(row: Row) -> Sample:
    return Sample(
        query_id=row["query_id"],
        match_id=row["match_id"],
        source=row["source"],
        start=row["start_ts"],
        end=row["end_ts"],
        members=tuple(
            (m["element"], m["event_class"], m["event_id"], m["start_ts"], m["end_ts"]) for m in row["members"]
        ),
        fields=tuple(sorted(row["fields"].items())),
    )
