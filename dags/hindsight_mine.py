"""
### hindsight_mine: one range of history, mined, checked and published

| task | what it does | run again |
|---|---|---|
| `plan` | the range: from the parameters, else the data interval, else the input assets | the same |
| `prepare` | checks the input tables, sets bad rows aside, pins the tables' versions | replaces its results |
| `mine` | finds the matches and leaves them in staging | replaces the staging |
| `validate` | checks the staged matches; an error stops here and the staging is kept | replaces its results |
| `publish` | replaces the range in `composite_events` in one commit, announces the asset | changes nothing |

Wrong parameters are refused by `plan`, before Spark starts. The asset is `hindsight_composite_events`.

Scheduled by time (`HINDSIGHT_SCHEDULE`, by default daily at 00:00 UTC; the mined range is the data interval) or by
updates of the input tables (`HINDSIGHT_SCHEDULE=assets` with `HINDSIGHT_ASSETS`; docs/airflow.md says which range is
mined then). Airflow's own backfill gives the same table as one run:
`airflow backfill create --dag-id hindsight_mine --from-date 2026-01-01 --to-date 2026-01-03 --max-active-runs 1`.

One run at a time: queries that CONSUME start from the state that the run before has left. Results: tables
`composite_events`, `runs`, `quality_results`, `quarantine`; each task's log has the counts.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, CronDataIntervalTimetable, Param, chain, dag, get_current_context, task
from hindsight_tasks import COMPOSITE_EVENTS, DEFAULTS, TAGS, HindsightOperator, refused_at_once

PLANNED = "{{ ti.xcom_pull(task_ids='plan')['%s'] }}"
MOMENT = {"type": ["null", "string"], "pattern": r"^\d{4}-\d{2}-\d{2}([T ].*)?$"}


def schedule() -> Any:
    given = os.environ.get("HINDSIGHT_SCHEDULE", "0 0 * * *")
    if given == "assets":
        return [Asset(name.strip()) for name in os.environ["HINDSIGHT_ASSETS"].split(",")]
    return CronDataIntervalTimetable(given, timezone="UTC")


def announce(context: Any, _: Any) -> None:
    """What was published goes with the asset's event: a DAG that it starts can mine or read just that range."""
    planned = context["ti"].xcom_pull(task_ids="plan")
    context["outlet_events"][COMPOSITE_EVENTS].extra = {key: planned[key] for key in ("from", "to", "queries")}


@dag(
    dag_id="hindsight_mine",
    schedule=schedule(),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(days=1),
    default_args=DEFAULTS,
    tags=TAGS,
    doc_md=__doc__,
    params={
        "from": Param(None, **MOMENT, description="start of the range, instead of the data interval's"),
        "to": Param(None, **MOMENT, description="its end, exclusive"),
        "queries": Param([], type="array", items={"type": "string"}, description="ids; none: all enabled ones"),
        "lookback": Param("1 day", type="string", description="how far back a run goes that assets have started"),
    },
)
def hindsight_mine() -> None:
    @task(inlets=[COMPOSITE_EVENTS], doc_md="The range that this run mines, and its run id.")
    def plan(params: dict[str, Any]) -> dict[str, str]:
        from jobs.schedule import check_queries, plan_run

        context = get_current_context()
        run = context["dag_run"]
        interval = (run.data_interval_start, run.data_interval_end) if run.data_interval_start else None
        updates = [event.extra for events in context["triggering_asset_events"].values() for event in events]
        published = [event.extra for event in context["inlet_events"][COMPOSITE_EVENTS].ascending(False).limit(100)]
        with refused_at_once():
            check_queries(params)
            return plan_run(run.run_id, run.run_after, interval, params, updates, published)

    span = ["--from", PLANNED % "from", "--to", PLANNED % "to", "--queries", PLANNED % "queries"]
    named = ["--run-id", PLANNED % "run_id"]
    prepare = HindsightOperator(
        task_id="prepare", application_args=["prepare", *span, *named], doc_md="Checks the inputs of the range."
    )
    mine = HindsightOperator(
        task_id="mine", application_args=["mine", "--stage", *span, *named], doc_md="Mines the range into staging."
    )
    validate = HindsightOperator(
        task_id="validate", application_args=["validate", PLANNED % "run_id"], doc_md="Checks the staged matches."
    )
    publish = HindsightOperator(
        task_id="publish", application_args=["publish", PLANNED % "run_id"], doc_md="Publishes them in one commit.",
        outlets=[COMPOSITE_EVENTS], post_execute=announce,
    )  # fmt: skip
    chain(plan(), prepare, mine, validate, publish)  # type: ignore[call-arg]


hindsight_mine()
