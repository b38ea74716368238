"""The buffers of Arrow columns, written by kernels: gathered numbers, gathered strings, hex digits.

Enters: indices and what they point at. Leaves: numpy arrays in Arrow's layout (int32 offsets and bytes for strings).
Always holds: byte arrays have 8 bytes of spare room, because strings are copied in words of 8.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cep_core.engine.text import U64, ask, copy, span

_HEX = np.frombuffer("".join(f"{value:02x}" for value in range(256)).encode(), np.uint16).copy()


@njit(cache=True)
def gather(places, values):
    """values int64[...] at places, as int64[n]."""
    out = np.empty(len(places), np.int64)
    for index in range(len(places)):
        out[index] = values[places[index]]
    return out


@njit(cache=True)
def gather_members(rows, offsets, name, member):
    """The members of the answers `rows` int64[n], in that order: list offsets int32[n+1], name int32[k], member int32[k]."""
    lists = np.empty(len(rows) + 1, np.int32)
    lists[0] = 0
    for index in range(len(rows)):
        answer = rows[index]
        lists[index + 1] = lists[index] + offsets[answer + 1] - offsets[answer]
    names, members = np.empty(lists[len(rows)], np.int32), np.empty(lists[len(rows)], np.int32)
    place = 0
    for index in range(len(rows)):
        for source in range(offsets[rows[index]], offsets[rows[index] + 1]):
            names[place], members[place] = name[source], member[source]
            place += 1
    return lists, names, members


@njit(cache=True)
def coded_strings(places, codes, names):
    """The string of codes[places[i]] (of places[i] itself where codes is empty): offsets int32[n+1], bytes uint8."""
    count = len(places)
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = 0
    total = np.int64(0)
    for index in range(count):
        code = codes[places[index]] if len(codes) else places[index]
        total += span(names, code)[1]
        offsets[index + 1] = total
    data = np.empty(total + 8, np.uint8)
    base, limit = np.int64(data.ctypes.data), names[1] + names[3]
    for index in range(count):
        code = codes[places[index]] if len(codes) else places[index]
        address, size = span(names, code)
        copy(address, size, base + offsets[index], limit)
    return offsets, data


@njit(cache=True)
def picked_strings(places, strings):
    """The strings at places int32[n]: offsets int32[n+1], bytes uint8."""
    count = len(places)
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = 0
    total = np.int64(0)
    for index in range(count):
        total += span(strings, places[index])[1]
        offsets[index + 1] = total
    data = np.empty(total + 8, np.uint8)
    base, limit = np.int64(data.ctypes.data), strings[1] + strings[3]
    for index in range(count):
        ask(strings, places, index)
        address, size = span(strings, places[index])
        copy(address, size, base + offsets[index], limit)
    return offsets, data


@njit(cache=True)
def hex_ids(rows, one, two):
    """The 32 hex digits of each match id, one after the other: uint16[16 n], two digits each."""
    out = np.empty(16 * len(rows), np.uint16)
    for index in range(len(rows)):
        place = 16 * index
        left, right = one[rows[index]], two[rows[index]]
        for byte in range(8):
            shift = U64(56 - 8 * byte)
            out[place + byte] = _HEX[(left >> shift) & U64(255)]
            out[place + 8 + byte] = _HEX[(right >> shift) & U64(255)]
    return out
