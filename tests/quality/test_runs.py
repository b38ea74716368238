"""Checks around real runs on real Delta tables: what blocks, what is recorded, what is set aside, where to read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pytest
import yaml

from cep_core.errors import QualityError
from jobs import tables
from jobs.mine import mine, stage_run
from jobs.publish import publish_run
from jobs.quality import check_inputs, check_outputs
from jobs.runs import Request, staging_path
from tests.jobs.shop import T0, S, Shop, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s RETURN a.x AS x",
    "calm": "PATTERN SEQ(A a, B b, !C c) WHERE [source] WITHIN 15 s SELECT recent",
    "on_pair": "PATTERN SEQ(pair p, C c) WHERE [source] WITHIN 40 s",
}


def configure(shop: Shop, content: dict[str, Any]) -> None:
    (shop.settings.project / "conf/quality.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def add_rows(spark: SparkSession, shop: Shop, *rows: tuple[Any, ...]) -> None:
    schema = "id string, src string, kind string, begins bigint, ends bigint, seq bigint, x bigint, user string"
    spark.createDataFrame(list(rows), schema).write.format("delta").mode("append").save(shop.settings.in_lake("raw"))


def results(spark: SparkSession, shop: Shop, condition: str = "true") -> dict[str, Any]:
    rows = tables.read(spark, shop.settings, "quality_results").where(condition).collect()
    return {f"{row['stage']}.{row['expectation']}" + (f".{row['column_name']}" if row["column_name"] else ""): row
            for row in rows}  # fmt: skip


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return make_shop(spark, tmp_path / "shop", queries=QUERIES, events=160)


def whole(shop: Shop, run_id: str) -> Request:
    return Request(T0, shop.end_us, run_id=run_id)


def test_a_good_run_is_checked_published_and_recorded_once(spark: SparkSession, shop: Shop) -> None:
    said: list[str] = []
    for _ in range(2):  # a repeated check replaces its results
        request = check_inputs(spark, shop.settings, whole(shop, "r1"), said.append)
        manifest = mine(spark, shop.settings, request,
                        validate=lambda m: check_outputs(spark, shop.settings, m, said.append))  # fmt: skip
    assert shop.published(spark) == shop.expected()
    found = results(spark, shop)
    assert len(found) == tables.read(spark, shop.settings, "quality_results").count()
    failed = {name for name, row in found.items() if not row["success"]}
    assert failed <= {"input.freshness"}
    assert found["input.source_not_null"]["rows_checked"] == len(shop.rows)
    assert found["output.members_in_order"]["rows_checked"] == manifest.found
    assert found["output.members_exist"]["rows_checked"] > 0
    assert found["output.schema.members"]["observed"] is None
    docs = Path(unquote(urlparse(json.loads(found["output.match_window"]["details"])["docs"]).path))
    assert docs.is_file()
    pages = [page.read_text(encoding="utf-8") for page in docs.parent.glob("validations/**/*.html")]
    assert any("match_window" in page for page in pages)
    assert any(str(docs) in line for line in said)


def test_bad_input_stops_the_run_before_mining_and_says_why(spark: SparkSession, shop: Shop) -> None:
    add_rows(spark, shop, ("bad", None, "A", T0, T0, None, 1, "u1"), ("odd", "s1", "A", T0 + S, T0, None, 1, "u1"))
    with pytest.raises(QualityError) as refused:
        check_inputs(spark, shop.settings, whole(shop, "r2"))
    for text in ("raw: source_not_null", "raw: start_before_end", "nothing was mined", "quarantine: true"):
        assert text in str(refused.value)
    assert results(spark, shop)["input.source_not_null"]["rows_failed"] == 1
    run = tables.read(spark, shop.settings, "runs").collect()[0]
    assert (run["run_id"], run["outcome"]) == ("r2", "refused")


def test_quarantine_sets_bad_rows_aside_counts_them_and_mines_the_rest(spark: SparkSession, shop: Shop) -> None:
    configure(shop, {"tables": {"raw": {"quarantine": True}}})
    add_rows(
        spark, shop, (None, "s1", "A", T0, T0, None, 1, "u1"), ("odd", "s1", "A", T0 + S, T0, None, 1, "u1"),
        ("timeless", "s1", "B", None, None, None, 1, "u1"),
    )  # fmt: skip
    said: list[str] = []
    request = check_inputs(spark, shop.settings, whole(shop, "r3"), said.append)
    mine(spark, shop.settings, request, validate=lambda m: check_outputs(spark, shop.settings, m))
    assert shop.published(spark) == shop.expected()  # those rows took no part
    aside = tables.read(spark, shop.settings, "quarantine").collect()
    assert sorted(tuple(row["reasons"]) for row in aside) == [
        ("event_id_not_null",), ("start_before_end",), ("times_not_null",),
    ]  # fmt: skip
    assert {json.loads(row["row"])["src"] for row in aside} == {"s1"}
    assert any(line.startswith("3 rows of raw are in quarantine") for line in said)
    found = results(spark, shop)["input.times_not_null"]
    assert (found["success"], found["level"], found["rows_failed"]) == (False, "warning", 1)


def test_bad_matches_stop_before_publishing_and_staging_is_kept(spark: SparkSession, shop: Shop) -> None:
    manifest = stage_run(spark, shop.settings, whole(shop, "r4"))
    path = staging_path(shop.settings, "r4", "matches")
    rows = spark.read.parquet(path)
    spoiled = rows.withColumn("query_version", rows.run_id)
    spoiled.write.mode("overwrite").parquet(f"{path}-spoiled")
    spark.read.parquet(f"{path}-spoiled").write.mode("overwrite").parquet(path)
    with pytest.raises(QualityError, match="query_version_known"):
        check_outputs(spark, shop.settings, manifest)
    assert tables.read(spark, shop.settings, "composite_events").count() == 0
    assert spark.read.parquet(path).count() == manifest.found
    outcome = tables.read(spark, shop.settings, "runs").where("run_id = 'r4'").collect()[0]
    assert outcome["outcome"] == "refused"
    assert "its staging is kept" in outcome["message"]


def test_a_warning_is_recorded_and_does_not_stand_in_the_way(spark: SparkSession, shop: Shop) -> None:
    configure(shop, {"outputs": {"queries": {"pair": {"most": 1}}}, "defaults": {"levels": {"freshness": "off"}}})
    manifest = stage_run(spark, shop.settings, whole(shop, "r5"))
    said: list[str] = []
    check_outputs(spark, shop.settings, manifest, said.append)
    assert publish_run(spark, shop.settings, "r5").found == manifest.found
    found = results(spark, shop)["output.matches_per_query"]
    assert (found["success"], found["level"], found["rows_failed"]) == (False, "warning", 1)
    assert any(line.startswith("warning: composite_events: matches_per_query") for line in said)


def test_a_run_mines_the_versions_that_were_checked(spark: SparkSession, shop: Shop) -> None:
    request = check_inputs(spark, shop.settings, whole(shop, "r6"))
    add_rows(spark, shop, ("bad", "s1", "A", None, T0, None, 1, "u1"))  # between the check and the mining
    manifest = stage_run(spark, shop.settings, request)
    assert manifest.input_versions == {"raw": 0}
    publish_run(spark, shop.settings, "r6")
    assert shop.published(spark) == shop.expected()


def test_volume_is_held_against_earlier_runs(spark: SparkSession, shop: Shop) -> None:
    check_inputs(spark, shop.settings, whole(shop, "first"))
    more = [(f"n{n}", "s1", "A", T0 + n * S, T0 + n * S, None, 1, "u1") for n in range(400)]
    add_rows(spark, shop, *more)
    check_inputs(spark, shop.settings, whole(shop, "second"))
    first = results(spark, shop, "run_id = 'first'")["input.volume"]
    second = results(spark, shop, "run_id = 'second'")["input.volume"]
    assert (first["success"], second["success"]) == (True, False)
