"""The demo from raw tables to SQL, on real tables; twice, which must change nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs import tables
from jobs.catalogue import load_workload
from jobs.declarations import load_declarations
from jobs.demo.demo import run_demo
from jobs.demo.report import SQL_TO_TRY
from jobs.exit_codes import FAILED, OK
from jobs.inputs import read_table
from jobs.views import make_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

pytestmark = pytest.mark.spark
CONF = Path(__file__).resolve().parents[2] / "conf"
EVENTS, DAYS, SEED = 4_000, 14, 7


def test_the_demo_finds_all_twice_alike_and_says_so_when_it_does_not(
    spark: SparkSession, lake: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("events", "queries"):
        shutil.copytree(CONF / folder, lake.path(f"conf/{folder}"), dirs_exist_ok=True)

    assert run_demo(spark, lake, EVENTS, DAYS, SEED) == OK
    first = capsys.readouterr().out
    rows = _contents(spark, lake)
    match_ids = [row.match_id for row in tables.read(spark, lake, "composite_events").select("match_id").collect()]
    assert len(match_ids) == len(set(match_ids)) > 0
    _tells_all(first, load_workload(lake).checked, lake)

    make_views(spark, lake, load_workload(lake).checked)
    for statement in SQL_TO_TRY:
        assert spark.sql(statement).collect(), statement

    assert run_demo(spark, lake, EVENTS, DAYS, SEED) == OK
    assert capsys.readouterr().out == first
    assert _contents(spark, lake) == rows

    _loosen(lake, "WITHIN 3 hours", "WITHIN 10 min")  # now shoplifting misses what was planted
    assert run_demo(spark, lake, EVENTS, DAYS, SEED) == FAILED
    assert "NOT all planted matches were found once: look at shoplifting" in capsys.readouterr().out


def _contents(spark: SparkSession, settings: Settings) -> dict[str, list[str]]:
    """The rows of every table of the lake: ours and the raw ones."""
    ours = {name: tables.read(spark, settings, name) for name in ("composite_events", "runs", "state")}
    declared = load_declarations(settings.path(settings.events)).tables
    raw = {table.name: read_table(spark, settings, table) for table in declared}
    return {name: sorted(str(row) for row in frame.collect()) for name, frame in (ours | raw).items()}


def _tells_all(report: str, queries: object, settings: Settings) -> None:
    assert isinstance(queries, dict)
    for query_id in queries:
        assert f"\n{query_id}: " in report
    assert report.count("planted ones found, and no others") == len(queries)
    assert report.count("\n  - 20") == 2 * len(queries)
    assert report.count("hindsight sql") == len(SQL_TO_TRY) == 3
    for name in ("rfid_readings", "job_runs"):
        assert settings.in_lake(f"raw/{name}") in report
    assert f"planted matches of {len(queries)} queries were found; there are no others." in report


def _loosen(settings: Settings, before: str, after: str) -> None:
    file = Path(settings.path("conf/queries"), "store.yaml")
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")
