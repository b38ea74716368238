"""Primitive events: rows of declared tables become events, of whatever shape the table is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cep_core.errors import DeclarationError, TableError
from jobs.check import check_declarations
from jobs.declarations import Declarations, load_declarations
from jobs.inputs import input_versions, read_table
from jobs.primitives import read_primitives
from jobs.settings import Settings

READINGS = """
tables: {readings: {path: raw/readings}}
events:
  - table: readings
    source: tag
    time: read_at
    tie: seq
    event_id: id
    where: seq IS NOT NULL
    attributes: {mid: int}
    classes:
      Shelf: {where: kind = 'shelf', attributes: {weight: {expression: grams / 1000D, type: float}}}
      Exit: {where: kind = 'exit'}
      Anything: {where: mid > 1}
"""
ROWS = [
    ("r1", "t1", "shelf", "2026-01-01 00:00:00", 1, 1, 500),
    ("r2", "t1", "exit", "2026-01-01 00:00:05", 2, 2, None),
    ("r3", "t2", "shelf", "2026-01-02 00:00:00", 1, None, 1),
]
SECOND = 1_000_000
DAY = 86_400 * SECOND
NEW_YEAR = 1_767_225_600 * SECOND


def write(spark: Any, settings: Settings, name: str = "readings", rows: list[Any] = ROWS, form: str = "delta") -> None:
    columns = "id string, tag string, kind string, read_at string, mid int, seq int, grams int"
    frame = spark.createDataFrame(rows, columns).selectExpr("*", "CAST(read_at AS timestamp) AS at")
    frame.drop("read_at").withColumnRenamed("at", "read_at").write.format(form).mode("overwrite").save(
        settings.in_lake(f"raw/{name}")
    )


def declare(settings: Settings, text: str) -> Declarations:
    folder = Path(settings.path(settings.events))
    (folder / "events.yaml").write_text(text)
    return load_declarations(folder)


def test_a_wide_table_of_several_classes(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    events = read_primitives(spark, lake, declare(lake, READINGS))
    assert [(f.name, f.dataType.simpleString()) for f in events.schema] == [
        ("event_id", "string"),
        ("source", "string"),
        ("event_class", "string"),
        ("start_ts", "bigint"),
        ("end_ts", "bigint"),
        ("tie", "bigint"),
        ("mid", "bigint"),
        ("weight", "double"),
    ]
    found = sorted(tuple(row) for row in events.collect())
    later = NEW_YEAR + 5 * SECOND
    assert found == [
        ("r1", "t1", "Shelf", NEW_YEAR, NEW_YEAR, 1, 1, 0.5),
        ("r2", "t1", "Anything", later, later, 2, 2, None),  # a row of two classes is an event of each
        ("r2", "t1", "Exit", later, later, 2, 2, None),
    ]


def test_only_the_classes_and_attributes_that_are_needed(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    events = read_primitives(spark, lake, declare(lake, READINGS), ["Shelf", "Exit"], [("Shelf", "mid")])
    assert events.columns[6:] == ["mid"]
    assert sorted((r.event_id, r.mid) for r in events.collect()) == [("r1", 1), ("r2", None)]
    with pytest.raises(DeclarationError, match="event class 'Shelv' is not declared; did you mean 'Shelf'"):
        read_primitives(spark, lake, declare(lake, READINGS), ["Shelv"])


def test_the_time_range_keeps_what_touches_it_and_rows_without_a_time(spark: Any, lake: Settings) -> None:
    write(spark, lake, rows=[*ROWS, ("r4", "t2", "exit", None, 1, 4, None)])
    declared = declare(lake, READINGS)

    def ids(start_us: int | None, end_us: int | None) -> list[str]:
        events = read_primitives(spark, lake, declared, ["Shelf", "Exit"], [], start_us, end_us)
        return sorted(row.event_id for row in events.collect())

    assert ids(None, None) == ["r1", "r2", "r4"]
    assert ids(NEW_YEAR + 1, None) == ["r2", "r4"]
    assert ids(NEW_YEAR, NEW_YEAR + 5 * SECOND) == ["r1", "r4"]
    assert ids(NEW_YEAR + DAY, None) == ["r4"]


@pytest.mark.parametrize(
    ("kind", "unit"), [("date", None), ("timestamp_ntz", None), ("bigint", "s"), ("bigint", "ms"), ("bigint", "us")]
)
def test_times_of_every_kind(spark: Any, lake: Settings, kind: str, unit: str | None) -> None:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}.get(unit or "", 0)
    moment = f"{NEW_YEAR // SECOND * per_second}" if unit else f"{kind}'2026-01-01'"
    spark.sql(f"SELECT 'x' AS id, CAST({moment} AS {kind}) AS at").write.format("delta").save(lake.in_lake("raw/t"))
    declared = declare(
        lake,
        "tables: {t: {path: raw/t}}\n"
        f"events: [{{table: t, source: id, time: at, event_id: id, classes: [A]{f', unit: {unit}' if unit else ''}}}]",
    )
    check_declarations(spark, lake, declared)

    def count(start_us: int, end_us: int) -> int:
        return int(read_primitives(spark, lake, declared, start_us=start_us, end_us=end_us).count())

    assert read_primitives(spark, lake, declared).collect()[0].start_ts == NEW_YEAR
    assert (count(NEW_YEAR, NEW_YEAR + 1), count(NEW_YEAR + 1, NEW_YEAR + DAY), count(0, NEW_YEAR)) == (1, 0, 0)


def test_intervals_from_a_select_over_two_tables_with_hashed_ids(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    write(spark, lake, "more", [("r9", "t1", "shelf", "2026-01-01 00:01:00", 1, 3, 1)], form="parquet")
    declared = declare(
        lake,
        """
