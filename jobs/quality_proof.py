"""Input files that are shown to have no bad row, counted without Spark's reader.

Enters: a declared table as it is stored, its event source, the run's bounds. Leaves: the figures of its checks, or
None: then somebody has to look at every row (jobs/quality_rows.py).
Always holds: figures are given only where it is proven, by statistics or by the columns themselves, that no row of any
file is in breach of a check of single rows, whatever its class. So None where one row is bad, and where the source is
more than plain columns of plain files. What is counted is what `input_rows` would give: rows of the wanted classes
that the run reads, their latest time, and the ids of a sample.

Most of what a check asks is in the statistics: no value missing, no time out of bounds. What is left to read is the
class, as codes of a dictionary; the ids, for the sample; and times in row groups that lie across an end of the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.declarations import EventSource
from jobs.quality_files import BATCH_ROWS, StoredFile, in_parts, logged_span_us, nulls, parsed, span_us, stored_files
from jobs.quality_hash import SEED, hash_more, xxhash64
from jobs.quality_rows import UNIT_US, one_in_bytes, types_always_fit
from jobs.quality_tally import Batches, Figures
from schemas.expectations import Bounds, InputRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOUND = "proven boolean, rows bigint, latest bigint, ids binary"
_FOUND_ARROW = pa.schema([("proven", pa.bool_()), ("rows", pa.int64()), ("latest", pa.int64()), ("ids", pa.binary())])
_MOST_IDS = 4_000_000  # what a driver takes of a sample


@dataclass(frozen=True, slots=True)
class Proven:
    """A table without a bad row: its rows that the run reads, their latest time, and of a sample of ids how many rows
    there were and how many repeat an id."""

    rows: int
    latest_us: int | None
    sampled: int
    repeats: int
    one_in: int

    def figures(self, checks: Iterable[str]) -> list[Figures]:
        """For the tally: rows, breaches and the greatest value of each check."""
        special = {
            "duplicate_rate": (self.sampled, self.repeats, None), "freshness": (self.rows, 0, self.latest_us)
        }  # fmt: skip
        return [(name, *special.get(name, (self.rows, 0, None))) for name in checks]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A source that is plain columns, and the bounds that its times must keep."""

    id: str
    source: str
    event_class: str | None
    values: tuple[str, ...]
    start: str
    end: str
    unit_us: int
    read_from_us: int
    to_us: int
    earliest_us: int
    latest_us: int  # no event ends later
    one_in: int = 1

    @property
    def present(self) -> tuple[str, ...]:
        """The columns that must have a value in every row."""
        named = () if self.event_class is None else (self.event_class,)
        return (self.id, self.source, *named, self.start, self.end)


def prove(
    stored: DataFrame, source: EventSource, classes: Sequence[str], bounds: Bounds, rules: InputRules, sample_rows: int
) -> Proven | None:
    plain = _plain(stored, source, classes, bounds, rules)
    files = None if plain is None else stored_files(stored)
    if plain is None or files is None:
        return None
    files = [file for file in files if not _of_no_concern(file, plain)]
    one_in = one_in_bytes(sum(file.size for file in files), sample_rows)
    if sum(file.size for file in files) // one_in > _MOST_IDS * 10:
        return None
    plain = replace(plain, one_in=one_in)
    looked = in_parts(stored.sparkSession, [file.path for file in files], lambda own: _look(own, plain), _FOUND)
    found = looked.collect() if files else []
    if not all(row["proven"] for row in found):
        return None
    ids = np.sort(np.concatenate([np.empty(0, np.int64), *(np.frombuffer(row["ids"], np.int64) for row in found)]))
    latest = [row["latest"] for row in found if row["latest"] is not None]
    return Proven(
        sum(row["rows"] for row in found), max(latest, default=None), len(ids),
        int(np.count_nonzero(ids[1:] == ids[:-1])), one_in,
    )  # fmt: skip


def _plain(
    stored: DataFrame, source: EventSource, classes: Sequence[str], bounds: Bounds, rules: InputRules
) -> _Plain | None:
    """None where the source is anything but columns of a table under their own names."""
    chosen = [c for c in source.classes if c.name in set(classes)]
    kinds = {field.name: field.dataType.simpleString() for field in stored.schema}
    times = {"timestamp", "bigint", "int"} if source.unit else {"timestamp"}
    named = [source.source, *([source.class_column] if source.class_column is not None else [])]
    if (
        source.sql is not None or source.where is not None or any(c.where is not None for c in chosen)
        or not isinstance(source.event_id, str) or kinds.get(source.event_id) not in ("string", "bigint", "int")
        or any(kinds.get(name) != "string" for name in named)
        or any(kinds.get(name) not in times for name in (source.start, source.end))
        or (source.class_column is None and len(chosen) != 1)
        or not types_always_fit(stored, tuple(chosen))
    ):  # fmt: skip
        return None
    latest_us = bounds.now_us + rules.clock_skew_us
    if rules.latest_us is not None:
        latest_us = min(latest_us, rules.latest_us - 1)
    values = () if source.class_column is None else tuple(
        value for c, value in zip(source.classes, source.class_values, strict=True) if c in chosen
    )  # fmt: skip
    return _Plain(
        source.event_id, source.source, source.class_column, values, source.start, source.end,
        UNIT_US[source.unit or "us"], bounds.read_from_us, bounds.to_us, rules.earliest_us, latest_us,
    )  # fmt: skip


