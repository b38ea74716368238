"""Data quality of a run: its inputs before mining, its staged matches before publishing.

Enters: a request or a staged run. Leaves: rows of quality_results, pages of Data Docs, rows of quarantine.
Always holds: a failed check of error level raises QualityError, so nothing is published, and the staging stays; a
failed warning is recorded and told. Checking the same run again replaces its results. The versions of the tables that
were checked are the ones that the run then mines.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cep_core.errors import DeclarationError, QualityError
from jobs import quality_matches, quality_proof, quality_rows, tables
from jobs.catalogue import Workload, load_workload
from jobs.commit import concurrent
from jobs.console import counted
from jobs.declarations import EventSource
from jobs.inputs import input_versions
from jobs.primitives import Keep, read_primitives, source_frame
from jobs.publish import ATTEMPTS
from jobs.quality_settings import QualitySettings, load_quality
from jobs.quality_tally import given, tally
from jobs.reach import lookback_us
from jobs.runs import (
    Manifest,
    Prepared,
    Request,
    moment,
    new_run_id,
    now_us,
    record,
    write_manifest,
    write_prepared,
)  # fmt: skip
from jobs.staging import staged_matches, stored_matches
from jobs.state import BEGINNING_US
from schemas import COMPOSITE_EVENTS, QUALITY_RESULTS, QUARANTINE, Contract
from schemas import expectations as expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.quality_suites import Outcome
    from jobs.settings import Settings

Say = Callable[[str], None]
_HOUR_US = 3_600_000_000
_HISTORY = 50  # the most earlier runs that a mean may look at
_UNWRITTEN: set[tuple[str, str]] = set()  # table, condition: a run id that was drawn here has no rows there before
_one_at_a_time = threading.RLock()  # Great Expectations has one current context per process


def warm() -> None:
    """Load Great Expectations beside other work: it takes ten seconds, and Spark needs Python for nothing meanwhile.

    What both sides import is loaded before, by this module's imports and here: two threads that load one package from
    two ends can see it half made."""
    import_module("pandas")
    threading.Thread(target=import_module, args=("jobs.quality_suites",), daemon=True).start()


def check_inputs(spark: SparkSession, settings: Settings, request: Request, say: Say = lambda _: None) -> Request:
    """Check what the request would read, set bad rows aside where the settings say so, and pin what was checked.

    The request with the run id under which it was checked; mining under this id reads the same versions.
    """
    with _one_at_a_time:
        return _check_inputs(spark, settings, request, say)


def _check_inputs(spark: SparkSession, settings: Settings, request: Request, say: Say) -> Request:
    suites = import_module("jobs.quality_suites")
    began = time.monotonic()
    workload = load_workload(settings, request.queries)
    quality = _settings(settings, workload)
    versions = dict(request.versions) or input_versions(
        spark, settings, workload.declarations, workload.classes, request.as_of
    )
    run_id = request.run_id or new_run_id(request.from_us, request.to_us)
    if not request.run_id:
        results = tables.table_name(settings, QUALITY_RESULTS.name)
        _UNWRITTEN.update((results, _results_of(run_id, stage)) for stage in ("input", "output"))
    bounds = _bounds(request.from_us, request.to_us, workload)
    history = _volumes(spark, settings, run_id, len(_sources(workload)))
    context = suites.open_context(_docs(settings, quality, run_id, "inputs"))
    outcomes: list[Outcome] = []
    aside: dict[str, int] = {}
    for name, source, classes in _sources(workload):
        rules = quality.rules(source.title)
        stored = source_frame(spark, settings, workload.declarations, source, versions)
        mean = _mean(history.get((name, classes), [])[-rules.volume_runs :] if rules.volume_runs else [])
        known = {"classes": classes, "hours": bounds.read_hours}
        proven = quality_proof.prove(stored, source, classes, bounds, rules, quality.sample_rows)
        rows = {} if proven else {expected.ROWS: quality_rows.input_rows(stored, source, classes, bounds, rules)}
        one_in = proven.one_in if proven else quality_rows.one_id_in(rows[expected.ROWS], quality.sample_rows)
        suite = expected.input_suite(name, bounds, rules, mean, one_in)
        sampled = {"duplicate_rate": f"one id in {one_in:,}, in all its rows"} if one_in > 1 else {}
        tallied = given(spark, proven.figures(check.name for check in suite.checks)) if proven else None
        found = suites.run_suite(context, suite, rows, run_id, known, sampled, tallied)
        count = max((outcome.rows for outcome in found), default=0)
        say(f"checked {counted(count, 'row')} of {name}")
        outcomes += found
        if rules.quarantine:
            seen = rows.get(expected.ROWS)
            if seen is None:  # none is bad, but an attempt before this one may have set some aside
                seen = quality_rows.input_rows(stored, source, classes, bounds, rules).where("false")
            aside[name] = set_aside(spark, settings, run_id, name, quality_rows.with_reasons(seen, rules), say)
    manifest = Manifest(
        run_id, request.from_us, request.to_us, workload.versions, versions, 0, now_us(),
        seconds={"check inputs": round(time.monotonic() - began, 3)},
    )  # fmt: skip
    refused = _conclude(spark, settings, manifest, "input", context, outcomes, say)
    if refused:
        record(spark, settings, manifest, "refused", refused[:2000])
        raise QualityError(refused)
    write_prepared(spark, settings, run_id, Prepared(versions, aside))
    return replace(request, run_id=run_id)


def check_outputs(spark: SparkSession, settings: Settings, manifest: Manifest, say: Say = lambda _: None) -> None:
    """Check a run's staged matches against their contract, their queries and the input they came from."""
    with _one_at_a_time:
        _check_outputs(spark, settings, manifest, say)


