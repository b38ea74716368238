"""What follows from an answer's members: its times, its match id, its place in the table.

Enters: answers as members in pattern order: offsets int64[n+1], name int32[k] (code of the element's name) and member
int32[k].
Leaves: start, end int64[n], the two lanes of match_id uint64[n] (identity.py), and the matches by query.
Always holds: members that follow each other and have the same name code are one element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.identity import LANE_1, LANE_2, SEED_1, SEED_2
from cep_core.engine.text import AHEAD, U64, ask, hash_two, mix, prefetch, span

_K1, _K2, _S1, _S2 = U64(LANE_1), U64(LANE_2), U64(SEED_1), U64(SEED_2)


def flatten(
    query: np.ndarray, rows: np.ndarray, base: np.ndarray, name_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """rows int32[n, slots], -1 unbound -> offsets int64[n+1], name int32[k], member int32[k]."""
    offsets = np.empty(len(query) + 1, np.int64)
    used = _used(rows, offsets)
    name, member = np.empty(used, np.int32), np.empty(used, np.int32)
    _flatten(query, rows, base, name_of, name, member)
    return offsets, name, member


@njit(cache=True)
def _used(rows: Any, offsets: Any) -> Any:
    count, slots = rows.shape
    offsets[0] = 0
    used = 0
    for answer in range(count):
        for slot in range(slots):
            used += rows[answer, slot] >= 0
        offsets[answer + 1] = used
    return used


@njit(cache=True)
def _flatten(query: Any, rows: Any, base: Any, name_of: Any, name: Any, member: Any) -> Any:
    count, slots = rows.shape
    place = 0
    for answer in range(count):
        first = base[query[answer]]
        for slot in range(slots):
            row = rows[answer, slot]
            if row >= 0:
                name[place], member[place] = name_of[first + slot], row
                place += 1


@njit(cache=True)
def name_hashes(names: Any, count: Any) -> Any:
    """uint64[count, 2]: both lanes of each string."""
    out = np.empty((count, 2), np.uint64)
    for code in range(count):
        address, size = span(names, code)
        out[code, 0], out[code, 1] = hash_two(address, size)
    return out


@njit(cache=True)
def summary(
    query: Any,
    offsets: Any,
    name: Any,
    member: Any,
    start: Any,
    end: Any,
    ids: Any,
    query_hash: Any,
    name_hash: Any,
    first: Any,
    last: Any,
    one: Any,
    two: Any,
) -> Any:
    """Writes first int64[n] (start), last int64[n] (end) and the lanes one and two uint64[n]; returns how many bytes
    the ids of all members have, and the longest."""
    starts, ends = np.int64(start.ctypes.data), np.int64(end.ctypes.data)
    total, longest = np.int64(0), np.int64(0)
    for answer in range(len(query)):
        low, high = offsets[answer], offsets[answer + 1]
        begin, finish = start[member[low]], end[member[low]]
        a = _step(_S1, query_hash[query[answer], 0], _K1)
        b = _step(_S2, query_hash[query[answer], 1], _K2)
        place = low
        while place < high:
            code = name[place]
            stop = place + 1
            while stop < high and name[stop] == code:
                stop += 1
            a = _step(_step(a, name_hash[code, 0], _K1), U64(stop - place), _K1)
            b = _step(_step(b, name_hash[code, 1], _K2), U64(stop - place), _K2)
            while place < stop:
                row = member[place]
                ask(ids, member, place)
                if place + 2 * AHEAD < len(member):
                    prefetch(starts + 8 * np.int64(member[place + 2 * AHEAD]))
                    if ends != starts:
                        prefetch(ends + 8 * np.int64(member[place + 2 * AHEAD]))
                begin, finish = min(begin, start[row]), max(finish, end[row])
                address, size = span(ids, row)
                total += size
                longest = max(longest, size)
                left, right = hash_two(address, size)
                a, b = _step(a, left, _K1), _step(b, right, _K2)
                place += 1
        first[answer], last[answer] = begin, finish
        one[answer], two[answer] = mix(a ^ U64(high - low)), mix(b ^ U64(high - low))
    return total, longest


@njit(inline="always")
def _step(state: Any, word: Any, factor: Any) -> Any:
    state = (state ^ word) * factor
    return state ^ (state >> U64(32))


@njit(cache=True)
def by_query(query: Any, queries: Any, detection: Any, order: Any, keys: Any) -> Any:
    """Writes order int64[n] and detection in that order int64[n]; returns offsets int64[queries+1]: a counting sort."""
    offsets = np.zeros(queries + 1, np.int64)
    for answer in range(len(query)):
        offsets[query[answer] + 1] += 1
    for number in range(queries):
        offsets[number + 1] += offsets[number]
    free = offsets[:queries].copy()
    for answer in range(len(query)):
        place = free[query[answer]]
        free[query[answer]] = place + 1
        order[place], keys[place] = answer, detection[answer]
    return offsets


@njit(cache=True)
def first_events(rows: Any, offsets: Any, member: Any, query: Any, sourced: Any, count: Any) -> Any:
    """int64: of each of these answers the first member that is one of the `count` events and no timer; -1 where there
    is none, or the query is not `sourced`."""
    found = np.full(len(rows), -1, np.int64)
    for place in range(len(rows)):
        answer = rows[place]
        if sourced[query[answer]]:
            for at in range(offsets[answer], offsets[answer + 1]):
                if member[at] < count:
                    found[place] = member[at]
                    break
    return found
