"""Rows that share an event_id are one event.

Enters: the ids of the rows kept, and a way to read any column at given rows of the table.
Leaves: the places of the rows that stay, or None where every id is unique.
Always holds: of equal rows the first stays; rows that share an id and differ are refused with their ids and columns.
A bitmap of 16 bits an id finds the few rows whose hash may have been seen before; only their hashes are sorted, and
only ids with an equal hash are compared as strings and column by column. So unique ids cost one hash and two bits each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from cep_core.engine.text import U64, hashes
from cep_core.errors import EventError

ReadColumn = Callable[[str, np.ndarray], pa.Array]


def drop_duplicates(
    event_id: pa.Array, rows: np.ndarray | None, read: ReadColumn, columns: Sequence[str]
) -> np.ndarray | None:
    """int64 places in `event_id` to keep, ascending, or None. `rows` are the places' rows in the table (None: the
    same)."""
    hashed = hashes(event_id)
    suspects = _suspects(hashed, _bits(16 * len(hashed)), _bits(len(hashed)))
    values = hashed[suspects]
    ascending = np.sort(values)
    if not (ascending[1:] == ascending[:-1]).any():
        return None
    firsts, others = _pairs(event_id, suspects, values)
    if not len(others):
        return None
    _refuse_differing(event_id, firsts, others, rows, read, columns)
    keep = np.ones(len(event_id), bool)
    keep[others] = False
    return np.flatnonzero(keep)


def _bits(wanted: int) -> np.ndarray:
    """A zeroed bitmap: uint64 words, a power of two of them, at least `wanted` bits."""
    size = 64
    while size < wanted:
        size *= 2
    return np.zeros(size // 64, np.uint64)


@njit(cache=True)
def _suspects(hashed: Any, seen: Any, again: Any) -> Any:
    """int64: ascending places of every id whose hash may be shared: all true ones, few others."""
    mask = U64(len(seen) * 64 - 1)
    small = U64(len(again) * 64 - 1)
    found = 0
    for row in range(len(hashed)):
        bit = hashed[row] & mask
        word, one = bit >> U64(6), U64(1) << (bit & U64(63))
        if seen[word] & one:
            bit = (hashed[row] >> U64(32)) & small
            again[bit >> U64(6)] |= U64(1) << (bit & U64(63))
            found += 1
        seen[word] |= one
    out = np.empty(64, np.int64)
    count = 0
    if found == 0:
        return out[:0]
    for row in range(len(hashed)):
        bit = (hashed[row] >> U64(32)) & small
        if again[bit >> U64(6)] & (U64(1) << (bit & U64(63))):
            if count == len(out):
                grown = np.empty(2 * count, np.int64)
                grown[:count] = out
                out = grown
            out[count] = row
            count += 1
    return out[:count]


def _pairs(event_id: pa.Array, suspects: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first, other) places of rows with equal ids; of n equal ones n - 1 pairs with the first."""
    order = np.lexsort((suspects, values))
    ordered = values[order]
    equal = np.zeros(len(order), bool)
    equal[1:] = ordered[1:] == ordered[:-1]
    equal[:-1] |= equal[1:]
    places = suspects[order[equal]]
    ids = event_id.take(pa.array(places)).to_pylist()
    first: dict[str, int] = {}
    pairs = [(first.setdefault(name, place), place) for name, place in sorted(zip(ids, places.tolist(), strict=True))]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _refuse_differing(
    event_id: pa.Array,
    firsts: np.ndarray,
    others: np.ndarray,
    rows: np.ndarray | None,
    read: ReadColumn,
    columns: Sequence[str],
) -> None:
    left = firsts if rows is None else rows[firsts]
    right = others if rows is None else rows[others]
    differing: dict[str, list[str]] = {}
    for name in columns:
        unequal = np.flatnonzero(~_equal(read(name, left), read(name, right)))
        for pair in unequal[:3]:
            differing.setdefault(event_id[int(others[pair])].as_py(), []).append(name)
    if differing:
        some = "; ".join(f"{key!r} differs in {', '.join(names)}" for key, names in sorted(differing.items())[:5])
        raise EventError(
            f"rows that share an event_id are one event, but some differ: {some}. "
            f"Make the ids unique, or keep one row of each"
        )


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray:
    """bool: equal values; null equals null and NaN equals NaN."""
    if pa.types.is_dictionary(left.type):
        left, right = left.dictionary_decode(), right.dictionary_decode()
    if pa.types.is_nested(left.type) or pa.types.is_null(left.type):
        return np.array([a == b for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)], bool)
    equal = pc.fill_null(pc.equal(left, right), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return np.asarray(equal)
