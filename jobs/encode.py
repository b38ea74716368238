"""Events as packs: cut out of Spark's batches, and opened where the engine reads them.

Enters: Arrow batches of events that have a column of numbers: where each event goes (a task, a place in `packs`).
Leaves: few rows (number, content): a pack each, an Arrow stream of the events of one number, sorted by source and time;
sources and classes are dictionaries. `gather` opens packs again.
Always holds: no event is lost or added: one with several numbers is in a pack of each. What is held is bounded by rows
and by bytes. Events stay columns on the whole way: there is no Python object per event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NUMBER, CONTENT = "number", "content"
CUT_SCHEMA = f"{NUMBER} bigint, {CONTENT} binary"
CUT_ROWS = 500_000  # events that are cut at once: more of them are larger packs, and more memory
CUT_BYTES = 128 << 20  # the same for wide events

_CUT_ARROW = pa.schema([(NUMBER, pa.int64()), (CONTENT, pa.binary())])
_CODED = ("source", "event_class")


def cut(most_rows: int = CUT_ROWS) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for mapInArrow. NUMBER is a whole number, or a list of them."""

    def packs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            held.append(batch)
            rows, size = rows + len(batch), size + batch.nbytes
            if rows >= most_rows or size >= CUT_BYTES:
                yield _cut(pa.Table.from_batches(held))
                held, rows, size = [], 0, 0
        if rows:
            yield _cut(pa.Table.from_batches(held))

    return packs


def _cut(events: pa.Table) -> pa.RecordBatch:
    number = events.column(NUMBER).combine_chunks()
    row = None
    if pa.types.is_list(number.type):
        row, number = pc.list_parent_indices(number).to_numpy(), number.flatten()
    numbers = number.to_numpy().astype(np.int64)
    events = coded(events.drop_columns(NUMBER))
    order = sorted_order(events, numbers, row)
    numbers = numbers[order]
    events = events.take(pa.array(order if row is None else row[order])).combine_chunks()
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else [0]
    parts = [(int(numbers[low]), encode(events.slice(low, high - low))) for low, high in pairwise(edges)]
    columns = zip(*parts, strict=True) if parts else ((), ())
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _CUT_ARROW, strict=True)], schema=_CUT_ARROW
    )


def coded(events: pa.Table) -> pa.Table:
    """Sources and classes as dictionaries of one chunk."""
    for name in _CODED:
        place = events.schema.get_field_index(name)
        column = events.column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.combine_chunks().dictionary_encode()
        events = events.set_column(place, name, column)
    return events


def sorted_order(events: pa.Table, numbers: np.ndarray | None = None, row: np.ndarray | None = None) -> np.ndarray:
    """int64: the places of coded events by (number, source, end_ts). row int64: the event of each place, where an event
    has several. Sources are ordered by their code."""
    source, end = _codes(events.column("source")), events.column("end_ts").to_numpy()
    if row is not None:
        source, end = source[row], end[row]
    if not len(end):
        return np.empty(0, np.int64)
    group = source.astype(np.int64)
    if numbers is not None:
        group += (numbers - numbers.min()) * (int(source.max()) + 1)
    low, high = int(end.min()), int(end.max())
    if group.min() < 0 or int(group.max()) + 1 > (2**63 - 1) // (high - low + 1):  # both do not fit in one number
        return np.lexsort((end, source) if numbers is None else (end, source, numbers))
    return np.argsort(group * (high - low + 1) + (end - low))


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    """int32: the code of each value; null is the greatest."""
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    codes: np.ndarray = values.indices.fill_null(len(values.dictionary)).to_numpy()
    return codes


def encode(events: pa.Table, compression: str | None = None) -> bytes:
    """A pack of coded and sorted events. What starts when it ends needs no start; dictionaries hold what is used."""
    if "start_ts" in events.column_names and events.column("start_ts").equals(events.column("end_ts")):
        events = events.drop_columns("start_ts")
    for name in _CODED:
        place = events.schema.get_field_index(name)
        events = events.set_column(place, name, _compact(events.column(name)))
    return to_stream(events, compression)


def _compact(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The same values with a dictionary of those that occur, in its order."""
    dictionary, codes = column.chunk(0).dictionary, _codes(column)
    used = np.unique(codes)
    ranks = np.empty(len(dictionary) + 1, np.int32)
    ranks[used] = np.arange(len(used))
    missing = codes == len(dictionary) if used[-1] == len(dictionary) else None
    kept = dictionary.take(pa.array(used if missing is None else used[:-1]))
    return pa.DictionaryArray.from_arrays(pa.array(ranks[codes], mask=missing), kept)


def opened(content: Any, columns: Iterable[str] | None = None) -> pa.Table:
    """The events of a pack with these columns, or all; others are not even decompressed. start_ts of points is
    end_ts."""
    schema = pa.ipc.open_stream(content).schema
    names = sorted({"start_ts", *schema.names} if columns is None else columns)
    wanted = [place for place, name in enumerate(schema.names) if name in names]
    table = pa.ipc.open_stream(content, options=pa.ipc.IpcReadOptions(included_fields=wanted)).read_all()
    if "start_ts" in names and "start_ts" not in table.column_names:
        table = table.append_column("start_ts", table.column("end_ts"))
    return table.select(names)


def gather(
    contents: Iterable[Any], columns: Iterable[str], classes: Sequence[str], low_us: int, high_us: int
) -> pa.Table:
    """The events of all these packs that are of these classes and end in [low, high), each pack's after those of the
    packs that begin before it: where packs do not overlap in time, the events of a source come in order."""
    wanted, parts = pa.array(sorted(classes)), []
    read = {"event_class", "end_ts", *columns}
    for content in contents:
        table = opened(content, read)
        ends, names = table.column("end_ts"), table.column("event_class").chunk(0)
        first, last = pc.min_max(ends).as_py().values()
        known = pc.is_in(names.dictionary, value_set=wanted)
        if first < low_us or last >= high_us:
            mask = pc.and_(pc.greater_equal(ends, low_us), pc.less(ends, high_us))
            parts.append((first, table.filter(pc.and_(mask, known.take(names.indices)))))
        else:
            parts.append((first, table if pc.all(known).as_py() else table.filter(known.take(names.indices))))
    return joined(part for _, part in sorted(parts, key=lambda part: part[0]))


def joined(parts: Iterable[pa.Table]) -> pa.Table:
    """Opened packs as one table, in one chunk."""
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks()


def to_stream(table: pa.Table | pa.RecordBatch, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def from_stream(data: Any) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
