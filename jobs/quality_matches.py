"""Staged matches looked at: what each check of them counts, on columns.

Enters: staged matches as Arrow batches, straight from their files where these lie on a file system of this machine,
else through Spark; the facts of their queries. Leaves: rows of PACKED (jobs/quality_tally.py): the figures of each
MatchCheck, and the hashes of match ids and of members.
Always holds: every match is looked at, in one pass. A value that is not there, in a column that must have one, is a
breach. Ids of members are read only from row groups whose matches may lie in the stretch that is asked for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from jobs.quality_files import BATCH_ROWS, in_parts, local_files, outside
from jobs.quality_hash import xxhash64
from jobs.quality_tally import ASKED, PACKED, REPEATS, Batches, Blocks, packed
from schemas.expectations import Bounds, QueryFacts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOP = ("query_id", "match_id", "start_ts", "end_ts", "detection_ts", "query_version")
_TIMES, _IDS, _NAME = ("start_ts", "end_ts"), ("event_class", "event_id"), ("element",)
_NEVER = np.iinfo(np.int64).min  # a time that is not there
_NAMED = ("query_id", "query_version")


@dataclass(frozen=True, slots=True)
class Look:
    """What matches are held against. `classes` are those of the input; `stretch_us`: where in time members are looked
    up, [low, high); None: everywhere."""

    facts: tuple[QueryFacts, ...]
    bounds: Bounds
    classes: frozenset[str]
    stretch_us: tuple[int, int] | None = None

    @property
    def staged(self) -> bool:
        return any(facts.order == "staged" for facts in self.facts)


def look(staged: DataFrame, asked: Look) -> DataFrame:
    """The tally of staged matches, on its way: rows of PACKED."""
    files = local_files(staged)
    if files is None:
        return staged.select(*_TOP, "members").mapInArrow(lambda batches: _tally(batches, asked), PACKED)
    return in_parts(staged.sparkSession, files, lambda own: _tally(_read(own, asked), asked), PACKED)


def stretch(staged: DataFrame, run_id: str, bounds: Bounds, one_in: int) -> tuple[int, int] | None:
    """[low, high): where in time members are looked up. One part in so many of what the run reads, from the start of a
    match on, which another run id would choose otherwise; None, everywhere, for one in one or where nothing matched."""
    if one_in == 1:
        return None
    files = local_files(staged)
    if files is None:
        chosen = F.min_by(F.unix_micros("start_ts"), F.xxhash64("match_id", F.lit(run_id)))
        low = staged.agg(chosen).collect()[0][0]
    else:
        low = _some_start(files, random.Random(run_id))
    return None if low is None else (low, low + (bounds.to_us - bounds.read_from_us) // one_in + 1)


def _some_start(files: Sequence[str], chance: random.Random) -> int | None:
    opened = (pq.ParquetFile(path, coerce_int96_timestamp_unit="us") for path in chance.sample(files, len(files)))
    for file in opened:
        for group in chance.sample(range(file.num_row_groups), file.num_row_groups):
            column = file.read_row_group(group, columns=["start_ts"], use_threads=False).column(0).drop_null()
            if len(column):
                return int(_micros(column.chunk(0))[chance.randrange(len(column.chunk(0)))])
    return None


def _read(files: Iterable[str], asked: Look) -> Batches:
    for path in files:
        file = pq.ParquetFile(path, read_dictionary=list(_NAMED), coerce_int96_timestamp_unit="us", memory_map=True)
        for group in range(file.num_row_groups):
            members = [*_TIMES, *(_NAME if asked.staged else ())]
            if asked.stretch_us is None or not outside(file, group, *_TIMES, *asked.stretch_us):
                members += _IDS
            columns = [*_TOP, *(f"members.list.element.{name}" for name in members)]
            yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False)


def _tally(batches: Batches, asked: Look) -> Batches:
    ids, members = Blocks("match_id_unique", REPEATS), Blocks("members_exist", ASKED)
    breaches: Counter[str] = Counter()
    rows = absent = 0
    for batch in batches:
        if not len(batch):
            continue
        matches = _Matches(batch, asked.facts)
        rows += len(batch)
        for name, found in _breaches(matches, asked.bounds).items():
            breaches[name] += int(np.count_nonzero(found))
        known = batch.column("match_id").drop_null()
        yield from ids.add(xxhash64([known]))
        wanted, missing = _wanted(matches, asked)
        absent += missing
        yield from members.add(wanted)
    yield from ids.rest()
    yield from members.rest()
    yield packed([
        *((name, rows, breaches[name], None) for name in _CHECKS), ("members_exist", absent, absent, None)
    ])  # fmt: skip


class _Matches:
    """A batch of matches in numpy. Times are int64 microseconds, _NEVER where there is none."""

    def __init__(self, batch: pa.RecordBatch, facts: tuple[QueryFacts, ...]) -> None:
        self.rows = len(batch)
        self.start, self.end, self.detection = (_micros(batch.column(f"{n}_ts")) for n in ("start", "end", "detection"))
        lists = batch.column("members")
        self.sizes = np.asarray(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
        inner = lists.flatten()  # without what lies under a NULL
        self.members = {field.name: inner.field(n) for n, field in enumerate(inner.type)}
        self.first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)  # int64[rows], place of members
        self.member_start, self.member_end = (_micros(self.members[name]) for name in _TIMES)
        # Per match the number of its query's facts, -1 where no query is known by that name; per query, its facts.
        self.query = _codes(batch.column("query_id"), {f.query_id: n for n, f in enumerate(facts)})
        self.version = _codes(batch.column("query_version"), {f.version: n for n, f in enumerate(facts)})
        self.facts = facts

    def of_query(self, values: Iterable[int], unknown: int) -> np.ndarray:
        """A value per query as a value per match, int64[rows]."""
        return np.array([*values, unknown], np.int64).take(self.query)

    def over_members(self, fold: np.ufunc, values: np.ndarray, empty: int) -> np.ndarray:
        """The fold of each match's members, int64[rows]; `empty` where it has none."""
        found = np.full(self.rows, empty, np.int64)
        filled = self.sizes > 0
        if filled.any():
            found[filled] = fold.reduceat(values, self.first[filled])
        return found


