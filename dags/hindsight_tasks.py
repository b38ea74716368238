"""What the DAGs of Hindsight share: how one command becomes a Spark task, and the defaults of every task.

No DAG is in here. Nothing is read when this is imported but a few environment variables:

| variable | meaning | default |
|---|---|---|
| `HINDSIGHT_SCHEDULE` | cron of `hindsight_mine`, or `assets` | `0 0 * * *` |
| `HINDSIGHT_ASSETS` | names of the input assets, with commas, for `assets` | |
| `HINDSIGHT_SPARK_CONN` | the Airflow connection of the Spark to use | `spark_default` |
| `HINDSIGHT_PY_FILES` | the package for a cluster's executors (`python -m jobs.package`) | |
| `HINDSIGHT_DRIVER_MEMORY` | memory of a task's Spark driver | `2g` |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException

JOBS = Path(__file__).resolve().parents[1] / "jobs"
QUIET_LOG = (JOBS / "log4j2.properties").as_uri()
COMPOSITE_EVENTS = Asset(name="hindsight_composite_events", uri="hindsight://composite_events")

DEFAULTS = {
    "owner": "hindsight",
    "retries": 2,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=6),
}
TAGS = ["hindsight", "composite events"]


class HindsightOperator(SparkSubmitOperator):
    """`hindsight <application_args>` by spark-submit. What cannot succeed by trying again is not tried again."""

    def __init__(self, **options: Any) -> None:
        command = options.get("task_id", "")
        super().__init__(**{
            "name": f"hindsight {command}",
            "conn_id": os.environ.get("HINDSIGHT_SPARK_CONN", "spark_default"),
            "application": str(JOBS / "submit.py"),
            "py_files": os.environ.get("HINDSIGHT_PY_FILES") or None,
            "driver_memory": os.environ.get("HINDSIGHT_DRIVER_MEMORY", "2g"),
            # Spark's own lines would bury the counts in the task's log.
            "conf": {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET_LOG}"},
            "durable": False,  # a retry submits anew: every command replaces what the attempt before left
            **options,
        })  # fmt: skip

    def execute(self, context: Any) -> None:
        from jobs.exit_codes import FINAL, MEANING

        try:
            super().execute(context)
        except AirflowException as error:
            ended = re.search(r"Error code is: (\d+)", str(error))
            code = int(ended[1]) if ended else None
            if code in FINAL:
                raise AirflowFailException(f"hindsight ended with code {code}: {MEANING[code]}") from error
            raise


@contextmanager
def refused_at_once() -> Iterator[None]:
    """Wrong parameters fail a task without retries."""
    from cep_core.errors import HindsightError

    try:
        yield
    except HindsightError as error:
        raise AirflowFailException(str(error)) from error
