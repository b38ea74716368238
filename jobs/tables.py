"""Our tables: the one module with Delta code. Everything else asks here for a table.

Enters: a contract of schemas/, settings. Leaves: Delta tables that fit it, opened, read and written.
Always holds: a table lives at <lake>/<name>, or is <catalog>.<name> where the setting `catalog` is given. It is made
from its contract with types, comments, NOT NULL and CHECK; a table made before gets the columns and constraints that
its contract has since gained, and nothing else. A write is one atomic commit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from cep_core.errors import TableError
from jobs import hadoop
from schemas import CONTRACTS, Contract

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

# Readers outside Spark (delta-rs) refuse deletion vectors.
_PROPERTIES = {"delta.enableDeletionVectors": "false"}
_MAKING_S = 5
# Tables that this application has seen to fit their contract: looking again at every write costs more than the write.
_FITTED: set[tuple[str, str, Contract]] = set()


def table_name(settings: Settings, name: str) -> str:
    """The table in SQL: delta.`/path` or catalog.name."""
    if settings.catalog:
        return f"{settings.catalog}.{name}"
    return f"delta.`{settings.lake_path.rstrip('/')}/{name}`"


def ensure_table(spark: SparkSession, settings: Settings, contract: Contract) -> DeltaTable:
    """The contract's table, made or grown where needed."""
    from pyspark.errors import AnalysisException

    from jobs.spark_errors import SPARK_ERRORS

    fitted = (spark.sparkContext.applicationId, table_name(settings, contract.name), contract)
    try:
        if not table_exists(spark, settings, contract.name):
            try:
                _create(spark, settings, contract)
            except AnalysisException:
                # A half-made table is either being made by another run, or was cut off.
                if not _appears(spark, settings, contract.name):
                    if settings.catalog or not _clear_cut_off(spark, _path(settings, contract.name)):
                        raise
                    _create(spark, settings, contract)
            _FITTED.discard(fitted)
        table = open_table(spark, settings, contract.name)
        if fitted not in _FITTED:
            _grow(spark, settings, contract, table)
            _FITTED.add(fitted)
        return table
    except SPARK_ERRORS as error:
        raise TableError(_cannot("make", settings, contract.name, error)) from error


def open_table(spark: SparkSession, settings: Settings, name: str) -> DeltaTable:
    """An existing table, for merges, history and maintenance."""
    from delta.tables import DeltaTable

    if not table_exists(spark, settings, name):
        raise TableError(
            f"there is no table {name} at {table_name(settings, name)}; it is made by the first run (hindsight mine)"
        )
    if settings.catalog:
        return DeltaTable.forName(spark, table_name(settings, name))
    return DeltaTable.forPath(spark, _path(settings, name))


def table_exists(spark: SparkSession, settings: Settings, name: str) -> bool:
    from delta.tables import DeltaTable

    if settings.catalog:
        return bool(spark.catalog.tableExists(table_name(settings, name)))
    return bool(DeltaTable.isDeltaTable(spark, _path(settings, name)))


def read(spark: SparkSession, settings: Settings, name: str, version: int | None = None) -> DataFrame:
    """A table's rows; those of a contract that has no table yet are an empty DataFrame of the contract's columns."""
    if not table_exists(spark, settings, name):
        if name in CONTRACTS and version is None:
            return spark.createDataFrame([], CONTRACTS[name].ddl)
        open_table(spark, settings, name)  # says that it is absent
    reader = spark.read if version is None else spark.read.option("versionAsOf", version)
    if settings.catalog:
        return reader.table(table_name(settings, name))
    return reader.format("delta").load(_path(settings, name))


def version(spark: SparkSession, settings: Settings, name: str) -> int:
    """The table's newest version."""
    return newest_version(spark, open_table(spark, settings, name))


def folder(spark: SparkSession, settings: Settings, name: str) -> str:
    """Where the files of an existing table are, as a URI."""
    return str(open_table(spark, settings, name)._jdt.deltaLog().dataPath().toUri().toString()).rstrip("/")


def newest_version(spark: SparkSession, table: DeltaTable) -> int:
    """The version that a reader would see now. From the log itself: `history(1)` is a Spark job and costs ten times
    as much."""
    none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
    return int(table._jdt.deltaLog().update(False, none, none).version())


def append(
    spark: SparkSession,
    settings: Settings,
    contract: Contract,
    rows: DataFrame,
    options: Mapping[str, str] | None = None,
) -> None:
    """Rows added in one commit."""
    _write(spark, settings, contract, rows, "append", dict(options or {}))


