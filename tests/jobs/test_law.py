"""The law: for any cut of a range into runs, in any order, repeated or not, the matches published are those of one."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobs.distribute
from cep_core.errors import StateError
from jobs import tables
from jobs.mine import mine, stage_run
from jobs.runs import Request
from tests.jobs.shop import T0, S, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.heavy]


@pytest.fixture
def many_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets and slices even for a few hundred events."""
    monkeypatch.setattr(jobs.distribute, "SMALL_CALL_ROWS", 20)


def test_one_run_finds_what_the_naive_meaning_finds(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path)
    manifest = mine(spark, shop.settings, Request(T0, shop.end_us))
    assert shop.published(spark) == shop.expected()
    assert all(count > 0 for count in manifest.matches.values()), manifest.matches
    row = tables.read(spark, shop.settings, "runs").collect()[0]
    assert (row["outcome"], row["rows_sent"], row["engine_calls"]) == (
        "published",
        manifest.rows_sent,
        manifest.engine_calls,
    )
    assert row["matches"] == manifest.matches
    assert row["input_versions"] == {"raw": 0}
    assert {"count", "mine", "publish"} <= set(row["seconds"])


@pytest.mark.parametrize("seed", [1, 2])
def test_any_cut_in_any_order_with_repeats(
    spark: SparkSession, tmp_path: Path, many_small_calls: None, seed: int
) -> None:
    draw = random.Random(seed)
    shop = make_shop(spark, tmp_path, events=160, span_s=300, seed=seed, rows_per_call=45)
    edges = sorted({T0, shop.end_us, *(draw.randrange(T0, shop.end_us) for _ in range(3))})
    runs = list(pairwise(edges))
    runs.append(runs[0])
    draw.shuffle(runs)
    calls = 0
    for start, end in runs:
        if draw.random() < 0.4:
            stage_run(spark, shop.settings, Request(start, end))  # mined, never published: as if it had died
        calls += mine(spark, shop.settings, Request(start, end)).engine_calls
    assert calls > len(runs)
    assert shop.published(spark) == shop.expected()


def test_a_run_without_its_state_says_which_range_must_run_first(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=60, span_s=100, queries={
        "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used"})  # fmt: skip
    middle = T0 + 50 * S
    first = min(row[4] for row in shop.rows)
    with pytest.raises(StateError, match=r"run 2026-01-01T00:00:.* to 2026-01-01T00:00:50Z first"):
        mine(spark, shop.settings, Request(middle, shop.end_us, recompute_state=False))
    assert first < middle
    mine(spark, shop.settings, Request(T0, middle))
    mine(spark, shop.settings, Request(middle, shop.end_us, recompute_state=False))
    assert shop.published(spark) == shop.expected()
    outcomes = [row["outcome"] for row in tables.read(spark, shop.settings, "runs").orderBy("started_at").collect()]
    assert outcomes == ["failed", "published", "published"]


def test_a_changed_past_removes_the_states_that_were_made_from_it(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=60, span_s=100, queries={
        "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used"})  # fmt: skip
    middle = T0 + 50 * S
    mine(spark, shop.settings, Request(T0, middle))
    mine(spark, shop.settings, Request(middle, shop.end_us))
    late = [(f"late{n}", f"s{n}", kind, T0 + at * S, T0 + at * S, None, 1, "u") for n in range(5)
            for kind, at in (("A", 40), )]  # fmt: skip
    late += [(f"later{n}", f"s{n}", "B", T0 + 45 * S, T0 + 45 * S, None, 1, "u") for n in range(5)]
    raw = str(tmp_path / "lake/raw")
    schema = spark.read.format("delta").load(raw).schema
    spark.createDataFrame(late, schema).write.format("delta").mode("append").save(raw)
    said: list[str] = []
    mine(spark, shop.settings, Request(T0, middle), say=said.append)
    assert any("the past of used has changed" in line for line in said)
    mine(spark, shop.settings, Request(middle, shop.end_us))
    now = type(shop)(shop.settings, (*shop.rows, *late), shop.queries)  # type: ignore[arg-type]
    assert shop.published(spark) == now.expected()
