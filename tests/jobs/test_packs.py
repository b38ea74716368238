"""Packs: mining from them finds the same, and they never go stale unnoticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobs.distribute
import jobs.packs
from jobs.catalogue import load_workload
from jobs.mine import mine
from jobs.packs import current_packing, refresh_packs
from jobs.runs import Request
from jobs.touched import touched_files
from tests.jobs.shop import QUERIES, T0, S, Shop, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400 * S
NAMES = ("pair", "quiet", "anywhere", "by_user")  # by source twice, without a key, and by a key that packs do not serve


@pytest.mark.spark
def test_runs_from_packs_find_the_same_whatever_happens_to_the_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.distribute, "SMALL_CALL_ROWS", 20)
    monkeypatch.setattr(jobs.packs, "EVENTS_OF_A_RANGE", 30)
    monkeypatch.setattr(jobs.packs, "EVENTS_OF_A_PACK", 5)
    queries = {name: QUERIES[name] for name in NAMES}
    shop = make_shop(spark, tmp_path, events=90, span_s=5 * 86_400, queries=queries, packs=True, rows_per_call=40)
    shop = crowded(spark, shop, tmp_path)
    raw = str(tmp_path / "lake/raw")
    said = run(spark, shop)
    assert any("mined from packs" in line for line in said)
    assert any("packed all events" in line for line in said)
    assert shop.published(spark) == shop.expected()

    late = tuple((f"late{n}", "s1", kind, T0 + 2 * DAY + n * S, T0 + 2 * DAY + n * S, None, n, "u1")
                 for n, kind in enumerate("ABAB"))  # fmt: skip
    append(spark, raw, late)
    shop = replace(shop, rows=(*shop.rows, *late))
    said = run(spark, shop)
    assert any("packed 1 stretches" in line for line in said), said
    assert shop.published(spark) == shop.expected()

    spark.sql(f"DELETE FROM delta.`{raw}` WHERE id IN ('late1', 'e5')")
    shop = replace(shop, rows=tuple(row for row in shop.rows if row[0] not in ("late1", "e5")))
    stale = replace(shop, settings=replace(shop.settings, packs=False))
    assert not any("packs" in line for line in run(spark, stale))  # they are of another version: the table is read
    assert shop.published(spark) == shop.expected()
    run(spark, shop)
    assert shop.published(spark) == shop.expected()
    assert run(spark, shop)[0].startswith("group")  # nothing left to pack


@pytest.mark.spark
def test_files_that_only_moved_are_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=10, span_s=10)
    table = load_workload(shop.settings).declarations.table("raw")
    raw = str(tmp_path / "lake/raw")
    append(spark, raw, [("new", "s1", "A", T0, T0, None, 1, "u")])
    found = touched_files(spark, shop.settings, table, 0, 1)
    assert found is not None
    assert (len(found.added), len(found.removed)) == (1, 0)
    spark.sql(f"OPTIMIZE delta.`{raw}`")
    moved = touched_files(spark, shop.settings, table, 1, 2)
    assert moved is not None
    assert not moved.added | moved.removed
    spark.sql(f"DELETE FROM delta.`{raw}` WHERE id = 'new'")
    assert touched_files(spark, shop.settings, table, 1, 3) is None  # moved, then changed: its old name is unknown
    assert touched_files(spark, shop.settings, table, 2, 3) is not None


@pytest.mark.spark
def test_rows_that_are_no_events_are_not_packed(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=10, span_s=10)
    append(spark, str(tmp_path / "lake/raw"), [("bad", "s1", "A", T0 + S, T0, None, 1, "u")])
    said: list[str] = []
    assert refresh_packs(spark, shop.settings, load_workload(shop.settings), said.append) is None
    assert "1 events have no event_id" in said[0]
    assert current_packing(spark, shop.settings) is None


def run(spark: SparkSession, shop: Shop) -> list[str]:
    said: list[str] = []
    mine(spark, shop.settings, Request(T0 - DAY, shop.end_us), say=said.append)
    return said


def append(spark: SparkSession, path: str, rows: object) -> None:
    schema = spark.read.format("delta").load(path).schema
    spark.createDataFrame(list(rows), schema).coalesce(1).write.format("delta").mode("append").save(path)  # type: ignore[call-overload]


def crowded(spark: SparkSession, shop: Shop, folder: Path) -> Shop:
    """More events, in bursts, so that the sparse days have matches too."""
    rows = []
    for day in range(5):
        for n in range(12):
            at, kind = T0 + day * DAY + n * S, "ABC"[n % 3 if n % 2 else (n + 1) % 3]
            rows.append((f"b{day}-{n}", f"s{n % 3}", kind, at, at, None, n % 5, f"u{n % 2}"))
    append(spark, str(folder / "lake/raw"), rows)
    return replace(shop, rows=(*shop.rows, *rows))
