"""The way out: answers as numbers become the table of matches.

Enters: `Answers` from any part of the engine (query numbers and rows of `Events`), the queries' ids and their
elements' names.
Leaves: a pyarrow Table with SCHEMA: one row a match; where asked for with a column `source` more.
Always holds: rows are by query (in the order of the ids given), detection_ts, end_ts, start_ts and match_id, so the
table does not depend on the order of events or on the plan. match_id is the one of identity.py. No Python object is
made per match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cep_core.engine.fill import coded_strings, fill_members, gather, hex_ids
from cep_core.engine.load import Events
from cep_core.engine.sorting import equal_runs, next_keys, sort_runs
from cep_core.engine.summary import by_query, first_events, flatten, name_hashes, summary
from cep_core.engine.text import text, where

MOMENT = pa.timestamp("us", "UTC")
MEMBER = pa.struct(
    [
        ("element", pa.string()),
        ("event_class", pa.string()),
        ("event_id", pa.string()),
        ("start_ts", MOMENT),
        ("end_ts", MOMENT),
    ]
)
SCHEMA = pa.schema(
    [
        ("query_id", pa.string()),
        ("match_id", pa.string()),
        ("start_ts", MOMENT),
        ("end_ts", MOMENT),
        ("detection_ts", MOMENT),
        ("members", pa.list_(MEMBER)),
        ("fields", pa.map_(pa.string(), pa.string())),
    ]
)
SCHEMA_WITH_SOURCE = SCHEMA.append(pa.field("source", pa.string()))

TIMER_CLASS = "timer"
_MEMBERS_A_BATCH = 1 << 23


@dataclass(frozen=True)
class Answers:
    """n matches of any queries. query int32[n]: index into the ids.

    Either rows int32[n, slots]: the event of each slot, -1 where unbound; or offsets int64[n+1] with slot int32[k] and
    member int32[k]: the members of each match in pattern order, and of an element in event order. A slot is an index
    into the names of the query's elements. A member from events.count on is a timer: count + i is the i-th of `timers`.
    detection int64[n], or None where it is the match's end. fields: RETURN name -> Arrow string array of n, the same
    names for all n.
    """

    query: np.ndarray
    rows: np.ndarray | None = None
    offsets: np.ndarray | None = None
    slot: np.ndarray | None = None
    member: np.ndarray | None = None
    detection: np.ndarray | None = None
    fields: Mapping[str, pa.Array] | None = None


@dataclass(frozen=True)
class _Members:
    """What a member index points at: events, then timers."""

    start: np.ndarray
    end: np.ndarray
    cls: np.ndarray
    ids: pa.Array
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """n answers with what follows from their members: query int32, start, end, detection int64, one, two uint64 (the
    lanes of match_id) [n]; offsets int64[n+1], name (code of the element) and member int32[k]; what the codes mean; how
    many bytes the members' ids have together, and the longest of them."""

    query: np.ndarray
    offsets: np.ndarray
    name: np.ndarray
    member: np.ndarray
    start: np.ndarray
    end: np.ndarray
    detection: np.ndarray
    one: np.ndarray
    two: np.ndarray
    members: _Members
    ids: pa.Array
    names: pa.Array
    id_bytes: int
    longest_id: int

    def match_ids(self, rows: np.ndarray) -> pa.Array:
        """The match_id of each of these answers."""
        places = np.arange(0, 32 * len(rows) + 1, 32, dtype=np.int32)
        return _strings(len(rows), places, hex_ids(rows, self.one, self.two))


