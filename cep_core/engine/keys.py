"""The codes of a key: equal values of its attributes, one partition.

Enters: one Arrow array per attribute of the key, n long.
Leaves: int32[n] codes from 0 on, -1 where any of the values is null.
Always holds: codes count up in the order of first appearance, so rows that come sorted by key keep their order.
Strings are compared by their bytes, numbers by value (0.0 equals -0.0), never by hash alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cep_core.engine.text import U64, hash_one, mix, same, span, where, word

_CACHE = 1 << 12
_SPREAD = U64(0x9E3779B97F4A7C15)


def key_codes(columns: Sequence[pa.Array]) -> np.ndarray:
    """int32[n]: one code for each distinct tuple of values."""
    codes = _column_codes(columns[0])
    for column in columns[1:]:
        more = _column_codes(column)
        pairs = codes.astype(np.int64) * (int(more.max(initial=-1)) + 1) + more
        missing = (codes < 0) | (more < 0)
        codes = _number_codes(pairs, missing)
    return codes


def _column_codes(column: pa.Array) -> np.ndarray:
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), -1, np.int32)
    missing = np.asarray(column.is_null()) if column.null_count else np.empty(0, bool)
    if pa.types.is_dictionary(kind):
        values = _column_codes(column.dictionary)  # a dictionary may hold a value twice, or a null
        places = column.indices.fill_null(0).to_numpy().astype(np.int64)
        codes = values[places].astype(np.int64) if len(values) else np.zeros(len(places), np.int64)
        return _number_codes(codes, (codes < 0) | missing if len(missing) else codes < 0)
    if pa.types.is_string_view(kind):
        column, kind = column.cast(pa.large_string()), pa.large_string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        result: np.ndarray = _string_codes(where(column), missing, np.empty(len(column), np.int32))
        return result
    if pa.types.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # adding 0.0 turns -0.0 into 0.0
        return _number_codes(numbers.view(np.int64), np.isnan(numbers) | missing if len(missing) else np.isnan(numbers))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _number_codes(np.ascontiguousarray(column.cast(pa.int64()).fill_null(0).to_numpy()), missing)
    if pa.types.is_timestamp(kind):
        return _column_codes(column.view(pa.int64()))
    places = pc.dictionary_encode(column).indices.fill_null(0).to_numpy().astype(np.int64)
    return _number_codes(places, missing)


def _number_codes(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    if len(values) and not len(missing):
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * len(values) + 1024:
            return _dense_codes(values, low, np.full(high - low + 1, -1, np.int32), np.empty(len(values), np.int32))
    frozen = values.view()
    frozen.flags.writeable = False
    return _sparse_codes(frozen, missing, np.empty(len(values), np.int32))


@njit(cache=True)
def _dense_codes(values: Any, low: Any, table: Any, out: Any) -> Any:
    count = 0
    for row in range(len(values)):
        place = values[row] - low
        code = table[place]
        if code < 0:
            code = np.int32(count)
            table[place] = code
            count += 1
        out[row] = code
    return out


@njit(cache=True)
def _sparse_codes(values: Any, missing: Any, out: Any) -> Any:
    table = np.full(1024, -1, np.int32)
    known = np.empty(256, np.int64)
    count = 0
    for row in range(len(values)):
        if len(missing) and missing[row]:
            out[row] = -1
            continue
        value = values[row]
        mask = len(table) - 1
        place = np.int64(mix(U64(value))) & mask
        code = table[place]
        while code >= 0 and known[code] != value:
            place = (place + 1) & mask
            code = table[place]
        if code < 0:
            code = np.int32(count)
            known[count] = value
            table[place] = code
            count += 1
            if count == len(known):
                known, table = _grown(known, count)
        out[row] = code
    return out


@njit(cache=True)
def _grown(known: Any, count: Any) -> Any:
    """Twice the room for numbers, and their table at most a quarter full."""
    more = np.empty(2 * count, np.int64)
    more[:count] = known
    table = np.full(8 * count, -1, np.int32)
    mask = len(table) - 1
    for code in range(count):
        place = np.int64(mix(U64(known[code]))) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = code
    return more, table


@njit(cache=True)
def _string_codes(column: Any, missing: Any, out: Any) -> Any:
    table = np.full(1024, -1, np.int32)
    marks = np.empty(256, np.uint64)  # the hash and the first row of each code
    first = np.empty(256, np.int64)
    codes = 0
    previous, code = U64(0), np.int32(-1)
    limit = column[1] + column[3]
    known, code_of = np.zeros(_CACHE, np.uint64), np.empty(_CACHE, np.int32)  # short strings met lately
    for row in range(len(out)):
        if len(missing) and missing[row]:
            out[row] = -1
            continue
        address, size = span(column, row)
        short, near = U64(0), np.int64(0)
        if 0 < size < 8:
            short = word(address, size, limit)
            near = np.int64((short * _SPREAD) >> U64(64 - 12))
            if known[near] == short:
                out[row] = code_of[near]
                continue
        mark = hash_one(address, size)
        if code >= 0 and mark == previous:  # rows in runs of one key, as sorted tables have them
            other, other_size = span(column, first[code])
            if same(address, size, other, other_size):
                out[row] = code
                continue
        previous = mark
        mask = len(table) - 1
        place = np.int64(mark) & mask
        code = table[place]
        while code >= 0:
            if marks[code] == mark:
                other, other_size = span(column, first[code])
                if same(address, size, other, other_size):
                    break
            place = (place + 1) & mask
            code = table[place]
        if code < 0:
            code = np.int32(codes)
            marks[codes], first[codes] = mark, row
            table[place] = code
            codes += 1
            if codes == len(marks):
                marks, first, table = _grown_strings(marks, first, codes)
        if short:
            known[near], code_of[near] = short, code
        out[row] = code
    return out


@njit(cache=True)
def _grown_strings(marks: Any, first: Any, count: Any) -> Any:
    more, rows = np.empty(2 * count, np.uint64), np.empty(2 * count, np.int64)
    more[:count] = marks
    rows[:count] = first
    table = np.full(8 * count, -1, np.int32)
    mask = len(table) - 1
    for code in range(count):
        place = np.int64(marks[code]) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = code
    return more, rows, table