tables: {readings: {path: raw/readings}, more: {path: raw/more, format: parquet}}
events:
  - sql: >
      SELECT tag, min(read_at) AS first, max(read_at) AS last, count(*) AS n
      FROM (SELECT * FROM {readings} UNION ALL SELECT * FROM {more}) GROUP BY tag
    source: tag
    start: first
    end: last
    event_id: [tag, first]
    attributes: {n: int}
    classes: [Visit]
""",
    )
    rows = {row.source: row for row in read_primitives(spark, lake, declared).collect()}
    assert (rows["t1"].start_ts, rows["t1"].end_ts, rows["t1"].n) == (NEW_YEAR, NEW_YEAR + 60 * SECOND, 3)
    assert {len(row.event_id) for row in rows.values()} == {32}
    assert rows["t1"].event_id != rows["t2"].event_id
    again = {row.source: row.event_id for row in read_primitives(spark, lake, declared).collect()}
    assert again == {source: row.event_id for source, row in rows.items()}
    assert input_versions(spark, lake, declared) == {"readings": 0}  # Parquet has no versions


def test_a_table_whose_column_names_the_class(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    declared = declare(
        lake,
        """
tables: {readings: {path: raw/readings}}
events:
  - {table: readings, source: tag, time: read_at, event_id: id, class: kind, attributes: {mid: int},
     classes: {shelf: {where: mid < 2}, Gate: {value: exit}}}
