"""The worlds of the demo, all of them, from one seed.

Enters: how many rows in all, over how many days, and a seed. Leaves: `World` values; `write_tables` puts their raw
tables into the lake.
Always holds: the same arguments give the same tables, byte for byte, on every machine; each world draws from a stream
of its own, so a change in one leaves the others as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

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
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

DEFAULT_EVENTS = 60_000
DEFAULT_DAYS = 14
LEAST_DAYS = 14  # the slowest story, of product reviews, takes nine days
WRITERS = 4
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
    """Writes every raw table; returns where each is. A table that holds this very content is left alone, so that a
    second demo finds the same versions."""
    listed = [table for world in worlds for table in world.tables]

    def write(table: RawTable) -> str:
        location = settings.in_lake(f"{RAW}/{table.name}")
        content = fingerprint(table)
        held = _last_commit(location) == content if table.format == "delta" else _holds(location, table.rows)
        if not held:
            frame = spark.createDataFrame(table.rows).coalesce(1)
            writer = frame.write.format(table.format).mode("overwrite").option("overwriteSchema", "true")
            writer.option("userMetadata", content).save(location)
        return location

    with ThreadPoolExecutor(WRITERS) as writers:  # a small write waits for the driver more than it works
        return dict(zip((table.name for table in listed), writers.map(write, listed), strict=True))


def fingerprint(table: RawTable) -> str:
    """A hash of the table's rows, in their order, and of its columns."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.rows.schema) as stream:
        stream.write_table(table.rows.combine_chunks())
    return f"demo {hashlib.sha256(sink.getvalue()).hexdigest()}"


def _last_commit(location: str) -> str | None:
    """What the last commit of a Delta table in a local folder says about itself; None where there is none to read."""
    commits = sorted(Path(location, "_delta_log").glob("*.json"))
    if not commits:
        return None
    actions = (json.loads(line) for line in commits[-1].read_text(encoding="utf-8").splitlines())
    return next((a["commitInfo"].get("userMetadata") for a in actions if "commitInfo" in a), None)


def _holds(location: str, rows: pa.Table) -> bool:
    """Whether a local folder of Parquet holds these rows, in this order, whole."""
    if not Path(location, "_SUCCESS").is_file():
        return False
    from pyarrow import parquet

    return bool(parquet.read_table(location).cast(rows.schema).equals(rows))
