"""A live Airflow, with its scheduler: its own backfill, and a task that is killed in mid-run."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from jobs import tables
from jobs.local_airflow import LocalAirflow
from jobs.mine import mine
from jobs.runs import Request
from tests.airflow.conftest import DAY_S, QUERIES, MakeAirflow, announced, rows
from tests.jobs.shop import T0, S, Shop, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.heavy]

LONGEST_S = 3600.0  # minutes on an idle machine
# Daily in the first days of January: beyond those three days there is no interval for the scheduler to add by itself.
SCHEDULE = "0 0 1-4 1 *"


def test_airflows_own_backfill_with_a_killed_task_gives_the_table_of_one_direct_run(
    spark: SparkSession, tmp_path: Path, make_airflow: MakeAirflow
) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=150, span_s=3 * DAY_S - 10, queries=QUERIES)
    direct = one_direct_run(spark, shop)
    airflow = make_airflow(shop, HINDSIGHT_SCHEDULE=SCHEDULE)
    airflow.command("dags", "reserialize")
    airflow.command("backfill", "create", "--dag-id", "hindsight_mine", "--from-date", "2026-01-01",
                    "--to-date", "2026-01-03", "--max-active-runs", "1")  # fmt: skip
    airflow.command("dags", "unpause", "hindsight_mine", "--yes")
    with airflow.running() as services:
        kill_in_mid_run(services, Path(shop.settings.lake_path) / "composite_events")
        wait_until(lambda: ended(airflow), LONGEST_S, lambda: str(tasks(airflow)))
    found = rows(airflow, "SELECT logical_date, run_type, state FROM dag_run ORDER BY logical_date")
    assert [(str(day)[:10], kind, state) for day, kind, state in found] == [
        (f"2026-01-0{n}", "backfill", "success") for n in (1, 2, 3)
    ]
    tries = {(str(day)[:10], task): n for day, task, _, n in tasks(airflow)}
    assert tries.pop(("2026-01-01", "mine")) == 2, "the killed task was not tried again"
    assert set(tries.values()) == {1}
    assert [(e["from"][:10], e["to"][:10]) for e in announced(airflow)] == [
        (f"2026-01-0{n}", f"2026-01-0{n + 1}") for n in (1, 2, 3)
    ]
    assert matches(spark, shop) == direct
    assert shop.published(spark) == shop.expected()
    assert tables.read(spark, shop.settings, "runs").where("outcome = 'published'").count() == 3


def one_direct_run(spark: SparkSession, shop: Shop) -> set[str]:
    """The table of one run over all three days, in a lake of its own."""
    lake = Path(shop.settings.lake_path)
    shutil.copytree(lake / "raw", lake.parent / "direct/raw")
    alone = replace(shop, settings=replace(shop.settings, lake="direct"))
    mine(spark, alone.settings, Request(T0, T0 + 3 * DAY_S * S))
    return matches(spark, alone)


def matches(spark: SparkSession, shop: Shop) -> set[str]:
    """All that the table says of its matches but which run found them."""
    stored = tables.read(spark, shop.settings, "composite_events").drop("run_id")
    found = [str(row.asDict(recursive=True)) for row in stored.collect()]
    assert len(found) == len(set(found))
    return set(found)


def kill_in_mid_run(services: list[subprocess.Popen[bytes]], results: Path) -> None:
    """Kill the first `mine` with its Spark, once it has made the table of results and begins to mine."""

    def victims() -> list[psutil.Process]:
        found = []
        for service in services:
            for process in psutil.Process(service.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "--stage" in process.cmdline():
                        found.append(process)
        return found

    wait_until(lambda: bool(victims()) and results.exists(), LONGEST_S)
    killed = victims()
    assert killed, "the task ended before it could be killed"
    for process in killed:
        process.kill()


def tasks(airflow: LocalAirflow) -> list[tuple[str, str, str, int]]:
    return rows(airflow, "SELECT d.logical_date, t.task_id, t.state, t.try_number FROM task_instance t "  # type: ignore[return-value]
                         "JOIN dag_run d ON d.dag_id = t.dag_id AND d.run_id = t.run_id ORDER BY 1, 2")  # fmt: skip


def ended(airflow: LocalAirflow) -> bool:
    found = {state for (state,) in rows(airflow, "SELECT state FROM dag_run")}
    return bool(found) and found <= {"success", "failed"}


def wait_until(done: Callable[[], bool], seconds: float, tell: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not after {seconds:.0f} s {tell()}"
        time.sleep(0.2)
