"""Sorting inside many runs at once: the one sort that events and matches share.

Enters: runs of int64 keys with an int64 payload each, given by where each run begins and ends.
Leaves: the same arrays, ascending by key inside each run.
Always holds: linear for keys that spread evenly in their run (one pass into as many bins as rows, then insertion); a
bin that stays large is sorted by merging, so no input is quadratic. Equal keys end up in any order: callers settle
ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_SMALL = 24


def sort_runs(lows: np.ndarray, highs: np.ndarray, keys: np.ndarray, payload: np.ndarray) -> None:
    """lows, highs int64[r]: where each run begins and ends; keys, payload int64[n], sorted in place."""
    longest = int((highs - lows).max(initial=0))
    spare = np.empty((2, longest), np.int64)
    _sort_runs(lows, highs, keys, payload, longest, np.empty(longest + 1, np.int32), spare[0], spare[1])


@njit(cache=True)
def _sort_runs(
    lows: Any, highs: Any, keys: Any, payload: Any, longest: Any, bins: Any, spare_keys: Any, spare: Any
) -> Any:
    if longest <= _SMALL:
        for run in range(len(lows)):
            _insertion(keys, payload, lows[run], highs[run])
        return
    for run in range(len(lows)):
        low, high = lows[run], highs[run]
        if high - low <= _SMALL:
            _insertion(keys, payload, low, high)
        else:
            _spread(keys, payload, low, high, bins, spare_keys, spare)


@njit(cache=True)
def _insertion(keys: Any, payload: Any, low: Any, high: Any) -> Any:
    for place in range(low + 1, high):
        key, load = keys[place], payload[place]
        hole = place
        while hole > low and keys[hole - 1] > key:
            keys[hole], payload[hole] = keys[hole - 1], payload[hole - 1]
            hole -= 1
        keys[hole], payload[hole] = key, load


@njit(cache=True)
def _spread(keys: Any, payload: Any, low: Any, high: Any, bins: Any, spare_keys: Any, spare: Any) -> Any:
    least, most, ascending = keys[low], keys[low], True
    for place in range(low + 1, high):
        key = keys[place]
        ascending &= key >= keys[place - 1]
        least, most = min(least, key), max(most, key)
    if ascending:
        return
    count = high - low
    scale = (
        count / (np.float64(most) - np.float64(least) + 1.0) * 0.999999
    )  # floats keep the order, and stay below count
    number: Any = 0
    bins[: count + 1] = 0
    for place in range(low, high):
        bins[np.int64((np.float64(keys[place]) - np.float64(least)) * scale) + 1] += 1
    for number in range(count):
        bins[number + 1] += bins[number]
    for place in range(low, high):
        number = np.int64((np.float64(keys[place]) - np.float64(least)) * scale)
        target = bins[number]
        bins[number] = target + 1
        spare_keys[target], spare[target] = keys[place], payload[place]
    keys[low:high] = spare_keys[:count]
    payload[low:high] = spare[:count]
    begin = 0  # after the scatter bins[number] is where bin `number` ends
    for number in range(count):
        end = bins[number]
        if end - begin > 64:
            _merge(keys, payload, low + begin, low + end, spare_keys, spare)
        elif end - begin > 1:
            _insertion(keys, payload, low + begin, low + end)
        begin = end


@njit(cache=True)
def _merge(keys: Any, payload: Any, low: Any, high: Any, spare_keys: Any, spare: Any) -> Any:
    width = 16
    for begin in range(low, high, width):
        _insertion(keys, payload, begin, min(begin + width, high))
    while width < high - low:
        for begin in range(low, high, 2 * width):
            middle, end = min(begin + width, high), min(begin + 2 * width, high)
            left, right = begin, middle
            for place in range(end - begin):
                if right >= end or (left < middle and keys[left] <= keys[right]):
                    spare_keys[place], spare[place] = keys[left], payload[left]
                    left += 1
                else:
                    spare_keys[place], spare[place] = keys[right], payload[right]
                    right += 1
            keys[begin:end] = spare_keys[: end - begin]
            payload[begin:end] = spare[: end - begin]
        width *= 2


@njit(cache=True)
def equal_runs(lows: Any, highs: Any, keys: Any) -> Any:
    """(lows, highs) int64: the stretches of two or more equal keys inside sorted runs."""
    count = 0
    for fill in range(2):
        if fill:
            more_lows, more_highs = np.empty(count, np.int64), np.empty(count, np.int64)
        count = 0
        for run in range(len(lows)):
            place = lows[run]
            while place < highs[run] - 1:
                end = place + 1
                while end < highs[run] and keys[end] == keys[place]:
                    end += 1
                if end - place > 1:
                    if fill:
                        more_lows[count], more_highs[count] = place, end
                    count += 1
                place = end
        if count == 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
    return more_lows, more_highs


@njit(cache=True)
def next_keys(lows: Any, highs: Any, keys: Any, payload: Any, values: Any) -> Any:
    """Writes values int64[...] of each payload as the keys of these runs."""
    for run in range(len(lows)):
        for place in range(lows[run], highs[run]):
            keys[place] = values[payload[place]]
