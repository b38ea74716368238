"""The buffers of Arrow columns, written by kernels: gathered numbers, gathered strings, hex digits.

Enters: indices and what they point at. Leaves: numpy arrays in Arrow's layout (int32 offsets and bytes for strings).
Always holds: byte arrays have 8 bytes of spare room, because strings are copied in words of 8. Arrays are made by
numpy, not in the kernels: numpy asks the system for large pages, which makes writing fresh memory several times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.text import U64, copy, prefetch, span, store64

_LOW_HALF = U64(0xFFFFFFFF)
_AHEAD = 6  # answers between the steps of asking for what is needed soon
_MOST_ASKED = 8  # members of an answer that are asked for; the others come while these are copied


def gather(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """values int64[...] at places, as int64[n]."""
    result: np.ndarray = _gather(places, values, np.empty(len(places), np.int64))
    return result


@dataclass(frozen=True)
class Filled:
    """The members of some answers, as the buffers of a list of structs: lists int32[n+1]; of names, classes and ids
    each (offsets int32[k+1], bytes uint8); starts and ends int64[k], the same object where all events are points."""

    lists: np.ndarray
    strings: tuple[tuple[np.ndarray, np.ndarray], ...]
    starts: np.ndarray
    ends: np.ndarray


def fill_members(
    rows: np.ndarray,
    offsets: np.ndarray,
    name: np.ndarray,
    member: np.ndarray,
    times: tuple[np.ndarray, np.ndarray],
    cls: np.ndarray,
    texts: Sequence[np.ndarray],
    most_bytes: Sequence[int],
) -> Filled:
    """The members of the answers `rows` int64[n], in that order, in one pass: they lie scattered, so each is visited
    once. name int32[k] and cls int32[...] are codes; texts: where names, classes and ids are; most_bytes: what all
    their strings can take together."""
    start, end = times
    count = int((offsets[rows + 1] - offsets[rows]).sum())
    lists = np.empty(len(rows) + 1, np.int32)
    places = np.empty((3, count + 1), np.int32)
    data = [np.empty(most + 8, np.uint8) for most in most_bytes]
    starts = np.empty(count, np.int64)
    ends = starts if start is end else np.empty(count, np.int64)
    addresses = np.array([part.ctypes.data for part in data], np.int64)
    _fill_members(rows, offsets, name, member, start, end, cls, np.stack(texts), lists, places, addresses, starts, ends)
    strings = tuple((place, part[: place[-1] + 8]) for place, part in zip(places, data, strict=True))
    return Filled(lists, strings, starts, ends)


def coded_strings(places: np.ndarray, codes: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The string of codes[places[i]] (of places[i] itself where codes is empty): offsets int32[n+1], bytes uint8."""
    offsets = np.empty(len(places) + 1, np.int32)
    data = np.empty(_coded_sizes(places, codes, names, offsets) + 8, np.uint8)
    _coded_bytes(places, codes, names, offsets, data)
    return offsets, data


def hex_ids(rows: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The 32 hex digits of each match id, one after the other: uint8[32 n]."""
    result: np.ndarray = _hex_ids(rows, one, two, np.empty(32 * len(rows), np.uint8))
    return result


@njit(cache=True)
def _gather(places: Any, values: Any, out: Any) -> Any:
    for index in range(len(places)):
        out[index] = values[places[index]]
    return out


@njit(cache=True)
def _fill_members(
    rows: Any,
    offsets: Any,
    name: Any,
    member: Any,
    start: Any,
    end: Any,
    cls: Any,
    texts: Any,
    lists: Any,
    places: Any,
    data: Any,
    starts: Any,
    ends: Any,
) -> Any:
    names, classes, ids = texts[0], texts[1], texts[2]
    name_limit, class_limit, id_limit = names[1] + names[3], classes[1] + classes[3], ids[1] + ids[3]
    name_data, class_data, id_data = data[0], data[1], data[2]
    first_start, first_end, first_cls = _address(start), _address(end), _address(cls)
    first_offset, first_member, first_name = _address(offsets), _address(member), _address(name)
    name_at, class_at, id_at = np.int64(0), np.int64(0), np.int64(0)
    place = 0
    lists[0] = 0
    places[:, 0] = 0
    for index in range(len(rows)):
        # Four steps ahead of each other, so that no load waits for another: answer, members, what they are, their ids.
        if index + 4 * _AHEAD < len(rows):
            prefetch(first_offset + 8 * rows[index + 4 * _AHEAD])
            begin = offsets[rows[index + 3 * _AHEAD]]
            prefetch(first_member + 4 * begin)
            prefetch(first_name + 4 * begin)
            answer = rows[index + 2 * _AHEAD]
            for source in range(offsets[answer], min(offsets[answer + 1], offsets[answer] + _MOST_ASKED)):
                row = np.int64(member[source])
                prefetch(ids[0] + ids[2] * row)
                prefetch(first_start + 8 * row)
                prefetch(first_cls + 4 * row)
                if first_end != first_start:
                    prefetch(first_end + 8 * row)
            answer = rows[index + _AHEAD]
            for source in range(offsets[answer], min(offsets[answer + 1], offsets[answer] + _MOST_ASKED)):
                prefetch(span(ids, member[source])[0])
        answer = rows[index]
        for source in range(offsets[answer], offsets[answer + 1]):
            row = member[source]
            address, size = span(names, name[source])
            copy(address, size, name_data + name_at, name_limit)
            name_at += size
            address, size = span(classes, cls[row])
            copy(address, size, class_data + class_at, class_limit)
            class_at += size
            address, size = span(ids, row)
            copy(address, size, id_data + id_at, id_limit)
            id_at += size
            starts[place] = start[row]
            if first_end != first_start:
                ends[place] = end[row]
            place += 1
            places[0, place], places[1, place], places[2, place] = name_at, class_at, id_at
        lists[index + 1] = place


@njit(inline="always")
def _address(array: Any) -> Any:
    return np.int64(array.ctypes.data)


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
def _hex_ids(rows: Any, one: Any, two: Any, out: Any) -> Any:
    base, lane_one, lane_two = _address(out), _address(one), _address(two)
    for index in range(len(rows)):
        if index + 4 * _AHEAD < len(rows):
            soon = 8 * rows[index + 4 * _AHEAD]
            prefetch(lane_one + soon)
            prefetch(lane_two + soon)
        place = base + 32 * index
        left, right = one[rows[index]], two[rows[index]]
        store64(place, _hex(left >> U64(32)))
        store64(place + 8, _hex(left & _LOW_HALF))
        store64(place + 16, _hex(right >> U64(32)))
        store64(place + 24, _hex(right & _LOW_HALF))
    return out


@njit(inline="always")
def _hex(half: Any) -> Any:
    """Eight hex digits of 32 bits as the bytes of one word, the highest first in memory: the nibbles are spread over
    the bytes, then every byte above 9 is moved from behind '9' to 'a'."""
    word = ((half & U64(0xFFFF)) << U64(32)) | (half >> U64(16))
    word = ((word & U64(0x000000FF000000FF)) << U64(16)) | ((word >> U64(8)) & U64(0x000000FF000000FF))
    word = ((word & U64(0x000F000F000F000F)) << U64(8)) | ((word >> U64(4)) & U64(0x000F000F000F000F))
    above_nine = ((word + U64(0x0606060606060606)) >> U64(4)) & U64(0x0101010101010101)
    return word + U64(0x3030303030303030) + above_nine * U64(39)
