"""Between the engine's calls and staging: what goes into a call, what of it is staged, and what its errors mean.

Enters: rows on their way to the engine. Leaves: the calls' rows, and those of them that are matches in the columns of
composite_events.
Always holds: an error that a worker raised on purpose comes out as that error, without Spark's wrapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from cep_core import errors
from cep_core.errors import HindsightError, TableError
from jobs.calls import CALL_SCHEMA, MATCH_SCHEMA, Engine, make_call, open_matches
from jobs.catalogue import Workload
from jobs.distribute import Layout
from jobs.encode import NUMBER
from jobs.route import Frame
from jobs.runs import Manifest
from jobs.spark_errors import SPARK_ERRORS, reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(workload: Workload, layouts: Sequence[Layout]) -> Frame:
    """What rows must hold for these groups: their classes, and the attributes that their queries read."""
    classes = tuple(sorted({name for layout in layouts for name in layout.group.classes}))
    queries = {name for layout in layouts for name in layout.group.queries}
    read = {a for name in queries for c, a in workload.checked[name].attributes if c in classes}
    read |= {a for layout in layouts for c, a in layout.group.key_of.items()}
    types = workload.declarations.attribute_types()
    return Frame(tuple((name, types[name]) for name in sorted(read - {"source"})), *workload.shape(classes))


def call_engine(routed: DataFrame, tasks: Any, work: Any, engine: Engine) -> DataFrame:
    """One applyInPandas over the packs of each task."""
    return routed.groupBy(NUMBER).applyInPandas(make_call(tasks, work, engine), CALL_SCHEMA)


def staged(calls: DataFrame, manifest: Manifest) -> DataFrame:
    """The matches of calls as rows of composite_events, of the run's range only."""
    matches = calls.where("matches IS NOT NULL").select("matches").mapInArrow(open_matches, MATCH_SCHEMA)
    inputs = F.create_map(*(F.lit(v) for pair in sorted(manifest.input_versions.items()) for v in pair))
    if not manifest.input_versions:
        inputs = F.create_map().cast("map<string,bigint>")
    detected = F.unix_micros("detection_ts")
    return matches.where((detected >= manifest.from_us) & (detected < manifest.to_us)).select(
        "query_id", "match_id", "start_ts", "end_ts", "detection_ts", F.to_date("detection_ts").alias("detection_date"),
        "members", "fields", "source", F.lit(manifest.run_id).alias("run_id"), "query_version",
        inputs.cast("map<string,bigint>").alias("input_versions"),
    )  # fmt: skip


def remove(spark: SparkSession, path: str) -> None:
    """A folder of staging, gone, wherever the lake is."""
    where = spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    where.getFileSystem(spark._jsc.hadoopConfiguration()).delete(where, True)


@contextmanager
def engine_errors() -> Iterator[None]:
    """What a worker refused on purpose, as the error that it is, without Spark's wrapping; and what Spark itself could
    not do (a file that cannot be read, a full disk) in one sentence."""
    try:
        yield
    except SPARK_ERRORS as error:
        found = re.findall(r"cep_core\.errors\.(\w+): (.*?)(?:\n\n|\Z)", str(error), re.DOTALL)
        if not found:
            raise TableError(f"the run could not go on: {reason(error)}") from error
        name, message = found[0]
        raise getattr(errors, name, HindsightError)(message.strip()) from None
