"""The peer of the jobs: the same patterns as one statement of Spark SQL, the best formulation known.

Enters: a DataFrame of events (event_id, source, event_class, ts) and the patterns. Leaves: one row a match: the
query's id and the event ids in pattern order.
Always holds: a bucket join (bench/peers.py): `ts div widest window` is a join key, the earlier side stands in its own
bucket and the next; all patterns go through one broadcast table. Joins of neighbours come first: b before c within the
window leaves few rows for a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.workloads import Pattern


def bucket_join(spark: SparkSession, events: DataFrame, patterns: Sequence[Pattern]) -> DataFrame:
    """The matches of SEQ patterns of three elements, SELECT all."""
    from pyspark.sql import functions as F

    widest = max(pattern.window_us for pattern in patterns)
    rows = [(p.id, p.window_us, *p.classes) for p in patterns]
    wanted = sorted({name for pattern in patterns for name in pattern.classes})
    table = F.broadcast(spark.createDataFrame(rows, "q string, w bigint, c0 string, c1 string, c2 string"))
    numbered = events.where(F.col("event_class").isin(wanted)).select(
        "event_id", "source", "event_class", F.unix_micros("ts").alias("t")
    )
    numbered = numbered.withColumn("b", F.expr(f"t div {widest}"))
    both = numbered.withColumn("b", F.explode(F.array(F.col("b"), F.col("b") + 1)))
    last = numbered.selectExpr("event_id AS i2", "source", "event_class AS c2", "t AS t2", "b").join(table, "c2")
    middle = both.selectExpr("event_id AS i1", "source", "event_class AS c1", "t AS t1", "b")
    pairs = last.join(middle, ["source", "b", "c1"]).where("t1 < t2 AND t2 - t1 <= w")
    first = both.selectExpr("event_id AS i0", "source", "event_class AS c0", "t AS t0", "b")
    found = pairs.join(first, ["source", "b", "c0"]).where("t0 < t1 AND t2 - t0 <= w")
    return found.selectExpr("q", "array(i0, i1, i2) AS ids")
