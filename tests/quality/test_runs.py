"""Checks around real runs on real Delta tables: what blocks, what is recorded, what is set aside, where to read it."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pytest
import yaml

from cep_core.errors import EventError, QualityError
from jobs import tables
from jobs.mine import mine, stage_run
from jobs.publish import publish_run
from jobs.quality import check_inputs, check_outputs
from jobs.runs import Prepared, Request, read_prepared, write_prepared
from jobs.staging import stage_files, stage_rows, staged_files, staged_matches
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that anything in this process asked for."""
    hosts: list[str] = []
    look_up = socket.getaddrinfo

    def watched(host: Any, *rest: Any, **named: Any) -> Any:
        hosts.append(str(host))
        return look_up(host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    return hosts


def test_a_good_run_is_checked_published_and_recorded_once(
    spark: SparkSession, shop: Shop, asked: list[str]
) -> None:
    said: list[str] = []
    request = check_inputs(spark, shop.settings, whole(shop, "r1"), said.append)
    add_rows(spark, shop, ("bad", "s1", "A", None, T0, None, 1, "u1"))  # after the check: the run does not read it
    manifest = stage_run(spark, shop.settings, request)
    assert manifest.input_versions == {"raw": 0}
    for _ in range(2):  # a repeated check replaces its results
        check_outputs(spark, shop.settings, manifest, said.append)
    manifest = publish_run(spark, shop.settings, "r1")
    assert manifest.seconds["check outputs"] > 0
    assert shop.published(spark) == shop.expected()
    found = results(spark, shop)
    assert len(found) == tables.read(spark, shop.settings, "quality_results").count()
    failed = {name for name, row in found.items() if not row["success"]}
    assert failed <= {"input.freshness"}
    assert found["input.source_not_null"]["rows_checked"] == len(shop.rows)
    assert found["output.members_in_order"]["rows_checked"] == manifest.found
    assert found["output.members_exist"]["rows_checked"] > 0
    assert found["output.schema.members"]["observed"].startswith("array<struct<element:string,")
    docs = Path(unquote(urlparse(json.loads(found["output.match_window"]["details"])["docs"]).path))
    assert docs.is_file()
    pages = [page.read_text(encoding="utf-8") for page in docs.parent.glob("validations/**/*.html")]
    assert any("match_window" in page for page in pages)
    assert any(str(docs) in line for line in said)
    assert set(asked) <= {"127.0.0.1", "localhost"}  # Great Expectations would report its use otherwise


def test_a_check_that_samples_says_so_in_its_row_and_in_the_log(spark: SparkSession, shop: Shop) -> None:
    said: list[str] = []

    def sampled(run_id: str, rows: int) -> set[str]:
        configure(shop, {"sample_rows": rows})
        said.clear()
        request = check_inputs(spark, shop.settings, whole(shop, run_id), said.append)
        check_outputs(spark, shop.settings, stage_run(spark, shop.settings, request), said.append)
        found = results(spark, shop, f"run_id = '{run_id}'")
        return {name for name, row in found.items() if "sampled" in json.loads(row["details"])}

    assert sampled("some", 20) == {"input.duplicate_rate", "output.members_exist"}
    told = [line for line in said if "looked at a sample" in line]
    assert [line.split(" looked")[0] for line in told] == ["raw: duplicate_rate", "composite_events: members_exist"]
    assert sampled("all", 0) == set()
    assert not [line for line in said if "looked at a sample" in line]


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
    with pytest.raises(EventError, match="hindsight prepare"):  # what nobody counted is not left out
        stage_run(spark, shop.settings, whole(shop, "unprepared"))
    said: list[str] = []
    request = check_inputs(spark, shop.settings, whole(shop, "r3"), said.append)
    prepared = read_prepared(spark, shop.settings, "r3")
    assert prepared is not None
    assert prepared.aside == {"raw": 3}
    mine(spark, shop.settings, request, validate=lambda m: check_outputs(spark, shop.settings, m))
    assert shop.published(spark) == shop.expected()  # those rows took no part
    aside = tables.read(spark, shop.settings, "quarantine").collect()
    assert sorted(tuple(row["reasons"]) for row in aside) == [
        ("event_id_not_null",), ("start_before_end",), ("times_not_null",),
    ]  # fmt: skip
    assert {json.loads(row["row"])["src"] for row in aside} == {"s1"}
    assert any(line.startswith("set aside 3 rows of raw: SELECT") for line in said)
    found = results(spark, shop)["input.times_not_null"]
    assert (found["success"], found["level"], found["rows_failed"]) == (False, "warning", 1)


def test_bad_matches_stop_before_publishing_and_staging_is_kept(spark: SparkSession, shop: Shop) -> None:
    manifest = stage_run(spark, shop.settings, whole(shop, "r4"))
    sound = staged_files(spark, shop.settings, "r4")
    rows = staged_matches(spark, shop.settings, "r4")
    stage_rows(spark, shop.settings, "r4", rows.withColumn("query_version", rows.run_id))
    with pytest.raises(QualityError, match="query_version_known"):
        check_outputs(spark, shop.settings, manifest)
    assert tables.read(spark, shop.settings, "composite_events").count() == 0
    assert staged_matches(spark, shop.settings, "r4").where("query_version = 'r4'").count() == manifest.found
    with pytest.raises(QualityError, match="hindsight validate r4"):
        publish_run(spark, shop.settings, "r4")
    outcome = tables.read(spark, shop.settings, "runs").where("run_id = 'r4'").collect()[0]
    assert outcome["outcome"] == "refused"
    assert "its staging is kept" in outcome["message"]
    stage_files(spark, shop.settings, "r4", sound)
    # corrected, it may be published; a warning is recorded and does not stand in the way
    configure(shop, {"outputs": {"queries": {"pair": {"most": 1}}}})
    said: list[str] = []
    check_outputs(spark, shop.settings, manifest, said.append)
    publish_run(spark, shop.settings, "r4")
    assert shop.published(spark) == shop.expected()
    found = results(spark, shop)["output.matches_per_query"]
    assert (found["success"], found["level"], found["rows_failed"]) == (False, "warning", 1)
    assert any(line.startswith("warning: composite_events: matches_per_query") for line in said)


def test_a_chunk_mines_the_versions_that_were_checked_for_the_whole(spark: SparkSession, shop: Shop) -> None:
    write_prepared(spark, shop.settings, "whole", Prepared({"raw": 0}, {}))
    add_rows(spark, shop, ("bad", "s1", "A", None, T0, None, 1, "u1"))
    chunk = Request(T0, shop.end_us, prepared="whole", queries=("pair",))
    assert stage_run(spark, shop.settings, chunk).input_versions == {"raw": 0}


def test_volume_is_held_against_earlier_runs(spark: SparkSession, shop: Shop) -> None:
    configure(shop, {"defaults": {"levels": {"volume": "error", "duplicate_rate": "off", "freshness": "off"}}})
    first = check_inputs(spark, shop.settings, whole(shop, "first"))
    more = [(f"n{n}", "s1", "A", T0 + n * S, T0 + n * S, None, 1, "u1") for n in range(400)]
    add_rows(spark, shop, *more)
    for run_id in ("second", "third"):  # what was refused is no measure for the next
        with pytest.raises(QualityError, match="raw: volume"):
            check_inputs(spark, shop.settings, replace(first, run_id=run_id))
    # another set of classes of the same table has its own history
    check_inputs(spark, shop.settings, replace(first, run_id="fourth", queries=("pair",)))
    volumes = {run: results(spark, shop, f"run_id = '{run}'")["input.volume"] for run in ("first", "third", "fourth")}
    assert {run: row["success"] for run, row in volumes.items()} == {"first": True, "third": False, "fourth": True}
    assert volumes["third"]["rows_checked"] == volumes["first"]["rows_checked"] + 400


def test_a_table_in_two_declarations_is_checked_and_set_aside_for_both(spark: SparkSession, shop: Shop) -> None:
    events = shop.settings.project / "conf/events/shop.yaml"
    first = yaml.safe_load(events.read_text(encoding="utf-8"))
    second = {**first["events"][0], "classes": {"C": {}}}
    first["events"][0]["classes"] = {"A": {}, "B": {}}
    events.write_text(yaml.safe_dump({**first, "events": [first["events"][0], second]}), encoding="utf-8")
    configure(shop, {"tables": {"raw": {"quarantine": True}}})
    add_rows(spark, shop, ("x", None, "A", T0, T0, None, 1, "u1"), ("y", None, "C", T0, T0, None, 1, "u1"))
    check_inputs(spark, shop.settings, whole(shop, "r8"))
    aside = tables.read(spark, shop.settings, "quarantine").collect()
    assert {(row["table_name"], row["event_id"]) for row in aside} == {("raw", "x"), ("raw (2)", "y")}
    rows = tables.read(spark, shop.settings, "quality_results").where("expectation = 'source_not_null'").collect()
    assert {row["table_name"]: row["rows_failed"] for row in rows} == {"raw": 1, "raw (2)": 1}