def _check_outputs(spark: SparkSession, settings: Settings, manifest: Manifest, say: Say) -> None:
    suites = import_module("jobs.quality_suites")
    began = time.monotonic()
    workload = load_workload(settings, manifest.query_versions)
    quality = _settings(settings, workload)
    levels = quality.outputs.levels
    bounds = _bounds(manifest.from_us, manifest.to_us, workload)
    run_id, table = manifest.run_id, COMPOSITE_EVENTS.name
    context = suites.open_context(_docs(settings, quality, run_id, "outputs"))
    stored = stored_matches(spark, settings, run_id)
    columns = [(column.name, column.type) for column in COMPOSITE_EVENTS.columns]
    suite = expected.schema_suite(table, columns, levels)
    outcomes = list(suites.run_suite(context, suite, {expected.ROWS: stored}, run_id))
    if not suites.failures(outcomes):  # matches of another shape cannot be read any further
        staged = staged_matches(spark, settings, run_id)
        facts = tuple(expected.query_facts(workload.checked[name]) for name in workload.versions)
        limits = _limits(spark, settings, manifest, quality)
        one_in = max(1, manifest.rows_read // quality.sample_rows) if quality.sample_rows else 1
        part = quality_matches.stretch(staged, run_id, bounds, one_in)
        low_us, high_us = part or (bounds.read_from_us, bounds.to_us)
        sampled = {"members_exist": f"those that start from {moment(low_us)} to {moment(high_us)}"} if part else {}
        frames = {
            expected.EVENTS: read_primitives(
                spark, settings, workload.declarations, workload.classes, (), low_us, high_us, manifest.input_versions
            ),
            expected.QUERIES: quality_rows.match_counts(spark, manifest.matches, limits),
        }  # fmt: skip
        suite = expected.output_suite(table, levels)
        seen = quality_matches.look(staged, quality_matches.Look(facts, bounds, frozenset(workload.classes), part))
        tallied = tally(suite.checks, frames, [seen])
        outcomes += suites.run_suite(context, suite, frames, run_id, sampled=sampled, tallied=tallied)
    say(f"checked {counted(manifest.found, 'staged match', 'staged matches')}")
    refused = _conclude(spark, settings, manifest, "output", context, outcomes, say)
    checked = replace(manifest, refused=refused).took("check outputs", time.monotonic() - began)
    write_manifest(spark, settings, checked)  # publishing looks there
    if refused:
        record(spark, settings, checked, "refused", refused[:2000])
        raise QualityError(refused)


def quarantined(settings: Settings, workload: Workload) -> Keep:
    """What leaves the rows out that are set aside, for `read_primitives`."""
    quality = _settings(settings, workload)
    classes = {source.place: names for _, source, names in _sources(workload)}

    def keep(source: EventSource, rows: DataFrame) -> DataFrame:
        rules = quality.rules(source.title)
        if not rules.quarantine:
            return rows
        return quality_rows.usable(rows, source, classes[source.place], rules)

    return keep


def set_aside(
    spark: SparkSession, settings: Settings, run_id: str, table: str, bad: DataFrame, say: Say = lambda _: None
) -> int:
    """Rows into quarantine, in place of those that the same run put there before; how many."""
    rows = bad.select(
        F.lit(run_id).alias("run_id"), F.timestamp_micros(F.lit(now_us())).alias("quarantined_at"),
        F.lit(table).alias("table_name"), "reasons", "event_id",
        F.to_json("__row", {"ignoreNullFields": "false"}).alias("row"),
    )  # fmt: skip
    condition = f"run_id = {_quoted(run_id)} AND table_name = {_quoted(table)}"
    _replace(spark, settings, QUARANTINE, rows, condition)
    count = tables.read(spark, settings, QUARANTINE.name).where(condition).count()
    if count:
        say(f"set aside {counted(count, 'row')} of {table}: SELECT * FROM quarantine WHERE {condition}")
    return count


def _conclude(
    spark: SparkSession, settings: Settings, manifest: Manifest, stage: str, context: object,
    outcomes: list[Outcome], say: Say,
) -> str:  # fmt: skip
    """Record what was found and tell what failed. Why the run is refused; empty where it is not."""
    suites = import_module("jobs.quality_suites")
    docs = suites.build_docs(context)
    rows = [
        (manifest.run_id, now_us(), stage, o.table, o.check, o.column, o.level, o.success, o.rows, o.breaches,
         o.observed, json.dumps(_details(o, docs), sort_keys=True))
        for o in outcomes
    ]  # fmt: skip
    plain = QUALITY_RESULTS.ddl.replace("`checked_at` timestamp", "`checked_at` bigint")
    frame = spark.createDataFrame(rows, plain).withColumn("checked_at", F.timestamp_micros("checked_at"))
    _replace(spark, settings, QUALITY_RESULTS, frame.coalesce(1), _results_of(manifest.run_id, stage))
    for outcome in outcomes:
        if outcome.sampled:
            say(f"{outcome.table}: {outcome.check} looked at a sample, {counted(outcome.rows, 'row')}: "
                f"{outcome.sampled}; `sample_rows: 0` in conf/quality.yaml makes it look at all")  # fmt: skip
    failed = suites.failures(outcomes)
    for outcome in failed:
        say(f"{outcome.level}: {outcome.sentence}")
    blocking = [outcome for outcome in failed if outcome.blocks]
    say(f"{len(outcomes)} checks of the {stage}, {len(failed)} failed, {len(blocking)} of error level; {docs}")
    if not blocking:
        return ""
    told = "\n  ".join(outcome.sentence for outcome in blocking)
    where, advice = (
        ("its staging is kept", "") if stage == "output"
        else ("nothing was mined", "; bad input rows can be set aside with `quarantine: true`")
    )  # fmt: skip
    return (
        f"run {manifest.run_id} is refused, nothing is published and {where}:\n  {told}\n"
        f"See quality_results (run_id {manifest.run_id}) or {docs}; correct the data, or the check's level in "
        f"conf/quality.yaml{advice}"
    )


def _results_of(run_id: str, stage: str) -> str:
    """The condition for one stage's rows of quality_results."""
    return f"run_id = {_quoted(run_id)} AND stage = '{stage}'"


def _details(outcome: Outcome, docs: str | None) -> dict[str, object]:
    sampled = {"sampled": outcome.sampled} if outcome.sampled else {}
    return {"about": outcome.about, "expected": outcome.expected, "docs": docs, **sampled, **outcome.known}


def _replace(spark: SparkSession, settings: Settings, contract: Contract, rows: DataFrame, condition: str) -> None:
    """Replace rows, again where another run's commit came between: runs own different rows of these tables."""
    new = (tables.table_name(settings, contract.name), condition) in _UNWRITTEN
    _UNWRITTEN.discard((tables.table_name(settings, contract.name), condition))
    # To append costs a third of what replacing does, and to look into the table as much as to append.
    if new or tables.read(spark, settings, contract.name).where(condition).isEmpty():
        return tables.append(spark, settings, contract, rows)
    for attempt in range(ATTEMPTS):
        try:
            return tables.replace_where(spark, settings, contract, rows, condition)
        except Exception as error:
            if not concurrent(error) or attempt == ATTEMPTS - 1:
                raise
            time.sleep(min(0.05 * 2 ** min(attempt, 6), 2.0))


def _settings(settings: Settings, workload: Workload) -> QualitySettings:
    titles = {source.title for source in workload.declarations.sources}
    return load_quality(settings, sorted(titles), sorted(workload.checked))


def _sources(workload: Workload) -> list[tuple[str, EventSource, tuple[str, ...]]]:
    """The event sources that the run reads, each with its name in results and the classes that the run needs. A table
    may stand in several declarations: those after the first are numbered."""
    wanted, named = set(workload.classes), Counter[str]()
    found = []
    for source in workload.declarations.sources:
        named[source.title] += 1
        number = named[source.title]
        name = source.title if number == 1 else f"{source.title} ({number})"
        found.append((name, source, tuple(c.name for c in source.classes if c.name in wanted)))
    return [entry for entry in found if entry[2]]


def _bounds(from_us: int, to_us: int, workload: Workload) -> expected.Bounds:
    if from_us >= to_us:
        raise DeclarationError("a run needs its start before its end")
    lookback = max((lookback_us(name, workload.checked) for name in workload.versions), default=0)
    return expected.Bounds(from_us, to_us, max(from_us - lookback, BEGINNING_US), now_us())


def _docs(settings: Settings, quality: QualitySettings, run_id: str, part: str) -> Path:
    return Path(settings.path(quality.data_docs)) / run_id / part


def _volumes(
    spark: SparkSession, settings: Settings, run_id: str, tables_read: int
) -> dict[tuple[str, tuple[str, ...]], list[float]]:
    """(table, classes that were read of it) -> rows per hour in earlier runs, the latest last; a run counts once. What
    blocked a run is no measure for others."""
    if not tables.table_exists(spark, settings, QUALITY_RESULTS.name):
        return {}
    rows = tables.read(spark, settings, QUALITY_RESULTS.name).where(
        "expectation = 'volume' AND (success OR level = 'warning')"
    )
    recent = rows.where(F.col("run_id") != run_id).select("table_name", "rows_checked", "details", "checked_at")
    rates: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for row in reversed(recent.orderBy(F.desc("checked_at")).limit(_HISTORY * max(tables_read, 1)).collect()):
        known = json.loads(row["details"] or "{}")
        if known.get("hours", 0) > 0:
            key = (row["table_name"], tuple(known.get("classes", ())))
            rates.setdefault(key, []).append(row["rows_checked"] / known["hours"])
    return rates


def _mean(rates: Sequence[float]) -> float | None:
    return sum(rates) / len(rates) if rates else None


def _limits(
    spark: SparkSession, settings: Settings, manifest: Manifest, quality: QualitySettings
) -> Mapping[str, tuple[float | None, float | None]]:
    """Bounds of each query's matches: as given, or around the mean of its recent runs in the same version."""
    rules = quality.outputs
    runs = tables.read(spark, settings, "runs").where("outcome IN ('published', 'empty')")
    recent = runs.where(F.col("run_id") != manifest.run_id).orderBy(F.desc("finished_at")).limit(_HISTORY).collect()
    hours = (manifest.to_us - manifest.from_us) / _HOUR_US
    limits: dict[str, tuple[float | None, float | None]] = {}
    for name, version in manifest.query_versions.items():
        rates = [
            (row["matches"] or {}).get(name, 0) / max((row["to_ts"] - row["from_ts"]).total_seconds() / 3600, 1e-9)
            for row in recent if row["query_versions"].get(name) == version
        ]  # fmt: skip
        mean = _mean(rates[: rules.runs])
        if mean is not None:
            limits[name] = (mean * hours * rules.low - rules.slack, mean * hours * rules.high + rules.slack)
    return {**limits, **_given(rules.given, manifest.query_versions)}


def _given(
    given: Mapping[str, tuple[float | None, float | None]], names: Iterable[str]
) -> dict[str, tuple[float | None, float | None]]:
    wanted = set(names)
    return {name: ends for name, ends in given.items() if name in wanted}


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
