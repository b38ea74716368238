"""A real local Airflow for the tests: its database is made once, and each test works on a copy."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.local_airflow import LocalAirflow
from tests.jobs.shop import Shop

TEST_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
MakeAirflow = Callable[..., LocalAirflow]

# Three days of events; windows of hours, so that matches reach over midnight.
QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 6 hours RETURN a.x AS x, b.x AS y",
    "calm": "PATTERN SEQ(A a, !C c, B b) WHERE [user] WITHIN 9 hours SELECT recent",
    "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 12 hours SELECT earliest CONSUME used",
}
DAY_S = 86_400


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Airflow home with a migrated database and the connection."""
    home = tmp_path_factory.mktemp("airflow") / "home"
    assert LocalAirflow(home, 0, home, "local[2]").prepare()
    return home


@pytest.fixture
def make_airflow(migrated: Path, tmp_path: Path) -> MakeAirflow:
    def make(shop: Shop, **variables: str) -> LocalAirflow:
        home = tmp_path / "airflow"
        shutil.copytree(migrated, home)
        extra = {"SPARK_SUBMIT_OPTS": TEST_JVM, **variables}
        return LocalAirflow(home, free_port(), shop.settings.project, "local[2]", extra)

    return make


def free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def rows(airflow: LocalAirflow, statement: str) -> list[tuple[Any, ...]]:
    """What Airflow's own database says."""
    with closing(sqlite3.connect(f"file:{airflow.home / 'airflow.db'}?mode=ro", uri=True, timeout=60)) as database:
        return list(database.execute(statement))


def states(airflow: LocalAirflow) -> dict[str, tuple[str, int]]:
    """Task -> its state and how often it was tried; mapped tasks as `task[0]`."""
    found = rows(airflow, "SELECT task_id, map_index, state, try_number FROM task_instance")
    return {task if index < 0 else f"{task}[{index}]": (state, tries) for task, index, state, tries in found}


def announced(airflow: LocalAirflow) -> list[dict[str, str]]:
    """What went with the updates of our asset, in order."""
    found = rows(airflow, "SELECT e.extra FROM asset_event e JOIN asset a ON a.id = e.asset_id "
                          "WHERE a.name = 'hindsight_composite_events' ORDER BY e.id")  # fmt: skip
    return [json.loads(extra) if isinstance(extra, str) else extra for (extra,) in found]
