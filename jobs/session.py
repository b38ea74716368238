"""The one place where a Spark session is made.

Enters: settings; under spark-submit also what it was given. Leaves: a session with Delta, in UTC.
Always holds: what spark-submit (or SPARK_CONF) set stays as it is: our values only fill what is not set. The in-memory
catalog is Spark's default here, so path tables need no metastore; a persistent catalog is configured like any Spark's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.jars import DELTA_JARS, RuntimeMissing
from jobs.runtime import ensure_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

# Correctness: the same everywhere, whoever started Spark.
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

# Columns of composite_events whose values hardly repeat: a dictionary of them is made, found useless and thrown away.
# In a trial, 431,611 matches took 12.5 CPU seconds to write with dictionaries and 7.6 without any; that trial turned
# off those of all columns, and the second run had the warmer JVM. Delta takes this from the session, not from a writer.
_WITHOUT_DICTIONARY = ("match_id", "start_ts", "end_ts", "detection_ts", "members.list.element.event_id",
                       "members.list.element.start_ts", "members.list.element.end_ts")  # fmt: skip
_PARQUET = {f"spark.hadoop.parquet.enable.dictionary#{column}": "false" for column in _WITHOUT_DICTIONARY}

# Speed of small local work; a cluster keeps its own values.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.catalogImplementation": "in-memory",
}

# A JVM that lives for a minute or two spends most of it compiling and growing its heap; long work over large tables is
# better off without these.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -Xmn512m"

_QUIET_LOG = Path(__file__).with_name("log4j2.properties")


def spark_session(
    settings: Settings,
    app: str = "hindsight",
    *,
    conf: Mapping[str, str] | None = None,
    java_options: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """The session of this process, made at the first call. `conf` wins over our defaults."""
    submitted = under_spark_submit()
    if submitted:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        ensure_runtime(settings.ivy_settings_path, say)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    if submitted:  # SparkConf holds what spark-submit was given only once its JVM is connected
        SparkContext._ensure_initialized()
    given = SparkConf()
    master = given.get("spark.master", "") or ("" if submitted else settings.master)
    options = _ALWAYS | _PARQUET
    if master.startswith("local"):
        options |= _LOCAL | {"spark.sql.shuffle.partitions": str(settings.shuffle_partitions or _cores(master))}
        options["spark.driver.memory"] = settings.driver_memory
        # Absent here, `spark-warehouse` would appear in whatever folder is current.
        options["spark.sql.warehouse.dir"] = f"{settings.lake_path}/warehouse"
        quiet = "" if settings.log_level == "DEBUG" else f"-Dlog4j2.configurationFile={_QUIET_LOG.as_uri()}"
        options["spark.driver.extraJavaOptions"] = f"{quiet} {java_options}".strip()
    elif settings.shuffle_partitions:
        options["spark.sql.shuffle.partitions"] = str(settings.shuffle_partitions)
    builder = SparkSession.builder.appName(app)
    if master and not given.contains("spark.master"):
        builder = builder.master(master)
    for key, value in (options | dict(conf or {})).items():
        if not given.contains(key) or key in _ALWAYS or key in (conf or {}):
            builder = builder.config(key, _with_extension(given, value) if key == "spark.sql.extensions" else value)
    session = builder.getOrCreate()
    _check_delta(session)
    return session


def under_spark_submit() -> bool:
    """Whether spark-submit started this process: then its JVM is already there, with its own classpath."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _cores(master: str) -> int:
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    if inside == "*":
        return os.cpu_count() or 2
    return int(inside) if inside.isdigit() else 1


def _with_extension(given: SparkConf, ours: str) -> str:
    """Our SQL extension beside those that were given."""
    others = [e for e in (given.get("spark.sql.extensions", "") or "").split(",") if e and e != ours]
    return ",".join([*others, ours])


def _check_delta(session: SparkSession) -> None:
    """Refuse a Spark without Delta's jars now; later it would fail with a Java class name."""
    jvm: Any = session.sparkContext._jvm
    try:
        jvm.java.lang.Class.forName(
            "org.apache.spark.sql.delta.DeltaLog", True, jvm.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:
        names = " and ".join(jar.name for jar in DELTA_JARS)
        package = ":".join((DELTA_JARS[0].organisation, DELTA_JARS[0].module, DELTA_JARS[0].revision))
        raise RuntimeMissing(
            f"this Spark has no Delta: {names} are not on its classpath. Put them into its jars folder, or start with "
            f"spark-submit --packages {package}"
        ) from error
