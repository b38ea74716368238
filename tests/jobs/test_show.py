"""Reproducible: pinned inputs, versions on every match, and a match shown with its events as they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cep_core.errors import TableError
from jobs import tables
from jobs.mine import mine
from jobs.runs import Request
from jobs.show import show_match
from tests.jobs.shop import T0, make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_run_as_of_the_past_finds_what_was_there_then(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=60, span_s=80, queries={
        "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s RETURN a.x AS x"})  # fmt: skip
    raw = str(tmp_path / "lake/raw")
    then = datetime.now(UTC) + timedelta(milliseconds=1)
    spark.sql(f"UPDATE delta.`{raw}` SET x = 77, kind = CASE WHEN kind = 'A' THEN 'C' ELSE kind END")
    now = mine(spark, shop.settings, Request(T0, shop.end_us))
    assert (now.found, now.input_versions) == (0, {"raw": 1})
    before = mine(spark, shop.settings, Request(T0, shop.end_us, as_of=then))
    assert before.input_versions == {"raw": 0}
    assert shop.published(spark) == shop.expected()
    match = tables.read(spark, shop.settings, "composite_events").orderBy("match_id").collect()[0]
    assert match["input_versions"] == {"raw": 0}
    text = show_match(spark, shop.settings, match["match_id"][:12].upper())
    rows = {row[0]: row for row in shop.rows}
    assert f"match {match['match_id']} of pair (version {match['query_version']})" in text
    assert "raw version 0" in text
    for member in match["members"]:
        row = rows[member["event_id"]]
        assert f"{member['element']}: {row[2]} {row[0]} at 2026-01-01T" in text
        assert f"user={row[7]}" in text
    assert "77" not in text
    with pytest.raises(TableError, match="no published match has an id that starts with 'zz'"):
        show_match(spark, shop.settings, "zz")
