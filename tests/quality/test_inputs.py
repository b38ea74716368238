"""Each kind of bad input row, injected into a real DataFrame, fails its own check and no other."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from jobs.declarations import DeclaredAttribute, EventClass, EventSource
from jobs.quality_files import stored_files
from jobs.quality_proof import Proven, prove
from jobs.quality_rows import input_rows, one_id_in, usable, with_reasons
from jobs.quality_tally import given
from schemas.expectations import ROWS, Bounds, InputRules, input_suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.quality_suites import Outcome

pytestmark = pytest.mark.spark

S = 1_000_000
T0 = 1_767_225_600 * S  # 2026-01-01
HOUR = 3600 * S
BOUNDS = Bounds(T0, T0 + 10 * HOUR, T0, T0 + 10 * HOUR)
RULES = InputRules(levels={}, duplicate_share=0.1, fresh_within_us=2 * HOUR)
SCHEMA = "id string, src string, kind string, begins bigint, ends bigint, amount string"
SOURCE = EventSource(
    place="test", tables=("raw",), sql=None, source="src", start="begins", end="ends", unit="us", tie=None,
    event_id="id", where=None, class_column="kind", class_values=("A", "B"),
    classes=(
        EventClass("A", None, (DeclaredAttribute("amount", "amount", "float"),)),
        EventClass("B", None, ()),
    ),
)  # fmt: skip


AMOUNT = DeclaredAttribute("amount", "amount", "string")
PLAIN = replace(SOURCE, end="begins", classes=(EventClass("A", None, (AMOUNT,)), EventClass("B", None, ())))


def row(number: int, **changes: Any) -> dict[str, Any]:
    begins = T0 + number * 30 * 60 * S
    good = {"id": f"e{number}", "src": "s1", "kind": "A", "begins": begins, "ends": begins + S, "amount": "1.5"}
    return good | changes


GOOD = [row(number) for number in range(20)]


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    names = ("id", "src", "kind", "begins", "ends", "amount")
    return spark.createDataFrame([tuple(r[n] for n in names) for r in rows], SCHEMA)


@pytest.fixture(scope="module")
def context() -> Any:
    from jobs.quality_suites import open_context

    return open_context(None)


def run(context: Any, rows: DataFrame, rules: InputRules = RULES, mean: float | None = None) -> dict[str, Outcome]:
    from jobs.quality_suites import run_suite

    seen_rows = input_rows(rows, SOURCE, ("A", "B"), BOUNDS, rules)
    found = run_suite(context, input_suite("raw", BOUNDS, rules, mean), {ROWS: seen_rows}, "r1")
    return {outcome.check: outcome for outcome in found}


def failed(found: dict[str, Outcome]) -> set[str]:
    return {name for name, outcome in found.items() if not outcome.success}


def stored(spark: SparkSession, rows: list[dict[str, Any]], folder: Path, **options: Any) -> DataFrame:
    """The same rows in files: without statistics where the options say so, two row groups each."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in (0, 1):
        table = frame(spark, rows[part::2]).toArrow()
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=len(table) // 2 + 1, **options)
    return spark.read.parquet(str(folder))


def proof(rows: DataFrame, source: EventSource = PLAIN, rules: InputRules = RULES, sample: int = 100) -> Proven | None:
    return prove(rows, source, [c.name for c in source.classes if c.name in "AB"], BOUNDS, rules, sample)


@pytest.mark.parametrize("statistics", [True, ["id", "kind"], False])
@pytest.mark.parametrize("source", ["points", "spans", "one class"])
def test_files_without_a_bad_row_are_proven_and_counted(
    spark: SparkSession, context: Any, tmp_path: Path, statistics: Any, source: str
) -> None:
    """With statistics or by looking, the figures are those of Spark's pass over all rows."""
    from jobs.quality_suites import run_suite

    declared = {"points": PLAIN, "spans": replace(PLAIN, end="ends"), "one class": replace(
        PLAIN, class_column=None, class_values=(), classes=(EventClass("A", None, ()),))}[source]  # fmt: skip
    others = [row(n, id=f"z{n}", kind="Z") for n in (0, 19)]
    elsewhen = [row(-5, id="before"), row(2000, id="after", begins=BOUNDS.to_us, ends=BOUNDS.to_us)]
    frame = stored(spark, [*GOOD, *others, *elsewhen, GOOD[3]], tmp_path, write_statistics=statistics)
    proven = proof(frame, declared)
    assert proven is not None
    suite = input_suite("raw", BOUNDS, RULES, 2.0)
    rows = input_rows(frame, declared, [c.name for c in declared.classes], BOUNDS, RULES)
    names = [check.name for check in suite.checks]
    both = [run_suite(context, suite, {ROWS: rows}, "r1", tallied=t)
            for t in (None, given(spark, proven.figures(names)))]  # fmt: skip
    assert both[0] == both[1]
    assert (proven.rows, proven.repeats, proven.one_in) == (23 if source == "one class" else 21, 1, 1)


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    "bad",
    [{"id": None}, {"src": None}, {"kind": None}, {"begins": None}, {"ends": None},
     {"ends": T0 - HOUR, "begins": T0 + HOUR}, {"begins": T0 // S, "ends": T0 // S},
     {"begins": T0 + 40 * HOUR, "ends": T0 + 40 * HOUR}],
)  # fmt: skip
def test_a_bad_row_leaves_nothing_proven(
    spark: SparkSession, tmp_path: Path, bad: dict[str, Any], statistics: bool
) -> None:
    spans = replace(PLAIN, end="ends")
    assert proof(stored(spark, GOOD, tmp_path / "good", write_statistics=statistics), spans) is not None
    rows = [*GOOD, row(3, **({"id": "bad"} | bad))]
    assert proof(stored(spark, rows, tmp_path / "bad", write_statistics=statistics), spans) is None


