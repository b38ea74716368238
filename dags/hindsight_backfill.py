"""
### hindsight_backfill: a long range of history in chunks

| parameter | meaning |
|---|---|
| `from`, `to` | the range of detection times, `to` exclusive |
| `chunk` | the length of a chunk, such as `1 day` or `1 week`; one Spark task each |
| `queries` | ids; none: all enabled ones |
| `again` | mine also what has results |

`plan` refuses wrong parameters before Spark starts and cuts the range; `backfill` is mapped over the chunks. A chunk is
mined only for those queries whose version has no published results there, so a backfill can be repeated or cleared
at will, and after a change of the catalogue it mines new and changed queries alone. Each chunk is checked (inputs and
matches) before it is published. Chunks run one after the other: queries that CONSUME need the chunk before.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param, dag, task
from hindsight_tasks import COMPOSITE_EVENTS, DEFAULTS, TAGS, HindsightOperator, refused_at_once

MOMENT = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ].*)?$"}
DURATION = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(s|min|hours?|days?|weeks?)\s*$"}


def announce(context: Any, _: Any) -> None:
    """The chunk's range goes with the asset's event."""
    given = context["task"].application_args
    values = {key: given[given.index(f"--{key}") + 1] for key in ("from", "to", "queries") if f"--{key}" in given}
    context["outlet_events"][COMPOSITE_EVENTS].extra = values


@dag(
    dag_id="hindsight_backfill",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    default_args=DEFAULTS,
    tags=TAGS,
    doc_md=__doc__,
    params={
        "from": Param(**MOMENT, description="start of the range, such as 2026-01-01"),
        "to": Param(**MOMENT, description="its end, exclusive"),
        "chunk": Param("1 day", **DURATION, description="the length of a chunk"),
        "queries": Param([], type="array", items={"type": "string"}, description="ids; none: all enabled ones"),
        "again": Param(False, type="boolean", description="mine also what has results"),
    },
)
def hindsight_backfill() -> None:
    @task(doc_md="Refuses wrong parameters, and cuts the range into chunks.")
    def plan(params: dict[str, Any]) -> list[list[str]]:
        from jobs.schedule import check_queries, plan_backfill

        with refused_at_once():
            check_queries(params)
            return plan_backfill(params)

    HindsightOperator.partial(
        task_id="backfill", max_active_tis_per_dag=1, outlets=[COMPOSITE_EVENTS], post_execute=announce,
        doc_md="Mines, checks and publishes one chunk.",
    ).expand(application_args=plan())  # type: ignore[call-arg]  # fmt: skip


hindsight_backfill()
