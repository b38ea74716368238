"""Files of matches: what is in them, what is said of them, and what the table does with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cep_core.errors import PublishError, TableError
from jobs import tables
from jobs.commit import Snapshot, check_there, write_frame
from jobs.match_files import CONSTRAINTS, MATCH_ARROW, MatchFile, write_matches
from jobs.mine import mine, stage_run
from jobs.publish import publish_run
from jobs.runs import Request
from jobs.staging import stage_files, staged_files, staged_matches
from schemas import COMPOSITE_EVENTS
from tests.jobs.shop import T0, S, Shop, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400 * S
QUERIES = {"pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s", "single": "PATTERN C(x = 3) c"}


def match(number: int, query: str = "pair", at: int = T0, **changes: Any) -> dict[str, Any]:
    member = {"element": "a", "event_class": "A", "event_id": f"e{number}", "start_ts": at - S, "end_ts": at}
    row = {
        "query_id": query, "match_id": f"{number:032x}", "start_ts": at - S, "end_ts": at, "detection_ts": at,
        "members": [member], "fields": [("x", "1")], "source": "s1", "run_id": "r", "query_version": "v",
        "input_versions": [("raw", 0)],
    }  # fmt: skip
    return row | changes


def written(folder: Path, *rows: dict[str, Any]) -> list[MatchFile]:
    return list(write_matches(pa.Table.from_pylist(list(rows), MATCH_ARROW), str(folder)))


@pytest.mark.core
def test_a_file_holds_one_day_and_all_matches_are_in_one_file(tmp_path: Path) -> None:
    rows = [match(1), match(2, at=T0 + DAY), match(3, "single"), match(4, "single", at=T0 + DAY + 1, source=None)]
    files = written(tmp_path, *rows)
    assert [(file.day, file.rows, file.matches) for file in files] == [
        ("2026-01-01", 2, {"pair": 1, "single": 1}), ("2026-01-02", 2, {"pair": 1, "single": 1}),
    ]  # fmt: skip
    found = [row for file in files for row in pq.ParquetFile(tmp_path / file.path).read().to_pylist()]
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in rows)
    assert files[1].path.startswith("detection_date=2026-01-02/")
    assert (files[1].first_us, files[1].last_us) == (T0 + DAY, T0 + DAY + 1)
    assert files[1].size == (tmp_path / files[1].path).stat().st_size
    stats = files[1].stats
    assert stats["numRecords"] == 2
    assert stats["minValues"]["detection_ts"] == "2026-01-02T00:00:00.000Z"
    assert (stats["minValues"]["query_id"], stats["maxValues"]["query_id"]) == ("pair", "single")
    assert stats["nullCount"]["source"] == 1
    assert MatchFile.from_json(files[0].to_json()) == files[0]
    assert files[0].breaches == {}


@pytest.mark.core
def test_no_name_is_used_twice_and_no_match_is_no_file(tmp_path: Path) -> None:
    assert written(tmp_path) == []
    names = {file.path for _ in range(3) for file in written(tmp_path, match(1))}
    assert len(names) == 3


@pytest.mark.core
@pytest.mark.parametrize(
    ("constraint", "changes"),
    [
        ("not_null", {"query_version": None}),
        ("match_id_is_hash", {"match_id": "abc"}),
        ("starts_before_end", {"start_ts": T0 + 1}),
        ("known_after_end", {"detection_ts": T0 - 1}),
        ("has_members", {"members": []}),
    ],
)
def test_each_breach_of_the_contract_is_counted(tmp_path: Path, constraint: str, changes: dict[str, Any]) -> None:
    files = written(tmp_path, match(1, at=T0 + DAY // 2), match(2, at=T0, **changes))
    found: dict[str, int] = {}
    for file in files:
        for name, count in file.breaches.items():
            found[name] = found.get(name, 0) + count
    assert found == {constraint: 1}


@pytest.mark.core
def test_every_constraint_of_the_contract_is_counted() -> None:
    assert set(CONSTRAINTS) == {"not_null", *(constraint.name for constraint in COMPOSITE_EVENTS.constraints)}
    two_days = pa.Table.from_pylist([match(1), match(2, at=T0 + DAY)], MATCH_ARROW)
    assert CONSTRAINTS["date_of_detection"](two_days) == 1


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return make_shop(spark, tmp_path, events=80, span_s=120, queries=QUERIES)


def test_a_commit_replaces_rows_and_keeps_the_others_of_their_files(spark: SparkSession, shop: Shop) -> None:
    mine(spark, shop.settings, Request(T0, shop.end_us, run_id="whole"))
    before = Snapshot(spark, shop.settings)
    mine(spark, shop.settings, Request(T0 + 30 * S, T0 + 60 * S, run_id="part"))
    assert shop.published(spark) == shop.expected()
    found = tables.read(spark, shop.settings, "composite_events").selectExpr(
        "run_id", "unix_micros(detection_ts) AS at").collect()  # fmt: skip
    inside = {row["run_id"] for row in found if T0 + 30 * S <= row["at"] < T0 + 60 * S}
    outside = {row["run_id"] for row in found if not T0 + 30 * S <= row["at"] < T0 + 60 * S}
    assert (inside, outside) == ({"part"}, {"whole"})
    then = tables.read(spark, shop.settings, "composite_events", before.version)
    assert {row["run_id"] for row in then.select("run_id").distinct().collect()} == {"whole"}
    entry = tables.open_table(spark, shop.settings, "composite_events").history(1).collect()[0]
    assert (entry["operation"], json.loads(entry["userMetadata"])["run_id"]) == ("WRITE", "part")


def test_a_commit_on_an_old_snapshot_is_refused(spark: SparkSession, shop: Shop) -> None:
    """Also where the commit in between has not a single row."""
    tables.ensure_table(spark, shop.settings, COMPOSITE_EVENTS)
    old = Snapshot(spark, shop.settings)
    Snapshot(spark, shop.settings).swap([], "query_id = 'none'", ("2026-01-01", "2026-01-01"), "{}")
    with pytest.raises(Exception, match=r"[Cc]oncurrent"):
        old.swap([], "query_id = 'none'", ("2026-01-01", "2026-01-01"), "{}")


def test_files_that_break_a_constraint_or_are_gone_are_not_published(spark: SparkSession, shop: Shop) -> None:
    settings = shop.settings
    manifest = stage_run(spark, settings, Request(T0, shop.end_us, run_id="r1"))
    sound = staged_files(spark, settings, "r1")
    bad = write_frame(spark, settings, staged_matches(spark, settings, "r1").selectExpr(
        *(f"upper(substr(match_id, 2)) AS {c}" if c == "match_id" else c for c in MATCH_ARROW.names)))  # fmt: skip
    stage_files(spark, settings, "r1", bad)
    with pytest.raises(PublishError, match=rf"{manifest.found} of its rows break the constraint match_id_is_hash"):
        publish_run(spark, settings, "r1")
    stage_files(spark, settings, "r1", sound)
    table = tables.table_name(settings, "composite_events")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT no_pairs CHECK (query_id != 'pair')")
    with pytest.raises(PublishError, match=rf"{manifest.matches['pair']} of its rows break the constraint no_pairs"):
        publish_run(spark, settings, "r1")
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT no_pairs")
    with pytest.raises(PublishError, match="is gone or has changed"):
        check_there(spark, settings, [replace(sound[0], size=1)], "r1")
    Path(tables.folder(spark, settings, "composite_events").removeprefix("file:"), sound[0].path).unlink()
    with pytest.raises(PublishError, match=r"is gone or has changed.*mine the range again"):
        publish_run(spark, settings, "r1")
    assert tables.read(spark, settings, "composite_events").count() == 0


def test_a_table_that_maps_its_columns_is_refused(spark: SparkSession, shop: Shop) -> None:
    stage_run(spark, shop.settings, Request(T0, shop.end_us, run_id="r1"))
    table = tables.table_name(shop.settings, "composite_events")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with pytest.raises(TableError, match=r"columnMapping\.mode = name"):
        publish_run(spark, shop.settings, "r1")


def test_statistics_never_hide_a_match_from_a_reader(spark: SparkSession, shop: Shop) -> None:
    """Delta's are cut to milliseconds, and a file's last match may be later than that."""
    tables.ensure_table(spark, shop.settings, COMPOSITE_EVENTS)
    at = T0 + 123_456
    folder = tables.folder(spark, shop.settings, "composite_events").removeprefix("file:")
    files = written(Path(folder), match(1, at=at))
    Snapshot(spark, shop.settings).swap(files, "query_id = 'pair'", ("2026-01-01", "2026-01-01"), "{}")
    rows = tables.read(spark, shop.settings, "composite_events")
    for column in ("detection_ts", "end_ts"):
        assert rows.where(f"{column} = timestamp_micros({at})").count() == 1
        assert rows.where(f"{column} > timestamp_micros({at})").count() == 0
    assert rows.where(f"start_ts = timestamp_micros({at - S})").count() == 1
    assert rows.where("query_id = 'pair' AND source = 's1' AND detection_date = DATE'2026-01-01'").count() == 1
