"""Rows brought down to figures: every row counts, and what repeats or is missing is found wherever it lies."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from jobs import quality_tally
from jobs.quality_hash import xxhash64
from jobs.quality_tally import tally
from schemas.expectations import ColumnCheck, LookupCheck, RangeCheck, RepeatCheck, RowCheck

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from schemas.expectations import Check

pytestmark = pytest.mark.spark

MANY = 100_000


def figures(checks: list[Check], **frames: DataFrame) -> dict[str, tuple[int, int, int | None]]:
    """Check -> rows, breaches, greatest."""
    summed = tally(checks, frames).groupBy("check").agg(F.sum("rows"), F.sum("breaches"), F.max("greatest"))
    return {name: (rows, breaches, greatest) for name, rows, breaches, greatest in summed.collect()}


def test_every_row_is_counted_for_every_check(spark: SparkSession) -> None:
    rows = spark.range(0, MANY, numPartitions=7)
    checks: list[Check] = [
        RowCheck("even", "", "id % 2 = 0"), RowCheck("third", "", "id % 3 = 0"), RowCheck("never", "", "id < 0"),
        RowCheck("unknown", "", "CAST(NULL AS boolean)"), RangeCheck("rows", "", 0, 1),
        ColumnCheck("c", "", "id", "int"), RangeCheck("latest", "", 0, 1, "id"),
        RepeatCheck("twice", "", ("tenth",)), RepeatCheck("once", "", ("id",)),
    ]  # fmt: skip
    assert figures(checks, rows=rows.withColumn("tenth", F.col("id") % 10)) == {
        "even": (MANY, MANY // 2, None), "third": (MANY, MANY // 3 + 1, None), "never": (MANY, 0, None),
        "unknown": (MANY, 0, None), "rows": (MANY, 0, None), "latest": (MANY, 0, MANY - 1),
        "twice": (MANY, MANY - 10, None), "once": (MANY, 0, None),
    }  # fmt: skip


def test_one_repeat_and_one_missing_value_among_many_are_found(spark: SparkSession) -> None:
    rows = spark.range(0, MANY, numPartitions=5).unionAll(spark.range(77, 78))
    asked = spark.range(MANY // 2, MANY + 1, numPartitions=3)
    checks: list[Check] = [
        RepeatCheck("twice", "", ("id",), of="rows"), LookupCheck("there", "", ("id",), of="asked", among="rows"),
    ]  # fmt: skip
    found = figures(checks, rows=rows, asked=asked)
    assert found == {"twice": (MANY + 1, 1, None), "there": (MANY // 2 + 1, 1, None)}


def test_a_sample_takes_a_value_in_all_its_rows_or_in_none(spark: SparkSession) -> None:
    rows = spark.range(0, MANY, numPartitions=3).select((F.col("id") % (MANY // 4)).alias("id"))
    counted, repeats, _ = figures([RepeatCheck("some", "", ("id",), one_in=10)], rows=rows)["some"]
    assert MANY / 20 < counted < MANY / 5
    assert repeats * 4 == counted * 3


def test_what_is_not_there_repeats_nothing_and_is_not_found(spark: SparkSession) -> None:
    rows = spark.range(4).select(F.when(F.col("id") > 1, F.col("id")).alias("id"))
    checks: list[Check] = [
        RepeatCheck("twice", "", ("id",)), LookupCheck("there", "", ("id",), of="rows", among="known"),
        RangeCheck("latest", "", 0, 1, "id"),
    ]  # fmt: skip
    found = figures(checks, rows=rows, known=rows)
    assert found == {"twice": (2, 0, None), "there": (4, 2, None), "latest": (4, 0, 3)}
    nothing = figures(checks, rows=rows.where("false"), known=rows)
    assert nothing.pop("latest") == (0, 0, None)
    assert {rows for rows, _, _ in nothing.values()} <= {0}


def test_a_value_has_the_hash_that_spark_gives_it(spark: SparkSession) -> None:
    chance = random.Random(5)
    texts = ["", "a", "é\u4e2d\U0001f600", *("".join(chance.choices("abcdé", k=k)) for k in (*range(100), *range(60)))]
    numbers = [chance.randrange(-(2**63), 2**63) for _ in texts]
    rows = spark.createDataFrame(list(zip(texts, numbers, strict=True)), "t string, n bigint")
    told = rows.select(F.xxhash64("t"), F.xxhash64("t", "n", "t"), F.xxhash64("n")).collect()
    t, n = pa.array(texts), pa.array(numbers)
    for found, columns in zip(zip(*told, strict=True), ([t], [t, n, t], [n]), strict=True):
        assert xxhash64(columns).tolist() == list(found)
        assert xxhash64([column.slice(7, 50) for column in columns]).tolist() == list(found)[7:57]
    alike = pa.array([f"{number:08d}" for number in range(50)])  # of one length: read without gathering
    assert xxhash64([alike.slice(3)]).tolist() == [int(xxhash64([alike.slice(i, 1)])[0]) for i in range(3, 50)]
    assert len(set(xxhash64([alike]).tolist())) == 50


def test_hashes_that_come_in_several_rows_meet(spark: SparkSession) -> None:
    """A task that sees more than it holds sends its blocks in several rows."""
    many = 3 * quality_tally._HELD // 2
    rows = spark.range(0, many, numPartitions=1).select((F.col("id") % (many - 3)).alias("id"))
    assert figures([RepeatCheck("twice", "", ("id",))], rows=rows) == {"twice": (many, 3, None)}
