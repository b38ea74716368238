"""Our tables: made from contracts, grown with them, guarded by their constraints, written in one commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cep_core.errors import TableError
from jobs import tables
from jobs.settings import Settings
from schemas import COMPOSITE_EVENTS, CONTRACTS, RUNS, Column, Constraint, Contract

SMALL = Contract(
    name="small",
    doc="A table for these tests.",
    columns=(Column("day", "date", "The day.", True), Column("n", "int", "A number.")),
    key=("n",),
    partition_by=("day",),
    constraints=(Constraint("positive", "n > 0"),),
)


def rows(spark: Any, *values: tuple[str, int | None]) -> Any:
    return spark.createDataFrame(list(values), "day string, n int")


def stored(spark: Any, settings: Settings, name: str = "small") -> list[tuple[str, int]]:
    return sorted((str(row.day), row.n) for row in tables.read(spark, settings, name).collect())


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=lambda c: c.name)
def test_every_contract_becomes_a_table_with_comments_and_constraints(
    spark: Any, lake: Settings, contract: Contract
) -> None:
    tables.ensure_table(spark, lake, contract)
    tables.ensure_table(spark, lake, contract)
    assert tables.version(spark, lake, contract.name) == 0
    described = {r.col_name: r for r in spark.sql(f"DESCRIBE {tables.table_name(lake, contract.name)}").collect()}
    for column in contract.columns:
        assert (described[column.name].data_type, described[column.name].comment) == (column.type, column.doc)
    properties = {
        row.key: row.value
        for row in spark.sql(f"SHOW TBLPROPERTIES {tables.table_name(lake, contract.name)}").collect()
    }
    for constraint in contract.constraints:
        assert properties[f"delta.constraints.{constraint.name}"] == constraint.condition
    assert properties["delta.enableDeletionVectors"] == "false"
    detail = tables.open_table(spark, lake, contract.name).detail().collect()[0]
    assert tuple(detail.partitionColumns) == contract.partition_by


def test_a_table_grows_with_its_contract_and_keeps_its_rows(spark: Any, lake: Settings) -> None:
    tables.append(spark, lake, SMALL, rows(spark, ("2026-01-01", 1)))
    grown = replace(
        SMALL,
        columns=(*SMALL.columns, Column("note", "string", "It's new.")),
        constraints=(*SMALL.constraints, Constraint("below", "n < 100")),
    )
    tables.ensure_table(spark, lake, grown)
    assert [tuple(r)[1:] for r in tables.read(spark, lake, "small").collect()] == [(1, None)]
    with pytest.raises(Exception, match="below"):
        tables.append(spark, lake, grown, rows(spark, ("2026-01-01", 200)).selectExpr("*", "'x' AS note"))


def test_a_column_of_another_type_is_refused(spark: Any, lake: Settings) -> None:
    tables.ensure_table(spark, lake, SMALL)
    retyped = replace(SMALL, columns=(SMALL.columns[0], Column("n", "string", "A text.")))
    with pytest.raises(TableError, match="column n is int, but its contract says string"):
        tables.ensure_table(spark, lake, retyped)


def test_a_replaced_range_leaves_the_rest_and_repeats_without_duplicates(spark: Any, lake: Settings) -> None:
    tables.append(spark, lake, SMALL, rows(spark, ("2026-01-01", 1), ("2026-01-02", 2)))
    for _ in range(2):
        tables.replace_where(spark, lake, SMALL, rows(spark, ("2026-01-02", 3)), "day = '2026-01-02'")
        assert stored(spark, lake) == [("2026-01-01", 1), ("2026-01-02", 3)]
    tables.replace_where(spark, lake, SMALL, rows(spark), "day = '2026-01-02'")
    assert stored(spark, lake) == [("2026-01-01", 1)]
    assert tables.read(spark, lake, "small", version=1).count() == 2


@pytest.mark.parametrize(
    ("day", "n", "condition", "message"),
    [
        ("2026-01-03", 1, "day = '2026-01-02'", "REPLACE_WHERE"),
        ("2026-01-02", -1, "day = '2026-01-02'", "positive"),
        (None, 1, "true", "NOT_NULL"),
    ],
)
def test_rows_that_break_the_contract_are_refused_and_change_nothing(
    spark: Any, lake: Settings, day: str, n: int, condition: str, message: str
) -> None:
    tables.append(spark, lake, SMALL, rows(spark, ("2026-01-01", 1)))
    with pytest.raises(Exception, match=message):
        tables.replace_where(spark, lake, SMALL, rows(spark, (day, n)), condition)
    assert stored(spark, lake) == [("2026-01-01", 1)]


def test_rows_with_other_columns_are_refused_by_name(spark: Any, lake: Settings) -> None:
    with pytest.raises(TableError, match=r"missing \['n'\], not in it \['m'\]"):
        tables.append(spark, lake, SMALL, rows(spark).withColumnRenamed("n", "m"))


def test_a_table_that_is_not_there_yet(spark: Any, lake: Settings) -> None:
    assert tables.read(spark, lake, "runs").columns == [c.name for c in RUNS.columns]
    assert tables.read(spark, lake, "runs").count() == 0
    with pytest.raises(TableError, match=r"there is no table composite_events at .* made by the first run"):
        tables.open_table(spark, lake, "composite_events")


def test_a_place_that_cannot_be_written_is_said(spark: Any, lake: Settings) -> None:
    Path(lake.in_lake("occupied")).write_text("a file where the lake should be")
    with pytest.raises(TableError, match=r"cannot make the table .*occupied/small.*cannot be written"):
        tables.ensure_table(spark, replace(lake, lake="lake/occupied"), SMALL)


def test_a_table_whose_making_was_cut_off_is_made_anew(spark: Any, lake: Settings) -> None:
    log = Path(lake.in_lake("small/_delta_log"))
    log.mkdir(parents=True)
    (log / ".00000000000000000000.json.tmp").write_bytes(b"")
    assert not tables.table_exists(spark, lake, "small")
    tables.append(spark, lake, SMALL, rows(spark, ("2026-01-01", 1)))
    assert tables.read(spark, lake, "small").count() == 1


def test_a_full_disk_is_said(spark: Any, lake: Settings) -> None:
    """/dev/full answers every write as a full disk does."""
    from jobs.spark_errors import reason

    with pytest.raises(Exception, match="No space left") as failed:
        spark.sparkContext.parallelize([1]).foreach(lambda _: Path("/dev/full").write_bytes(b"x"))
    assert reason(failed.value) == "no space is left on the device"


def test_tables_in_a_catalog(spark: Any, lake: Settings) -> None:
    named = replace(lake, catalog="cep_test")
    try:
        tables.append(spark, named, SMALL, rows(spark, ("2026-01-01", 1)))
        tables.replace_where(spark, named, SMALL, rows(spark, ("2026-01-02", 2)), "day = '2026-01-02'")
        assert spark.sql("SELECT sum(n) FROM cep_test.small").collect()[0][0] == 3
        assert tables.version(spark, named, "small") == 2
        assert not tables.table_exists(spark, named, COMPOSITE_EVENTS.name)
    finally:
        spark.sql("DROP SCHEMA IF EXISTS cep_test CASCADE")