def matches_table(
    events: Events,
    answers: Sequence[Answers],
    ids: Sequence[str],
    elements: Sequence[Sequence[str]],
    timers: np.ndarray | None = None,
    sourced: np.ndarray | None = None,
) -> pa.Table:
    """ids: the queries' ids; elements: per query the name of each slot; timers: int64 microseconds. sourced bool[ids]:
    queries all of whose members share a source, which their matches then have in the column `source`."""
    schema = SCHEMA if sourced is None else SCHEMA_WITH_SOURCE
    answers = [chunk for chunk in answers if len(chunk.query)]
    if not answers:
        return schema.empty_table()
    source = None if sourced is None else events.attribute("source")
    own = describe(events, answers, ids, elements, timers)
    order = _order(own.query, len(ids), (own.detection, own.end, own.start, _signed(own.one), _signed(own.two)))
    fields = _fields(answers)
    members = own.members
    class_text = text(members.classes)
    texts = [where(strings) for strings in (own.names, class_text, members.ids)]
    batches = []
    for rows in _slices(order, own.offsets):
        most = _most_bytes(own, rows, class_text)
        filled = fill_members(
            rows, own.offsets, own.name, own.member, (members.start, members.end), members.cls, texts, most
        )
        count = len(filled.starts)
        starts = _moments(filled.starts)
        parts = [
            *(_strings(count, *held) for held in filled.strings),
            starts,
            starts if filled.ends is filled.starts else _moments(filled.ends),
        ]
        list_type = SCHEMA.field("members").type
        found = pa.ListArray.from_arrays(
            pa.array(filled.lists), pa.StructArray.from_arrays(parts, fields=list(MEMBER)), type=list_type
        )
        end = _moments(gather(rows, own.end))
        columns = [
            _strings(len(rows), *coded_strings(rows, own.query, where(own.ids))),
            own.match_ids(rows),
            _moments(gather(rows, own.start)),
            end,
            end if own.detection is own.end else _moments(gather(rows, own.detection)),
            found,
            _no_fields(len(rows)) if fields is None else fields.take(pa.array(rows)),
        ]
        if source is not None:
            first = first_events(rows, own.offsets, own.member, own.query, sourced, events.count)
            columns.append(source.take(pa.array(first, mask=first < 0)).cast(pa.string()))
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def describe(
    events: Events,
    answers: Sequence[Answers],
    ids: Sequence[str],
    elements: Sequence[Sequence[str]],
    timers: np.ndarray | None = None,
) -> Described:
    """Times and ids of answers, in the order given."""
    members = _members(events, timers)
    names = {name: code for code, name in enumerate(dict.fromkeys(name for slots in elements for name in slots))}
    base = np.cumsum([0, *(len(slots) for slots in elements)])[:-1].astype(np.int64)
    name_of = np.array([names[name] for slots in elements for name in slots], np.int32)
    query = _joined([np.asarray(chunk.query, np.int32) for chunk in answers])
    offsets, name, member = _flat(list(answers), base, name_of)
    id_text, name_text = text(tuple(ids)), text(tuple(names))
    count = len(query)
    start, end = np.empty(count, np.int64), np.empty(count, np.int64)
    one, two = np.empty(count, np.uint64), np.empty(count, np.uint64)
    id_bytes, longest_id = summary(
        query,
        offsets,
        name,
        member,
        members.start,
        members.end,
        where(members.ids),
        name_hashes(where(id_text), len(id_text)),
        name_hashes(where(name_text), len(name_text)),
        start,
        end,
        one,
        two,
    )
    detection = end
    if any(chunk.detection is not None for chunk in answers):
        ends = np.split(end, np.cumsum([len(chunk.query) for chunk in answers])[:-1])
        detection = _joined(
            [
                e if a.detection is None else np.asarray(a.detection, np.int64)
                for a, e in zip(answers, ends, strict=True)
            ]
        )
    return Described(
        query, offsets, name, member, start, end, detection, one, two, members, id_text, name_text, id_bytes, longest_id
    )


def timer_id(moment_us: int) -> str:
    """
    >>> timer_id(0)
    'timer:1970-01-01T00:00:00.000000Z'
    """
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment_us)
    return f"timer:{moment:%Y-%m-%dT%H:%M:%S.%f}Z"


