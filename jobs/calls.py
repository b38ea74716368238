"""One engine call: what runs inside a Spark Python worker.

Enters: the rows of one task, in batches, sorted by source and time. Leaves: chunks: matches (or a state) as Arrow
streams in a binary column, with counts; `unpack` turns chunks of matches into rows without a Python object per match.
Always holds: a call holds its events and one chunk of answers, never all of them; only matches of the group's targets
that are detected in the task's range leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from jobs.distribute import Task
from jobs.route import CLASS, NULL, TASK, Frame

CHUNK_SCHEMA = "kind string, rows bigint, matches bigint, chunk binary"
MATCH_SCHEMA = (
    "query_id string, match_id string, start_ts timestamp, end_ts timestamp, detection_ts timestamp, "
    "members array<struct<element:string,event_class:string,event_id:string,start_ts:timestamp,end_ts:timestamp>>, "
    "fields map<string,string>, source string, query_version string"
)
CHUNK_MATCHES = 50_000

_US = pa.timestamp("us", tz="UTC")
_MEMBER = pa.struct([("element", pa.string()), ("event_class", pa.string()), ("event_id", pa.string()),
                     ("start_ts", _US), ("end_ts", _US)])  # fmt: skip
MATCH_ARROW = pa.schema([
    ("query_id", pa.string()), ("match_id", pa.string()), ("start_ts", _US), ("end_ts", _US), ("detection_ts", _US),
    ("members", pa.list_(_MEMBER)), ("fields", pa.map_(pa.string(), pa.string())), ("source", pa.string()),
    ("query_version", pa.string()),
])  # fmt: skip

# (events, prepared queries, start_us, end_us, state) -> chunks of matches, and the state after them where they consume
Answers = tuple[Iterator[pa.Table], Callable[[], pa.Table | None]]
Engine = Callable[[pa.Table, Any, int, int, pa.Table | None], Answers]


@dataclass(frozen=True)
class Work:
    """What a group's calls need, sent to the workers once. versions: target query -> version; with_source: targets
    whose matches have a source; state: what was consumed before the tasks' start, as Arrow bytes, None: no CONSUME."""

    prepared: Any
    versions: Mapping[str, str]
    with_source: frozenset[str]
    state: bytes | None = None


