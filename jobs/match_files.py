"""Files of matches: written by the workers that found them, in the form in which composite_events holds them.

Enters: tables of matches in the columns of composite_events. Leaves: Parquet files below the table's folder, one a day
of detection, and a `MatchFile` for each: its place, what is in it, and how often it breaks the table's contract.
Always holds: a file belongs to no table until a commit names it (commit.py), and no name is used twice. So a task that
is tried again, and a run that dies, leave files that nobody reads; VACUUM removes them as it does Delta's own.

Spark would make rows of its own of every match and member, and columns of them again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from schemas import COMPOSITE_EVENTS

FILE_SCHEMA = "file string"
DAY_US = 86_400_000_000
_ROWS_AT_ONCE = 200_000

_US = pa.timestamp("us", tz="UTC")
_MEMBER = pa.struct([("element", pa.string()), ("event_class", pa.string()), ("event_id", pa.string()),
                     ("start_ts", _US), ("end_ts", _US)])  # fmt: skip
# The columns of composite_events but its partition, which is in a file's path.
MATCH_ARROW = pa.schema([
    ("query_id", pa.string()), ("match_id", pa.string()), ("start_ts", _US), ("end_ts", _US), ("detection_ts", _US),
    ("members", pa.list_(_MEMBER)), ("fields", pa.map_(pa.string(), pa.string())), ("source", pa.string()),
    ("run_id", pa.string()), ("query_version", pa.string()), ("input_versions", pa.map_(pa.string(), pa.int64())),
])  # fmt: skip
_PARTITION = COMPOSITE_EVENTS.partition_by[0]
# Columns whose values repeat; a dictionary of any other would be made, found useless and thrown away.
_REPEATING = ["query_id", "members.list.element.element", "members.list.element.event_class", "fields.key_value.key",
              "source", "run_id", "query_version", "input_versions.key_value.key",
              "input_versions.key_value.value"]  # fmt: skip


@dataclass(frozen=True)
class MatchFile:
    """A file of matches. path: below the table's folder; day: the date of detection of all its rows; first_us, last_us:
    the first and last detection; matches: by query; breaches: constraint -> rows that break it, of those that were
    looked at (`CONSTRAINTS`, and `not_null`); stats: as Delta keeps them with a file."""

    path: str
    size: int
    rows: int
    day: str
    first_us: int
    last_us: int
    matches: dict[str, int]
    breaches: dict[str, int]
    stats: dict[str, Any]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> MatchFile:
        return MatchFile(**json.loads(text))


def write_matches(matches: pa.Table, folder: str) -> Iterator[MatchFile]:
    """Files of these matches, given in the columns of MATCH_ARROW. folder: the table's, as a path or URI that pyarrow
    knows."""
    if not len(matches):
        return
    system, root = file_system(folder)
    days = _micros(matches, "detection_ts") // DAY_US
    if (days[1:] < days[:-1]).any():
        order = np.argsort(days, kind="stable")
        matches, days = matches.take(pa.array(order)), days[order]
    edges = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
    for low, high in pairwise(edges):
        day = str(np.datetime64(int(days[low]), "D"))
        path = f"{_PARTITION}={day}/part-{uuid.uuid4()}.snappy.parquet"
        system.create_dir(f"{root}/{_PARTITION}={day}", recursive=True)
        part = matches.slice(low, high - low)
        pq.write_table(
            part, f"{root}/{path}", filesystem=system, compression="snappy", use_dictionary=_REPEATING,
            write_statistics=list(COMPOSITE_EVENTS.skip_by), store_schema=False,
        )  # fmt: skip
        yield _described(part, day, path, system.get_file_info(f"{root}/{path}").size)


def write_batches(folder: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for mapInArrow over rows of composite_events: FILE_SCHEMA."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(map(len, held)) >= _ROWS_AT_ONCE:
                yield _written(held, folder)
                held = []
        if held:
            yield _written(held, folder)

    return write


def _written(batches: list[pa.RecordBatch], folder: str) -> pa.RecordBatch:
    matches = pa.Table.from_batches(batches).select(MATCH_ARROW.names).cast(MATCH_ARROW)
    files = [file.to_json() for file in write_matches(matches, folder)]
    return pa.RecordBatch.from_pydict({"file": pa.array(files, pa.string())})


def file_system(folder: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """
    >>> file_system("file:/tmp/lake/")[1]
    '/tmp/lake'
    """
    scheme, _, rest = folder.partition(":")
    if scheme == "file":
        folder = "/" + rest.lstrip("/")
    elif scheme in ("s3a", "s3n"):
        folder = f"s3:{rest}"
    system, root = pyarrow.fs.FileSystem.from_uri(folder)
    return system, root.rstrip("/")


def _described(part: pa.Table, day: str, path: str, size: int) -> MatchFile:
    detection = _micros(part, "detection_ts")
    matches: dict[str, int] = {}
    runs = pc.run_end_encode(part.column("query_id").combine_chunks())  # matches come query by query
    for name, count in zip(runs.values.to_pylist(), np.diff(runs.run_ends.to_numpy(), prepend=0).tolist(), strict=True):
        matches[str(name)] = matches.get(str(name), 0) + count
    low, high, nulls = {}, {}, {}
    for name in COMPOSITE_EVENTS.skip_by:
        column = part.column(name)
        nulls[name] = column.null_count
        if column.null_count < len(column):
            least, most = pc.min_max(column).as_py().values() if pa.types.is_string(column.type) else (
                _stamp(value) for value in pc.min_max(column.cast(pa.int64())).as_py().values()
            )  # fmt: skip
            low[name], high[name] = least, most
    stats = {"numRecords": len(part), "minValues": low, "maxValues": high, "nullCount": nulls}
    breaches = {name: found for name, count in CONSTRAINTS.items() if (found := count(part))}
    return MatchFile(
        path, size, len(part), day, int(detection.min()), int(detection.max()), matches, breaches, stats
    )  # fmt: skip


def _stamp(us: int) -> str:
    """A time as Delta's statistics have it: cut to milliseconds, which their readers know."""
    return f"{np.datetime64(us // 1000, 'ms')}Z"


def _micros(part: pa.Table, name: str) -> np.ndarray:
    values: np.ndarray = pc.fill_null(part.column(name).cast(pa.int64()), 0).to_numpy()
    return values


def _without_value(part: pa.Table) -> int:
    required = [c.name for c in COMPOSITE_EVENTS.columns if c.required and c.name != _PARTITION]
    return sum(part.column(name).null_count for name in required)


def _failing(holds: Any) -> int:
    """Rows for which it does not hold. An unknown holds, as for Delta."""
    return int(np.count_nonzero(~np.asarray(holds)))


def _id_lengths(part: pa.Table) -> Any:
    return pc.fill_null(pc.binary_length(part.column("match_id")), 32).to_numpy() == 32


# What Delta would look at for every row that it writes, since no writer may leave it out.
CONSTRAINTS: Mapping[str, Callable[[pa.Table], int]] = {
    "not_null": _without_value,
    "match_id_is_hash": lambda part: _failing(_id_lengths(part)),
    "starts_before_end": lambda part: _failing(_micros(part, "start_ts") <= _micros(part, "end_ts")),
    "known_after_end": lambda part: _failing(_micros(part, "end_ts") <= _micros(part, "detection_ts")),
    "date_of_detection": lambda part: len(np.unique(_micros(part, "detection_ts") // DAY_US)) - 1,
    "has_members": lambda part: _failing(pc.fill_null(pc.list_value_length(part.column("members")), 1).to_numpy() > 0),
}