def _breaches(m: _Matches, bounds: Bounds) -> dict[str, np.ndarray]:
    """Check -> bool[rows], which matches are in breach."""
    last_start = m.over_members(np.maximum, m.member_start, _NEVER)
    timeless = m.over_members(np.minimum, np.minimum(m.member_start, m.member_end), _NEVER) == _NEVER
    own = (m.start == m.over_members(np.minimum, m.member_start, _NEVER)) & (
        m.end == m.over_members(np.maximum, m.member_end, _NEVER)
    )
    within = m.of_query((_NO_END if f.within_us is None else f.within_us for f in m.facts), _NO_END)
    versions = {f.version: n for n, f in enumerate(m.facts)}  # queries of one text have one version
    version = m.of_query((versions[f.version] for f in m.facts), -2)
    return {
        "match_times": timeless | ~own | (m.end < last_start),
        "match_window": m.end - m.start > within,
        "members_in_order": _out_of_order(m),
        "detection_in_run": (m.detection < bounds.from_us) | (m.detection >= bounds.to_us) | (m.detection < m.end),
        "query_version_known": (m.query < 0) | (m.version != version),
    }


_CHECKS = ("match_times", "match_window", "members_in_order", "detection_in_run", "query_version_known")
_NO_END = int(np.iinfo(np.int64).max)


def _out_of_order(m: _Matches) -> np.ndarray:
    """Which matches have members that are not in the order that their query's text promises, bool[rows]."""
    flat = m.of_query((f.order == "flat" for f in m.facts), 0) > 0
    ordered = m.of_query((f.ties_ordered for f in m.facts), 0) > 0
    stages = m.of_query((len(f.stages) for f in m.facts), 0)
    late = np.zeros(len(m.member_start), np.int64)  # a member that begins too early for the one before it
    row_of = np.repeat(np.arange(m.rows), m.sizes)
    follows = row_of[1:] == row_of[:-1]
    late[1:] = follows & _not_before(m.member_end[:-1], m.member_start[1:], ordered[row_of[1:]])
    found: np.ndarray = flat & ((m.sizes != stages) | (m.over_members(np.add, late, 0) > 0))
    for number, facts in enumerate(m.facts):
        if facts.order == "staged" and (m.query == number).any():
            found |= (m.query == number) & _out_of_stage(m, facts)
    return found


def _out_of_stage(m: _Matches, facts: QueryFacts) -> np.ndarray:
    """Which matches have a member of a stage that ends after one of a later stage begins, bool[rows]."""
    stage = _codes(m.members["element"], dict(facts.stages))
    found = np.zeros(m.rows, bool)
    for later in range(1, max(number for _, number in facts.stages) + 1):
        before = np.where((stage >= 0) & (stage < later), m.member_end, _NEVER)
        here = np.where(stage == later, m.member_start, _NO_END)
        end, begin = m.over_members(np.maximum, before, _NEVER), m.over_members(np.minimum, here, _NO_END)
        found |= (end != _NEVER) & (begin != _NO_END) & _not_before(end, begin, np.array(facts.ties_ordered))
    return found


def _not_before(end: np.ndarray, start: np.ndarray, ties_ordered: np.ndarray) -> Any:
    return (end > start) | ((end == start) & ~ties_ordered)


def _wanted(m: _Matches, asked: Look) -> tuple[np.ndarray, int]:
    """The hashes of the members to be looked up, int64[*]; and how many there are that no row can be equal to."""
    if "event_id" not in m.members:
        return np.empty(0, np.int64), 0
    here = _codes(m.members["event_class"], dict.fromkeys(asked.classes, 1)) > 0
    if asked.stretch_us is not None:
        here &= (m.member_start >= asked.stretch_us[0]) & (m.member_start < asked.stretch_us[1])
    rows = np.flatnonzero(here)
    columns = [m.members[name].take(pa.array(rows)) for name in (*_IDS, *_TIMES)]
    whole = np.logical_and.reduce([np.asarray(column.is_valid()) for column in columns])
    present = [column.filter(pa.array(whole)) for column in columns]
    times = [column.cast(pa.timestamp("us", "UTC")) for column in present[2:]]
    return xxhash64([*present[:2], *times]), int(len(rows) - np.count_nonzero(whole))


def _micros(column: Any) -> np.ndarray:
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return np.asarray(pc.fill_null(micros, _NEVER))


def _codes(column: Any, numbers: Mapping[str, int]) -> np.ndarray:
    """Each text's number, int64[*]; -1 where it is not there or has none."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    table: np.ndarray = np.array([*(numbers.get(text, -1) for text in encoded.dictionary.to_pylist()), -1], np.int64)
    return table.take(np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), len(table) - 1)))


