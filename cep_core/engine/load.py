"""The way in: a table of events becomes checked columns.

Enters: a pyarrow Table or a pandas DataFrame with `event_id`, `source`, `event_class`, `start_ts` and `end_ts` (or
`ts`), optionally `tie`, and any attribute columns; and the classes that the query set needs.
Leaves: `Events`: only the rows of those classes, each event once, classes as codes, times as int64 microseconds.
Always holds: rows that share an event_id and are equal in every column count once; if they differ, EventError says
where. Rows of other classes are dropped first, so they cost one look at their class. Attribute columns are left as
they came and read when a query asks for them. Arrays are read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.engine.classes import class_codes
from cep_core.engine.duplicates import drop_duplicates
from cep_core.errors import EventError, QueryError

RESERVED = ("event_id", "event_class", "start_ts", "end_ts", "ts", "tie")


@dataclass(frozen=True)
class Events:
    """The events of one engine call, in the order of the table; n of them.

    classes: code -> class. cls int32[n]. start, end int64[n] microseconds; the same object where every event is a
    point. tie: int64[n], ordered as the column, or None. event_id: Arrow string or large_string array of n, no nulls.
    rows: int64[n], the row of the table that each event is, or None where every row was kept.
    """

    classes: tuple[str, ...]
    cls: np.ndarray
    start: np.ndarray
    end: np.ndarray
    tie: np.ndarray | None
    event_id: pa.Array
    rows: np.ndarray | None
    table: pa.Table | pd.DataFrame

    @property
    def count(self) -> int:
        return len(self.cls)

    @property
    def points(self) -> bool:
        return self.start is self.end

    def attribute(self, name: str) -> pa.Array:
        """An attribute of every event, as one Arrow array of n; NaN is null. Dictionary columns stay so."""
        return without_nan(column(self.table, name, self.rows))


def load(
    events: pa.Table | pd.DataFrame, classes: Sequence[str] | None = None, query_ids: Sequence[str] = ()
) -> Events:
    """Checks the table and keeps what the classes need (None: all classes, in the order of their names).

    Null ids, classes and times are looked for in the whole table; start after end only in the rows kept. No event may
    have the id of a query as its class (query_ids; only with classes given): a name has one meaning.
    """
    names = list(events.column_names) if isinstance(events, pa.Table) else [str(name) for name in events.columns]
    _require(names)
    for name in ("event_id", "event_class", *_time_columns(names)):
        missing = _nulls(events, name)
        if missing:
            raise EventError(
                f"column {name!r} is null in {missing} of {len(events)} rows; every event needs one: "
                f"filter these rows out or fill the column"
            )
    wanted = None if classes is None else [*classes, *query_ids]
    order, codes, rows = class_codes(column(events, "event_class", None), wanted)
    if classes is not None and query_ids:
        highest = int(codes.max(initial=-1))
        if highest >= len(classes):
            raise QueryError(f"query {order[highest]}: its id is also the name of an event class; choose another id")
        order = order[: len(classes)]
    event_id = text_ids(column(events, "event_id", rows), "event_id")
    unique = drop_duplicates(event_id, rows, lambda name, at: column(events, name, at), names)
    if unique is not None:
        codes = codes[unique]
        event_id = event_id.take(pa.array(unique))
        rows = unique if rows is None else rows[unique]
    start, end = _times(events, names, rows, event_id)
    tie = _tie(column(events, "tie", rows)) if "tie" in names else None
    for array in (codes, start, end, tie, rows):
        if array is not None:
            array.flags.writeable = False
    return Events(order, codes, start, end, tie, event_id, rows, events)


def column(table: pa.Table | pd.DataFrame, name: str, rows: np.ndarray | None) -> pa.Array:
    """One column as one Arrow array: all of it, or the given rows."""
    if isinstance(table, pd.DataFrame):
        series = table[name]
        values: Any = pa.array(series if rows is None else series.take(rows), from_pandas=True)
    else:
        values = table.column(name)
        if pa.types.is_string_view(values.type):  # Arrow has no `take` for it
            values = values.cast(pa.large_string())
        if rows is not None:
            values = values.take(pa.array(rows))
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        raise EventError(f"column {name!r} is too large for one call: split the events in buckets or time slices")
    if pa.types.is_null(values.type) and name in RESERVED:  # an untyped column of nothing
        values = values.cast(pa.string() if name in ("event_id", "event_class") else pa.int64())
    return values


def without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    nan = pc.is_nan(values)
    return pc.if_else(nan, pa.scalar(None, values.type), values) if pc.any(nan).as_py() else values


def _require(names: list[str]) -> None:
    needed = ["event_id", "source", "event_class"]
    if not ("ts" in names and "start_ts" not in names and "end_ts" not in names):
        needed += ["start_ts", "end_ts"]
    absent = [name for name in needed if name not in names]
    if not absent:
        return
    hints = []
    for name in absent:
        near = get_close_matches(name, [n for n in names if n not in needed], 1)
        hints.append(repr(name) + (f" (did you mean {near[0]!r}?)" if near else ""))
    times = " A point event may have one column 'ts' in place of start_ts and end_ts." if "end_ts" in absent else ""
    raise EventError(f"the events lack the column {', '.join(hints)}; they have {', '.join(names) or 'none'}.{times}")


def _time_columns(names: list[str]) -> tuple[str, ...]:
    return ("start_ts", "end_ts") if "start_ts" in names else ("ts",)


def _nulls(table: pa.Table | pd.DataFrame, name: str) -> int:
    return int(table.column(name).null_count if isinstance(table, pa.Table) else table[name].isna().sum())


def text_ids(values: pa.Array, name: str) -> pa.Array:
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
        kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_integer(kind):
        return values.cast(pa.string())
    raise EventError(f"column {name!r} is {kind}; it must be a string or an integer")


def _times(
    table: pa.Table | pd.DataFrame, names: list[str], rows: np.ndarray | None, event_id: pa.Array
) -> tuple[np.ndarray, np.ndarray]:
    first, *more = (microseconds(column(table, name, rows), name) for name in _time_columns(names))
    if not more or np.array_equal(first, more[0]):
        return first, first
    start, end = first, more[0]
    wrong = np.flatnonzero(start > end)
    if len(wrong):
        some = ", ".join(repr(event_id[int(row)].as_py()) for row in wrong[:3])
        raise EventError(
            f"start_ts is after end_ts in {len(wrong)} events, among them {some}; swap or correct the times"
        )
    return start, end


def microseconds(values: pa.Array, name: str) -> np.ndarray:
    kind = values.type
    if pa.types.is_date(kind):
        values = values.cast(pa.timestamp("us"))
        kind = values.type
    if pa.types.is_timestamp(kind):
        plain = values.view(pa.int64()).to_numpy()
        match kind.unit:
            case "us":
                return plain
            case "ns":
                return plain // 1000
            case unit:
                scale = 1_000_000 if unit == "s" else 1000
                if len(plain) and max(-int(plain.min()), int(plain.max())) > 2**63 // scale - 1:
                    raise EventError(f"column {name!r} has times that do not fit in 64 bits as microseconds")
                return plain * scale
    if pa.types.is_integer(kind):
        return np.ascontiguousarray(values.cast(pa.int64()).to_numpy())
    raise EventError(f"column {name!r} is {kind}; times are timestamps or whole microseconds as integers")


def _tie(values: pa.Array) -> np.ndarray | None:
    """int64 codes in the order of the column; missing is lowest."""
    values = without_nan(values)
    if values.null_count == len(values):
        return None
    lowest = np.iinfo(np.int64).min
    if pa.types.is_integer(values.type) and values.type != pa.uint64():
        numbers = values.cast(pa.int64()).fill_null(lowest).to_numpy()
        if not values.null_count or int((numbers == lowest).sum()) == values.null_count:
            result: np.ndarray = numbers.copy()
            return result
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    places = coded.indices.fill_null(0).to_numpy()
    missing = np.asarray(coded.is_null())
    return np.where(missing, lowest, rank[places])
