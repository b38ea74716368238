"""One engine call: what runs inside a Spark Python worker.

Enters: the packs of one task. Leaves: files of matches (match_files.py), and rows of CALL_SCHEMA: one with the number
of the call's events, one for each file, and one with the state after it where its queries consume.
Always holds: a call holds its events and one part of its answers, never all of them; only matches of the group's
targets that are detected in the task's range, and in the run's, are written. pandas, which applyInPandas goes through,
sees packs and the names of files, a few values each: there is no Python object per event or match.
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
from jobs.encode import CONTENT, from_stream, gather, to_stream
from jobs.match_files import FILE_SCHEMA, MATCH_ARROW, write_matches

# A row is the number of events of a call, or a file of its matches, or the state after it: what it is not is null.
CALL_SCHEMA = f"rows bigint, {FILE_SCHEMA}, state binary"

# (events, work, start_us, end_us, state) -> tables of matches, and the state after them where they consume
Answers = tuple[Iterator[pa.Table], Callable[[], pa.Table | None]]
Engine = Callable[[pa.Table, "Work", int, int, pa.Table | None], Answers]


@dataclass(frozen=True)
class Origin:
    """What every match of a run says of where it comes from, the run's range, and the folder that files go to."""

    run_id: str
    input_versions: Mapping[str, int]
    from_us: int
    to_us: int
    folder: str


@dataclass(frozen=True)
class Work:
    """What a group's calls need, sent to the workers once. columns: of the events; classes, lookback_us: which of a
    pack's events a call needs; versions: target query -> version; limit: most answers per
    partition, of all queries or of each; state: what was consumed before the tasks' start, as Arrow bytes, None: no
    CONSUME."""

    origin: Origin
    prepared: Any
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    lookback_us: int
    versions: Mapping[str, str]
    limit: int | Mapping[str, int]
    state: bytes | None = None


def shared_engine(events: pa.Table, work: Work, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """cep_core, as every run uses it."""
    import cep_core

    limit: Any = work.limit
    if any(query.refers_to for query in work.prepared.queries.values()):  # matches, as events, have plain sources
        place = events.schema.get_field_index("source")
        events = events.set_column(place, "source", events.column("source").cast(pa.string()))
    if state is None:
        return cep_core.mine_chunks(events, work.prepared, start_us, end_us, limit=limit, sources=True), lambda: None
    before = state if len(state) else None
    matches, after = cep_core.mine_with_state(
        events, work.prepared, start_us, end_us, state=before, limit=limit, sources=True
    )  # fmt: skip
    return iter([matches]), lambda: after


def no_engine(events: pa.Table, work: Work, start_us: int, end_us: int, state: pa.Table | None) -> Answers:
    """Finds nothing: what a job costs without its engine (bench/jobs.py)."""
    return iter(()), lambda: None


def make_call(
    tasks: tuple[Task, ...], work: Any, engine: Engine
) -> Callable[[tuple[Any, ...], Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """The function for applyInPandas over the packs of each task. `work` is a broadcast of group number -> Work."""
    by_number = {task.number: task for task in tasks}

    def call(key: tuple[Any, ...], packs: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        task = by_number[int(key[0])]
        todo: Work = work.value[task.group]
        contents = (content for some in packs for content in some[CONTENT])
        events = gather(contents, todo.columns, todo.classes, task.start_us - todo.lookback_us, task.end_us)
        state = None if todo.state is None else from_stream(todo.state)
        answers, after = engine(events, todo, task.start_us, task.end_us, state)
        yield _row(rows=len(events))
        for matches in answers:
            for file in write_matches(finish(matches, todo), todo.origin.folder):
                yield _row(file=file.to_json())
        left = after()
        if left is not None:
            yield _row(state=to_stream(left))

    return call


def _row(rows: int | None = None, file: str | None = None, state: bytes | None = None) -> pd.DataFrame:
    return pd.DataFrame({"rows": pd.array([rows], "Int64"), "file": [file], "state": [state]})


def finish(matches: pa.Table, todo: Work) -> pa.Table:
    """Matches of the targets in the run's range, with their origin, in the columns of composite_events."""
    origin = todo.origin
    targets = pa.array(sorted(todo.versions))
    detection = matches.column("detection_ts").cast(pa.int64()).to_numpy()
    wanted = (detection >= origin.from_us) & (detection < origin.to_us)
    wanted &= pc.is_in(matches.column("query_id"), value_set=targets).to_numpy()
    if not wanted.all():
        matches = matches.filter(pa.array(wanted))
    ids, count = matches.column("query_id"), len(matches)
    columns = {name: matches.column(name) for name in matches.column_names}
    versions = pa.array([todo.versions[name] for name in targets.to_pylist()])
    columns["query_version"] = versions.take(pc.index_in(ids, value_set=targets))
    columns["run_id"] = pa.repeat(pa.scalar(origin.run_id), count)
    read = sorted(origin.input_versions.items())
    columns["input_versions"] = pa.MapArray.from_arrays(
        np.arange(count + 1, dtype=np.int32) * len(read), pa.array([name for name, _ in read] * count, pa.string()),
        pa.array(np.tile(np.array([version for _, version in read], np.int64), count)),
    )  # fmt: skip
    return pa.table({field.name: columns[field.name] for field in MATCH_ARROW}).cast(MATCH_ARROW)


__all__ = ["CALL_SCHEMA", "Answers", "Engine", "Origin", "Work", "make_call", "no_engine", "shared_engine"]
