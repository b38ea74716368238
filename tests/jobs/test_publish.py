"""Publishing: one commit, nothing half, nothing twice, and a clear loser."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cep_core.errors import PublishError
from jobs import tables
from jobs.commit import write_frame
from jobs.coverage import covered
from jobs.mine import mine, stage_run
from jobs.publish import publish_run
from jobs.runs import Manifest, Request, reconcile, write_manifest
from jobs.staging import stage_files, staged_files, staged_matches
from tests.jobs.shop import T0, S, Shop, make_shop, write_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s",
    "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used",
}


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return make_shop(spark, tmp_path, events=80, span_s=120, queries=QUERIES)


@pytest.mark.core
def test_coverage_is_by_version_and_the_newest_counts() -> None:
    spans = [(0, 10, "a"), (10, 20, "a"), (5, 8, "b")]
    assert covered(spans, "a", 10, 20)
    assert covered(spans, "a", 8, 20)
    assert not covered(spans, "a", 4, 9)
    assert covered(spans, "b", 5, 8)
    assert not covered(spans, "a", 15, 21)
    assert covered([*spans, (0, 20, "a")], "a", 4, 9)


@pytest.mark.spark
def test_repeating_a_run_or_a_publish_changes_nothing(spark: SparkSession, shop: Shop) -> None:
    manifest = mine(spark, shop.settings, Request(T0, shop.end_us))
    version = tables.version(spark, shop.settings, "composite_events")
    publish_run(spark, shop.settings, manifest.run_id)
    assert tables.version(spark, shop.settings, "composite_events") == version
    mine(spark, shop.settings, Request(T0, shop.end_us))
    assert shop.published(spark) == shop.expected()


@pytest.mark.spark
def test_of_two_runs_over_the_same_range_one_wins_and_the_other_says_so(spark: SparkSession, shop: Shop) -> None:
    first = stage_run(spark, shop.settings, Request(T0, T0 + 60 * S))
    second = stage_run(spark, shop.settings, Request(T0 + 30 * S, T0 + 90 * S))
    outcome: dict[str, str] = {}

    def publish(run_id: str) -> None:
        try:
            publish_run(spark, shop.settings, run_id)
            outcome[run_id] = "published"
        except PublishError as error:
            outcome[run_id] = str(error)

    threads = [threading.Thread(target=publish, args=(m.run_id,)) for m in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = next(run_id for run_id, text in outcome.items() if text == "published")
    loser = next(run_id for run_id in outcome if run_id != winner)
    assert f"run {winner} published" in outcome[loser]
    assert "its result stands" in outcome[loser]
    rows = tables.read(spark, shop.settings, "composite_events").select("run_id").distinct().collect()
    assert [row["run_id"] for row in rows] == [winner]
    recorded = {row["run_id"]: row["outcome"] for row in tables.read(spark, shop.settings, "runs").collect()}
    assert recorded == {winner: "published", loser: "superseded"}


@pytest.mark.spark
def test_runs_over_different_ranges_at_once_both_land(spark: SparkSession, shop: Shop) -> None:
    edges = [T0, T0 + 30 * S, T0 + 60 * S, shop.end_us]
    staged = [stage_run(spark, shop.settings, Request(a, b)) for a, b in pairwise(edges)]
    errors: list[Exception] = []

    def publish(run_id: str) -> None:
        try:
            publish_run(spark, shop.settings, run_id)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=publish, args=(m.run_id,)) for m in staged]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert shop.published(spark) == shop.expected()


@pytest.mark.spark
def test_a_staging_that_is_not_what_the_run_wrote_is_refused(spark: SparkSession, shop: Shop) -> None:
    manifest = stage_run(spark, shop.settings, Request(T0, shop.end_us))
    files = staged_files(spark, shop.settings, manifest.run_id)
    again = write_frame(spark, shop.settings, staged_matches(spark, shop.settings, manifest.run_id).limit(1))
    stage_files(spark, shop.settings, manifest.run_id, [*files, *again])
    with pytest.raises(PublishError, match=r"it holds \d+ matches, but the run found \d+\. Nothing was published"):
        publish_run(spark, shop.settings, manifest.run_id)
    assert tables.read(spark, shop.settings, "composite_events").count() == 0


@pytest.mark.spark
def test_a_run_that_died_after_its_commit_is_recorded_by_the_next(spark: SparkSession, shop: Shop) -> None:
    manifest = mine(spark, shop.settings, Request(T0, shop.end_us))
    tables.open_table(spark, shop.settings, "runs").delete("true")
    assert reconcile(spark, shop.settings) == [manifest.run_id]
    assert reconcile(spark, shop.settings) == []
    row = tables.read(spark, shop.settings, "runs").collect()[0]
    assert (row["run_id"], row["outcome"], row["matches"]) == (manifest.run_id, "published", manifest.matches)


@pytest.mark.spark
def test_a_run_that_is_mined_again_under_its_id_has_a_row_of_each_time(spark: SparkSession, shop: Shop) -> None:
    """As a scheduler does when a run is cleared after a change of the catalogue."""
    request = Request(T0, shop.end_us, run_id="day1")
    first = mine(spark, shop.settings, request)
    write_queries(Path(shop.settings.project), {**shop.queries, "single": "PATTERN C(x = 2) c"})
    second = mine(spark, shop.settings, request)
    assert first.query_versions != second.query_versions
    publish_run(spark, shop.settings, "day1")  # repeated: nothing changes
    runs = tables.read(spark, shop.settings, "runs").orderBy("started_at").collect()
    assert [(row["run_id"], row["query_versions"]) for row in runs] == [
        ("day1", first.query_versions), ("day1", second.query_versions)
    ]  # fmt: skip
    tables.open_table(spark, shop.settings, "runs").delete(f"started_at = TIMESTAMP'{runs[1]['started_at']}'")
    assert reconcile(spark, shop.settings) == ["day1"]
    newest = tables.read(spark, shop.settings, "runs").orderBy("started_at").collect()[-1]
    assert newest["query_versions"] == second.query_versions


@pytest.mark.spark
def test_a_run_that_is_mined_again_and_finds_the_same_changes_nothing(spark: SparkSession, shop: Shop) -> None:
    """As a demo does that is run twice, and a scheduler when a task is repeated."""
    request = Request(T0, shop.end_us, run_id="day1")
    mine(spark, shop.settings, request)
    version = tables.version(spark, shop.settings, "composite_events")
    runs = tables.read(spark, shop.settings, "runs").collect()
    told: list[str] = []
    mine(spark, shop.settings, request, say=told.append)
    assert any("has published the same" in line for line in told)
    assert tables.version(spark, shop.settings, "composite_events") == version
    assert tables.read(spark, shop.settings, "runs").collect() == runs
    tables.open_table(spark, shop.settings, "composite_events").delete("query_id = 'used'")
    mine(spark, shop.settings, request)  # what the table has lost comes back
    assert shop.published(spark) == shop.expected()


@pytest.mark.spark
def test_a_manifest_survives_its_way_through_staging(spark: SparkSession, shop: Shop) -> None:
    from jobs.runs import read_manifest

    manifest = Manifest("r1", 1, 2, {"q": "v"}, {"t": 3}, 4, 5, 6, 7, 8, {"q": 9}, {"mine": 1.5})
    write_manifest(spark, shop.settings, manifest)
    assert read_manifest(spark, shop.settings, "r1") == manifest


@pytest.mark.spark
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.heavy)])
def test_killed_anywhere_the_table_is_whole_and_the_next_run_finishes(
    spark: SparkSession, shop: Shop, kills: int
) -> None:
    """SIGKILL at random moments. Every victim mines the same range, so the rows differ by their run alone: at any time
    all of them must be of one run, and no match may be missing or twice."""
    expected = shop.expected()
    folder = str(shop.settings.project)
    seen = {mine(spark, shop.settings, Request(T0, shop.end_us)).run_id}
    draw = random.Random(7)
    waiting = _victim(folder, shop)
    with waiting:  # one that is not killed says how long a run takes, so that the kills fall on all of it
        began = _go(waiting)
        waiting.wait()
        whole_run = time.monotonic() - began
    waiting = _victim(folder, shop)
    progress = []
    for number in range(kills):
        victim = waiting
        with victim:
            began = _go(victim)
            waiting = _victim(folder, shop) if number < kills - 1 else victim
            # the last third of a run is the publishing: half of the kills go there
            moment = began + whole_run * (draw.uniform(0.6, 1.1) if number % 2 else draw.uniform(0.0, 0.7))
            while time.monotonic() < moment and victim.poll() is None:
                time.sleep(0.02)
            os.killpg(victim.pid, signal.SIGKILL)
            assert victim.stdout is not None
            said = victim.stdout.read()
        progress.append("published" if "published" in said else "staged" if "engine calls" in said else "mining")
        assert shop.published(spark) == expected
        rows = tables.read(spark, shop.settings, "composite_events").select("run_id").distinct().collect()
        assert len(rows) == 1, rows
        seen.add(rows[0]["run_id"])
    assert kills < 10 or {"mining", "staged"} <= set(progress), progress
    last = mine(spark, shop.settings, Request(T0, shop.end_us))
    assert shop.published(spark) == expected
    recorded = tables.read(spark, shop.settings, "runs").where("outcome = 'published'").select("run_id").collect()
    assert seen | {last.run_id} <= {row["run_id"] for row in recorded}
    print(f"a run took {whole_run:.1f} s; killed while: {progress}; runs that landed: {len(seen)}")


def _go(victim: subprocess.Popen[str]) -> float:
    """Waits until the victim has its Spark, lets it run, and says when."""
    assert victim.stdout is not None
    assert victim.stdin is not None
    while (line := victim.stdout.readline().strip()) != "ready":
        assert line or victim.poll() is None, "the victim died before its run"
    victim.stdin.write("go\n")
    victim.stdin.flush()
    return time.monotonic()


def _victim(folder: str, shop: Shop) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.victim", folder, str(T0), str(shop.end_us)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=root, env=environment,
        start_new_session=True,
    )  # fmt: skip
