"""The rows that checks look at: input rows seen as events, ids, and where members are looked up.

Enters: declared tables as they are stored, staged matches. Leaves: DataFrames in the shapes that the suites of
schemas/expectations.py are about.
Always holds: no value makes a row disappear or the scan fail: what cannot be read as its declared type is NULL and the
row marked `bad_type`. Only stored columns are compared with the range, so files can be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from jobs.declarations import EventClass, EventSource, Unit
from jobs.primitives import SPARK_TYPES, event_id_of, stored_bound, with_class
from schemas.expectations import Bounds, InputRules, unusable_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

UNIT_US: dict[Unit, int] = {"s": 1_000_000, "ms": 1_000, "us": 1}
_ROW = "__row"
_BYTES_OF_A_ROW = 40  # in compressed columns, roughly
_NO_SIZE = 2**60  # what Spark says of rows that are not in files is near 2**63


def input_rows(
    frame: DataFrame, source: EventSource, classes: Iterable[str], bounds: Bounds, rules: InputRules
) -> DataFrame:
    """Rows of these classes that the run reads, or that no run ever would: without times, too early, in the future, or
    ending before they start."""
    first, last = _stored_time(frame, source.start), _stored_time(frame, source.end)

    def at(expression: str, moment_us: int) -> Column:
        return stored_bound(frame, expression, source.unit, moment_us)

    read_from, read_to = bounds.read_from_us, bounds.to_us
    read = (last >= at(source.end, read_from)) & (first < at(source.start, read_to))
    never = first.isNull() | last.isNull() | (first < at(source.start, rules.earliest_us))
    if source.start != source.end:
        starts_here = (first >= at(source.start, read_from)) & (first < at(source.start, read_to))
        ends_here = (last >= at(source.end, read_from)) & (last < at(source.end, read_to))
        never = never | starts_here | ends_here
    future = last > at(source.end, bounds.now_us + rules.clock_skew_us)
    known = F.col("end_ts") <= bounds.now_us + rules.clock_skew_us
    rows = seen(frame.where(read | never | future), source, classes)
    return rows.withColumn("known_ts", F.when(known, F.col("end_ts")))


def one_id_in(frame: DataFrame, sample_rows: int) -> int:
    """What part of the ids gives about so many rows (0: all), judged by the size of the files behind the frame: to
    count them would be a pass of its own."""
    plan: Any = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    sizes = [int(str(plan.apply(n).stats().sizeInBytes())) for n in range(plan.size())]
    return one_in_bytes(sum(size for size in sizes if size < _NO_SIZE), sample_rows)


def one_in_bytes(size: int, sample_rows: int) -> int:
    """The same for so many bytes of files."""
    return max(1, size // (_BYTES_OF_A_ROW * sample_rows)) if sample_rows else 1


def seen(frame: DataFrame, source: EventSource, classes: Iterable[str]) -> DataFrame:
    """Stored rows of these classes as events: the columns of an event, `bad_type`, and the whole row as `__row`. A row
    without a class is among them where a column names the class."""
    wanted = set(classes)
    chosen = tuple(c for c in source.classes if c.name in wanted)
    packed = _packed(frame)
    if source.class_column is None:
        packed, event_class = with_class(packed, source, chosen)
    else:
        event_class = F.expr(source.class_column).cast("string")
        plain = [source.class_values[source.classes.index(c)] for c in chosen if c.where is None]
        member = event_class.isNull() | event_class.isin(plain)
        filtered = (_is_of(source, c) for c in chosen if c.where is not None)
        packed = packed.where(reduce(lambda a, b: a | b, filtered, member))
    return packed.select(*_event_columns(frame, source, chosen, event_class), _ROW)


def with_reasons(rows: DataFrame, rules: InputRules) -> DataFrame:
    """Rows that cannot be mined, with the names of the checks that say so as `reasons`."""
    reasons = F.array(*(F.when(F.expr(check.breach), F.lit(check.name)) for check in unusable_rows(rules)))
    return rows.withColumn("reasons", F.array_compact(reasons)).where(F.size("reasons") > 0)


def usable(frame: DataFrame, source: EventSource, classes: Iterable[str], rules: InputRules) -> DataFrame:
    """Stored rows, as they are, without those that `with_reasons` would name. Rows of other classes stay."""
    wanted = set(classes)
    chosen = tuple(c for c in source.classes if c.name in wanted)
    event_class = F.lit("") if source.class_column is None else F.expr(source.class_column).cast("string")
    rows = _packed(frame).select(*_event_columns(frame, source, chosen, event_class), _ROW)
    bad = " OR ".join(f"({check.breach})" for check in unusable_rows(rules))
    return rows.where(f"NOT coalesce({bad}, false)").select(f"{_ROW}.*")


def match_counts(
    spark: SparkSession, found: Mapping[str, int], bounds: Mapping[str, tuple[float | None, float | None]]
) -> DataFrame:
    """(query_id, matches, low, high)."""
    rows = [(name, count, *bounds.get(name, (None, None))) for name, count in sorted(found.items())]
    return spark.createDataFrame(rows, "query_id string, matches bigint, low double, high double")


def _packed(frame: DataFrame) -> DataFrame:
    return frame.withColumn(_ROW, F.struct(*(F.col(f"`{name}`") for name in frame.columns)))


def _event_columns(
    frame: DataFrame, source: EventSource, chosen: tuple[EventClass, ...], event_class: Column
) -> list[Column]:
    start, start_bad = _micros(frame, source.start, source.unit)
    end, end_bad = (start, start_bad) if source.end == source.start else _micros(frame, source.end, source.unit)
    bad_type = start_bad | end_bad | _bad_attributes(frame, source, chosen)
    return [
        event_id_of(source, event_class).alias("event_id"),
        F.expr(source.source).cast("string").alias("source"),
        event_class.alias("event_class"),
        start.alias("start_ts"),
        end.alias("end_ts"),
        F.coalesce(bad_type, F.lit(False)).alias("bad_type"),
    ]


def _is_of(source: EventSource, event_class: EventClass) -> Column:
    """Whether a stored row is an event of the class."""
    held = F.lit(True) if event_class.where is None else F.expr(f"({event_class.where})")
    if source.class_column is None:
        return held
    value = source.class_values[source.classes.index(event_class)]
    return (F.expr(source.class_column).cast("string") == F.lit(value)) & held


def _stored_time(frame: DataFrame, expression: str) -> Column:
    kind = frame.select(F.expr(expression)).schema[0].dataType.simpleString()
    return F.expr(expression).try_cast("bigint") if kind == "string" else F.expr(expression)


def _micros(frame: DataFrame, expression: str, unit: Unit | None) -> tuple[Column, Column]:
    """A time as microseconds, NULL where it cannot be read; and whether that is so."""
    kind = frame.select(F.expr(expression)).schema[0].dataType.simpleString()
    column = F.expr(expression)
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return F.unix_micros(column.cast("timestamp")), F.lit(False)
    read = F.try_multiply(column.try_cast("bigint"), F.lit(UNIT_US[unit or "us"]))
    return read, column.isNotNull() & read.isNull()


def types_always_fit(frame: DataFrame, chosen: tuple[EventClass, ...]) -> bool:
    """Whether every value of the stored attributes fits the type that is declared for it, by its stored type alone."""
    return not _doubtful(frame, chosen)


def _doubtful(frame: DataFrame, chosen: Iterable[EventClass]) -> list[tuple[EventClass, str, str]]:
    """Class, expression and declared type of the attributes whose values may not fit."""
    declared = [(c, a.expression, SPARK_TYPES[a.type]) for c in chosen for a in c.attributes]
    stored = {e: frame.select(F.expr(e)).schema[0].dataType.simpleString() for e in {e for _, e, _ in declared}}
    return [
        (event_class, expression, kind) for event_class, expression, kind in declared
        if stored[expression] != kind and kind != "string" and (stored[expression], kind) not in _ALWAYS_FITS
    ]  # fmt: skip


def _bad_attributes(frame: DataFrame, source: EventSource, chosen: tuple[EventClass, ...]) -> Column:
    """Whether a value does not fit the type that the row's class declares. Types that always fit cost nothing."""
    bad = [
        _is_of(source, event_class) & F.expr(expression).isNotNull() & F.expr(expression).try_cast(kind).isNull()
        for event_class, expression, kind in _doubtful(frame, chosen)
    ]
    return reduce(lambda a, b: a | b, bad, F.lit(False))


_WHOLE = ("tinyint", "smallint", "int", "bigint")
_ALWAYS_FITS = {(stored, kind) for stored in _WHOLE for kind in ("bigint", "double")} | {("float", "double")}