def test_what_is_more_than_columns_of_files_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    plain = stored(spark, GOOD, tmp_path / "raw")
    assert proof(plain) is not None
    assert proof(plain.where("src = 's1'")) is None
    assert proof(frame(spark, GOOD)) is None
    filtered = replace(PLAIN, classes=(EventClass("A", "amount > '1'", ()), PLAIN.classes[1]))
    texts = replace(PLAIN, classes=(EventClass("A", None, (DeclaredAttribute("amount", "amount", "float"),)),))
    for other in (replace(PLAIN, where="src = 's1'"), replace(PLAIN, sql="SELECT 1"), filtered,
                  replace(texts, class_values=("A",)), replace(PLAIN, event_id=("id", "src")),
                  replace(PLAIN, source="upper(src)")):  # fmt: skip
        assert proof(plain, other) is None
    assert proof(plain, rules=replace(RULES, latest_us=GOOD[18]["begins"])) is None


def test_of_a_delta_table_only_the_files_of_the_range_are_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "raw")
    for part in (GOOD[:10], GOOD[10:], [row(-500, id="old", src=None)]):
        frame(spark, part).coalesce(1).write.format("delta").mode("append").save(path)
    table = spark.read.format("delta").load(path)
    files = stored_files(table)
    assert files is not None
    assert len(files) == 3
    assert all(file.stats for file in files)
    proven = proof(table)
    assert proven is not None
    assert proven.rows == 20  # the row without a source lies before all that the run reads, and is of no concern
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 'e3'")
    assert proof(spark.read.format("delta").load(path)) is None  # files hold rows that the table does not
    assert proof(spark.read.format("delta").option("versionAsOf", 2).load(path)) == proven


def test_good_rows_pass_every_check(spark: SparkSession, context: Any) -> None:
    found = run(context, frame(spark, GOOD), mean=2.0)
    assert not failed(found)
    assert {outcome.rows for outcome in found.values()} == {20}


