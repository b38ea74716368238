"""Matches as events: what a query that refers to another reads (language contract, Patterns).

Enters: the matches of one query. Leaves: a table of them, with the columns of events; fields.py puts it below those.
Always holds: class = the query's id, event_id = match_id, its times, its RETURN fields as attributes, its source where
it tests [source], and when it was detected. A field that left 64 bits is read exactly: as text, in a column beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.engine.conditions import LARGE
from cep_core.engine.evaluate import DETECTION, Found
from cep_core.engine.fields import PLAIN
from cep_core.engine.load import Events
from cep_core.engine.output import Answers, describe
from cep_core.engine.values import Vector
from cep_core.engine.whole import is_large
from cep_core.language.checked import CheckedQuery


def matches_as_events(
    checked: CheckedQuery,
    events: Events,
    found: Sequence[Found],
    names: Sequence[str],
    timers: Sequence[int],
    source: str | None,
) -> pa.Table:
    """One row a match, with the columns of events that matches have. source: the column of their source, if any."""
    parts = []
    for one in found:
        flat = one.flat
        zeros = np.zeros(flat.count, np.int32)
        own = Answers(zeros, offsets=flat.offsets, slot=flat.element, member=flat.member, detection=one.detection)
        known = describe(events, [own], [checked.query.id], [names], np.asarray(timers, np.int64))
        rows = np.arange(flat.count)
        columns: dict[str, Any] = {
            "event_id": known.match_ids(rows),
            "event_class": pa.array([checked.query.id] * flat.count, pa.string()),
            "start_ts": pa.array(known.start),
            "end_ts": pa.array(known.end),
            DETECTION: pa.array(one.detection),
        }
        if source is not None:
            is_event = np.flatnonzero(flat.member < events.count)
            first = is_event[np.searchsorted(is_event, flat.offsets[:-1])]
            columns["source"] = events.attribute(source).take(pa.array(flat.member[first]))
        for name, kind in checked.fields:
            columns[name] = _column(one.fields[name], PLAIN[one.fields[name].type if kind == "null" else kind])
            if is_large(one.fields[name].data):
                columns[LARGE + name] = pa.array(one.fields[name].texts(), pa.string())
        parts.append(pa.table(columns))
    if parts:
        return pa.concat_tables(parts, promote_options="default")
    return pa.table({name: pa.array([], kind) for name, kind in event_columns(checked).items()})


def event_columns(checked: CheckedQuery) -> dict[str, pa.DataType]:
    """The columns of a query's matches as events; `source` is of the type that events have."""
    plain = {"event_id": pa.string(), "event_class": pa.string(), "start_ts": pa.int64(), "end_ts": pa.int64()}
    return {**plain, DETECTION: pa.int64(), **{name: PLAIN[kind] for name, kind in checked.fields}}


def _column(vector: Vector, kind: pa.DataType) -> pa.Array:
    if vector.type == "string":
        words = pa.array(vector.words, pa.string())
        return words.take(pa.array(vector.data, mask=~vector.valid)) if len(words) else pa.nulls(len(vector.data), kind)
    if vector.type == "timestamp":
        return pa.array(vector.data, pa.int64(), mask=~vector.valid).cast(kind)
    if is_large(vector.data):
        return pa.nulls(len(vector.data), kind)
    return pa.array(vector.data, mask=~vector.valid).cast(kind)
