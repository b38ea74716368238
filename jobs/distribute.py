"""Which queries are mined together, and how their events are cut into engine calls.

Enters: the checked queries; then counts of their events per hash range ("fine bucket") and time cell.
Leaves: `Group`s (queries that are distributed by the same key), and for each a `Layout`: its tasks (one engine call
each) and the tables that say to which tasks an event goes.
Always holds: every target query is in one group; every event of a partition that a detection in [start, end) of a task
needs is sent to that task; the tasks of a fine bucket cover [from, to) without overlap, so each match is found once.
Only numbers here: no Spark, no tables.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cep_core.language.checked import CheckedQuery, Schema
from jobs.keys import KeyOf, chain_key, classes, shared_keys
from jobs.reach import closure, consumes, lookback_us, settle_us

FINE_BUCKETS = 1024  # hash ranges that are counted and packed into tasks; a power of two
CELLS = 64  # parts of the time that are counted per fine bucket; of a group without a key, FINE_BUCKETS of them
SMALL_CALL_ROWS = 100_000  # below this an engine call is not worth splitting for the sake of more cores


@dataclass(frozen=True)
class Group:
    """Queries that are mined in the same calls.

    targets: the queries whose matches are kept; queries: those and all that they refer to, found on the way only.
    key_of: class -> the attribute that is hashed; empty: no key, one partition. stateful: they consume, so their calls
    follow one another in time. settle_us: how long before the run their state must be known.
    """

    number: int
    targets: tuple[str, ...]
    queries: tuple[str, ...]
    classes: tuple[str, ...]
    key_of: KeyOf
    lookback_us: int
    stateful: bool
    settle_us: int

    @property
    def fine(self) -> int:
        return FINE_BUCKETS if self.key_of else 1

    @property
    def cells(self) -> int:
        return CELLS if self.key_of else FINE_BUCKETS

    def describe(self) -> str:
        key = ", ".join(sorted({str(name) for name in self.key_of.values()})) or "time only"
        state = ", in order of time (CONSUME)" if self.stateful else ""
        return f"{len(self.targets)} queries by {key}{state}"


@dataclass(frozen=True)
class Task:
    """One engine call: the matches of a group's bucket that are detected in [start_us, end_us)."""

    number: int
    group: int
    start_us: int
    end_us: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """Where the events of one group go.

    low_us, cell_us: the cell of a time t is (t - low_us) // cell_us, clipped to the cells there are.
    first_task: int32[fine], the task of each fine bucket, the first one where it is sliced.
    strip_of: int32[fine], the row of `slices` for a sliced fine bucket, else -1.
    slices: int32[strips, cells], how many tasks after the first one holds the detections of that cell.
    """

    group: Group
    tasks: tuple[Task, ...]
    low_us: int
    cell_us: int
    first_task: np.ndarray
    strip_of: np.ndarray
    slices: np.ndarray

    @property
    def sliced(self) -> bool:
        return bool(len(self.slices))


def group_queries(targets: Iterable[str], queries: Mapping[str, CheckedQuery], schema: Schema) -> tuple[Group, ...]:
    """The target queries by the key they can be distributed on: `source` first, then the attribute that serves most of
    those left, then chains of equalities; what is left has no key and is cut by time alone."""
    names = sorted(set(targets))
    closures = {name: closure([name], queries) for name in names}
    keys = {name: shared_keys(closures[name], queries) for name in names}
    popular = Counter(key for found in keys.values() for key in found)
    gathered: dict[tuple[object, ...], tuple[KeyOf, list[str]]] = {}
    chains: list[tuple[bool, dict[str, str], list[str]]] = []
    for name in names:
        stateful = consumes(name, queries)
        apart = name if stateful and queries[name].refers_to else ""  # its state must reach further back than others'
        if keys[name]:
            key = "source" if "source" in keys[name] else max(keys[name], key=lambda k: (popular[k], k))
            wanted = {c for member in closures[name] for c in classes(queries[member]) if c not in queries}
            key_of, members = gathered.setdefault((stateful, apart, key), ({}, []))
            key_of.update(dict.fromkeys(wanted, key))  # type: ignore[attr-defined]
            members.append(name)
        elif chain := chain_key(queries[name], schema):
            _join_chain(chains, stateful, chain, name)
        else:
            gathered.setdefault((stateful, apart, ""), ({}, []))[1].append(name)
    found = [(stateful, key_of, members) for (stateful, *_), (key_of, members) in gathered.items()]
    found += chains
    ordered = sorted(found, key=lambda item: (bool(item[0]), item[2]))
    return tuple(
        _group(number, members, key_of, bool(stateful), queries)
        for number, (stateful, key_of, members) in enumerate(ordered)
    )


def _join_chain(chains: list[tuple[bool, dict[str, str], list[str]]], stateful: bool, chain: KeyOf, name: str) -> None:
    """Into the first group of chains that hashes no class by another attribute."""
    for other, key_of, members in chains:
        if other == stateful and all(key_of.get(c, attribute) == attribute for c, attribute in chain.items()):
            key_of.update(chain)
            members.append(name)
            return
    chains.append((stateful, dict(chain), [name]))


