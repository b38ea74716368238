"""Primitive events: declared tables read as one DataFrame of events.

Enters: declarations, the classes and attributes that are needed, a time range, the tables' versions.
Leaves: `event_id, source, event_class` as strings, `start_ts, end_ts` as bigint microseconds since the epoch (UTC),
`tie` as bigint, and one typed column per needed attribute (NULL where the row's class does not declare it).
Always holds: no row of a needed class within the range is left out, also one with a null time or id: refusing it is
the engine's and the quality checks' business, so nothing is lost silently. Rows that repeat are left as they are.
There is one scan per declared table (or select), whatever the number of its classes.

Types: int -> bigint, float -> double, string, bool -> boolean, timestamp -> timestamp.
A hashed event_id is 32 hex digits: md5 over the JSON of the class and of the named columns, nulls included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobs.declarations import Declarations, EventClass, EventSource, Unit
from jobs.inputs import read_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from cep_core.language.checked import Type
    from jobs.settings import Settings

SPARK_TYPES: dict[Type, str] = {
    "int": "bigint",
    "float": "double",
    "string": "string",
    "bool": "boolean",
    "timestamp": "timestamp",
}
Keep = Callable[[EventSource, "DataFrame"], "DataFrame"]
EVENT_COLUMNS = "event_id string, source string, event_class string, start_ts bigint, end_ts bigint, tie bigint"
_UNIT_US: dict[Unit, int] = {"s": 1_000_000, "ms": 1_000, "us": 1}


def read_primitives(
    spark: SparkSession,
    settings: Settings,
    declarations: Declarations,
    classes: Iterable[str] | None = None,
    attributes: Iterable[tuple[str, str]] | None = None,
    start_us: int | None = None,
    end_us: int | None = None,
    versions: Mapping[str, int] | None = None,
    keep: Keep | None = None,
) -> DataFrame:
    """The events of these classes (all where None) that touch [start_us, end_us): `end_ts >= start_us` and
    `start_ts < end_us`. `attributes` are (class, attribute) pairs, as CheckedQuery has them; None means all declared.
    `versions` are those of `jobs.inputs.input_versions`; a Delta table that it does not name is read as it is now.
    `keep` may leave out rows of a source before they become events: it is how rows are kept in quarantine.
    """
    wanted = set(declarations.class_names() if classes is None else classes)
    declarations.require_classes(sorted(wanted))
    pairs = None if attributes is None else {(c, a) for c, a in attributes if c in wanted}
    if pairs is None:
        pairs = {(c, a) for c, own in declarations.schema().items() if c in wanted for a in own}
    columns = declarations.attribute_types(pairs)
    parts = []
    for source in declarations.sources:
        chosen = tuple(c for c in source.classes if c.name in wanted)
        if chosen:
            frame = source_frame(spark, settings, declarations, source, versions)
            frame = frame if keep is None else keep(source, frame)
            parts.append(_events(frame, source, chosen, pairs, columns, start_us, end_us))
    if not parts:
        extra = "".join(f", `{name}` {SPARK_TYPES[kind]}" for name, kind in columns.items())
        return spark.createDataFrame([], EVENT_COLUMNS + extra)
    return reduce(lambda left, right: left.unionByName(right), parts)


def source_frame(
    spark: SparkSession,
    settings: Settings,
    declarations: Declarations,
    source: EventSource,
    versions: Mapping[str, int] | None = None,
) -> DataFrame:
    """The rows behind an event source: its table, or its select, with the source's own filter."""
    tables = {
        name: read_table(spark, settings, declarations.table(name), (versions or {}).get(name))
        for name in source.tables
    }
    if source.sql is None:
        frame = tables[source.tables[0]]
    else:
        frame = spark.sql(source.sql, **tables)  # type: ignore[arg-type]
    return frame if source.where is None else frame.where(source.where)


def _events(
    frame: DataFrame,
    source: EventSource,
    chosen: tuple[EventClass, ...],
    pairs: set[tuple[str, str]],
    columns: Mapping[str, Type],
    start_us: int | None,
    end_us: int | None,
) -> DataFrame:
    frame = _in_range(frame, source, start_us, end_us)
    frame, event_class = with_class(frame, source, chosen)
    start = micros(frame, source.start, source.unit)
    end = start if source.end == source.start else micros(frame, source.end, source.unit)
    return frame.select(
        event_id_of(source, event_class).alias("event_id"),
        F.expr(source.source).cast("string").alias("source"),
        event_class.alias("event_class"),
        start.alias("start_ts"),
        end.alias("end_ts"),
        (F.lit(None) if source.tie is None else F.expr(source.tie)).cast("bigint").alias("tie"),
        *(_attribute(name, kind, chosen, pairs, event_class).alias(name) for name, kind in columns.items()),
    )


