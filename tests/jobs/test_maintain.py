"""Maintenance: small files become few and old leftovers go; every row, and what a reader may still need, stays."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from cep_core.errors import DeclarationError
from jobs import tables
from jobs.maintain import DAY_US, maintain
from jobs.runs import Manifest, record
from jobs.settings import Settings


def age(path: Path, days: float) -> Path:
    """As if it had been written so many days ago."""
    then = time.time() - days * 86_400
    for part in (*path.rglob("*"), path):
        os.utime(part, (then, then))
    return path


def leftover(folder: Path, days: float) -> Path:
    """What a killed write leaves: a file that no version of the table has."""
    file = folder / f"part-{days:g}-killed.snappy.parquet"
    file.write_bytes(b"PAR1")
    return age(file, days)


def staging(lake: Path, run_id: str, days: float) -> Path:
    part = lake / "staging" / run_id / "matches"
    part.mkdir(parents=True)
    (part / "part-0.parquet").write_bytes(b"PAR1")
    return age(part.parent, days)


def test_files_are_compacted_old_leftovers_go_and_no_row_changes(spark: Any, lake: Settings) -> None:
    folder = Path(lake.lake_path)
    for number in range(3):
        record(spark, lake, Manifest(f"run{number}", 0, 1, {"q": "v"}, {"raw": 1}, 0, 5), "published")
    spark.range(5).write.format("delta").save(str(folder / "packs"))  # someone's own table, with a name of ours
    before = sorted(map(str, tables.read(spark, lake, "runs").collect()))
    old, young = leftover(folder / "runs", 31), leftover(folder / "runs", 29)
    foreign = leftover(folder / "packs", 400)
    gone, kept = staging(folder, "old", 31), staging(folder, "young", 29)
    revived = staging(folder, "revived", 31)
    (revived / "manifest").mkdir()  # a part that was written now
    docs = age(_docs(lake, "old"), 31), age(_docs(lake, "young"), 29)

    told = maintain(spark, lake, 30 * DAY_US, dry_run=True)
    assert "runs: would remove 1 file" in told
    assert "staging: would remove 1 old run" in told
    assert all(path.exists() for path in (old, young, foreign, gone, kept, revived, *docs))
    assert tables.version(spark, lake, "runs") == 3

    told = maintain(spark, lake, 30 * DAY_US)
    assert "runs: 3 files compacted into 1, 1 old file removed" in told
    assert "packs: is not a table of ours, left alone" in told
    assert "staging: removed 1 old run" in told
    assert "data docs: removed 1 old run" in told
    assert [p.exists() for p in (old, young, foreign)] == [False, True, True]
    assert [p.exists() for p in (gone, kept, revived)] == [False, True, True]
    assert [p.exists() for p in docs] == [False, True]
    assert sorted(map(str, tables.read(spark, lake, "runs").collect())) == before
    assert tables.read(spark, lake, "runs", version=2).count() == 2, "an earlier version can still be read"


def _docs(lake: Settings, run_id: str) -> Path:
    folder = Path(lake.path(".hindsight/data_docs")) / run_id
    folder.mkdir(parents=True)
    return folder


def test_too_short_a_retention_is_refused(spark: Any, lake: Settings) -> None:
    with pytest.raises(DeclarationError, match=r"6\.5 days is too short to retain.*keep 7 days or more"):
        maintain(spark, lake, round(6.5 * DAY_US))