def _group(
    number: int, members: list[str], key_of: KeyOf, stateful: bool, queries: Mapping[str, CheckedQuery]
) -> Group:
    everything = closure(members, queries)
    read = {c for name in everything for c in classes(queries[name]) if c not in queries}
    return Group(
        number, tuple(members), everything, tuple(sorted(read)), dict(key_of),
        max(lookback_us(name, queries) for name in members), stateful,
        max((settle_us(name, queries) for name in members), default=0) if stateful else 0,
    )  # fmt: skip


def lay_out(
    group: Group, counts: np.ndarray, low_us: int, cell_us: int, start_us: int, end_us: int,
    rows_per_call: int, parallelism: int, first_number: int,
) -> Layout:  # fmt: skip
    """Tasks for one group. counts int64[fine, cells]: its events by hash range and by cell of their end_ts.

    Fine buckets are packed into as many tasks as keep each under the rows per call and all cores busy. A fine bucket
    that is too large by itself (a hot key, or no key at all) is cut in time; each part also gets the lookback.
    """
    per_fine = counts.sum(axis=1)
    total = int(per_fine.sum())
    limit = min(rows_per_call, max(-(-total // max(parallelism, 1)), SMALL_CALL_ROWS))
    hot = [] if group.stateful else [int(f) for f in np.flatnonzero(per_fine > limit * 5 // 4)]
    tasks: list[Task] = []
    first_task = np.zeros(len(per_fine), np.int32)
    strip_of = np.full(len(per_fine), -1, np.int32)
    strips: list[np.ndarray] = []
    for fine in hot:
        edges = cut_times(counts[fine], low_us, cell_us, start_us, end_us, group.lookback_us, limit)
        if len(edges) == 2:
            continue
        first_task[fine] = first_number + len(tasks)
        strip_of[fine] = len(strips)
        starts_of_cells = low_us + cell_us * np.arange(len(counts[fine]), dtype=np.int64)
        strips.append(np.clip(np.searchsorted(edges, starts_of_cells, side="right") - 1, 0, len(edges) - 2))
        for start, end in pairwise(edges):
            rows = _rows_between(counts[fine], low_us, cell_us, start - group.lookback_us, end)
            tasks.append(Task(first_number + len(tasks), group.number, start, end, rows))
    for bucket in _pack(per_fine, np.flatnonzero(strip_of < 0), limit):
        first_task[bucket] = first_number + len(tasks)
        rows = int(per_fine[bucket].sum())
        tasks.append(Task(first_number + len(tasks), group.number, start_us, end_us, rows))
    slices = np.array(strips, np.int32).reshape(len(strips), counts.shape[1])
    return Layout(group, tuple(tasks), low_us, cell_us, first_task, strip_of, slices)


def cut_times(
    per_cell: np.ndarray, low_us: int, cell_us: int, start_us: int, end_us: int, lookback_us: int, limit: int
) -> list[int]:
    """Edges of slices of [start, end), at borders of cells, so that a slice and its lookback stay under `limit` rows.

    Where the lookback alone is more than half the limit, a slice is as long as the lookback: shorter ones would send
    the same events again and again, and no cut can make the window itself smaller.
    """
    borders = low_us + cell_us * np.arange(len(per_cell) + 1, dtype=np.int64)
    borders = borders[(borders > start_us) & (borders < end_us)]
    if not len(borders):
        return [start_us, end_us]
    edges = [start_us]
    for here, after in zip(borders, [*borders[1:], end_us], strict=True):
        begin = edges[-1]
        before = _rows_between(per_cell, low_us, cell_us, begin - lookback_us, begin)
        if 2 * before > limit:
            full = after - begin > lookback_us
        else:
            full = _rows_between(per_cell, low_us, cell_us, begin - lookback_us, after) > limit
        if full and here > begin:
            edges.append(int(here))
    return [*edges, end_us]


def _rows_between(per_cell: np.ndarray, low_us: int, cell_us: int, start_us: int, end_us: int) -> int:
    """Rows of the cells that touch [start, end): never less than there are."""
    first = max((start_us - low_us) // cell_us, 0)
    last = max(-(-(end_us - low_us) // cell_us), 0)
    return int(per_cell[first:last].sum())


def _pack(per_fine: np.ndarray, free: np.ndarray, limit: int) -> list[np.ndarray]:
    """Fine buckets into bins of about `limit` rows: the largest first, each into the emptiest bin."""
    rows = int(per_fine[free].sum())
    if not len(free) or rows == 0:
        return []
    bins = [(0, number) for number in range(min(-(-rows // limit), len(free)))]
    held: list[list[int]] = [[] for _ in bins]
    for fine in free[np.argsort(-per_fine[free], kind="stable")]:
        size, number = heapq.heappop(bins)
        held[number].append(int(fine))
        heapq.heappush(bins, (size + int(per_fine[fine]), number))
    return [np.array(sorted(members), np.int64) for members in held if members]
