"""The codes of event classes, and which rows any query needs.

Enters: the column `event_class` (string of any kind, or dictionary) and the classes wanted.
Leaves: the classes by code, int32 codes of the kept rows, and the kept rows' numbers (None: all).
Always holds: a class's code is its position in the classes wanted; without any given, in the sorted names present.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from cep_core.engine.text import U64, hash_one, same, span, text, where, word
from cep_core.errors import EventError

_EMPTY = np.int32(-1)
_CACHE = 1 << 12
_SPREAD = U64(0x9E3779B97F4A7C15)


def class_codes(
    column: pa.Array, wanted: Sequence[str] | None
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
    """(classes, codes int32[n], rows int64[n] or None where every row is kept)."""
    if pa.types.is_dictionary(column.type):
        names = column.dictionary.cast(pa.string())
        indices = column.indices.to_numpy()
    elif wanted is None:
        coded = column.dictionary_encode()
        names, indices = coded.dictionary.cast(pa.string()), coded.indices.to_numpy()
    else:
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise EventError(f"column 'event_class' is {column.type}; it must be a string")
        classes = tuple(wanted)
        names = text(classes)
        codes, rows = np.empty(len(column), np.int32), np.empty(len(column), np.int64)
        kept = encode(where(column), where(names), _table(names), codes, rows)
        return classes, codes[:kept], None if kept == len(column) else rows[:kept]
    present = names.to_pylist()
    classes = tuple(sorted(set(present))) if wanted is None else tuple(wanted)
    place = {name: code for code, name in enumerate(classes)}
    translate = np.array([place.get(name, -1) for name in present] or [-1], np.int32)
    codes = translate[indices] if len(indices) else np.empty(0, np.int32)
    if len(codes) and codes.min() < 0:
        rows = np.flatnonzero(codes >= 0)
        return classes, codes[rows], rows
    return classes, codes, None


def _table(names: pa.Array) -> np.ndarray:
    """int32: an open-addressing table of the codes by the hash of their names, at most a quarter full."""
    size = 16
    while size < 4 * len(names):
        size *= 2
    result: np.ndarray = _fill(where(names), len(names), np.full(size, _EMPTY, np.int32))
    return result


@njit(cache=True)
def _fill(names: Any, count: Any, table: Any) -> Any:
    mask = len(table) - 1
    for code in range(count):
        address, size = span(names, code)
        place = np.int64(hash_one(address, size)) & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = code
    return table


@njit(cache=True)
def encode(column: Any, names: Any, table: Any, codes: Any, rows: Any) -> Any:
    """Writes codes int32[n] and rows int64[n] of the rows whose class is among the names; returns how many."""
    mask = len(table) - 1
    kept = 0
    limit = column[1] + column[3]
    known, code_of = np.zeros(_CACHE, np.uint64), np.full(_CACHE, _EMPTY, np.int32)  # short names met lately
    for row in range(len(codes)):
        address, size = span(column, row)
        if 0 < size < 8:
            short = word(address, size, limit)
            near = np.int64((short * _SPREAD) >> U64(64 - 12))
            if known[near] == short:
                codes[kept] = code_of[near]
                rows[kept] = row
                kept += code_of[near] >= 0
                continue
            known[near], code_of[near] = short, _EMPTY
        place = np.int64(hash_one(address, size)) & mask
        while True:
            code = table[place]
            if code < 0:
                break
            other, other_size = span(names, code)
            if same(address, size, other, other_size):
                codes[kept] = code
                rows[kept] = row
                kept += 1
                if 0 < size < 8:
                    code_of[near] = code
                break
            place = (place + 1) & mask
    return kept
