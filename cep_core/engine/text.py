"""Strings of Arrow arrays inside kernels: reading, comparing, hashing and copying their bytes without Python objects.

Enters: an Arrow string array without nulls in the places that are read.
Leaves: `where(array)`, int64[4], which any kernel can read: the address of its offsets, the address of its bytes, the
width of an offset (4 or 8) and the number of bytes. The caller keeps the array alive while a kernel runs.
Always holds: no byte outside the array's buffers is read. Addresses, not arrays, enter the kernels, so one compiled
kernel serves every kind of string array. The byte order is little-endian, as Arrow's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from cep_core.engine.identity import FINISH_1, FINISH_2, LANE_1, LANE_2, SEED_1, SEED_2

U64 = np.uint64
_K1, _K2, _S1, _S2, _F1, _F2 = (U64(value) for value in (LANE_1, LANE_2, SEED_1, SEED_2, FINISH_1, FINISH_2))


def where(array: pa.Array) -> np.ndarray:
    """int64[4] for an array of type string, large_string, binary or large_binary."""
    width = 8 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else 4
    _, offsets, data = array.buffers()
    first = offsets.address + array.offset * width if offsets is not None else 0
    return np.array(
        [first, data.address if data is not None else 0, width, data.size if data is not None else 0], np.int64
    )


def text(values: list[str] | tuple[str, ...]) -> pa.Array:
    return pa.array(values, pa.string())


def _loader(bits: int) -> Any:
    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        """The unsigned integer at this address, aligned or not."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.uint64(types.int64), generate

    return load


load8, load32, load64 = _loader(8), _loader(32), _loader(64)


def _storer(bits: int) -> Any:
    @intrinsic
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        """Writes the low bits of value at this address, aligned or not."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(number, builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.uint64), generate

    return store


store8, store64 = _storer(8), _storer(64)


@intrinsic
def _prefetch(typingctx: Any, address: Any) -> Any:
    """Asks for the cache line at this address; harmless for any address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(function, [builder.inttoptr(args[0], byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


prefetch: Any = _prefetch  # a kernel passes the address alone

AHEAD = 24  # how many strings ahead a loop over scattered rows asks for


@njit(inline="always")
def ask(view: Any, rows: Any, place: Any) -> Any:
    """Asks for the string of rows[place + AHEAD], and for the offsets of one further on. Scattered rows would otherwise
    cost the wait for two cache misses each."""
    if place + 2 * AHEAD < len(rows):
        prefetch(view[0] + view[2] * rows[place + 2 * AHEAD])
        prefetch(span(view, rows[place + AHEAD])[0])


@njit(inline="always")
def span(view: Any, row: Any) -> Any:
    """Address of a string's first byte and its length."""
    if view[2] == 4:
        base = view[0] + 4 * row
        first = np.int64(load32(base))
        return view[1] + first, np.int64(load32(base + 4)) - first
    base = view[0] + 8 * row
    first = np.int64(load64(base))
    return view[1] + first, np.int64(load64(base + 8)) - first


@njit(inline="always")
def tail(address: Any, size: Any, rest: Any) -> Any:
    """The last `rest` bytes (1 to 7) of a string of `size` bytes, as one word padded with zeros."""
    if size >= 8:
        return load64(address + size - 8) >> U64(8 * (8 - rest))
    if rest >= 4:
        return load32(address) | ((load32(address + rest - 4) >> U64(8 * (8 - rest))) << U64(32))
    word = load8(address)
    if rest > 1:
        word |= load8(address + 1) << U64(8)
    if rest > 2:
        word |= load8(address + 2) << U64(16)
    return word


@njit(inline="always")
def word(address: Any, size: Any, end_of_source: Any) -> Any:
    """All bytes of a string of at most 7 bytes and its length, as one number that no other such string has; behind the
    string, up to 8 bytes of the same buffer are looked at and masked."""
    if address + 8 <= end_of_source:
        return (load64(address) & ((U64(1) << U64(8 * size)) - U64(1))) | (U64(size) << U64(56))
    value = U64(size) << U64(56)
    for place in range(size):
        value |= load8(address + place) << U64(8 * place)
    return value


@njit(inline="always")
def mix(value: Any) -> Any:
    """The finish of a hash: every bit of the value changes about half of the bits."""
    value = (value ^ (value >> U64(30))) * _F1
    value = (value ^ (value >> U64(27))) * _F2
    return value ^ (value >> U64(31))


@njit(inline="always")
def hash_one(address: Any, size: Any) -> Any:
    """The first lane of a string's hash (identity.py defines both)."""
    state = _S1
    for word in range(size >> 3):
        state = (state ^ load64(address + 8 * word)) * _K1
        state ^= state >> U64(32)
    rest = size & 7
    if rest:
        state = (state ^ tail(address, size, rest)) * _K1
        state ^= state >> U64(32)
    return mix(state ^ U64(size))


@njit(inline="always")
def hash_two(address: Any, size: Any) -> Any:
    """Both lanes of a string's hash."""
    one, two = _S1, _S2
    for word in range(size >> 3):
        value = load64(address + 8 * word)
        one = (one ^ value) * _K1
        one ^= one >> U64(32)
        two = (two ^ value) * _K2
        two ^= two >> U64(32)
    rest = size & 7
    if rest:
        value = tail(address, size, rest)
        one = (one ^ value) * _K1
        one ^= one >> U64(32)
        two = (two ^ value) * _K2
        two ^= two >> U64(32)
    return mix(one ^ U64(size)), mix(two ^ U64(size))


@njit(inline="always")
def same(address: Any, size: Any, other: Any, other_size: Any) -> Any:
    if size != other_size:
        return False
    for word in range(size >> 3):
        if load64(address + 8 * word) != load64(other + 8 * word):
            return False
    rest = size & 7
    return rest == 0 or tail(address, size, rest) == tail(other, size, rest)


@njit(inline="always")
def less(address: Any, size: Any, other: Any, other_size: Any) -> Any:
    """Whether the first string comes before the other by its UTF-8 bytes."""
    for place in range(min(size, other_size)):
        left, right = load8(address + place), load8(other + place)
        if left != right:
            return left < right
    return size < other_size


@njit(inline="always")
def copy(source: Any, size: Any, target: Any, end_of_source: Any) -> Any:
    """Copies a string; up to 7 bytes after it in the target are overwritten, so the target needs that much room."""
    done = 0
    while done < size and source + done + 8 <= end_of_source:
        store64(target + done, load64(source + done))
        done += 8
    while done < size:
        store8(target + done, load8(source + done))
        done += 1


def hashes(array: pa.Array) -> np.ndarray:
    """uint64[n]: the first lane of each string's hash."""
    result: np.ndarray = _hashes(where(array), np.empty(len(array), np.uint64))
    return result


@njit(cache=True)
def _hashes(view: Any, out: Any) -> Any:
    for row in range(len(out)):
        address, size = span(view, row)
        out[row] = hash_one(address, size)
    return out
