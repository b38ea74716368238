"""Packs: the declared events kept sorted, encoded and cut by source and time, so that mining them again is cheap.

Enters: the declared tables. Leaves: the table `packs`, and `Packing`, which says what it holds.
Always holds: a packing is used only where its declarations and the versions of its input tables are those of the run;
otherwise it is brought up to date or the tables themselves are read. So matches never depend on it. Tables without
versions, and those whose rows may be set aside (quarantine), are never packed. What the packs hold is written in their
own commit: readers see both or neither. After a change of a table only those stretches of time are packed again that a
changed file has events in.

A pack is one row: the events of one range of source hashes in one stretch of time, as a compressed Arrow stream. The
exchange before the engine then moves a few thousand large rows instead of every event, and there is nothing to count,
encode or convert row by row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from cep_core.errors import EventError, TableError
from jobs import tables
from jobs.catalogue import Workload
from jobs.commit import concurrent
from jobs.encode import CONTENT, CUT_SCHEMA, NUMBER, cut, encode, joined, opened, sorted_order
from jobs.inputs import input_versions
from jobs.primitives import Keep, read_primitives
from jobs.quality_settings import load_quality
from jobs.spark_errors import engine_errors
from jobs.touched import touched_files
from schemas import PACKS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from jobs.settings import Settings

FORMAT = 1
DAY_US = 86_400_000_000
EVENTS_OF_A_RANGE = 250_000  # events of one hash range: several fit in one engine call, so that calls can be balanced
EVENTS_OF_A_PACK = 20_000  # at least about so many, or the packs' own weight shows
MOST_OF_A_PACK = 500_000  # a hot source: more of them are several packs
MOST_RANGES = 256
_PACK_SCHEMA = ", ".join(f"`{c.name}` {c.type}" for c in PACKS.columns)


@dataclass(frozen=True)
class Packing:
    """What the packs hold. fingerprint: of the declarations; classes: those that are packed; ranges: how many hash
    ranges; stretch_us: length of a stretch; version: of the table packs."""

    fingerprint: str
    input_versions: dict[str, int]
    classes: tuple[str, ...]
    ranges: int
    stretch_us: int
    version: int = -1

    def to_json(self) -> str:
        return json.dumps({"packing": asdict(self)}, sort_keys=True)


def current_packing(spark: SparkSession, settings: Settings) -> Packing | None:
    """What the table holds now; None where there is none."""
    if not tables.table_exists(spark, settings, PACKS.name):
        return None
    rows = tables.open_table(spark, settings, PACKS.name).history(20).select("version", "userMetadata").collect()
    newest = max(int(row["version"]) for row in rows)
    for row in sorted(rows, key=lambda r: -int(r["version"])):
        if row["userMetadata"] and row["userMetadata"].startswith('{"packing"'):
            held = json.loads(row["userMetadata"])["packing"]
            return Packing(**{**held, "classes": tuple(held["classes"]), "version": newest})
    return None


def usable_packing(
    spark: SparkSession, settings: Settings, workload: Workload, versions: dict[str, int]
) -> Packing | None:
    """The packing, where it holds exactly the events that a run reads at these versions."""
    held = current_packing(spark, settings)
    if held is None or (held.fingerprint, held.classes) != fingerprint(settings, workload):
        return None
    read = workload.declarations.tables_of(workload.classes)
    same = all(versions.get(table.name, -1) == held.input_versions.get(table.name, -2) for table in read)
    return held if same and set(workload.classes) <= set(held.classes) else None


def refresh_packs(
    spark: SparkSession, settings: Settings, workload: Workload, say: Callable[[str], None] = lambda _: None
) -> Packing | None:
    """Packs what is new or changed. None where nothing can be packed, or where another process packs at the same time:
    the run then reads the tables themselves."""
    print_now, classes = fingerprint(settings, workload)
    if not classes:
        say("nothing can be packed: only Delta tables have the versions that packs are kept up to date by")
        return None
    versions = input_versions(spark, settings, workload.declarations, classes)
    without = [table.name for table in workload.declarations.tables_of(classes) if table.name not in versions]
    if without:
        say(f"nothing is packed: {', '.join(without)} has no versions to keep packs up to date by")
        return None
    held = current_packing(spark, settings)
    stretches: set[int] | None = None
    if held is not None and (held.fingerprint, held.classes) == (print_now, classes):
        if held.input_versions == versions:
            return held
        stretches = _touched_stretches(spark, settings, workload, held, versions)
    if stretches is None or held is None:
        events = read_primitives(spark, settings, workload.declarations, classes, versions=versions)
        new = replace(_sizes(events), fingerprint=print_now, input_versions=versions, classes=classes)
        condition, what = "true", "all events"
    else:
        new = replace(held, input_versions=versions)
        low = min(stretches, default=0)
        events = read_primitives(spark, settings, workload.declarations, classes, None, low * new.stretch_us,
                                 None, versions)  # fmt: skip
        events = events.where(_stretch(new.stretch_us).isin(sorted(stretches)))
        condition = f"stretch IN ({', '.join(str(n) for n in sorted(stretches)) or 'NULL'})"
        what = f"{len(stretches)} stretches of {new.stretch_us // DAY_US} days that have changed"
    try:
        with engine_errors():
            tables.replace_where(
                spark, settings, PACKS, packed(events, new), condition, {"userMetadata": new.to_json()}
            )  # fmt: skip
    except EventError as error:
        say(f"the events are not packed: {error}")
        return None
    except TableError as error:
        if not isinstance(error.__cause__, Exception) or not concurrent(error.__cause__):
            raise
        say("another process packs the events at the same time; reading the tables themselves")
        return None
    say(f"packed {what}, {new.ranges} ranges of sources")
    return current_packing(spark, settings)


def fingerprint(settings: Settings, workload: Workload) -> tuple[str, tuple[str, ...]]:
    """The classes that can be packed, and a hash of all that decides, beside the tables' content, what their events
    are."""
    quality = load_quality(settings)
    declared = workload.declarations
    versioned = {table.name for table in declared.tables if table.kind != "parquet"}
    kept = [s for s in declared.sources if versioned.issuperset(s.tables) and not quality.rules(s.title).quarantine]
    text = repr((FORMAT, [replace(source, place="") for source in kept]))
    return hashlib.sha256(text.encode()).hexdigest()[:32], tuple(sorted(c.name for s in kept for c in s.classes))


def _touched_stretches(
    spark: SparkSession, settings: Settings, workload: Workload, held: Packing, versions: dict[str, int]
) -> set[int] | None:
    """The stretches that have events in a changed file, before or after the change; None: all may have."""
    found: set[int] = set()
    for name in sorted(versions):
        before, after = held.input_versions.get(name), versions[name]
        if before == after:
            continue
        own = [s for s in workload.declarations.sources if name in s.tables]
        files = None if before is None else touched_files(
            spark, settings, workload.declarations.table(name), before, after
        )  # fmt: skip
        if files is None or before is None or any(source.sql is not None for source in own):
            return None
        classes = [c.name for source in own for c in source.classes]
        for version, names in ((before, files.removed), (after, files.added)):
            if names:
                rows = read_primitives(spark, settings, workload.declarations, classes, (), None, None,
                                       {name: version}, _only(names))  # fmt: skip
                numbers = rows.select(_stretch(held.stretch_us).alias("n")).distinct().collect()
                found |= {int(row["n"]) for row in numbers if row["n"] is not None}
    return found


def _only(names: Iterable[str]) -> Keep:
    return lambda _, rows: rows.where(F.col("_metadata.file_name").isin(sorted(names)))


def _sizes(events: DataFrame) -> Packing:
    row = events.agg(F.count("*").alias("n"), F.min("end_ts").alias("a"), F.max("end_ts").alias("b")).collect()[0]
    ranges = 1
    while ranges < MOST_RANGES and row["n"] // ranges > EVENTS_OF_A_RANGE:
        ranges *= 2
    days = max((row["b"] - row["a"]) // DAY_US + 1, 1) if row["n"] and row["a"] is not None else 1
    a_day = max(row["n"] // days, 1)
    stretch = min(max(-(-EVENTS_OF_A_PACK * ranges // a_day), 1), 366)
    return Packing("", {}, (), ranges, stretch * DAY_US)


def _stretch(stretch_us: int) -> Column:
    """end_ts // stretch, in whole numbers; `div` cuts towards zero, so the rest goes first."""
    return F.expr(f"(end_ts - pmod(end_ts, {stretch_us}L)) div {stretch_us}L")


