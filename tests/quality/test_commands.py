"""The commands with their checks, each in a process of its own, as a scheduler runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs import tables
from tests.jobs.shop import T0, make_shop
from tests.quality.test_runs import QUERIES, add_rows, configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.heavy]

PROJECT = Path(__file__).resolve().parents[2]


def hindsight(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobs.cli", *arguments, "--project", str(folder)], capture_output=True, text=True,
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)}, timeout=600,
    )  # fmt: skip


def test_mine_refuses_bad_rows_and_a_backfill_sets_them_aside(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path / "shop", queries={"pair": QUERIES["pair"]}, events=120)
    folder, span = shop.settings.project, ("--from", "2026-01-01", "--to", "2026-01-02")
    add_rows(spark, shop, ("bad", None, "A", T0, T0, None, 1, "u1"))

    refused = hindsight(folder, "mine", *span)
    assert refused.returncode == 3, refused.stderr
    assert "raw: source_not_null" in refused.stderr
    assert "of error level; file://" in refused.stderr  # the link to the Data Docs
    assert "Traceback" not in refused.stderr

    configure(shop, {"tables": {"raw": {"quarantine": True}}})
    filled = hindsight(folder, "backfill", *span, "--chunk", "1 day")
    assert filled.returncode == 0, filled.stderr
    assert "set aside 1 row of raw" in filled.stderr
    assert "checks of the output, 0 failed" in filled.stderr
    assert shop.published(spark) == shop.expected()
    assert tables.read(spark, shop.settings, "quarantine").count() == 1
