"""The buffers of Arrow columns, written by kernels: gathered numbers, gathered strings, hex digits.

Enters: indices and what they point at. Leaves: numpy arrays in Arrow's layout (int32 offsets and bytes for strings).
Always holds: byte arrays have 8 bytes of spare room, because strings are copied in words of 8. Arrays are made by
numpy, not in the kernels: numpy asks the system for large pages, which makes writing fresh memory several times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.text import U64, ask, copy, span

_HEX = np.frombuffer("".join(f"{value:02x}" for value in range(256)).encode(), np.uint16).copy()


def gather(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """values int64[...] at places, as int64[n]."""
    result: np.ndarray = _gather(places, values, np.empty(len(places), np.int64))
    return result


def gather_members(
    rows: np.ndarray, offsets: np.ndarray, name: np.ndarray, member: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The members of the answers `rows` int64[n], in that order: list offsets int32[n+1], name int32[k], member
    int32[k]."""
    lists = np.empty(len(rows) + 1, np.int32)
    total = _list_offsets(rows, offsets, lists)
    names, members = np.empty(total, np.int32), np.empty(total, np.int32)
    _list_values(rows, offsets, name, member, names, members)
    return lists, names, members


def coded_strings(places: np.ndarray, codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The string of codes[places[i]] (of places[i] itself where codes is empty): offsets int32[n+1], bytes uint8."""
    offsets = np.empty(len(places) + 1, np.int32)
    data = np.empty(_coded_sizes(places, codes, names, offsets) + 8, np.uint8)
    _coded_bytes(places, codes, names, offsets, data)
    return offsets, data


def picked_strings(places: np.ndarray, strings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strings at places int32[n]: offsets int32[n+1], bytes uint8."""
    offsets = np.empty(len(places) + 1, np.int32)
    data = np.empty(_picked_sizes(places, strings, offsets) + 8, np.uint8)
    _picked_bytes(places, strings, offsets, data)
    return offsets, data


def hex_ids(rows: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The 32 hex digits of each match id, one after the other: uint16[16 n], two digits each."""
    result: np.ndarray = _hex_ids(rows, one, two, np.empty(16 * len(rows), np.uint16))
    return result


@njit(cache=True)
def _gather(places: Any, values: Any, out: Any) -> Any:
    for index in range(len(places)):
        out[index] = values[places[index]]
    return out


@njit(cache=True)
def _list_offsets(rows: Any, offsets: Any, lists: Any) -> Any:
    lists[0] = 0
    for index in range(len(rows)):
        answer = rows[index]
        lists[index + 1] = lists[index] + offsets[answer + 1] - offsets[answer]
    return lists[len(rows)]


@njit(cache=True)
def _list_values(rows: Any, offsets: Any, name: Any, member: Any, names: Any, members: Any) -> Any:
    place = 0
    for index in range(len(rows)):
        for source in range(offsets[rows[index]], offsets[rows[index] + 1]):
            names[place], members[place] = name[source], member[source]
            place += 1


@njit(cache=True)
def _coded_sizes(places: Any, codes: Any, names: Any, offsets: Any) -> Any:
    offsets[0] = 0
    total = np.int64(0)
    for index in range(len(places)):
        code = codes[places[index]] if len(codes) else places[index]
        total += span(names, code)[1]
        offsets[index + 1] = total
    return total


@njit(cache=True)
def _coded_bytes(places: Any, codes: Any, names: Any, offsets: Any, data: Any) -> Any:
    base, limit = np.int64(data.ctypes.data), names[1] + names[3]
    for index in range(len(places)):
        code = codes[places[index]] if len(codes) else places[index]
        address, size = span(names, code)
        copy(address, size, base + offsets[index], limit)


@njit(cache=True)
def _picked_sizes(places: Any, strings: Any, offsets: Any) -> Any:
    offsets[0] = 0
    total = np.int64(0)
    for index in range(len(places)):
        total += span(strings, places[index])[1]
        offsets[index + 1] = total
    return total


@njit(cache=True)
def _picked_bytes(places: Any, strings: Any, offsets: Any, data: Any) -> Any:
    base, limit = np.int64(data.ctypes.data), strings[1] + strings[3]
    for index in range(len(places)):
        ask(strings, places, index)
        address, size = span(strings, places[index])
        copy(address, size, base + offsets[index], limit)


@njit(cache=True)
def _hex_ids(rows: Any, one: Any, two: Any, out: Any) -> Any:
    for index in range(len(rows)):
        place = 16 * index
        left, right = one[rows[index]], two[rows[index]]
        for byte in range(8):
            shift = U64(56 - 8 * byte)
            out[place + byte] = _HEX[(left >> shift) & U64(255)]
            out[place + 8 + byte] = _HEX[(right >> shift) & U64(255)]
    return out
