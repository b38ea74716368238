"""From packs to engine calls: the way of a run whose events are packed.

Enters: a packing that is up to date, and groups of queries that are distributed by source or by time alone.
Leaves: counts per group from the packs' own figures, and a DataFrame of packs with the task that each goes to.
Always holds: a pack goes to every task that may need one of its events; the task leaves out those that it does not
need. Nothing of a pack's content is read to count or to route it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions as F

from jobs import tables
from jobs.distribute import Group, Layout, Task
from jobs.encode import CONTENT, NUMBER
from jobs.packs import Packing
from jobs.route import Counts, by_number
from schemas import PACKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

_PLACE = ("hash_range", "stretch", "part")


@dataclass(frozen=True)
class Shelf:
    """The packs that a run may need. place: rows of (hash_range, stretch, part); events, first_us, last_us as in the
    table; all int64 and of the same length."""

    packing: Packing
    packs: DataFrame
    place: np.ndarray
    events: np.ndarray
    first_us: np.ndarray
    last_us: np.ndarray


def packable(group: Group) -> bool:
    """Packs are cut by source and time: they serve queries by source, and those without a key."""
    return not group.stateful and set(group.key_of.values()) <= {"source"}


def open_shelf(spark: SparkSession, settings: Settings, packing: Packing, low_us: int, high_us: int) -> Shelf:
    """The packs with events that end in [low, high)."""
    stretches = F.col("stretch").between(low_us // packing.stretch_us, (high_us - 1) // packing.stretch_us)
    packs = tables.read(spark, settings, PACKS.name, packing.version).where(stretches)
    packs = packs.where((F.col("last_us") >= low_us) & (F.col("first_us") < high_us))
    found = packs.select(*_PLACE, "events", "first_us", "last_us").toPandas().astype(np.int64)
    columns = (found[name].to_numpy() for name in ("events", "first_us", "last_us"))
    return Shelf(packing, packs, found[list(_PLACE)].to_numpy(), *columns)


def count_packs(shelf: Shelf, group: Group, start_us: int, end_us: int) -> Counts:
    """Events per hash range (one, without a key) and stretch: never fewer than the group needs."""
    length = shelf.packing.stretch_us
    low = (start_us - group.lookback_us) // length
    rows = np.zeros((shelf.packing.ranges if group.key_of else 1, (end_us - 1) // length - low + 1), np.int64)
    within = (shelf.last_us >= start_us - group.lookback_us) & (shelf.first_us < end_us)
    fine = shelf.place[within, 0] if group.key_of else np.zeros(int(within.sum()), np.int64)
    np.add.at(rows, (fine, shelf.place[within, 1] - low), shelf.events[within])
    return Counts(rows, low * length, length)


def route_packs(spark: SparkSession, shelf: Shelf, layouts: Sequence[Layout]) -> DataFrame:
    """Each pack once for every task that may need it, one Spark partition per task."""
    pairs = []
    for layout in layouts:
        for fine, tasks in _tasks_of(layout).items():
            own = shelf.place[:, 0] == fine if layout.group.key_of else np.ones(len(shelf.place), bool)
            for task in tasks:
                low = task.start_us - layout.group.lookback_us
                for place in shelf.place[own & (shelf.last_us >= low) & (shelf.first_us < task.end_us)]:
                    pairs.append((*(int(number) for number in place), task.number))
    count = sum(len(layout.tasks) for layout in layouts)
    routes = spark.createDataFrame(pairs, f"hash_range int, stretch bigint, part int, {NUMBER} bigint")
    return by_number(shelf.packs.join(F.broadcast(routes), list(_PLACE)).select(NUMBER, CONTENT), count)


def _tasks_of(layout: Layout) -> dict[int, list[Task]]:
    """Hash range -> its tasks, in the order of time."""
    by_number = {task.number: task for task in layout.tasks}
    found = {}
    for fine, (first, strip) in enumerate(zip(layout.first_task, layout.strip_of, strict=True)):
        last = int(first) + (int(layout.slices[strip].max()) if strip >= 0 else 0)
        found[fine] = [by_number[number] for number in range(int(first), last + 1) if number in by_number]
    return found