""",
    )
    assert sorted((r.event_id, r.event_class, r.mid) for r in read_primitives(spark, lake, declared).collect()) == [
        ("r1", "shelf", 1),
        ("r2", "Gate", 2),
        ("r3", "shelf", 1),
    ]
    only = read_primitives(spark, lake, declared, ["Gate"])
    assert [(r.event_id, r.event_class) for r in only.collect()] == [("r2", "Gate")]


def test_reads_stay_at_the_versions_that_were_pinned(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    declared = declare(lake, READINGS)
    before = datetime.now(UTC)
    versions = input_versions(spark, lake, declared)
    write(spark, lake, rows=ROWS[:1])
    assert versions == {"readings": 0}
    assert input_versions(spark, lake, declared) == {"readings": 1}
    assert input_versions(spark, lake, declared, as_of=before) == {"readings": 0}
    assert read_primitives(spark, lake, declared, ["Exit"], versions=versions).count() == 1
    assert read_primitives(spark, lake, declared, ["Exit"]).count() == 0
    with pytest.raises(TableError, match="has no version as old as 2001-01-01"):
        input_versions(spark, lake, declared, as_of=datetime(2001, 1, 1, tzinfo=UTC))


def test_a_catalog_table_is_read_and_pinned_by_its_name(spark: Any, lake: Settings) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS shop")
    spark.sql("CREATE TABLE shop.cards USING delta AS SELECT 'c' AS id, timestamp'2026-01-01' AS at")
    spark.sql("CREATE TABLE shop.plain USING parquet AS SELECT 'p' AS id, timestamp'2026-01-01' AS at")
    try:
        declared = declare(
            lake,
            "tables: {cards: {catalog: shop.cards}, plain: {catalog: shop.plain}}\nevents:\n"
            "  - {table: cards, source: id, time: at, event_id: id, classes: [Card]}\n"
            "  - {table: plain, source: id, time: at, event_id: id, classes: [Plain]}\n",
        )
        versions = input_versions(spark, lake, declared)
        assert versions == {"cards": 0}
        spark.sql("INSERT INTO shop.cards VALUES ('d', timestamp'2026-01-02')")
        assert read_primitives(spark, lake, declared, ["Card"], versions=versions).count() == 1
        assert read_primitives(spark, lake, declared).count() == 3
    finally:
        spark.sql("DROP SCHEMA shop CASCADE")


def test_an_empty_table_gives_no_events(spark: Any, lake: Settings) -> None:
    write(spark, lake, rows=[])
    assert read_primitives(spark, lake, declare(lake, READINGS)).collect() == []
    assert read_primitives(spark, lake, Declarations((), ())).collect() == []


def test_an_absent_table_is_named_with_its_declaration(spark: Any, lake: Settings) -> None:
    declared = declare(lake, READINGS)
    for attempt in (read_primitives, input_versions, check_declarations):
        with pytest.raises(TableError, match=r"events\.yaml: tables\.readings: there is no Delta table at .*/readings"):
            attempt(spark, lake, declared)
    parquet = declare(lake, READINGS.replace("raw/readings", "raw/readings, format: parquet"))
    with pytest.raises(TableError, match="there is no parquet table at"):
        read_table(spark, lake, parquet.table("readings"))


def test_an_unreadable_table_is_said(spark: Any, lake: Settings) -> None:
    broken = Path(lake.in_lake("raw/readings/_delta_log"))
    broken.mkdir(parents=True)
    (broken / f"{0:020}.json").write_text("this is no Delta log")
    with pytest.raises(TableError, match=r"tables\.readings: .*raw/readings"):
        read_primitives(spark, lake, declare(lake, READINGS))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("source: tag", "source: tga", "events[1].source: the table has no column 'tga'; did you mean 'tag'?"),
        ("time: read_at", "time: red_at", "events[1].time: the table has no column 'red_at'; did you mean 'read_at'?"),
        ("time: read_at", "time: kind", "events[1].time: kind is string; a time is a timestamp"),
        ("time: read_at", "time: seq", "events[1].time: seq is int; say what it counts with `unit"),
        ("tie: seq", "tie: kind", "events[1].tie: kind is string; a tie column holds whole numbers"),
        ("event_id: id", "event_id: [tag, idd]", "event_id: the table has no column 'idd'; did you mean 'id'?"),
        ("where: mid > 1", "where: midd > 1", "events[1].classes.Anything.where: the table has no column 'midd'"),
        ("where: mid > 1", "where: mid", "events[1].classes.Anything.where: mid is int, not a condition"),
        ("where: mid > 1", "where: mid >", "events[1].classes.Anything.where: "),
        ("mid: int", "mid: string", "attributes.mid: `mid` is int, but is declared string"),
        ("grams / 1000D", "gram / 1000D", "classes.Shelf.attributes.weight: the table has no column 'gram'"),
        ("where: seq IS NOT NULL", "where: sq IS NOT NULL", "events[1].where: the table has no column 'sq'"),
    ],
)
def test_a_declaration_that_does_not_fit_its_table_is_found_before_anything_runs(
    spark: Any, lake: Settings, old: str, new: str, message: str
) -> None:
    write(spark, lake)
    assert old in READINGS
    with pytest.raises(DeclarationError) as refused:
        check_declarations(spark, lake, declare(lake, READINGS.replace(old, new, 1)))
    assert message in str(refused.value)


def test_what_fits_is_listed(spark: Any, lake: Settings) -> None:
    write(spark, lake)
    (found,) = check_declarations(spark, lake, declare(lake, READINGS))
    assert (found.title, found.classes) == ("readings", ("Shelf", "Exit", "Anything"))