def _members(events: Events, timers: np.ndarray | None) -> _Members:
    if timers is None or not len(timers):
        return _Members(events.start, events.end, events.cls, events.event_id, events.classes)
    moments = np.asarray(timers, np.int64)
    named = pa.array([timer_id(int(moment)) for moment in moments], events.event_id.type)
    start = np.concatenate([events.start, moments])
    end = start if events.points else np.concatenate([events.end, moments])
    cls = np.concatenate([events.cls, np.full(len(moments), len(events.classes), np.int32)])
    for array in (start, end, cls):
        array.flags.writeable = False
    return _Members(start, end, cls, pa.concat_arrays([events.event_id, named]), (*events.classes, TIMER_CLASS))


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _flat(answers: list[Answers], base: np.ndarray, name_of: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """offsets int64[n+1], name code int32[k] and member int32[k] of all answers."""
    parts = []
    for chunk in answers:
        query = np.ascontiguousarray(chunk.query, np.int32)
        if chunk.rows is not None:
            parts.append(flatten(query, np.ascontiguousarray(chunk.rows, np.int32), base, name_of))
        else:
            assert chunk.offsets is not None
            assert chunk.slot is not None
            assert chunk.member is not None
            slots = np.repeat(base[query], np.diff(chunk.offsets)) + chunk.slot
            parts.append((np.asarray(chunk.offsets, np.int64), name_of[slots], np.asarray(chunk.member, np.int32)))
    if len(parts) == 1:
        return parts[0]
    shift = np.cumsum([0, *(part[0][-1] for part in parts)])
    offsets = np.concatenate([parts[0][0][:1], *(part[0][1:] + by for part, by in zip(parts, shift[:-1], strict=True))])
    return offsets, np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


def _order(query: np.ndarray, queries: int, levels: Sequence[np.ndarray]) -> np.ndarray:
    """int64[n]: the matches by query, then by each level, each looked at only where all before are equal."""
    order, keys = np.empty(len(query), np.int64), np.empty(len(query), np.int64)
    offsets = by_query(query, queries, levels[0], order, keys)
    lows, highs = offsets[:-1], offsets[1:]
    sort_runs(lows, highs, keys, order)
    for before, values in pairwise(levels):
        if values is before:
            continue
        lows, highs = equal_runs(lows, highs, keys)
        if not len(lows):
            break
        next_keys(lows, highs, keys, order, values)
        sort_runs(lows, highs, keys, order)
    return order


def _signed(lane: np.ndarray) -> np.ndarray:
    """int64 in the order of the unsigned lane, which is that of its hex digits."""
    return (lane ^ np.uint64(1 << 63)).view(np.int64)


def _slices(order: np.ndarray, offsets: np.ndarray) -> Iterator[np.ndarray]:
    """Parts of the order whose strings fit in one Arrow array each."""
    if offsets[-1] <= _MEMBERS_A_BATCH:
        yield order
        return
    ends = np.cumsum((offsets[1:] - offsets[:-1])[order])
    low = 0
    while low < len(order):
        begin = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, begin + _MEMBERS_A_BATCH, "right")))
        yield order[low:high]
        low = high


def _most_bytes(own: Described, rows: np.ndarray, classes: pa.Array) -> list[int]:
    """What the names, classes and ids of the members of these answers can take: for ids what all answers' take, or less
    where the longest says so."""
    count = int((own.offsets[rows + 1] - own.offsets[rows]).sum())
    longest = [max(map(len, names.cast(pa.binary()).to_pylist()), default=0) for names in (own.names, classes)]
    return [*(count * size for size in longest), min(own.id_bytes, count * own.longest_id)]


def _strings(count: int, offsets: np.ndarray, data: np.ndarray) -> pa.Array:
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))


def _moments(values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(MOMENT, len(values), [None, pa.py_buffer(values)])


def _no_fields(count: int) -> pa.Array:
    return pa.MapArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), text(()), text(()))


def _fields(answers: Sequence[Answers]) -> pa.Array | None:
    """The map of each answer in the order given, or None where no query has RETURN."""
    if not any(chunk.fields for chunk in answers):
        return None
    maps = []
    for chunk in answers:
        count = len(chunk.query)
        if not chunk.fields:
            maps.append(_no_fields(count))
            continue
        width = len(chunk.fields)
        keys = text(tuple(chunk.fields)).take(pa.array(np.tile(np.arange(width), count)))
        values = pa.concat_arrays([column.cast(pa.string()) for column in chunk.fields.values()])
        items = values.take(pa.array((np.arange(count)[:, None] + np.arange(width) * count).ravel()))
        maps.append(
            pa.MapArray.from_arrays(pa.array(np.arange(0, count * width + 1, width, dtype=np.int32)), keys, items)
        )
    return pa.concat_arrays(maps)
