"""Each kind of bad match, injected into real staged matches, fails its own check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from cep_core.language import check
from jobs.quality_files import local_files
from jobs.quality_matches import Look, look, stretch
from jobs.quality_rows import match_counts
from jobs.quality_tally import tally
from schemas import COMPOSITE_EVENTS
from schemas import expectations as expected
from schemas.expectations import Bounds, output_suite, query_facts, schema_suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

S = 1_000_000
T0 = 1_767_225_600 * S
BOUNDS = Bounds(T0, T0 + 3600 * S, T0 - 3600 * S, T0 + 9999 * S)
QUERIES = {
    "flat": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 min",
    "touching": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 min TIES ordered",
    "staged": "PATTERN SEQ(AND(A a, C c), B b) WHERE [source] WITHIN 1 min",
    "free": "PATTERN AND(A a, B b) WHERE [source] WITHIN 1 min",
}
CHECKED = check(QUERIES, {name: {} for name in "ABC"})
FACTS = tuple(query_facts(checked) for checked in CHECKED.values())
Member = tuple[str, str, int, int]  # element, event id, start and end in seconds after T0


def match(query: str, *found: Member, **changes: Any) -> dict[str, Any]:
    start, end = min(m[2] for m in found), max(m[3] for m in found)
    good = {
        "query_id": query, "match_id": f"{query}{found}{changes}", "start": start, "end": end, "detection": end,
        "members": found, "version": CHECKED[query].version if query in CHECKED else "0" * 16,
    }  # fmt: skip
    return good | changes


def staged(spark: SparkSession, *matches: dict[str, Any]) -> DataFrame:
    def us(seconds: float) -> int:
        return T0 + int(seconds * S)

    rows = [
        (m["query_id"], f"{abs(hash(m['match_id'])):032x}", us(m["start"]), us(m["end"]), us(m["detection"]),
         [(e, e.upper(), i, us(a), us(b)) for e, i, a, b in m["members"]], m["version"])
        for m in matches
    ]  # fmt: skip
    plain = spark.createDataFrame(
        rows, "query_id string, match_id string, s bigint, e bigint, d bigint, "
        "m array<struct<element:string,event_class:string,event_id:string,s:bigint,e:bigint>>, query_version string",
    )  # fmt: skip
    member = (
        "transform(m, x -> named_struct('element', x.element, 'event_class', x.event_class, 'event_id', x.event_id, "
        "'start_ts', timestamp_micros(x.s), 'end_ts', timestamp_micros(x.e)))"
    )
    return plain.selectExpr(
        "query_id", "match_id", "timestamp_micros(s) AS start_ts", "timestamp_micros(e) AS end_ts",
        "timestamp_micros(d) AS detection_ts", "to_date(timestamp_micros(d)) AS detection_date",
        f"{member} AS members", "map('n', '1') AS fields", "'s1' AS source", "'r1' AS run_id", "query_version",
        "map('raw', 1L) AS input_versions",
    )  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Any:
    from jobs.quality_suites import open_context

    return open_context(None)


def outputs(
    context: Any, frame: DataFrame, events: DataFrame, classes: str = "ABC", counts: DataFrame | None = None
) -> dict[str, int]:
    """The checks that fail, with the number of breaches."""
    from jobs.quality_suites import run_suite

    spark, suite = frame.sparkSession, output_suite("composite_events", {})
    frames = {
        expected.EVENTS: events, expected.QUERIES: match_counts(spark, {}, {}) if counts is None else counts,
    }  # fmt: skip
    seen = look(frame, Look(FACTS, BOUNDS, frozenset(classes)))
    found = run_suite(context, suite, frames, "r1", tallied=tally(suite.checks, frames, [seen]))
    return {o.check: o.breaches for o in found if not o.success}


def events_of(spark: SparkSession, *matches: dict[str, Any]) -> DataFrame:
    """What the matches' members come from, as events."""
    rows = {(e.upper(), i, T0 + a * S, T0 + b * S) for m in matches for e, i, a, b in m["members"]}
    schema = "event_class string, event_id string, start_ts bigint, end_ts bigint"
    return spark.createDataFrame([*sorted(rows), ("A", "e9", T0, T0)], schema)


