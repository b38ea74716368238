"""The demo's declarations over real tables: Spark reads the events that pandas reads."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.declarations import load_declarations
from jobs.demo.generator import generate, write_tables
from jobs.primitives import read_primitives
from tests.demo.primitives import events_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

pytestmark = pytest.mark.spark
CONF = Path(__file__).resolve().parents[2] / "conf"


def test_the_declared_events_are_those_of_the_raw_tables(spark: SparkSession, lake: Settings) -> None:
    shutil.copytree(CONF / "events", lake.path("conf/events"), dirs_exist_ok=True)
    worlds = generate(1500)
    written = write_tables(spark, lake, worlds)
    assert set(written) == {table.name for world in worlds for table in world.tables}
    declarations = load_declarations(lake.path("conf/events"))
    schema = declarations.schema()
    rows = [row.asDict() for row in read_primitives(spark, lake, declarations).collect()]
    read = sorted(_plain(row, schema[row["event_class"]]) for row in rows)
    expected = sorted(_plain(event | event["attributes"], schema[event["event_class"]]) for event in events_of(worlds))
    assert len(read) == len(expected)
    assert read == expected


def test_tables_that_are_as_they_should_be_are_not_written_again(spark: SparkSession, lake: Settings) -> None:
    from delta.tables import DeltaTable

    def files(name: str) -> list[str]:
        return sorted(file.name for file in Path(written[name]).glob("*.parquet"))

    worlds = generate(1500)
    written = write_tables(spark, lake, worlds)
    before = files("job_runs")  # a Parquet table: it has no versions
    write_tables(spark, lake, worlds)
    assert DeltaTable.forPath(spark, written["rfid_readings"]).history().count() == 1
    assert files("job_runs") == before
    write_tables(spark, lake, generate(1500, seed=8))
    assert DeltaTable.forPath(spark, written["rfid_readings"]).history().count() == 2
    assert files("job_runs") != before


def _plain(row: dict[str, Any], attributes: dict[str, Any]) -> tuple[str, ...]:
    fixed = ("event_id", "event_class", "source", "start_ts", "end_ts", "tie")
    return tuple(str(row.get(name)) for name in (*fixed, *sorted(attributes)))