def shared_engine(events: pa.Table, prepared: Any, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """cep_core, as every run uses it."""
    import cep_core

    if state is None:
        return cep_core.mine_chunks(events, prepared, start_us, end_us), lambda: None
    matches, after = cep_core.mine_with_state(events, prepared, start_us, end_us, state=state if len(state) else None)
    return iter([matches]), lambda: after


def no_engine(events: pa.Table, prepared: Any, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """Finds nothing: what a job costs without its engine (bench/jobs.py)."""
    return iter(()), lambda: None


def make_call(
    tasks: tuple[Task, ...], work: Any, frame: Frame, engine: Engine
) -> Callable[[tuple[Any, ...], Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """The function for applyInPandas over the groups of `task`. `work` is a broadcast of group number -> Work."""
    by_number = {task.number: task for task in tasks}

    def call(key: tuple[Any, ...], batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        task = by_number[int(key[0])]
        todo: Work = work.value[task.group]
        events = gather(batches, frame)
        state = None if todo.state is None else from_stream(todo.state)
        answers, after = engine(events, todo.prepared, task.start_us, task.end_us, state)
        yield _chunk("call", len(events), 0, b"")
        for matches in answers:
            kept = finish(matches, events, todo)
            for at in range(0, len(kept), CHUNK_MATCHES):
                part = kept.slice(at, CHUNK_MATCHES)
                yield _chunk("matches", 0, len(part), to_stream(part))
        left = after()
        if left is not None:
            yield _chunk("state", 0, 0, to_stream(left))

    return call


def gather(batches: Iterator[pd.DataFrame], frame: Frame) -> pa.Table:
    """The batches as one Arrow table with the columns that the engine reads."""
    parts: dict[str, list[pa.Array]] = {name: [] for name in (CLASS, *frame.plain, *(n for n, _ in frame.flagged))}
    for batch in batches:
        for name in (CLASS, *frame.plain):
            parts[name].append(pa.array(batch[name], from_pandas=True))
        for name, kind in frame.flagged:
            numbers = pa.array(batch[name].to_numpy(), pa.int64(), mask=batch[name + NULL].to_numpy())
            parts[name].append(numbers.cast(_US) if kind == "timestamp" else numbers)
    codes = np.concatenate([chunk.to_numpy() for chunk in parts.pop(CLASS)]).astype(np.int32)
    columns: dict[str, Any] = {"event_class": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(frame.classes))}
    for name, held in parts.items():
        columns[name] = pa.chunked_array(_alike(held))
    if frame.points:
        columns["start_ts"] = columns["end_ts"]
    return pa.table(columns)


def _alike(held: list[pa.Array]) -> list[pa.Array]:
    """One type for all batches: a batch that holds only nulls has none of its own."""
    kinds = {chunk.type for chunk in held}
    if len(kinds) == 1:
        return held
    kind = next(kind for kind in kinds if not pa.types.is_null(kind))
    return [chunk.cast(kind) for chunk in held]


def finish(matches: pa.Table, events: pa.Table, todo: Work) -> pa.Table:
    """Matches of the targets only, with their source and version, in the columns of composite_events."""
    targets = pa.array(sorted(todo.versions))
    ids = matches.column("query_id").cast(pa.string())
    wanted = pc.is_in(ids, value_set=targets)
    if not pc.all(wanted).as_py():
        matches, ids = matches.filter(wanted), ids.filter(wanted)
    versions = pa.array([todo.versions[name] for name in targets.to_pylist()])
    columns = {
        name: matches.column(name) for name in ("match_id", "start_ts", "end_ts", "detection_ts", "members", "fields")
    }
    columns["query_id"] = ids
    columns["query_version"] = versions.take(pc.index_in(ids, value_set=targets))
    columns["source"] = _sources(matches, ids, events, todo.with_source)
    return pa.table({field.name: columns[field.name] for field in MATCH_ARROW}).cast(MATCH_ARROW)


def _sources(matches: pa.Table, ids: Any, events: pa.Table, with_source: frozenset[str]) -> Any:
    """The source of a member that is an event of this call: all members of such a match share it."""
    if "source" in matches.column_names:
        return matches.column("source")
    if not with_source or not len(matches):
        return pa.nulls(len(matches), pa.string())
    members = matches.column("members").combine_chunks()
    members = members.chunk(0) if isinstance(members, pa.ChunkedArray) else members
    flat = members.flatten()
    at = pc.index_in(
        flat.field("event_id").cast(pa.string()), value_set=_plain(events.column("event_id").cast(pa.string()))
    )
    owner = pc.list_parent_indices(members).to_numpy()
    known = np.flatnonzero(~np.asarray(at.is_null()))
    first = np.full(len(matches), -1, np.int64)
    first[owner[known][::-1]] = at.take(pa.array(known)).to_numpy()[::-1]
    rows = pa.array(np.where(first < 0, 0, first), mask=first < 0)
    found = _plain(events.column("source").cast(pa.string())).take(rows)
    return pc.if_else(pc.is_in(ids, value_set=pa.array(sorted(with_source))), found, pa.scalar(None, pa.string()))


def _plain(values: Any) -> pa.Array:
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Chunks of matches back to rows, for mapInArrow."""
    for batch in batches:
        for chunk in batch.column("chunk"):
            yield from from_stream(chunk.as_buffer()).to_batches()


def to_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_stream(data: Any) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _chunk(kind: str, rows: int, matches: int, chunk: bytes) -> pd.DataFrame:
    return pd.DataFrame({"kind": [kind], "rows": [rows], "matches": [matches], "chunk": [chunk]})


__all__ = [
    "CHUNK_SCHEMA",
    "MATCH_SCHEMA",
    "TASK",
    "Engine",
    "Work",
    "make_call",
    "no_engine",
    "shared_engine",
    "unpack",
]
