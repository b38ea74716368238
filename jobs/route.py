"""Primitive events to engine calls: counted, pruned, sorted and sent to their tasks.

Enters: a DataFrame of primitive events (event_id, source, event_class, start_ts, end_ts as bigint microseconds, tie,
attributes) and the groups of the query set.
Leaves: counts per group; and a DataFrame of packs (jobs/encode.py) with their task number, one Spark partition per
task. Events are cut by task and sorted by source and time on columns, before the one exchange: it moves few large
values, not rows.
Always holds: classes, columns and rows that no query needs are gone before anything is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cep_core.language.checked import Type
from jobs.distribute import Group, Layout
from jobs.encode import CUT_SCHEMA, NUMBER, cut


@dataclass(frozen=True)
class Frame:
    """What an event on its way to the engine has. points: every event starts when it ends."""

    attributes: tuple[tuple[str, Type], ...]
    points: bool
    ties: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """What travels."""
        times = ("end_ts",) if self.points else ("start_ts", "end_ts")
        ties = ("tie",) if self.ties else ()
        return ("event_id", "source", "event_class", *times, *ties, *(name for name, _ in self.attributes))


@dataclass(frozen=True)
class Counts:
    """Events of one group: rows int64[fine, cells] from low_us on, by cells of cell_us."""

    rows: np.ndarray
    low_us: int
    cell_us: int

    @property
    def total(self) -> int:
        return int(self.rows.sum())


def count_events(
    events: DataFrame, groups: Sequence[Group], needs: Mapping[int, Column], start_us: int, end_us: int
) -> tuple[dict[int, Counts], int]:
    """Rows per group, fine bucket and cell of time, and the number of rows that cannot be events, in one pass.
    `needs`: group number -> which rows it needs."""
    spans = {g.number: _cells(g, start_us, end_us) for g in groups}
    places = []
    for group in groups:
        low, cell = spans[group.number]
        place = F.struct(
            F.lit(group.number).alias("g"),
            _fine(group).alias("fine"),
            _cell(0, low, cell, group.cells).alias("cell"),
        )
        places.append(F.when(_in_reach(group, needs, start_us, end_us), place))
    broken = F.expr("event_id IS NULL OR start_ts IS NULL OR end_ts IS NULL OR start_ts > end_ts")
    unusable = F.struct(F.lit(-1).alias("g"), F.lit(0).alias("fine"), F.lit(0).alias("cell"))
    if len(places) == 1:
        placed = events.select(F.when(broken, unusable).otherwise(places[0]).alias("p")).where("p IS NOT NULL")
    else:
        found_in = F.when(broken, F.array(unusable)).otherwise(F.array_compact(F.array(*places)))
        placed = events.select(F.explode(found_in).alias("p"))
    found = placed.groupBy("p.g", "p.fine", "p.cell").count().toPandas()
    result = {}
    for group in groups:
        rows = np.zeros((group.fine, group.cells), np.int64)
        part = found[found["g"] == group.number]
        rows[part["fine"].to_numpy(), part["cell"].to_numpy()] = part["count"].to_numpy()
        result[group.number] = Counts(rows, *spans[group.number])
    return result, int(found.loc[found["g"] < 0, "count"].sum())


def route(
    events: DataFrame, layouts: Sequence[Layout], needs: Mapping[int, Column], frame: Frame, start_us: int,
    end_us: int, rows_per_cut: int,
) -> DataFrame:  # fmt: skip
    """The packs of every task, in one partition per task. The tasks of all layouts, of which there is one at least, are
    numbered from 0 without gaps."""
    sent = [layout for layout in layouts if layout.tasks]
    tasks = sum(len(layout.tasks) for layout in sent)
    reached = [(layout, _in_reach(layout.group, needs, start_us, end_us)) for layout in sent]
    if len(sent) == 1 and not sent[0].sliced:
        layout, needed = reached[0]
        task, needed_by_any = _lookup(layout.first_task, _fine(layout.group)), needed
    else:
        lists = [
            F.when(needed, _task_list(layout)).otherwise(F.array().cast("array<int>")) for layout, needed in reached
        ]
        task, needed_by_any = F.concat(*lists), reduce(lambda a, b: a | b, (needed for _, needed in reached))
    numbered = events.where(needed_by_any).select(task.alias(NUMBER), *frame.columns)
    return by_number(numbered.mapInArrow(cut(rows_per_cut), CUT_SCHEMA), tasks)


def by_number(packs: DataFrame, count: int) -> DataFrame:
    """One Spark partition for each number."""
    return packs.repartitionById(count, F.col(NUMBER).cast("int"))


def _in_reach(group: Group, needs: Mapping[int, Column], start_us: int, end_us: int) -> Column:
    ends = F.col("end_ts")
    return needs[group.number] & (ends >= start_us - group.lookback_us) & (ends < end_us)


def _cells(group: Group, start_us: int, end_us: int) -> tuple[int, int]:
    low = start_us - group.lookback_us
    return low, max(-(-(end_us - low) // group.cells), 1)


def _fine(group: Group) -> Column:
    """The hash range of an event's key. Doubles are hashed with -0.0 as 0.0, which are equal as keys."""
    if not group.key_of:
        return F.lit(0)
    return F.xxhash64(key_column(group)).bitwiseAND(F.lit(group.fine - 1)).cast("int")


def key_column(group: Group) -> Column:
    """The attribute that an event is distributed by; null for an event without one, which cannot take part."""
    attributes = sorted(set(group.key_of.values()))
    if len(attributes) == 1:
        return F.col(attributes[0])
    cases = [
        F.when(
            F.col("event_class").isin(sorted(c for c, a in group.key_of.items() if a == attribute)), F.col(attribute)
        )
        for attribute in attributes
    ]
    return F.coalesce(*cases)


def _task_list(layout: Layout) -> Column:
    fine = _fine(layout.group)
    first = _lookup(layout.first_task, fine)
    if not layout.sliced:
        return F.array(first)
    strip = _lookup(layout.strip_of, fine)
    cells = layout.slices.shape[1]

    def later(shift_us: int) -> Column:
        cell = _cell(shift_us, layout.low_us, layout.cell_us, cells)
        return _lookup(layout.slices.reshape(-1), strip * cells + cell)

    sliced = F.sequence(first + later(0), first + later(layout.group.lookback_us))
    return F.when(strip < 0, F.array(first)).otherwise(sliced)


def _lookup(table: np.ndarray, place: Column) -> Column:
    """table[place]; a constant where all its values are equal."""
    values = [int(value) for value in table]
    if len(set(values)) == 1:
        return F.lit(values[0])
    return F.element_at(F.lit(np.asarray(values, np.int32)), place + 1)


def _cell(shift_us: int, low_us: int, cell_us: int, cells: int) -> Column:
    """The cell of end_ts + shift, in whole numbers: doubles are not exact for microseconds. `div` cuts towards zero;
    what lies before the first cell is clipped to it anyway."""
    cell = F.expr(f"(end_ts - {low_us - shift_us}) div {cell_us}")
    return F.greatest(F.lit(0), F.least(F.lit(cells - 1), cell)).cast("int")
