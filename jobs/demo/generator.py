"""The worlds of the demo, all of them, from one seed.

Enters: how many rows in all, over how many days, and a seed. Leaves: `World` values; `write_tables` puts their raw
tables into the lake.
Always holds: the same arguments give the same tables, byte for byte, on every machine; each world draws from a stream
of its own, so a change in one leaves the others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cep_core.errors import TableError
from jobs.demo.cameras import cameras_world
from jobs.demo.cards import cards_world
from jobs.demo.load import load_world
from jobs.demo.machines import machines_world
from jobs.demo.messages import messages_world
from jobs.demo.packets import packets_world
from jobs.demo.products import products_world
from jobs.demo.store import store_world
from jobs.demo.ward import ward_world
from jobs.demo.world import DAY_US, START_US, RawTable, Size, World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

DEFAULT_EVENTS = 60_000
DEFAULT_DAYS = 14
LEAST_DAYS = 14  # the slowest story, of product reviews, takes nine days
RAW = "raw"  # folder of the raw tables under the lake

# world -> its share of the rows
WORLDS: dict[Callable[[np.random.Generator, Size], World], float] = {
    store_world: 0.28,
    cards_world: 0.22,
    ward_world: 0.12,
    packets_world: 0.14,
    load_world: 0.08,
    products_world: 0.05,
    messages_world: 0.05,
    machines_world: 0.03,
    cameras_world: 0.03,
}


def generate(events: int = DEFAULT_EVENTS, days: int = DEFAULT_DAYS, seed: int = 7) -> tuple[World, ...]:
    """About `events` rows over `days` days. A small number is exceeded where a world needs more to have its stories."""
    if days < LEAST_DAYS:
        raise TableError(f"--days is {days}; the demo's stories need at least {LEAST_DAYS}")
    streams = np.random.default_rng(seed).spawn(len(WORLDS))
    return tuple(
        world(stream, Size(round(events * share), days))
        for stream, (world, share) in zip(streams, WORLDS.items(), strict=True)
    )


def mined_range_us(days: int) -> tuple[int, int]:
    """The range of detection times that holds all matches, postponed ones and the last midnight's too."""
    return START_US, START_US + (days + 2) * DAY_US


def write_tables(spark: SparkSession, settings: Settings, worlds: Iterable[World]) -> dict[str, str]:
    """Writes every raw table; returns where each is. A table that already has these rows is left alone, so that a
    second demo finds the same versions."""
    written = {}
    for world in worlds:
        for table in world.tables:
            location = settings.in_lake(f"{RAW}/{table.name}")
            if not _same(spark, location, table):
                frame = spark.createDataFrame(table.rows)
                frame.coalesce(1).write.format(table.format).mode("overwrite").option("overwriteSchema", "true").save(
                    location
                )
            written[table.name] = location
    return written


def _same(spark: SparkSession, location: str, table: RawTable) -> bool:
    """Whether the table in the lake holds just these rows, compared as a bag."""
    if "://" not in location and not Path(location).exists():
        return False
    found = spark.read.format(table.format).load(location)
    wanted = spark.createDataFrame(table.rows)
    if [(f.name, f.dataType) for f in found.schema] != [(f.name, f.dataType) for f in wanted.schema]:
        return False
    return _digest(found) == _digest(wanted)


def _digest(frame: DataFrame) -> tuple[int, int]:
    """Rows and the sum of their hashes: equal for equal bags of rows, whatever their order."""
    from pyspark.sql import functions as F

    hashes = frame.select(F.xxhash64(*frame.columns).cast("decimal(38,0)").alias("hash"))
    rows, total = hashes.agg(F.count("*"), F.sum("hash")).collect()[0]
    return int(rows), int(total or 0)
