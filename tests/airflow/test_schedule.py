"""What a scheduled run does, from what the scheduler knows of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cep_core.errors import DeclarationError, QueryError
from jobs.schedule import check_queries, plan_backfill, plan_maintenance, plan_run
from jobs.settings import load_settings

pytestmark = pytest.mark.core

NOON = datetime(2026, 1, 5, 12, 34, 56, 789, UTC)
DAY = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


def plan(params: dict[str, Any] | None = None, *, interval: Any = None, name: str = "r1", **events: Any) -> Any:
    return plan_run(name, NOON, interval, params or {}, **events)


def span(planned: dict[str, str]) -> tuple[str, str]:
    return planned["from"], planned["to"]


def test_the_data_interval_is_the_range() -> None:
    planned = plan(interval=DAY)
    assert span(planned) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
    assert planned["run_id"].startswith("20260101T000000Z_20260102T000000Z_")
    assert planned["queries"] == ""


def test_a_retry_has_the_same_run_id_and_another_run_or_choice_of_queries_another() -> None:
    first = plan(interval=DAY)
    assert plan(interval=DAY) == first
    assert plan(interval=DAY, name="r2")["run_id"] != first["run_id"]
    some = plan({"queries": ["b", "a ", "b"]}, interval=DAY)
    assert some["queries"] == "a,b"
    assert some["run_id"] != first["run_id"]


def test_parameters_win_over_the_interval() -> None:
    planned = plan({"from": "2026-02-01", "to": "2026-02-01T06:00:00+02:00"}, interval=DAY)
    assert span(planned) == ("2026-02-01T00:00:00Z", "2026-02-01T04:00:00Z")


@pytest.mark.parametrize(
    ("params", "told"),
    [({"from": "2026-02-01"}, "both"), ({"from": "2026-02-02", "to": "2026-02-01"}, "empty"),
     ({"from": "soon", "to": "2026-02-01"}, "'soon' is no time"), ({"lookback": "a while"}, "no duration")],
)  # fmt: skip
def test_wrong_parameters_are_refused(params: dict[str, Any], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        plan(params)


def test_updates_that_name_their_ranges_give_the_range() -> None:
    updates = [{"from": "2026-01-03", "to": "2026-01-04"}, {}, {"from": "2026-01-01", "to": "2026-01-02"}]
    assert span(plan(updates=updates)) == ("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z")


def test_updates_without_ranges_leave_no_stretch_out() -> None:
    assert span(plan(updates=[{}])) == ("2026-01-04T12:34:00Z", "2026-01-05T12:34:00Z")
    recent = [{"to": "2026-01-02"}, {"to": "2026-01-05T12:00:00Z"}]
    assert span(plan(updates=[{}], published=recent)) == ("2026-01-04T12:34:00Z", "2026-01-05T12:34:00Z")
    old = [{"to": "2026-01-02"}, {"to": "2026-01-01"}, {"to": "2026-01-05", "queries": "other"}, {}]
    assert span(plan(updates=[{}], published=old)) == ("2026-01-02T00:00:00Z", "2026-01-05T12:34:00Z")


def test_a_backfill_is_one_command_per_chunk() -> None:
    params = {"from": "2026-01-01T12:00:00Z", "to": "2026-01-03", "chunk": "1 day", "queries": ["b", "a"]}
    params = {**params, "again": True}
    assert plan_backfill(params) == [
        ["backfill", "--from", "2026-01-01T12:00:00Z", "--to", "2026-01-02T00:00:00Z", "--chunk", "1 day",
         "--queries", "a,b", "--again"],
        ["backfill", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-03T00:00:00Z", "--chunk", "1 day",
         "--queries", "a,b", "--again"],
    ]  # fmt: skip
    with pytest.raises(DeclarationError, match="longer chunk"):
        plan_backfill({**params, "chunk": "1 min"})
    with pytest.raises(DeclarationError, match="from before to"):
        plan_backfill({**params, "to": "2026-01-01"})


def test_maintenance_refuses_to_keep_too_little() -> None:
    assert plan_maintenance({"retain_days": 30}) == ["maintain", "--retain", "30 days"]
    assert plan_maintenance({"retain_days": 7, "dry_run": True})[-1] == "--dry-run"
    with pytest.raises(DeclarationError, match="6 days is too short"):
        plan_maintenance({"retain_days": 6})


def test_an_unknown_query_is_refused_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("conf/events", "conf/queries"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "conf/events/shop.yaml").write_text(
        "tables: {readings: {path: raw/readings}}\n"
        "events: [{table: readings, source: tag, time: at, event_id: id, classes: [Shelf]}]\n"
    )
    (tmp_path / "conf/queries/q.cep").write_text("QUERY alone\nPATTERN Shelf s\n")
    monkeypatch.setenv("HINDSIGHT_PROJECT", str(tmp_path))
    check_queries({"queries": ["alone"]})
    check_queries({})
    with pytest.raises(QueryError, match="alnoe"):
        check_queries({"queries": ["alnoe"]})


def test_the_variables_of_the_dags_are_no_misspelt_settings(tmp_path: Path) -> None:
    """A task's environment has them, and `hindsight` refuses a variable that looks like a mistaken setting."""
    names = ("SCHEDULE", "ASSETS", "SPARK_CONN", "PY_FILES", "DRIVER_MEMORY", "PROJECT")
    load_settings(environment={f"HINDSIGHT_{name}": str(tmp_path) for name in names})