GOOD = (
    match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4)),
    match("touching", ("a", "e1", 1, 2), ("b", "e2", 2, 4)),
    match("staged", ("a", "e1", 1, 2), ("c", "e3", 1, 3), ("b", "e2", 5, 5)),
    match("free", ("a", "e1", 9, 9), ("b", "e2", 4, 4)),
    match("flat", ("a", "e1", 10, 10), ("b", "e2", 20, 20), detection=70),
)

BAD = [
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4), end=3.5, detection=4), "match_times"),
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4), start=2), "match_times"),
    (match("free", ("a", "e1", 5, 5), ("b", "e2", 90, 90)), "match_window"),
    (match("flat", ("a", "e1", 3, 3), ("b", "e2", 1, 1)), "members_in_order"),
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 2, 4)), "members_in_order"),  # touching, and ties are apart
    (match("touching", ("a", "e1", 1, 3), ("b", "e2", 2, 4)), "members_in_order"),
    (match("flat", ("a", "e1", 1, 2)), "members_in_order"),  # one is not there
    (match("staged", ("a", "e1", 1, 7), ("c", "e3", 1, 3), ("b", "e2", 5, 7)), "members_in_order"),
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4), detection=3600), "detection_in_run"),
    (match("flat", ("a", "e1", -9, -8), ("b", "e2", -6, -5)), "detection_in_run"),
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4), detection=3), "detection_in_run"),
    (match("flat", ("a", "e1", 1, 2), ("b", "e2", 3, 4), version="0" * 16), "query_version_known"),
    (match("unheard", ("a", "e1", 1, 2), ("b", "e2", 3, 4)), "query_version_known"),
]


def written(frame: DataFrame, folder: Path) -> DataFrame:
    """The same rows from files, by days as the table has them."""
    frame.repartition(2).write.partitionBy("detection_date").parquet(str(folder / "matches"))
    return frame.sparkSession.read.parquet(str(folder / "matches"))


def test_staged_files_are_looked_at_as_rows_are(spark: SparkSession, context: Any, tmp_path: Path) -> None:
    """Straight from their files, all bad matches at once: the same figures as through Spark."""
    frame = staged(spark, *GOOD, *(bad for bad, _ in BAD), GOOD[0])
    events = events_of(spark, *GOOD)
    found = outputs(context, written(frame, tmp_path), events)
    assert found == outputs(context, frame, events)
    assert set(found) == {name for _, name in BAD} | {"match_id_unique", "members_exist"}
    assert local_files(written(frame, tmp_path / "again")) is not None
    assert local_files(frame) is None
    assert local_files(written(frame, tmp_path / "filtered").where("query_id = 'flat'")) is None


def test_good_matches_pass_every_check(spark: SparkSession, context: Any) -> None:
    assert outputs(context, staged(spark, *GOOD), events_of(spark, *GOOD)) == {}


@pytest.mark.parametrize(("bad", "name"), BAD)
def test_each_bad_match_fails_its_check(spark: SparkSession, context: Any, bad: dict[str, Any], name: str) -> None:
    assert outputs(context, staged(spark, *GOOD, bad), events_of(spark, *GOOD, bad)) == {name: 1}


def test_a_match_id_that_stands_twice_is_found(spark: SparkSession, context: Any) -> None:
    twice = staged(spark, *GOOD, GOOD[0])
    assert outputs(context, twice, events_of(spark, *GOOD)) == {"match_id_unique": 1}


def test_a_member_that_no_table_has_is_found(spark: SparkSession, context: Any) -> None:
    frame, events = staged(spark, *GOOD), events_of(spark, *GOOD)

    def missing(known: DataFrame, classes: str = "ABC") -> dict[str, int]:
        return outputs(context, frame, known, classes)

    assert missing(events.where("event_id != 'e3'")) == {"members_exist": 1}
    late = F.when(F.col("event_id") == "e3", F.col("end_ts") + 1).otherwise(F.col("end_ts"))
    assert missing(events.withColumn("end_ts", late)) == {"members_exist": 1}
    other = F.when(F.col("event_id") == "e3", F.lit("A")).otherwise(F.col("event_class"))
    assert missing(events.withColumn("event_class", other)) == {"members_exist": 1}
    assert missing(events.where("false"))["members_exist"] == sum(len(m["members"]) for m in GOOD)
    # matches of other queries and timers are members too, but no rows of a declared table
    assert missing(events.where("event_id != 'e3'"), "AB") == {}


