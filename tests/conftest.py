"""What the tests share: one Spark for all of them, and a lake of its own for each.

Tests that use `spark` get its marker by themselves; those in the engine's and the language's folders get `core`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.settings import Settings

PROJECT = Path(__file__).resolve().parents[1]
_SPARK_FIXTURES = {"spark", "lake"}
_CORE_FOLDERS = {"engine", "language", "plan", "papers", "rules", "schemas"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marked = {mark.name for mark in item.iter_markers()}
        if _SPARK_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)
        elif _CORE_FOLDERS & set(item.path.parts) and not marked & {"spark", "airflow", "bench"}:
            item.add_marker(pytest.mark.core)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from the test alone, whatever the shell that started it has set."""
    for name in list(os.environ):
        if name.startswith("HINDSIGHT_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The one Spark session of a test run."""
    from jobs.session import SHORT_LIVED, spark_session

    settings = Settings(lake=str(tmp_path_factory.mktemp("lake")), master="local[2]", project=PROJECT)
    session = spark_session(settings, "hindsight tests", java_options=SHORT_LIVED)
    yield session
    session.stop()


@pytest.fixture
def lake(tmp_path: Path, spark: object) -> Settings:
    """Settings of an empty project of its own, with its lake, for tests that write tables."""
    for folder in ("lake", "conf/events", "conf/queries"):
        (tmp_path / folder).mkdir(parents=True)
    return Settings(lake="lake", master="local[2]", project=tmp_path)
