"""One engine call: what runs inside a Spark Python worker.

Enters: the rows of one task, in Arrow batches, in any order. Leaves: Arrow batches of CALL_SCHEMA: one row per call
with the number of its events, then its matches, then its state where its queries consume.
Always holds: a call holds its events and one part of its answers, never all of them; only matches of the group's
targets that are detected in the task's range leave it. Rows stay columns on the whole way: there is no Python object
per event or match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.distribute import Task
from jobs.route import CLASS, Frame

MATCH_SCHEMA = (
    "query_id string, match_id string, start_ts timestamp, end_ts timestamp, detection_ts timestamp, "
    "members array<struct<element:string,event_class:string,event_id:string,start_ts:timestamp,end_ts:timestamp>>, "
    "fields map<string,string>, source string, query_version string"
)
# A row is a match, or the events of a call, or the state after it: what it is not is null.
CALL_SCHEMA = f"{MATCH_SCHEMA}, rows bigint, state binary"
BATCH_MATCHES = 50_000

_US = pa.timestamp("us", tz="UTC")
_MEMBER = pa.struct([("element", pa.string()), ("event_class", pa.string()), ("event_id", pa.string()),
                     ("start_ts", _US), ("end_ts", _US)])  # fmt: skip
MATCH_ARROW = pa.schema([
    ("query_id", pa.string()), ("match_id", pa.string()), ("start_ts", _US), ("end_ts", _US), ("detection_ts", _US),
    ("members", pa.list_(_MEMBER)), ("fields", pa.map_(pa.string(), pa.string())), ("source", pa.string()),
    ("query_version", pa.string()),
])  # fmt: skip
_CALL_ARROW = pa.schema([*MATCH_ARROW, ("rows", pa.int64()), ("state", pa.binary())])

# (events, work, start_us, end_us, state) -> tables of matches, and the state after them where they consume
Answers = tuple[Iterator[pa.Table], Callable[[], pa.Table | None]]
Engine = Callable[[pa.Table, "Work", int, int, pa.Table | None], Answers]
Gather = Callable[[Iterator[pa.RecordBatch], Task], pa.Table]


@dataclass(frozen=True)
class Work:
    """What a group's calls need, sent to the workers once. versions: target query -> version; with_source: targets
    whose matches have a source; limit: most answers per partition, of all queries or of each; state: what was consumed
    before the tasks' start, as Arrow bytes, None: no CONSUME."""

    prepared: Any
    versions: Mapping[str, str]
    with_source: frozenset[str]
    limit: int | Mapping[str, int]
    state: bytes | None = None


def shared_engine(events: pa.Table, work: Work, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """cep_core, as every run uses it."""
    import cep_core

    limit: Any = work.limit
    if state is None:
        return cep_core.mine_chunks(events, work.prepared, start_us, end_us, limit=limit), lambda: None
    before = state if len(state) else None
    matches, after = cep_core.mine_with_state(
        events, work.prepared, start_us, end_us, state=before, limit=limit
    )  # fmt: skip
    return iter([matches]), lambda: after


def no_engine(events: pa.Table, work: Work, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """Finds nothing: what a job costs without its engine (bench/jobs.py)."""
    return iter(()), lambda: None


def make_call(
    tasks: tuple[Task, ...], work: Any, gather: Gather, engine: Engine
) -> Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for applyInArrow over the groups of `task`. `work` is a broadcast of group number -> Work."""
    by_number = {task.number: task for task in tasks}

    def call(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = by_number[key[0].as_py()]
        todo: Work = work.value[task.group]
        events = gather(batches, task)
        state = None if todo.state is None else from_stream(todo.state)
        answers, after = engine(events, todo, task.start_us, task.end_us, state)
        yield _row(rows=len(events))
        for matches in answers:
            for batch in finish(matches, events, todo).to_batches(BATCH_MATCHES):
                nothing = pa.nulls(len(batch), pa.int64()), pa.nulls(len(batch), pa.binary())
                yield pa.RecordBatch.from_arrays([*batch.columns, *nothing], schema=_CALL_ARROW)
        left = after()
        if left is not None:
            yield _row(state=to_stream(left))

    return call


def gather_rows(frame: Frame) -> Gather:
    """What makes one Arrow table, with the columns that the engine reads, of the batches of rows."""

    def gather(batches: Iterator[pa.RecordBatch], task: Task) -> pa.Table:
        held = pa.Table.from_batches(list(batches))
        classes = pa.array(frame.classes)
        codes = [pa.DictionaryArray.from_arrays(chunk, classes) for chunk in held.column(CLASS).chunks]
        columns = {"event_class": pa.chunked_array(codes)} | {name: held.column(name) for name in frame.columns}
        if frame.points:
            columns["start_ts"] = columns["end_ts"]
        return pa.table(columns)

    return gather


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


def to_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_stream(data: Any) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def _row(rows: int | None = None, state: bytes | None = None) -> pa.RecordBatch:
    """A row that is no match."""
    values = {"rows": [rows], "state": [state]}
    return pa.RecordBatch.from_arrays(
        [pa.array(values.get(field.name, [None]), field.type) for field in _CALL_ARROW], schema=_CALL_ARROW
    )


__all__ = ["CALL_SCHEMA", "Answers", "Engine", "Gather", "Work", "gather_rows", "make_call", "no_engine",
           "shared_engine"]  # fmt: skip
