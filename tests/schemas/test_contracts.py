"""Contracts: readable without Spark, documented, and carrying what the language contract gives a match."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest

from schemas import COMPOSITE_EVENTS, CONTRACTS, Contract

pytestmark = pytest.mark.core


def test_contracts_need_neither_spark_nor_the_jobs() -> None:
    forbidden = "pyspark", "delta", "airflow", "jobs"
    code = f"import schemas, sys; print([m for m in sys.modules if m.split('.')[0] in {forbidden!r}])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=lambda c: c.name)
def test_every_table_and_column_is_documented_and_every_key_is_a_column(contract: Contract) -> None:
    names = [column.name for column in contract.columns]
    assert len(set(names)) == len(names)
    assert contract.doc.endswith(".")
    assert all(column.doc.endswith(".") for column in contract.columns)
    assert set(contract.key) <= set(names)
    assert set(contract.partition_by) <= set(names)
    for constraint in contract.constraints:
        assert any(name in constraint.condition for name in names)


def test_the_tables_that_must_exist_do() -> None:
    assert set(CONTRACTS) == {
        *("composite_events", "packs", "runs", "event_stats", "state", "quality_results", "quarantine")
    }


def test_a_match_has_its_columns_members_and_provenance() -> None:
    assert [column.name for column in COMPOSITE_EVENTS.columns] == [
        *("query_id", "match_id", "start_ts", "end_ts", "detection_ts", "detection_date"),
        *("members", "fields", "source", "run_id", "query_version", "input_versions"),
    ]
    member = "struct<element:string,event_class:string,event_id:string,start_ts:timestamp,end_ts:timestamp>"
    assert COMPOSITE_EVENTS.column("members").type == f"array<{member}>"


def test_no_clock_is_in_a_match() -> None:
    moments = {c.name for c in COMPOSITE_EVENTS.columns if c.type in ("timestamp", "date")}
    assert moments == {"start_ts", "end_ts", "detection_ts", "detection_date"}
    assert date.today().isoformat() not in COMPOSITE_EVENTS.ddl