def with_class(frame: DataFrame, source: EventSource, chosen: tuple[EventClass, ...]) -> tuple[DataFrame, Column]:
    """The rows of the chosen classes, and the class of each. A row that meets the filters of several classes becomes an
    event of each."""
    if source.class_column is not None:
        values = dict(zip((c.name for c in source.classes), source.class_values, strict=True))
        column = F.expr(source.class_column).cast("string")
        free = [values[c.name] for c in chosen if c.where is None]  # one look-up, however many classes there are
        members = [column.isin(free)] if free else []
        members += [(column == values[c.name]) & F.expr(f"({c.where})") for c in chosen if c.where is not None]
        member = reduce(lambda a, b: a | b, members)
        name = column
        if any(values[c.name] != c.name for c in chosen):
            name = reduce(
                lambda case, c: case.when(column == values[c.name], F.lit(c.name)),
                chosen[1:],
                F.when(column == values[chosen[0].name], F.lit(chosen[0].name)),
            )
        return frame.where(member), name
    if len(chosen) == 1:
        only = chosen[0]
        return (frame if only.where is None else frame.where(only.where)), F.lit(only.name)
    # Several filters may hold for one row. The union of the filters goes first: it can be pushed into the scan.
    frame = frame.where(reduce(lambda a, b: a | b, (F.expr(f"({c.where})") for c in chosen)))
    held = F.array_compact(F.array(*(F.when(F.expr(f"({c.where})"), F.lit(c.name)) for c in chosen)))
    return frame.withColumn(_CLASS, F.explode(held)), F.col(_CLASS)


_CLASS = "__hindsight_class"


def event_id_of(source: EventSource, event_class: Column) -> Column:
    if isinstance(source.event_id, str):
        return F.expr(source.event_id).cast("string")
    named = [event_class.alias("class"), *(F.expr(c).alias(f"c{i}") for i, c in enumerate(source.event_id))]
    return F.md5(F.to_json(F.struct(*named), {"ignoreNullFields": "false"}))


def _attribute(
    name: str, kind: Type, chosen: tuple[EventClass, ...], pairs: set[tuple[str, str]], event_class: Column
) -> Column:
    """One attribute's column: NULL for classes that do not declare it, or do not need it."""
    empty = F.lit(None).cast(SPARK_TYPES[kind])
    by_expression: dict[str, list[str]] = {}
    for declared in chosen:
        attribute = declared.attribute(name)
        if attribute is not None and (declared.name, name) in pairs:
            by_expression.setdefault(attribute.expression, []).append(declared.name)
    if not by_expression:
        return empty
    if len(by_expression) == 1:
        ((expression, names),) = by_expression.items()
        if len(names) == len(chosen):
            return F.expr(expression).cast(SPARK_TYPES[kind])
    column = empty
    for expression, names in by_expression.items():
        column = F.when(event_class.isin(names), F.expr(expression).cast(SPARK_TYPES[kind])).otherwise(column)
    return column


def micros(frame: DataFrame, expression: str, unit: Unit | None) -> Column:
    """A time column as microseconds since the epoch. Times without a zone, and dates, count as UTC."""
    kind = _kind(frame, expression)
    column = F.expr(expression)
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return F.unix_micros(column.cast("timestamp"))
    return (column.cast("bigint") * _UNIT_US[unit or "us"]).cast("bigint")


def _in_range(frame: DataFrame, source: EventSource, start_us: int | None, end_us: int | None) -> DataFrame:
    """Only rows that touch the range, by conditions on the columns as they are stored, so that files can be skipped."""
    if start_us is not None:
        end = F.expr(source.end)
        frame = frame.where((end >= stored_bound(frame, source.end, source.unit, start_us)) | end.isNull())
    if end_us is not None:
        start = F.expr(source.start)
        frame = frame.where((start < stored_bound(frame, source.start, source.unit, end_us)) | start.isNull())
    return frame


def stored_bound(frame: DataFrame, expression: str, unit: Unit | None, moment_us: int) -> Column:
    kind = _kind(frame, expression)
    if kind == "timestamp":
        return F.timestamp_micros(F.lit(moment_us))
    if kind in ("timestamp_ntz", "date"):
        # A date is compared as the midnight that it stands for.
        return F.timestamp_micros(F.lit(moment_us)).cast("timestamp_ntz")
    # x * unit >= m and x * unit < m hold for the same whole x as x >= ceil(m / unit) and x < ceil(m / unit)
    return F.lit(-(-moment_us // _UNIT_US[unit or "us"]))


def _kind(frame: DataFrame, expression: str) -> str:
    return frame.select(F.expr(expression)).schema[0].dataType.simpleString()
