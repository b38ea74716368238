"""Spark's xxhash64 over Arrow columns: a value has the same hash wherever it is counted.

Enters: Arrow arrays of strings or whole numbers, without nulls. Leaves: int64[*], one hash per row, chained over the
columns as `xxhash64(a, b)` of Spark SQL is.
Always holds: equal to Spark's own for every value (a test compares them). Strings are hashed length by length, so
that each step is one operation on all rows of a length.

The algorithm is XXH64 by Yann Collet (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), with Spark's seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p) for p in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    )
)  # fmt: skip
Words = Any  # np.ndarray of uint64, or one np.uint64: the type checker does not see that sums of them stay such
Read = Callable[[int, int], np.ndarray]  # place in the text, width -> so many bytes of every text, as a number each


def xxhash64(columns: Iterable[pa.Array]) -> np.ndarray:
    """The hashes of rows, column by column."""
    seed: Words | None = None
    for column in columns:
        if seed is None:
            seed = np.full(len(column), SEED, np.uint64)
        seed = hash_more(seed, column)
    assert seed is not None
    hashes: np.ndarray = seed.view(np.int64)
    return hashes


def hash_more(seed: Words, column: pa.Array) -> Words:
    """The hashes of one more column, uint64[*], on from those of the columns before."""
    with np.errstate(over="ignore"):  # arithmetic is modulo 2**64
        if pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type):
            values = np.asarray(column.cast(pa.int64())).view(np.uint64)
            return _mixed(_with_word(seed + _P5 + np.uint64(8), values))
        return _hash_text(seed, column.cast(pa.large_string()))


def _hash_text(seed: Words, column: pa.Array) -> Words:
    _, places, content = column.buffers()
    offsets = np.frombuffer(places, np.int64, len(column) + 1, column.offset * 8)
    text = np.frombuffer(content or b"", np.uint8)
    lengths = np.diff(offsets)
    if len(lengths) and lengths.min() == lengths.max():  # one after the other: no need to gather them
        length, first = int(lengths[0]), int(offsets[0])
        return _of_length(seed, length, lambda at, width: np.ndarray(
            len(lengths), f"<u{width}", text, first + at, (length,)
        ))  # fmt: skip
    hashes = np.empty(len(column), np.uint64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        hashes[rows] = _of_length(seed[rows], length, _gather(text, offsets[:-1][rows]))
    return hashes


def _gather(text: np.ndarray, starts: np.ndarray) -> Read:
    """Reads from texts that begin at `starts`, int64[*], of `text`, uint8[*]."""

    def read(at: int, width: int) -> np.ndarray:
        every: np.ndarray = np.ndarray(len(text) - width + 1, f"<u{width}", text, strides=(1,))
        return every.take(starts + at)

    return read


def _of_length(seed: Words, length: int, read_at: Read) -> Words:
    """The hashes of texts of one length."""
    at = 0

    def read(width: int) -> Words:
        """The next bytes of every text as a number."""
        nonlocal at
        at += width
        return read_at(at - width, width).astype(np.uint64)

    if length >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 32 <= length:
            lanes = [_round(lane, read(8)) for lane in lanes]
        found = sum((_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), np.uint64(0))
        for lane in lanes:
            found = (found ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        found = seed + _P5
    found = found + np.uint64(length)
    while at + 8 <= length:
        found = _with_word(found, read(8))
    if at + 4 <= length:
        found = _rotated(found ^ (read(4) * _P1), 23) * _P2 + _P3
    while at < length:
        found = _rotated(found ^ (read(1) * _P5), 11) * _P1
    return _mixed(found)


def _round(lane: Words, word: Words) -> Words:
    return _rotated(lane + word * _P2, 31) * _P1


def _with_word(found: Words, word: Words) -> Words:
    return _rotated(found ^ _round(np.uint64(0), word), 27) * _P1 + _P4


def _rotated(word: Words, by: int) -> Words:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def _mixed(found: Words) -> Words:
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    return found ^ (found >> np.uint64(32))