def _of_no_concern(file: StoredFile, plain: _Plain) -> bool:
    """Whether Delta's log shows that all rows of a file lie out of the range and within the table's span. Whether they
    lack an id is then of no concern, since no run over this range reads them."""
    stats = parsed(file.stats)
    starts, ends = (logged_span_us(stats, name, plain.unit_us) for name in (plain.start, plain.end))
    if starts is None or ends is None or starts[0] < plain.earliest_us or ends[1] > plain.latest_us:
        return False
    before = max(starts[1], ends[1]) < plain.read_from_us
    return before or min(starts[0], ends[0]) >= plain.to_us


def _look(paths: Iterable[str], plain: _Plain) -> Batches:
    for path in paths:
        named = [] if plain.event_class is None else [plain.event_class]
        file = pq.ParquetFile(path, read_dictionary=named, coerce_int96_timestamp_unit="us", memory_map=True)
        for group in range(file.num_row_groups):
            seen = _look_at_group(file, group, plain)
            proven = seen is not None
            rows, latest, ids = seen or (0, None, b"")
            told = {"proven": proven, "rows": rows, "latest": latest, "ids": ids}
            yield pa.RecordBatch.from_pylist([told], _FOUND_ARROW)
            if not proven:
                return


def _look_at_group(file: pq.ParquetFile, group: int, plain: _Plain) -> tuple[int, int | None, bytes] | None:
    """Rows, their latest time and the hashes of sampled ids; None where a row may be bad."""
    if not file.metadata.row_group(group).num_rows:
        return 0, None, b""
    if any(name not in file.schema_arrow.names for name in plain.present):
        return None
    counted = {name: nulls(file, group, name) for name in plain.present}
    if any(counted.values()):
        return None
    span = span_us(file, group, plain.start, plain.unit_us) if plain.start == plain.end else None
    if span is not None and (span[0] < plain.earliest_us or span[1] > plain.latest_us):
        return None
    if span is not None and (span[1] < plain.read_from_us or span[0] >= plain.to_us):
        return 0, None, b""
    inside = span is not None and span[0] >= plain.read_from_us and span[1] < plain.to_us
    classed = {plain.event_class} if plain.event_class is not None else set()
    unsaid = {name for name, known in counted.items() if known is None}
    timing = set() if inside else {plain.start, plain.end}
    rows, ids, times = 0, [], []
    every = True  # all rows so far are counted
    for batch in _batches(file, group, {plain.id, *classed, *unsaid, *timing}):
        if any(batch.column(name).null_count for name in unsaid):
            return None
        mask = _of_classes(batch, plain)
        if not inside:
            start, end = _micros(batch, plain.start, plain), _micros(batch, plain.end, plain)
            if start is None or end is None or _any_bad(start, end, plain):
                return None
            mask &= (end >= plain.read_from_us) & (start < plain.to_us)
            times.append(end[mask])
        rows += int(np.count_nonzero(mask))
        every = every and bool(mask.all())
        ids.append(_sampled(batch, mask, plain).tobytes())
    if span is not None and inside and every:
        return rows, span[1], b"".join(ids)
    if inside:
        for batch in _batches(file, group, {plain.end, *classed}):
            end = _micros(batch, plain.end, plain)
            if end is None:
                return None
            times.append(end[_of_classes(batch, plain)])
    latest = max((int(found.max()) for found in times if len(found)), default=None)
    return rows, latest, b"".join(ids)


def _batches(file: pq.ParquetFile, group: int, columns: set[str]) -> Batches:
    yield from file.iter_batches(BATCH_ROWS, row_groups=[group], columns=sorted(columns), use_threads=False)


def _of_classes(batch: pa.RecordBatch, plain: _Plain) -> np.ndarray:
    """Which rows are of a wanted class, bool[rows]."""
    if plain.event_class is None:
        return np.ones(len(batch), bool)
    column = batch.column(plain.event_class)
    wanted: np.ndarray = np.array([text in plain.values for text in column.dictionary.to_pylist()], bool)
    return wanted.take(np.asarray(column.indices))


def _micros(batch: pa.RecordBatch, name: str, plain: _Plain) -> np.ndarray | None:
    """Times as int64 microseconds; None where they cannot be told."""
    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()))
    if not pa.types.is_integer(column.type):
        return None
    values = np.asarray(column.cast(pa.int64()))
    limit = np.iinfo(np.int64).max // plain.unit_us
    return None if len(values) and (values.max() > limit or values.min() < -limit) else values * plain.unit_us


def _any_bad(start: np.ndarray, end: np.ndarray, plain: _Plain) -> bool:
    return bool(len(start)) and bool(
        start.min() < plain.earliest_us or end.max() > plain.latest_us or (start > end).any()
    )


def _sampled(batch: pa.RecordBatch, mask: np.ndarray, plain: _Plain) -> np.ndarray:
    """The hashes of the ids that are in the sample, int64[*]: an id with its class, as `duplicate_rate` has it."""
    column = batch.column(plain.id)
    seed = np.full(len(column), SEED, np.uint64)
    if plain.event_class is not None:
        classes = batch.column(plain.event_class)
        seed = xxhash64([classes.dictionary]).view(np.uint64).take(classes.indices)
    hashes: np.ndarray = hash_more(seed, column).view(np.int64)
    taken = mask if plain.one_in == 1 else mask & (hashes % plain.one_in == 0)
    return hashes.compress(taken)