def packed(events: DataFrame, packing: Packing) -> DataFrame:
    """The events as rows of `packs`, ordered by time over the files, so that a run reads only its own."""
    # a null source hashes like any other value: such events take part in queries that do not test [source]
    hashed = F.xxhash64("source").bitwiseAND(F.lit(packing.ranges - 1))
    number = _stretch(packing.stretch_us) * packing.ranges + hashed
    pieces = events.select(number.alias(NUMBER), "*").mapInArrow(_pieces, CUT_SCHEMA)
    rows = pieces.groupBy(NUMBER).applyInPandas(_joined(packing.ranges), _PACK_SCHEMA)
    return rows.repartitionByRange(8, "stretch")


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return cut()(map(_with_times, batches))


def _joined(ranges: int) -> Callable[[tuple[Any, ...], Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """The function for applyInPandas over the pieces of one hash range in one stretch: one pack of them, or some."""

    def join(key: tuple[Any, ...], pieces: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        stretch, hash_range = divmod(int(key[0]), ranges)
        events = joined(opened(content) for some in pieces for content in some[CONTENT])
        events = events.take(pa.array(sorted_order(events))).combine_chunks()
        for part, at in enumerate(range(0, len(events), MOST_OF_A_PACK)):
            some = events.slice(at, MOST_OF_A_PACK)
            ends = pc.min_max(some.column("end_ts")).as_py()
            row = (hash_range, stretch, part, len(some), ends["min"], ends["max"], encode(some, "lz4"))
            yield pd.DataFrame([row], columns=[c.name for c in PACKS.columns])

    return join


def _with_times(events: pa.RecordBatch) -> pa.RecordBatch:
    """The same; rows that are no events are refused, in the words of the run that would read them."""
    broken = sum(events.column(name).null_count for name in ("event_id", "start_ts", "end_ts"))
    broken += pc.sum(pc.greater(events.column("start_ts"), events.column("end_ts"))).as_py() or 0
    if broken:
        raise EventError(f"{broken} events have no event_id, no time, or end before they start; correct the table, "
                         f"filter them out in the declaration (where:), or quarantine them")  # fmt: skip
    return events
