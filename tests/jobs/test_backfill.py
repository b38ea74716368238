"""Backfill: chunks, resumed, new and changed queries only."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cep_core.errors import DeclarationError
from jobs import tables
from jobs.backfill import Progress, backfill, cut_range
from jobs.mine import mine
from jobs.runs import Manifest, Request
from tests.jobs.shop import T0, S, make_shop, write_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIR = "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s"
USED = "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used"


@pytest.mark.core
def test_chunks_start_at_multiples_of_their_length_and_cover_the_range() -> None:
    assert cut_range(5, 30, 10) == [(5, 10), (10, 20), (20, 30)]
    assert cut_range(10, 11, 10) == [(10, 11)]
    with pytest.raises(DeclarationError, match="from before to"):
        cut_range(5, 5, 10)
    with pytest.raises(DeclarationError, match="longer chunk"):
        cut_range(0, 10**9, 1)


@pytest.mark.core
def test_the_bar_shows_what_is_done_and_the_time_left() -> None:
    now = [0.0]
    screen = io.StringIO()
    bar = Progress(4, screen, lambda: now[0])
    now[0] = 30.0
    bar.done(Manifest("r0", 0, 1, {}, {}, 0, 0, matches={"p": 2}), whole=False)
    assert screen.getvalue() == "[........................] 0/4 chunks, 2 matches, 0:00:00 left\n"
    screen.truncate(screen.seek(0))
    bar.done(Manifest("r1", 0, 1, {}, {}, 0, 0, matches={"q": 1}))
    assert screen.getvalue() == "[######..................] 1/4 chunks, 3 matches, 0:01:30 left\n"


@pytest.mark.spark
def test_a_backfill_goes_on_where_it_was_and_mines_changed_queries_only(spark: SparkSession, tmp_path: Path) -> None:
    queries = {"pair": PAIR, "used": USED}
    shop = make_shop(spark, tmp_path, events=80, span_s=100, queries=queries)
    whole = Request(T0, T0 + 120 * S)
    mine(spark, shop.settings, Request(T0 + 60 * S, T0 + 120 * S))
    first = backfill(spark, shop.settings, whole, 60 * S, screen=io.StringIO())
    assert (first.chunks, first.skipped, len(first.published)) == (2, 1, 1)
    assert shop.published(spark) == shop.expected()
    again = backfill(spark, shop.settings, whole, 60 * S, screen=io.StringIO())
    assert (again.skipped, again.published) == (2, ())
    changed = {"pair": PAIR.replace("20 s", "10 s"), "used": USED}
    write_queries(tmp_path, changed)
    shop = type(shop)(shop.settings, shop.rows, changed)
    screen = io.StringIO()
    summary = backfill(spark, shop.settings, whole, 60 * S, parallel=2, screen=screen)
    assert [tuple(m.query_versions) for m in summary.published] == [("pair",), ("pair",)]
    assert "2/2 chunks" in screen.getvalue()
    assert f"{summary.matches} matches published" in summary.text()
    assert shop.published(spark) == shop.expected()
    assert tables.read(spark, shop.settings, "runs").count() == 4


@pytest.mark.spark
def test_results_of_older_tables_do_not_count_as_results(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=40, span_s=100, queries={"pair": PAIR})
    whole = Request(T0, T0 + 120 * S)
    raw = f"delta.`{tmp_path}/lake/raw`"
    before = replace(whole, versions=(("raw", 0),))
    spark.sql(f"DELETE FROM {raw} WHERE id = 'e1'")
    mine(spark, shop.settings, before)
    assert backfill(spark, shop.settings, before, 60 * S, screen=io.StringIO()).skipped == 2  # it goes on where it was
    summary = backfill(spark, shop.settings, whole, 60 * S, screen=io.StringIO())
    assert (summary.skipped, len(summary.published)) == (0, 2)
    assert shop.published(spark) == replace(shop, rows=tuple(r for r in shop.rows if r[0] != "e1")).expected()
    assert backfill(spark, shop.settings, whole, 60 * S, screen=io.StringIO()).skipped == 2
    assert backfill(spark, shop.settings, before, 60 * S, screen=io.StringIO()).skipped == 0
