"""
### hindsight_maintain: compaction and retention of our own tables

Weekly: OPTIMIZE on every table of Hindsight, VACUUM of the files that no version of the last `retain_days` needs, and
removal of stagings and Data Docs older than that. The input tables are never touched. `retain_days` is 30 by default
and cannot be less than 7: a run or a reader that is under way may still need younger files. `dry_run` only says what
would go.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, dag, task
from hindsight_tasks import DEFAULTS, TAGS, HindsightOperator, refused_at_once


@dag(
    dag_id="hindsight_maintain",
    schedule=CronTriggerTimetable("0 3 * * 0", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=TAGS,
    doc_md=__doc__,
    params={
        "retain_days": Param(30, type="integer", minimum=7, description="keep this long"),
        "dry_run": Param(False, type="boolean", description="say what would go, and change nothing"),
    },
)
def hindsight_maintain() -> None:
    @task(doc_md="Refuses a retention that is too short.")
    def plan(params: dict[str, Any]) -> list[str]:
        from jobs.schedule import plan_maintenance

        with refused_at_once():
            return plan_maintenance(params)

    HindsightOperator(
        task_id="maintain", application_args=plan(),  # type: ignore[call-arg]
        doc_md="Compacts, vacuums, and removes old stagings.",
    )  # fmt: skip


hindsight_maintain()