def replace_where(
    spark: SparkSession,
    settings: Settings,
    contract: Contract,
    rows: DataFrame,
    condition: str,
    options: Mapping[str, str] | None = None,
) -> None:
    """The rows for which `condition` holds replaced by `rows`, in one commit. Delta refuses rows outside it.

    Writers over disjoint ranges of the partition columns can run at once, if `condition` names those columns. `options`
    may hold txnAppId and txnVersion (a repeated write is then ignored) and userMetadata.
    """
    _write(spark, settings, contract, rows, "overwrite", {"replaceWhere": condition, **(options or {})})


def _write(
    spark: SparkSession, settings: Settings, contract: Contract, rows: DataFrame, mode: str, options: dict[str, str]
) -> None:
    ensure_table(spark, settings, contract)
    missing = [c.name for c in contract.columns if c.name not in rows.columns]
    extra = [name for name in rows.columns if name not in {c.name for c in contract.columns}]
    if missing or extra:
        raise TableError(f"rows for {contract.name} do not fit its contract: missing {missing}, not in it {extra}")
    fitted = rows.selectExpr(*(f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in contract.columns))
    writer = fitted.write.format("delta").mode(mode).options(**options)
    if settings.catalog:
        writer.saveAsTable(table_name(settings, contract.name))
    else:
        writer.save(_path(settings, contract.name))


def _create(spark: SparkSession, settings: Settings, contract: Contract) -> None:
    from delta.tables import DeltaTable

    builder = DeltaTable.createIfNotExists(spark).comment(contract.doc)
    if settings.catalog:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {settings.catalog}")
        builder = builder.tableName(table_name(settings, contract.name))
    else:
        builder = builder.location(_path(settings, contract.name))
    for column in contract.columns:
        builder = builder.addColumn(column.name, column.type, nullable=not column.required, comment=column.doc)
    for key, value in _PROPERTIES.items():
        builder = builder.property(key, value)
    # CHECK constraints can be table properties from the start: one commit instead of one for each.
    for constraint in contract.constraints:
        builder = builder.property(f"delta.constraints.{constraint.name}", constraint.condition)
    if contract.skip_by:
        builder = builder.property("delta.dataSkippingStatsColumns", ",".join(contract.skip_by))
    if contract.partition_by:
        builder = builder.partitionedBy(*contract.partition_by)
    builder.execute()


def _appears(spark: SparkSession, settings: Settings, name: str) -> bool:
    """Whether another run has just made the table: making one takes a second or two."""
    for _ in range(_MAKING_S * 4):
        if table_exists(spark, settings, name):
            return True
        time.sleep(0.25)
    return False


def _clear_cut_off(spark: SparkSession, path: str) -> bool:
    """Whether there was the rest of a table whose making was cut off (a kill, a full disk); it is gone now. Delta
    neither opens such a folder nor makes a table in it. Only a log without any commit counts as one."""
    log, files = hadoop.at(spark, f"{path}/_delta_log")
    if not files.exists(log) or any(s.isFile() and s.getPath().getName()[:1] != "." for s in files.listStatus(log)):
        return False
    return bool(files.delete(log, True))


def _grow(spark: SparkSession, settings: Settings, contract: Contract, table: DeltaTable) -> None:
    """Columns and constraints that the table does not have yet. A column of another type is an error."""
    have = {field.name: field.dataType.simpleString() for field in table.toDF().schema}
    new = [column for column in contract.columns if column.name not in have]
    for column in contract.columns:
        if have.get(column.name, column.type) != column.type:
            raise TableError(
                f"{table_name(settings, contract.name)}: column {column.name} is {have[column.name]}, "
                f"but its contract says {column.type}; contracts only grow, so this table is not ours or was altered"
            )
    name = table_name(settings, contract.name)
    if new:
        added = ", ".join(f"`{c.name}` {c.type} COMMENT {_quoted(c.doc)}" for c in new)
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({added})")
    properties = {row["key"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    for constraint in contract.constraints:
        if f"delta.constraints.{constraint.name}".lower() not in {key.lower() for key in properties}:
            spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {constraint.name} CHECK ({constraint.condition})")


def _path(settings: Settings, name: str) -> str:
    return f"{settings.lake_path.rstrip('/')}/{name}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _cannot(verb: str, settings: Settings, name: str, error: Exception) -> str:
    from jobs.spark_errors import reason

    return f"cannot {verb} the table {table_name(settings, name)}: {reason(error)}"
