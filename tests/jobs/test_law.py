"""The law: for any cut of a range into runs, in any order, repeated or not, the matches published are those of one."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import jobs.distribute
from cep_core.errors import EventError, LimitError, StateError
from jobs import tables
from jobs.calls import Answers, Work, shared_engine
from jobs.mine import mine, stage_run
from jobs.runs import Request
from tests.jobs.shop import QUERIES, T0, S, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# One query of each kind that is cut in another way: by source, postponed, without a key, and consuming.
KINDS = ("pair", "quiet", "anywhere", "used")
USED = {"used": QUERIES["used"]}


@pytest.fixture
def many_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets and slices even for a few hundred events."""
    monkeypatch.setattr(jobs.distribute, "SMALL_CALL_ROWS", 20)


@pytest.mark.heavy
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


@pytest.mark.parametrize(
    ("seed", "names", "events", "cuts"),
    [
        (3, KINDS, 70, 2),
        pytest.param(1, tuple(QUERIES), 160, 3, marks=pytest.mark.heavy),
        pytest.param(2, tuple(QUERIES), 160, 3, marks=pytest.mark.heavy),
    ],
)
def test_any_cut_in_any_order_with_repeats(
    spark: SparkSession, tmp_path: Path, many_small_calls: None, seed: int, names: tuple[str, ...], events: int,
    cuts: int,
) -> None:  # fmt: skip
    draw = random.Random(seed)
    queries = {name: QUERIES[name] for name in names}
    shop = make_shop(spark, tmp_path, events=events, span_s=2 * events, seed=seed, queries=queries, rows_per_call=45)
    edges = sorted({T0, shop.end_us, *(draw.randrange(T0, shop.end_us) for _ in range(cuts))})
    runs = list(pairwise(edges))
    runs.append(runs[0])
    draw.shuffle(runs)
    calls = 0
    for start, end in runs:
        if draw.random() < 0.3:
            stage_run(spark, shop.settings, Request(start, end))  # mined, never published: as if it had died
        calls += mine(spark, shop.settings, Request(start, end)).engine_calls
    assert calls > len(runs)
    found = shop.published(spark)
    assert found == shop.expected()
    assert {name for name, *_ in found} == set(names)


def test_a_hot_source_is_cut_in_time_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path, many_small_calls: None
) -> None:
    """A third of all events and more in one source, in calls that stay small."""
    queries = {name: QUERIES[name] for name in ("pair", "on_pair")}
    shop = make_shop(spark, tmp_path, events=300, span_s=3000, hot=0.3, queries=queries, rows_per_call=60)
    manifest = mine(spark, shop.settings, Request(T0, shop.end_us), engine=_small_calls_only)
    assert shop.published(spark) == shop.expected()
    assert manifest.engine_calls > 5
    assert manifest.rows_sent > manifest.rows_read  # the slices of the hot source overlap


def _small_calls_only(events: pa.Table, work: Work, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    if len(events) > 75:  # a bucket may be a quarter above the setting: cutting it would send more rows again
        raise EventError(f"{len(events)} events in one call")
    return shared_engine(events, work, start_us, end_us, state)


def test_a_query_with_too_many_answers_is_stopped_by_its_own_limit(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=60, span_s=60, queries={"pair": QUERIES["pair"]}, answers_per_partition=2)
    with pytest.raises(LimitError, match=r"pair.* more than 2 answers in partition"):
        mine(spark, shop.settings, Request(T0, shop.end_us))
    assert tables.read(spark, shop.settings, "composite_events").count() == 0
    (tmp_path / "conf/queries/shop.cep").unlink()
    entry = f"- id: pair\n  limit: 1000\n  query: {QUERIES['pair']}\n"
    (tmp_path / "conf/queries/shop.yaml").write_text(entry, encoding="utf-8")
    mine(spark, shop.settings, Request(T0, shop.end_us))
    assert shop.published(spark) == shop.expected()


def test_a_run_without_its_state_says_which_range_must_run_first(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=60, span_s=100, queries=USED)
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
    shop = make_shop(spark, tmp_path, events=60, span_s=100, queries=USED)
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
