"""The declared tables: opened, and pinned to a version.

Enters: declared tables. Leaves: DataFrames of them, and the version of each Delta table.
Always holds: a table that is absent or cannot be read is a TableError that names it, its place in the declarations and
what to do. Parquet folders have no versions and are read as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from cep_core.errors import TableError
from jobs.declarations import Declarations, DeclaredTable
from jobs.tables import newest_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings


def read_table(spark: SparkSession, settings: Settings, table: DeclaredTable, version: int | None = None) -> DataFrame:
    """The table's rows, at a version where one is given."""
    from jobs.spark_errors import SPARK_ERRORS

    reader = spark.read
    if version is not None and table.kind != "parquet":
        reader = reader.option("versionAsOf", version)
    try:
        if table.kind == "catalog":
            frame = reader.table(table.location)
        else:
            frame = reader.format(table.kind).load(settings.in_lake(table.location))
        frame.schema  # noqa: B018 - an absent table shows here, not at the first action
        return frame
    except SPARK_ERRORS as error:
        raise _unreadable(settings, table, error) from error


def input_versions(
    spark: SparkSession,
    settings: Settings,
    declarations: Declarations,
    classes: Iterable[str] | None = None,
    as_of: datetime | None = None,
) -> dict[str, int]:
    """Declared name -> version, for the Delta tables that hold these classes: as they are now, or as of a moment.

    Taken once per run and passed to every read, they make a run's reads repeatable.
    """
    return {
        table.name: version
        for table in declarations.tables_of(classes)
        if (version := _version(spark, settings, table, as_of)) is not None
    }


def _version(spark: SparkSession, settings: Settings, table: DeclaredTable, as_of: datetime | None) -> int | None:
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    from jobs.spark_errors import SPARK_ERRORS

    if table.kind == "parquet":
        return None
    read_table(spark, settings, table)  # absent or unreadable: said in the same words as everywhere
    try:
        if table.kind == "delta":
            delta = DeltaTable.forPath(spark, settings.in_lake(table.location))
        else:
            provider = spark.sql(f"DESCRIBE TABLE EXTENDED {table.location}").where("col_name = 'Provider'").collect()
            if not provider or provider[0]["data_type"].lower() != "delta":
                return None
            delta = DeltaTable.forName(spark, table.location)
        if as_of is None:
            return newest_version(spark, delta)
        found = delta.history().where(F.col("timestamp") <= F.lit(as_of)).agg(F.max("version")).collect()[0][0]
    except SPARK_ERRORS as error:
        raise _unreadable(settings, table, error) from error
    if found is None:
        raise TableError(f"{table.place}: table {table.name!r} has no version as old as {as_of.isoformat()}")
    return int(found)


def _unreadable(settings: Settings, table: DeclaredTable, error: Exception) -> TableError:
    where = table.location if table.kind == "catalog" else settings.in_lake(table.location)
    from jobs.spark_errors import reason

    absent = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE")
    if any(mark in str(error) for mark in absent) or "is not a Delta table" in str(error):
        kind = "Delta table" if table.kind == "delta" else f"{table.kind} table"
        return TableError(
            f"{table.place}: there is no {kind} at {where}; correct the declaration, or create the table first"
        )
    return TableError(f"{table.place}: the table at {where} cannot be read: {reason(error)}")
