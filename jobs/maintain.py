"""Maintenance of our tables: compaction, retention, old stagings.

Enters: settings and how long to keep. Leaves: fewer and larger files; a line for each thing done.
Always holds: only tables of our contracts and our own staging and Data Docs folders are touched. Nothing younger than
SHORTEST_US is removed, and less is refused: a reader or a run that started before may still need it. No row changes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cep_core.errors import DeclarationError
from jobs import hadoop, tables
from jobs.console import counted
from jobs.quality_settings import load_quality
from jobs.runs import now_us
from schemas import CONTRACTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

DAY_US = 86_400_000_000
# Delta 4.4 takes the table's own retention, a week, instead of the one that VACUUM is given, unless this is off.
_IGNORES_RETENTION = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
SHORTEST_US = 7 * DAY_US  # Delta's own limit: the longest that a run or a reader may be expected to take


def maintain(
    spark: SparkSession, settings: Settings, retain_us: int, *, dry_run: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:  # fmt: skip
    """OPTIMIZE and VACUUM each table of ours that exists, and remove old stagings and Data Docs."""
    check_retention(retain_us)
    spark.conf.set(_IGNORES_RETENTION, "false")
    done: list[str] = []
    for name, contract in sorted(CONTRACTS.items()):
        if not tables.table_exists(spark, settings, name):
            continue
        columns = tables.read(spark, settings, name).columns
        if {column.name for column in contract.columns} <= set(columns):
            line = _maintain_table(spark, settings, name, retain_us / 3_600_000_000, dry_run)
        else:  # someone's own table that has the name of one of ours
            line = f"{name}: is not a table of ours, left alone"
        say(line)
        done.append(line)
    before_us = now_us() - retain_us
    docs = Path(settings.path(load_quality(settings).data_docs))
    for line in (_old_stagings(spark, settings, before_us, dry_run), _old_docs(docs, before_us, dry_run)):
        say(line)
        done.append(line)
    return done


def check_retention(retain_us: int) -> None:
    """Refuse to keep less than a run or a reader that is under way may still need."""
    if retain_us < SHORTEST_US:
        raise DeclarationError(
            f"{retain_us / DAY_US:g} days is too short to retain: a run or a reader that is under way may still need "
            f"those files; keep {SHORTEST_US // DAY_US} days or more"
        )


def _maintain_table(spark: SparkSession, settings: Settings, name: str, hours: float, dry_run: bool) -> str:
    table = tables.open_table(spark, settings, name)
    if dry_run:
        files = spark.sql(f"VACUUM {tables.table_name(settings, name)} RETAIN {hours:g} HOURS DRY RUN").count()
        return f"{name}: would remove {counted(files, 'file')}"
    metrics = table.optimize().executeCompaction().select("metrics.*").collect()[0]
    before = _files(spark, settings, name)
    table.vacuum(hours)
    removed = before - _files(spark, settings, name)
    return (
        f"{name}: {counted(metrics['numFilesRemoved'], 'file')} compacted into {metrics['numFilesAdded']}, "
        f"{counted(max(removed, 0), 'old file')} removed"
    )


def _files(spark: SparkSession, settings: Settings, name: str) -> int:
    """Data files under the table's folder, old versions' too."""
    location = tables.open_table(spark, settings, name).detail().collect()[0]["location"]
    path, system = hadoop.at(spark, location)
    found, listing = 0, system.listFiles(path, True)
    while listing.hasNext():
        file = listing.next().getPath().toString()
        found += file.endswith(".parquet") and "/_delta_log/" not in file
    return found


def _old_stagings(spark: SparkSession, settings: Settings, before_us: int, dry_run: bool) -> str:
    """Stagings are folders of runs; one is old when nothing in it was written since."""
    path, system = hadoop.at(spark, f"{settings.lake_path.rstrip('/')}/staging")
    old = []
    if system.exists(path):
        for status in system.listStatus(path):
            newest = max([status.getModificationTime(), *(s.getModificationTime() for s in _parts(system, status))])
            if newest * 1000 < before_us:
                old.append(status.getPath())
    for folder in [] if dry_run else old:
        system.delete(folder, True)
    return f"staging: {'would remove' if dry_run else 'removed'} {counted(len(old), 'old run')}"


def _parts(system: Any, status: Any) -> Any:
    return system.listStatus(status.getPath()) if status.isDirectory() else []


def _old_docs(folder: Path, before_us: int, dry_run: bool) -> str:
    runs = [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
    old = [entry for entry in runs if entry.stat().st_mtime * 1_000_000 < before_us]
    for entry in [] if dry_run else old:
        shutil.rmtree(entry)
    return f"data docs: {'would remove' if dry_run else 'removed'} {counted(len(old), 'old run')}"
