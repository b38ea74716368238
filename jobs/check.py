"""Declarations held against the real tables: everything that can be known before a row is read.

Enters: declarations, a Spark session. Leaves: a `TableCheck` for each event source, or one DeclarationError with every
problem: file, key, what is wrong, the nearest column.
Always holds: only schemas are read, no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cep_core.errors import DeclarationError, TableError
from jobs.declarations import Declarations, EventSource
from jobs.inputs import read_table
from jobs.names import did_you_mean, or_list
from jobs.primitives import source_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("timestamp", "timestamp_ntz", "date")
# Spark types that an attribute's declared type takes as they are; another one needs a CAST in the expression.
_FITS = {
    "int": _WHOLE,
    "float": ("float", "double", "decimal", *_WHOLE),
    "string": ("string", "char", "varchar"),
    "bool": ("boolean",),
    "timestamp": _TIMES,
}


@dataclass(frozen=True)
class TableCheck:
    """An event source that fits its table: what it is called, and the classes it gives."""

    title: str
    columns: int
    classes: tuple[str, ...]


def check_declarations(
    spark: SparkSession, settings: Settings, declarations: Declarations, classes: Iterable[str] | None = None
) -> tuple[TableCheck, ...]:
    """Every event source (of these classes, where given) against its table's columns and types; all problems in one
    error."""
    wanted = None if classes is None else set(classes)
    errors: list[str] = []
    absent: list[str] = []
    checked = []
    for source in declarations.sources:
        if wanted is not None and wanted.isdisjoint(c.name for c in source.classes):
            continue
        found = len(errors) + len(absent)
        try:
            for name in source.tables:
                read_table(spark, settings, declarations.table(name))
        except TableError as error:
            absent.append(str(error))
            continue
        frame = _opened(spark, settings, declarations, source, errors)
        if frame is not None:
            errors.extend(_problems(frame, source))
            if found == len(errors) + len(absent):
                checked.append(TableCheck(source.title, len(frame.columns), tuple(c.name for c in source.classes)))
    if errors:
        raise DeclarationError("\n".join([*errors, *dict.fromkeys(absent)]))
    if absent:
        raise TableError("\n".join(dict.fromkeys(absent)))
    return tuple(checked)


def _opened(
    spark: SparkSession, settings: Settings, declarations: Declarations, source: EventSource, errors: list[str]
) -> DataFrame | None:
    from jobs.spark_errors import SPARK_ERRORS

    try:
        return source_frame(spark, settings, declarations, source)
    except SPARK_ERRORS as error:
        place = f"{source.place}.{'where' if source.sql is None else 'sql or where'}"
        errors.append(f"{place}: {_reason(error, None)}")
        return None


def _problems(frame: DataFrame, source: EventSource) -> list[str]:
    place = source.place
    problems: list[str] = []

    def kind_of(key: str, expression: str) -> str | None:
        kind, problem = _kind(frame, expression)
        if problem:
            problems.append(f"{place}.{key}: {problem}")
        return kind

    kind_of("source", source.source)
    for key, expression in (("time", source.start),) if source.start == source.end else (
        ("start", source.start),
        ("end", source.end),
    ):  # fmt: skip
        kind = kind_of(key, expression)
        if kind is not None and (problem := _time_problem(kind, expression, source.unit)):
            problems.append(f"{place}.{key}: {problem}")
    if source.tie is not None and (kind := kind_of("tie", source.tie)) is not None and kind not in _WHOLE:
        problems.append(f"{place}.tie: {source.tie} is {kind}; a tie column holds whole numbers")
    for expression in (source.event_id,) if isinstance(source.event_id, str) else source.event_id:
        kind_of("event_id", expression)
    if source.class_column is not None:
        kind_of("class", source.class_column)
    for event_class in source.classes:
        inside = f"classes.{event_class.name}"
        if event_class.where is not None:
            kind = kind_of(f"{inside}.where", event_class.where)
            if kind not in (None, "boolean"):
                problems.append(f"{place}.{inside}.where: {event_class.where} is {kind}, not a condition")
        for attribute in event_class.attributes:
            key = f"{inside}.attributes.{attribute.name}"
            kind = kind_of(key, attribute.expression)
            if kind is not None and kind.split("(")[0] not in _FITS[attribute.type]:
                problems.append(
                    f"{place}.{key}: {attribute.expression} is {kind}, but is declared {attribute.type}; "
                    "change the type, or CAST in its expression"
                )
    return problems


def _time_problem(kind: str, expression: str, unit: str | None) -> str:
    if kind in _TIMES:
        return f"{expression} is {kind}, which needs no `unit`; leave it out" if unit else ""
    if kind in _WHOLE:
        return "" if unit else f"{expression} is {kind}; say what it counts with `unit: s`, `ms` or `us`"
    return f"{expression} is {kind}; a time is a timestamp, a date, or a whole number with a `unit`"


def _kind(frame: DataFrame, expression: str) -> tuple[str | None, str]:
    """(Spark type, "") or (None, what is wrong)."""
    from pyspark.sql import functions as F

    from jobs.spark_errors import SPARK_ERRORS

    try:
        return frame.select(F.expr(expression)).schema[0].dataType.simpleString(), ""
    except SPARK_ERRORS as error:
        return None, _reason(error, frame.columns)


def _reason(error: Exception, columns: list[str] | None) -> str:
    """Spark's reason in our words: an unknown column with the nearest one, otherwise its first sentence."""
    from jobs.spark_errors import reason

    text = str(error)
    unknown = re.search(r"with name `([^`]+(?:`\.`[^`]+)*)` cannot be resolved", text)
    if "UNRESOLVED_COLUMN" in text and unknown:
        name = unknown[1].replace("`.`", ".")
        known = columns if columns is not None else re.findall(r"`([^`]+)`", text.split("[", 2)[-1])
        hint = did_you_mean(name, known) or f"; its columns are: {or_list(known)}"
        return f"the table has no column {name!r}{hint}"
    return reason(error)