@pytest.mark.parametrize(
    ("bad", "check"),
    [
        ({"id": None}, "event_id_not_null"),
        ({"src": None}, "source_not_null"),
        ({"kind": None}, "class_not_null"),
        ({"begins": None}, "times_not_null"),
        ({"ends": None}, "times_not_null"),
        ({"ends": T0 - HOUR, "begins": T0 + HOUR}, "start_before_end"),
        ({"begins": T0 // S, "ends": T0 // S}, "times_in_table"),  # seconds where microseconds are declared
        ({"begins": T0 + 40 * HOUR, "ends": T0 + 40 * HOUR}, "no_future_events"),
        ({"amount": "much"}, "declared_types"),
    ],
)
def test_each_bad_row_fails_its_check(spark: SparkSession, context: Any, bad: dict[str, Any], check: str) -> None:
    found = run(context, frame(spark, [*GOOD, row(3, **({"id": "bad"} | bad))]))
    assert failed(found) == {check}
    assert (found[check].breaches, found[check].level) == (1, "error")
    assert found[check].blocks


def test_times_after_the_end_of_a_closed_table_fail(spark: SparkSession, context: Any) -> None:
    found = run(context, frame(spark, GOOD), replace(RULES, latest_us=GOOD[18]["begins"]))
    assert failed(found) == {"times_in_table"}
    assert found["times_in_table"].breaches == 2


def test_a_suite_is_one_pass_over_its_rows(
    spark: SparkSession, context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobs.quality_suites import run_suite

    stored = frame(spark, GOOD)
    passes: list[DataFrame] = []
    collect = type(stored).collect
    monkeypatch.setattr(type(stored), "collect", lambda f: (passes.append(f), collect(f))[1])
    monkeypatch.setattr(type(stored), "count", lambda f: pytest.fail("a pass of its own"))
    suite = input_suite("raw", BOUNDS, RULES, 2.0)
    outcomes = run_suite(context, suite, {ROWS: input_rows(stored, SOURCE, ("A", "B"), BOUNDS, RULES)}, "r1")
    assert (len(passes), len(outcomes)) == (1, len(suite.checks))


def test_a_value_of_another_class_needs_no_declared_type(spark: SparkSession, context: Any) -> None:
    assert not failed(run(context, frame(spark, [*GOOD, row(3, id="b", kind="B", amount="much")])))


def test_rows_of_classes_that_nothing_reads_are_not_looked_at(spark: SparkSession, context: Any) -> None:
    assert run(context, frame(spark, [*GOOD, row(3, id="z", kind="Z", src=None)]))["source_not_null"].rows == 20


def test_many_ids_that_stand_twice_are_a_warning(spark: SparkSession, context: Any) -> None:
    once = run(context, frame(spark, [*GOOD, GOOD[0]]))
    assert not failed(once)  # one of twenty is within the share that is allowed
    found = run(context, frame(spark, GOOD + GOOD[:8]))
    assert failed(found) == {"duplicate_rate"}
    assert found["duplicate_rate"].level == "warning"
    assert (found["duplicate_rate"].breaches, found["duplicate_rate"].rows) == (8, 28)


def test_events_of_two_classes_from_one_row_are_no_copies(spark: SparkSession, context: Any) -> None:
    from jobs.quality_suites import run_suite

    both = replace(SOURCE, class_column=None, class_values=(), classes=(
        EventClass("A", "amount > 1.0", ()), EventClass("B", "amount < 9.0", ())))  # fmt: skip
    rows = input_rows(frame(spark, GOOD), both, ("A", "B"), BOUNDS, RULES)
    found = run_suite(context, input_suite("raw", BOUNDS, RULES, None), {ROWS: rows}, "r1")
    assert [(o.rows, o.breaches) for o in found if o.check == "duplicate_rate"] == [(40, 0)]


def test_stale_input_is_a_warning(spark: SparkSession, context: Any) -> None:
    found = run(context, frame(spark, GOOD[:10]))
    assert failed(found) == {"freshness"}
    assert "expected at least 2026-01-01T08:00:00Z, found 2026-01-01T04:30:01Z" in found["freshness"].sentence


@pytest.mark.parametrize("mean", [20.0, 0.2])
def test_too_few_or_too_many_rows_are_a_warning(spark: SparkSession, context: Any, mean: float) -> None:
    found = run(context, frame(spark, GOOD), mean=mean)
    assert failed(found) == {"volume"}
    assert re.search(r"at least [\d,]+ and at most [\d,]+, found 20 in 20 rows", found["volume"].sentence)


def test_an_empty_table_breaks_nothing_but_freshness(spark: SparkSession, context: Any) -> None:
    assert failed(run(context, frame(spark, []))) == {"freshness"}


def test_a_sample_is_cut_by_the_size_of_the_files(spark: SparkSession, tmp_path: Path) -> None:
    many = [row(0, id=f"e{number % 2000}") for number in range(4000)]
    frame(spark, many).coalesce(1).write.format("delta").save(str(tmp_path / "raw"))
    stored = spark.read.format("delta").load(str(tmp_path / "raw"))
    assert one_id_in(stored, 200_000) == 1
    assert one_id_in(stored, 0) == 1  # all
    assert one_id_in(frame(spark, many), 1) == 1  # rows that are in no file have no size
    assert one_id_in(stored, 100) > 2


def test_bad_rows_are_set_aside_with_their_reasons_and_the_rest_stays_as_it_was(spark: SparkSession) -> None:
    bad = [row(1, id=None, src=None), row(2, id="late", ends=T0 - HOUR), row(4, id="text", amount="much")]
    other = row(5, id="z", kind="Z", src="s2")
    stored = frame(spark, [*GOOD, *bad, other])
    reasons = with_reasons(input_rows(stored, SOURCE, ("A", "B"), BOUNDS, RULES), RULES).collect()
    assert sorted(r["reasons"] for r in reasons) == [
        ["declared_types"], ["event_id_not_null", "source_not_null"], ["start_before_end"],
    ]  # fmt: skip
    kept = usable(stored, SOURCE, ("A", "B"), RULES)
    assert kept.columns == stored.columns
    assert sorted(r["id"] for r in kept.collect()) == sorted([*(r["id"] for r in GOOD), "z"])


def test_times_as_text_are_read_or_marked(spark: SparkSession, context: Any) -> None:
    from jobs.quality_suites import run_suite

    source = replace(SOURCE, start="begins", end="begins", unit="s", class_column=None, class_values=(), classes=(
        EventClass("A", None, ()),))  # fmt: skip
    stored = [("a", "s", str(T0 // S)), ("b", "s", "yesterday")]
    rows = spark.createDataFrame(stored, "id string, src string, begins string")
    seen_rows = input_rows(rows, source, ("A",), BOUNDS, RULES)
    outcomes = run_suite(context, input_suite("raw", BOUNDS, RULES, None), {ROWS: seen_rows}, "r1")
    assert {"times_not_null", "declared_types"} <= {o.check for o in outcomes if not o.success}


def test_timestamps_are_seen_as_microseconds(spark: SparkSession) -> None:
    source = replace(SOURCE, start="at", end="at", unit=None)
    moment = datetime.fromtimestamp(T0 / S, UTC)
    schema = "id string, src string, kind string, at timestamp, amount string"
    rows = spark.createDataFrame([("a", "s", "A", moment, "1")], schema)
    assert input_rows(rows, source, ("A",), BOUNDS, RULES).collect()[0]["start_ts"] == T0