def test_a_member_without_an_id_is_no_event_of_the_input(spark: SparkSession, context: Any) -> None:
    nameless = F.transform("members", lambda m: m.withField("event_id", F.lit(None).cast("string")))
    frame = staged(spark, GOOD[0]).withColumn("members", nameless)
    events = events_of(spark, GOOD[0]).withColumn("event_id", F.lit(None).cast("string"))
    assert outputs(context, frame, events) == {"members_exist": 2}


@pytest.mark.parametrize("stored", [False, True])
def test_members_are_looked_up_in_a_stretch_of_time_that_has_some(
    spark: SparkSession, tmp_path: Path, stored: bool
) -> None:
    many = [match("flat", ("a", f"a{n}", n, n), ("b", f"b{n}", n + 5, n + 5)) for n in range(0, 3000, 10)]
    frame = written(staged(spark, *many), tmp_path) if stored else staged(spark, *many)
    stretches = [stretch(frame, run_id, BOUNDS, 12) for run_id in ("r1", "r2", "r3")]
    assert len(set(stretches)) > 1
    for found in stretches:
        assert found is not None
        low, high = found
        assert high - low == 600 * S + 1
        seen = look(frame, Look(FACTS, BOUNDS, frozenset("AB"), found))
        events = spark.createDataFrame([], "event_class string, event_id string, start_ts bigint, end_ts bigint")
        checks = [c for c in output_suite("composite_events", {}).checks if c.name == "members_exist"]
        figures = tally(checks, {expected.EVENTS: events}, [seen]).where("check = 'members_exist'").collect()
        rows, missing = sum(row["rows"] for row in figures), sum(row["breaches"] for row in figures)
        starts = [T0 + second * S for m in many for _, _, second, _ in m["members"]]
        assert rows == missing == sum(low <= start < high for start in starts) > 1
    assert stretch(frame, "r1", BOUNDS, 1) is None
    assert stretch(staged(spark, *many).limit(0), "r1", BOUNDS, 12) is None


def test_counts_outside_their_bounds_are_a_warning(spark: SparkSession, context: Any) -> None:
    suite = output_suite("composite_events", {})
    assert [c.level for c in suite.checks if c.name == "matches_per_query"] == ["warning"]
    frame, events = staged(spark, *GOOD), events_of(spark, *GOOD)
    bounds = {"flat": (1.0, 10.0), "free": (None, 3.0)}
    good = match_counts(spark, {"flat": 5, "free": 0, "staged": 99}, bounds)
    assert outputs(context, frame, events, counts=good) == {}
    bad = match_counts(spark, {"flat": 0, "free": 4, "staged": 99}, bounds)
    assert outputs(context, frame, events, counts=bad) == {"matches_per_query": 2}


def test_a_schema_that_is_not_the_contracts_is_found_column_by_column(spark: SparkSession, context: Any) -> None:
    from jobs.quality_suites import run_suite

    columns = [(c.name, c.type) for c in COMPOSITE_EVENTS.columns]
    suite, frame = schema_suite("composite_events", columns, {}), staged(spark, *GOOD)
    assert all(o.success for o in run_suite(context, suite, {expected.ROWS: frame}, "r1"))
    broken = frame.drop("source").withColumn("match_id", F.lit(1))
    broken = broken.withColumn("members", F.expr("transform(members, m -> named_struct('element', m.element))"))
    outcomes = [o for o in run_suite(context, suite, {expected.ROWS: broken}, "r1") if not o.success]
    assert {o.column for o in outcomes} == {"source", "match_id", "members"}
    assert any("schema of source" in o.sentence and "found no such column" in o.sentence for o in outcomes)
