"""What goes wrong in real life, through the whole job: a clear error, or an honest empty result."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cep_core.errors import DeclarationError, TableError
from jobs import tables
from jobs.catalogue import load_workload
from jobs.mine import mine
from jobs.runs import Request
from jobs.settings import Settings
from jobs.views import make_views
from tests.jobs.shop import DECLARATIONS, T0, S, Shop, make_shop

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s RETURN a.x AS x",
    "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used",
}
WHOLE = Request(T0, T0 + 1000 * S)


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Shop:
    return make_shop(spark, tmp_path / "shop", events=60, queries=QUERIES)


def published(spark: Any, settings: Settings) -> int:
    return int(tables.read(spark, settings, "composite_events").count())


def outcomes(spark: Any, settings: Settings) -> list[tuple[str, str | None]]:
    return [(row["outcome"], row["message"]) for row in tables.read(spark, settings, "runs").collect()]


def test_a_column_that_the_table_lacks_is_found_before_anything_runs(spark: Any, shop: Shop) -> None:
    wrong = DECLARATIONS.replace("{x: int, user", "{x: {expression: xx, type: int}, user").replace(
        "source: src", "source: scr"
    )
    shop.settings.project.joinpath("conf/events/shop.yaml").write_text(wrong)
    with pytest.raises(DeclarationError) as refused:
        mine(spark, shop.settings, WHOLE)
    message = str(refused.value)
    assert "events/shop.yaml: events[1].source: the table has no column 'scr'; did you mean 'src'?" in message
    assert "events/shop.yaml: events[1].classes.A.attributes.x: the table has no column 'xx'" in message
    assert not tables.table_exists(spark, shop.settings, "composite_events")


def test_an_absent_table_is_named_with_its_declaration(spark: Any, shop: Shop) -> None:
    shop.settings.project.joinpath("conf/events/shop.yaml").write_text(DECLARATIONS.replace("path: raw", "path: row"))
    with pytest.raises(TableError, match=r"events/shop\.yaml: tables\.raw: there is no Delta table at .*lake/row"):
        mine(spark, shop.settings, WHOLE)
    assert not tables.table_exists(spark, shop.settings, "composite_events")


def test_an_unreadable_file_is_named_and_the_run_is_recorded_as_failed(spark: Any, shop: Shop) -> None:
    damaged = min(Path(shop.settings.in_lake("raw")).glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    damaged.with_name(f".{damaged.name}.crc").unlink(missing_ok=True)
    with pytest.raises(TableError, match=damaged.name):
        mine(spark, shop.settings, WHOLE)
    assert published(spark, shop.settings) == 0
    ((outcome, message),) = outcomes(spark, shop.settings)
    assert outcome == "failed"
    assert damaged.name in (message or "")


def test_an_empty_table_is_an_honest_empty_result(spark: Any, shop: Shop) -> None:
    spark.sql(f"DELETE FROM delta.`{shop.settings.in_lake('raw')}`")
    manifest = mine(spark, shop.settings, WHOLE)
    assert (manifest.rows_read, manifest.matches) == (0, {"pair": 0, "used": 0})
    assert outcomes(spark, shop.settings) == [("empty", None)]
    make_views(spark, shop.settings, load_workload(shop.settings).checked)
    assert spark.sql("SELECT x, source FROM pair").collect() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with three megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a disk to fill")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)  # Spark may still hold a file


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can mount a disk to fill")
def test_a_full_disk_is_said_and_the_run_goes_through_once_there_is_room(
    spark: Any, shop: Shop, small_disk: Path
) -> None:
    settings = replace(shop.settings, lake=str(small_disk))
    declared = DECLARATIONS.replace("path: raw", f"path: {shop.settings.in_lake('raw')}")
    shop.settings.project.joinpath("conf/events/shop.yaml").write_text(declared)
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    ballast.write_bytes(b"\0" * (free - 30_000))
    with pytest.raises(TableError, match="no space is left on the device"):
        mine(spark, settings, WHOLE)
    ballast.unlink()
    mine(spark, settings, WHOLE)
    assert published(spark, settings) == sum(shop.expected().values()) > 0
