"""The store: the events of one key in partition and event order.

Enters: `Events` and the codes of a key (keys.py), or None for a query without one.
Leaves: `Ordered`: rows by (partition, end, start, tie, event_id); rows whose key is null are left out.
Always holds: event order is total inside a partition (ids are unique), so the order does not depend on the order of the
table's rows. Ids are compared only where all times and ties are equal. The store has the same size whatever the number
of queries (SCEMon 4: one queue of events for all queries and sources).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.load import Events
from cep_core.engine.sorting import sort_runs
from cep_core.engine.text import less, span, where

_NO_NUMBERS = np.empty(0, np.int64)
_NO_NUMBERS.flags.writeable = False


@dataclass(frozen=True)
class Ordered:
    """m events. row int32[m]: index into Events. start, end int64[m], the same object where all are points.
    cls int32[m]. offsets int64[p+1]: partition i holds the places offsets[i] to offsets[i+1]."""

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    cls: np.ndarray
    offsets: np.ndarray

    @property
    def count(self) -> int:
        return len(self.row)

    @property
    def points(self) -> bool:
        return self.start is self.end

    @property
    def part(self) -> np.ndarray:
        """int32[m]: each event's partition."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    @property
    def nbytes(self) -> int:
        """Bytes of the store; a start that is the end counts once."""
        arrays = {id(array): array.nbytes for array in (self.row, self.start, self.end, self.cls, self.offsets)}
        return sum(arrays.values())


def order(events: Events, codes: np.ndarray | None = None) -> Ordered:
    """codes int32[n]: the partition of each event, -1 for none; None: one partition of all."""
    count = events.count
    if codes is None:
        codes = np.zeros(count, np.int32)
    if _is_sorted(codes, events.end):
        parts = int(codes[-1]) + 1 if count else 0
        row = np.arange(count, dtype=np.int32)
        end, cls = events.end, events.cls
        offsets = np.searchsorted(codes, np.arange(parts + 1, dtype=np.int32)).astype(np.int64)  # the type of codes
        if settle_ties(offsets, end, row, events.start, *_tie_breakers(events)):
            cls = cls[row]
    else:
        offsets = _counts(codes, int(codes.max(initial=-1)) + 1)
        end, payload = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
        _distribute(codes, events.end, events.cls, offsets, end, payload)
        sort_runs(offsets[:-1], offsets[1:], end, payload)
        row, cls = _unpack(payload, np.empty(len(payload), np.int32), np.empty(len(payload), np.int32))
        end.flags.writeable = False
        if settle_ties(offsets, end, row, events.start, *_tie_breakers(events)):
            cls = events.cls[row]
    start = end if events.points else events.start[row]
    for array in (row, start, end, cls, offsets):
        array.flags.writeable = False
    return Ordered(row, start, end, cls, offsets)


def _tie_breakers(events: Events) -> tuple[np.ndarray, np.ndarray]:
    return events.tie if events.tie is not None else _NO_NUMBERS, where(events.event_id)


@njit(cache=True)
def _is_sorted(codes: Any, end: Any) -> Any:
    """Whether no row has to move but for ties: codes ascend from 0 without null, ends ascend in each partition."""
    if len(codes) and codes[0] < 0:
        return False
    for row in range(1, len(codes)):
        if codes[row] < codes[row - 1] or (codes[row] == codes[row - 1] and end[row] < end[row - 1]):
            return False
    return True


@njit(cache=True)
def _counts(codes: Any, parts: Any) -> Any:
    """int64[parts+1]: where each partition begins."""
    offsets = np.zeros(parts + 1, np.int64)
    for row in range(len(codes)):
        if codes[row] >= 0:
            offsets[codes[row] + 1] += 1
    for part in range(parts):
        offsets[part + 1] += offsets[part]
    return offsets


@njit(cache=True)
def _distribute(codes: Any, end: Any, cls: Any, offsets: Any, times: Any, payload: Any) -> Any:
    """Writes times int64[m] and payload int64[m] = class << 32 | row, by partition."""
    free = offsets.copy()
    for row in range(len(codes)):
        part = codes[row]
        if part >= 0:
            place = free[part]
            free[part] = place + 1
            times[place] = end[row]
            payload[place] = (np.int64(cls[row]) << 32) | row


@njit(cache=True)
def _unpack(payload: Any, row: Any, cls: Any) -> Any:
    for place in range(len(payload)):
        row[place] = payload[place] & 0xFFFFFFFF
        cls[place] = payload[place] >> 32
    return row, cls


@njit(cache=True)
def settle_ties(offsets: Any, end: Any, row: Any, start: Any, tie: Any, ids: Any) -> Any:
    """Sorts each run of equal ends in a partition by (start, tie, event_id), in place in row int32[m]; says whether
    anything moved. start, tie and ids are those of Events."""
    moved = False
    spare = np.empty(0, np.int32)
    for part in range(len(offsets) - 1):
        place, count = offsets[part], offsets[part + 1]
        equal = 0  # counted first, without a branch: most partitions have no ties
        for one in range(place + 1, count):
            equal += end[one] == end[one - 1]
        if equal == 0:
            continue
        while place < count - 1:
            if end[place + 1] != end[place]:
                place += 1
                continue
            high = place + 2
            while high < count and end[high] == end[place]:
                high += 1
            if high - place > len(spare):
                spare = np.empty(2 * (high - place), np.int32)
            moved |= _merge_rows(row, place, high, spare, start, tie, ids)
            place = high
    return moved


@njit(cache=True)
def _before(one: Any, two: Any, start: Any, tie: Any, ids: Any) -> Any:
    if start[one] != start[two]:
        return start[one] < start[two]
    if len(tie) and tie[one] != tie[two]:
        return tie[one] < tie[two]
    address, size = span(ids, one)
    other, other_size = span(ids, two)
    return less(address, size, other, other_size)


@njit(cache=True)
def _merge_rows(row: Any, low: Any, high: Any, spare: Any, start: Any, tie: Any, ids: Any) -> Any:
    moved = False
    width = 8
    for begin in range(low, high, width):
        for place in range(begin + 1, min(begin + width, high)):
            one = row[place]
            hole = place
            while hole > begin and _before(one, row[hole - 1], start, tie, ids):
                row[hole] = row[hole - 1]
                hole -= 1
                moved = True
            row[hole] = one
    while width < high - low:
        for begin in range(low, high, 2 * width):
            middle, end = min(begin + width, high), min(begin + 2 * width, high)
            if middle >= end or not _before(row[middle], row[middle - 1], start, tie, ids):
                continue
            moved = True
            left, right = begin, middle
            for place in range(end - begin):
                if right >= end or (left < middle and not _before(row[right], row[left], start, tie, ids)):
                    spare[place] = row[left]
                    left += 1
                else:
                    spare[place] = row[right]
                    right += 1
            row[begin:end] = spare[: end - begin]
        width *= 2
    return moved
