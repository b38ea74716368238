"""What is derived from declarations, contracts and queries, and what conf/quality.yaml may say: no Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cep_core.errors import DeclarationError
from cep_core.language import check
from jobs.quality_settings import INPUT_CHECKS, OUTPUT_CHECKS, load_quality, parse_quality
from jobs.settings import load_settings
from schemas.expectations import (
    Bounds,
    InputRules,
    QueryFacts,
    RangeCheck,
    input_suite,
    output_suite,
    query_facts,
    schema_suite,
)  # fmt: skip

pytestmark = pytest.mark.core

HOUR = 3_600_000_000
BOUNDS = Bounds(10 * HOUR, 20 * HOUR, 8 * HOUR, 30 * HOUR)


def facts(text: str) -> QueryFacts:
    schema = {name: {"x": "int"} for name in "ABC"}
    return query_facts(check({"q": text}, schema)["q"])  # type: ignore[arg-type]


def test_a_plain_sequence_is_flat_whatever_it_negates() -> None:
    found = facts("PATTERN SEQ(A a, !B b, C c) WHERE [source] WITHIN 5 min")
    assert (found.order, found.stages, found.within_us) == ("flat", (("a", 0), ("c", 1)), 300_000_000)
    assert not found.ties_ordered
    assert len(found.version) == 16


def test_a_sequence_of_larger_parts_has_stages() -> None:
    found = facts("PATTERN SEQ(AND(A a, B b), SEQ(C c, A[2] d), B e) WHERE [source] WITHIN 1 hour TIES ordered")
    assert found.order == "staged"
    assert dict(found.stages) == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 3}
    assert found.ties_ordered


def test_a_timer_stands_for_what_it_follows() -> None:
    found = facts("PATTERN SEQ(AFTER(A a, 2 min) t, B b) WHERE [source] WITHIN 1 hour")
    assert dict(found.stages) == {"t": 0, "b": 1}


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN AND(A a, B b) WHERE [source] WITHIN 5 min",
        "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 5 min SELECT merged RETURN count(a) AS n",
    ],
)
def test_where_the_text_promises_no_order_none_is_checked(text: str) -> None:
    assert facts(text).order == "none"


def test_an_input_has_every_check_unless_one_is_off() -> None:
    every = {c.name for c in input_suite("t", BOUNDS, InputRules(levels={}, fresh_within_us=HOUR), None).checks}
    assert every == set(INPUT_CHECKS)
    fewer = input_suite("t", BOUNDS, InputRules(levels={"volume": "off", "freshness": "off"}), None)
    assert not {"volume", "freshness"} & {c.name for c in fewer.checks}


def test_volume_and_freshness_follow_the_range_that_is_read() -> None:
    rules = InputRules(levels={}, fresh_within_us=HOUR, volume_low=0.5, volume_high=2.0)
    checks = {c.name: c for c in input_suite("t", BOUNDS, rules, 100.0).checks}
    volume, freshness = checks["volume"], checks["freshness"]
    assert isinstance(volume, RangeCheck)
    assert isinstance(freshness, RangeCheck)
    assert (volume.low, volume.high) == (600, 2400)  # 12 hours are read
    assert freshness.low == 19 * HOUR


def test_quarantine_makes_warnings_of_the_rows_that_it_sets_aside() -> None:
    levels = {c.name: c.level for c in input_suite("t", BOUNDS, InputRules(levels={}, quarantine=True), None).checks}
    assert levels["times_not_null"] == "warning"
    assert levels["no_future_events"] == "error"


def test_outputs_are_checked_by_name_and_level() -> None:
    suite = output_suite("composite_events", {"match_window": "warning", "members_in_order": "off"})
    levels = {c.name: c.level for c in suite.checks}
    assert levels["match_window"] == "warning"
    assert "members_in_order" not in levels
    assert not schema_suite("t", [("a", "string")], {"schema": "off"}).checks


def test_the_settings_of_the_project_are_valid_and_say_the_defaults() -> None:
    project = Path(__file__).resolve().parents[2]
    assert load_quality(load_settings(project=project, environment={})) == parse_quality(
        yaml.safe_load((project / "conf/quality.yaml").read_text(encoding="utf-8"))
    )
    defaults, ours = parse_quality({}), load_quality(load_settings(project=project, environment={}))
    assert (defaults.sample_rows, defaults.data_docs) == (ours.sample_rows, ours.data_docs)
    assert defaults.defaults.duplicate_share == ours.defaults.duplicate_share
    assert defaults.defaults.earliest_us == ours.defaults.earliest_us
    assert (defaults.outputs.low, defaults.outputs.slack) == (ours.outputs.low, ours.outputs.slack)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"tabels": {}}, "there is no 'tabels'; did you mean 'tables'"),
        ({"tables": {"raww": {}}}, "there is no 'raww'; did you mean 'raw'"),
        ({"defaults": {"levels": {"times_null": "error"}}}, "did you mean 'times_not_null'"),
        ({"outputs": {"levels": {"schema": "fatal"}}}, "valid are error, warning, off"),
        ({"outputs": {"queries": {"piar": {"most": 3}}}}, "did you mean 'pair'"),
        ({"defaults": {"duplicate_share": "a lot"}}, "defaults.duplicate_share: expected a number"),
        ({"defaults": {"quarantine": 1}}, "defaults.quarantine: expected true or false"),
        ({"defaults": {"fresh_within": "soon"}}, "defaults.fresh_within: 'soon' is no duration"),
        ({"tables": {"raw": {"earliest": "long ago"}}}, "tables.raw.earliest: 'long ago' is no time"),
        ({"data_docs": "s3://pages"}, "data_docs: 's3://pages' is no folder"),
        ([1], "must hold `key: value` lines"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(content: object, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        parse_quality(content, ["raw"], ["pair"])


def test_a_table_inherits_the_defaults_and_off_may_be_written_bare() -> None:
    text = """
        defaults: {clock_skew: 1 min}
        tables: {raw: {levels: {volume: off}, volume: {high: 3}, latest: 1970-01-02}}
    """
    rules = parse_quality(yaml.safe_load(text)).rules("raw")
    assert (rules.clock_skew_us, rules.levels["volume"], rules.volume_high) == (60_000_000, "off", 3.0)
    assert (rules.latest_us, parse_quality({}).rules("raw").latest_us) == (24 * HOUR, None)


def test_every_output_check_can_be_set() -> None:
    levels = dict.fromkeys(OUTPUT_CHECKS, "warning")
    assert parse_quality({"outputs": {"levels": levels}}).outputs.levels == levels


def test_deriving_expectations_needs_neither_spark_nor_great_expectations() -> None:
    code = (
        "import sys, schemas.expectations, jobs.quality_settings;"
        "print([m for m in ('pyspark', 'great_expectations', 'airflow') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
