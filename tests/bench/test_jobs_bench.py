"""The benchmark of the jobs, small: every case runs, and what it compares found the same matches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.jobs import CASES, main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.bench
@pytest.mark.spark
def test_every_case_runs_and_agrees(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    cases = [word for name in ("sql", "packs") for word in ("--case", name)]
    assert main(["--events", "8000", "--queries", "40", "--repeat", "1", "--json", str(file), *cases]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    by_name = {figure["what"]: figure for figure in found["figures"]}
    assert by_name["job"]["matches"] > 20
    assert len({by_name[name]["digest"] for name in ("job", "Spark SQL, bucket join", "job, from packs")}) == 1
    assert by_name["job without its engine, from packs"]["matches"] == 0
    assert [target["what"] for target in found["targets"]] == [
        "Spark SQL to the job", "mining from the table to mining from packs"
    ]  # fmt: skip
    assert set(CASES) == {"floor", "sql", "flat", "memory", "skew", "packs"}
