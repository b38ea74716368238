"""The DAGs run by `airflow dags test`: a real Airflow, Spark by spark-submit, Delta tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs import tables
from jobs.staging import staged_matches
from tests.airflow.conftest import DAY_S, QUERIES, MakeAirflow, announced, states
from tests.jobs.shop import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

DONE = ("success", 1)


def test_a_scheduled_day_is_prepared_mined_validated_and_published(
    spark: SparkSession, tmp_path: Path, make_airflow: MakeAirflow
) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=80, span_s=DAY_S - 10, queries=QUERIES)
    airflow = make_airflow(shop)
    log = airflow.command("dags", "test", "hindsight_mine", "2026-01-02").stdout
    assert states(airflow) == dict.fromkeys(("plan", "prepare", "mine", "validate", "publish"), DONE), log[-5000:]
    expected = shop.expected()
    found = expected.total()
    assert shop.published(spark) == expected
    for count in (r"checked 81 rows of raw", rf"read \d+ events, sent \d+ to \d+ engine calls, found {found} matches",
                  rf"checked {found} staged matches", rf"published {found} matches of 3 queries"):  # fmt: skip
        assert re.search(count, log), f"no task's log says {count!r}"
    assert "--master local[2]" in log  # what the connection says
    assert announced(airflow) == [{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "queries": ""}]
    run = tables.read(spark, shop.settings, "runs").collect()
    assert [(r["outcome"], sum(r["matches"].values())) for r in run] == [("published", found)]
    checked = tables.read(spark, shop.settings, "quality_results").where(f"run_id = '{run[0]['run_id']}'")
    assert {r["stage"] for r in checked.select("stage").distinct().collect()} == {"input", "output"}
    written = [file for file in airflow.home.rglob("*") if file.is_file()]
    assert len(written) > 1
    assert not [file for file in written if airflow.secret.encode() in file.read_bytes()], "a secret is in a file"


def test_a_failed_validation_stops_before_publish_and_is_not_tried_again(
    spark: SparkSession, tmp_path: Path, make_airflow: MakeAirflow
) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=80, span_s=DAY_S - 10, queries=QUERIES)
    (tmp_path / "shop/conf/quality.yaml").write_text(
        "outputs: {queries: {pair: {most: 0}}, levels: {matches_per_query: error}}\n"
    )
    airflow = make_airflow(shop)
    done = airflow.command("dags", "test", "hindsight_mine", "2026-01-02", check=False)
    assert states(airflow) == {
        "plan": DONE, "prepare": DONE, "mine": DONE, "validate": ("failed", 1), "publish": ("upstream_failed", 0),
    }, done.stdout[-5000:]  # fmt: skip
    assert "hindsight ended with code 3" in done.stdout
    assert tables.read(spark, shop.settings, "composite_events").count() == 0
    assert announced(airflow) == []
    assert {r["outcome"] for r in tables.read(spark, shop.settings, "runs").collect()} == {"refused"}
    staged = list((tmp_path / "shop/lake/staging").iterdir())
    assert len(staged) == 1
    assert staged_matches(spark, shop.settings, staged[0].name).count() == shop.expected().total()


def test_a_backfill_is_one_task_per_chunk_and_the_table_is_that_of_one_run(
    spark: SparkSession, tmp_path: Path, make_airflow: MakeAirflow
) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=120, span_s=2 * DAY_S - 10, queries=QUERIES)
    airflow = make_airflow(shop)
    params = {"from": "2026-01-01", "to": "2026-01-03", "chunk": "1 day"}
    log = airflow.command("dags", "test", "hindsight_backfill", "2026-01-05", "--conf", json.dumps(params)).stdout
    assert states(airflow) == dict.fromkeys(("plan", "backfill[0]", "backfill[1]"), DONE), log[-5000:]
    assert shop.published(spark) == shop.expected()
    assert [(e["from"], e["to"]) for e in announced(airflow)] == [
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"), ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"),
    ]  # fmt: skip
    assert re.search(r"1 chunks: 1 mined, 0 had their results already; \d+ events sent to the engine", log)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("dag", "params", "told"),
    [("hindsight_mine", {"queries": ["pear"]}, "pear"),
     ("hindsight_backfill", {"from": "2026-01-03", "to": "2026-01-01"}, "from before to"),
     ("hindsight_backfill", {"from": "2026-01-03", "to": "2026-01-04", "chunk": "often"}, "chunk"),
     ("hindsight_maintain", {"retain_days": 1}, "retain_days")],
)  # fmt: skip
def test_wrong_parameters_are_refused_before_spark_starts(
    spark: SparkSession, tmp_path: Path, make_airflow: MakeAirflow, dag: str, params: dict[str, object], told: str
) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=5, queries=QUERIES)
    airflow = make_airflow(shop)
    done = airflow.command("dags", "test", dag, "2026-01-05", "--conf", json.dumps(params), check=False)
    assert told in done.stdout
    assert "Spark-Submit cmd" not in done.stdout
    assert "success" not in {state for state, _ in states(airflow).values()}
    assert states(airflow).get("plan", ("failed", 1)) == ("failed", 1)
