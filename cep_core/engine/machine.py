"""The machine that tests conditions inside a search: a loop over flat instructions.

Enters: a program (program.py compiles it), the events bound so far, the members of groups. Leaves: whether a condition
holds.
Always holds: the meaning is the contract's: a comparison with NULL is false; one that names an undeclared attribute or
an index out of range is true. NaN and a division by zero are NULL. Nothing here depends on a query's text: one compiled
kernel runs every program.

A value is an int64 (ints, times, booleans, codes of strings) or a float64, with a validity. A whole number that leaves
64 bits goes on as a code (validity LARGE). What has no kernel (large numbers, new strings, rounding by decimal digits)
is looked up in the memo; what is not there yet is written to its misses, the caller computes it and begins the event
again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from cep_core.engine.tables import (
    bound_end,
    bound_row,
    bound_start,
    large_float,
    large_rank,
    members_place,
    members_size,
    memo_floats,
    memo_ints,
    memo_keys,
    memo_known,
    memo_missed,
    memo_misses,
    program_code,
    program_data,
    program_declared,
    program_floats,
    program_ints,
    program_rank,
    program_valid,
    stack_floats,
    stack_ints,
    stack_known,
    stack_loops,
    store_row,
)
from cep_core.engine.text import load8, load64, mix
from cep_core.engine.values import EARTH_METRES

# What an instruction does: (operation, a, b, c, d, e).
(
    ATOM, LOAD_I, LOAD_F, LOAD_MASK, PICK_I, PICK_F, PICK_MASK, TIME, CONST_I, CONST_F, NULL, TO_FLOAT,
    ADD_I, SUB_I, MUL_I, MOD_I, ADD_F, SUB_F, MUL_F, MOD_F, DIV, CMP_I, CMP_F, IS_NULL, IN_I, IN_F, TEST,
    JUMP, JUMP_FALSE, JUMP_TRUE, TRUTH, LOOP_SET, LOOP_TEST, LOOP_NEXT, ABS_I, ABS_F, SQRT, FLOOR, CEIL, HOUR, DAY,
    DISTANCE, HAVERSINE, COALESCE, LEAST_I, GREATEST_I, LEAST_F, GREATEST_F, AGGREGATE_I, AGGREGATE_F, EXTERNAL, RANK,
) = range(52)  # fmt: skip
EQ, NE, LT, LE, GT, GE = range(6)
COUNT, SUM, AVG, MIN, MAX, FIRST, LAST = range(7)
MISSING, KNOWN, LARGE = np.int8(0), np.int8(1), np.int8(3)  # validity of a value on the stack
DEPTH = 64  # of the machine's stack

_HOUR_US = 3_600_000_000
_LOWEST = np.int64(-(2**63))


def _intrinsics() -> tuple[Any, Any]:
    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        """The float64 at this address."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.DoubleType().as_pointer()), align=1)

        return types.float64(types.int64), generate

    @intrinsic
    def bits(typingctx: Any, value: Any) -> Any:
        """The bits of a float64 as an int64."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], ir.IntType(64))

        return types.int64(types.float64), generate

    return load, bits


load_float, bits_of = _intrinsics()


@njit(cache=True)
def holds(ctx: Any, which: Any, low: Any, high: Any) -> Any:
    """Whether the condition at the instructions low to high holds. which: whose groups it speaks of."""
    code, loops = program_code(ctx), stack_loops(ctx)
    ints, floats, known = stack_ints(ctx), stack_floats(ctx), stack_known(ctx)
    truth = True
    atom_end = high
    top: Any = 0  # the next free place of the stack
    pc = np.int64(low)
    while pc < high:
        op = code[pc, 0]
        a, b, c, d = np.int64(code[pc, 1]), np.int64(code[pc, 2]), np.int64(code[pc, 3]), np.int64(code[pc, 4])
        pc += 1
        if op == ATOM:
            atom_end = a
            top = 0
        elif op <= PICK_MASK:
            if op <= LOAD_MASK:  # a: slot, b: column
                row = bound_row(ctx)[a]
            else:  # a: group, b: column, c: offset, d: loop or -1
                index = c + (loops[d] if d >= 0 else 0)
                if index < 1 or index > members_size(ctx)[which, a]:
                    truth, pc = True, atom_end
                    continue
                row = np.int64(store_row(ctx)[members_place(ctx)[which, a, index - 1]])
            if program_declared(ctx)[b] and not load8(program_declared(ctx)[b] + row):
                truth, pc = True, atom_end
                continue
            if op == LOAD_MASK or op == PICK_MASK:
                truth = load8(program_data(ctx)[b] + row) != 0
                continue
            known[top] = KNOWN if program_valid(ctx)[b] == 0 else np.int8(load8(program_valid(ctx)[b] + row))
            if op == LOAD_I or op == PICK_I:
                ints[top] = np.int64(load64(program_data(ctx)[b] + 8 * row))
            else:
                floats[top] = load_float(program_data(ctx)[b] + 8 * row)
            top += 1
        elif op == TIME:  # a: slot, b: 0 start, 1 end
            ints[top], known[top] = (bound_end(ctx)[a] if b else bound_start(ctx)[a]), KNOWN
            top += 1
        elif op == CONST_I:  # a: constant, b: whether it is the code of a large number
            ints[top], known[top] = program_ints(ctx)[a], LARGE if b else KNOWN
            top += 1
        elif op == CONST_F:
            floats[top], known[top] = program_floats(ctx)[a], KNOWN
            top += 1
        elif op == NULL:
            ints[top], floats[top], known[top] = 0, 0.0, MISSING
            top += 1
        elif op == TO_FLOAT:  # the value a places below the top
            if known[top - 1 - a] == LARGE:
                floats[top - 1 - a], known[top - 1 - a] = large_float(ctx)[ints[top - 1 - a]], KNOWN
            else:
                floats[top - 1 - a] = np.float64(ints[top - 1 - a])
        elif op <= DIV:
            top -= 1
            if op <= MOD_I:
                ints[top - 1], known[top - 1] = _whole(
                    ctx, np.int64(op), ints[top - 1], known[top - 1], ints[top], known[top]
                )
            else:
                p, q = floats[top - 1], floats[top]
                if op == ADD_F:
                    p = p + q
                elif op == SUB_F:
                    p = p - q
                elif op == MUL_F:
                    p = p * q
                elif q == 0.0:
                    p = math.nan
                elif op == DIV:
                    p = p / q
                else:
                    p = math.nan if math.isinf(p) else np.fmod(p, q)
                floats[top - 1] = p
                known[top - 1] = MISSING if math.isnan(p) else known[top - 1] & known[top]
        elif op == CMP_I:  # a: comparison
            top -= 2
            truth = False
            if known[top] and known[top + 1]:
                x, y = _alike(ctx, ints[top], known[top], ints[top + 1], known[top + 1])
                truth = (
                    x == y if a == EQ else x != y if a == NE else x < y if a == LT
                    else x <= y if a == LE else x > y if a == GT else x >= y
                )  # fmt: skip
        elif op == CMP_F:
            top -= 2
            truth = False
            if known[top] and known[top + 1]:
                p, q = floats[top], floats[top + 1]
                truth = (
                    p == q if a == EQ else p != q if a == NE else p < q if a == LT
                    else p <= q if a == LE else p > q if a == GT else p >= q
                )  # fmt: skip
        elif op == IS_NULL:  # a: negated
            top -= 1
            truth = (known[top] != MISSING) == (a != 0)
        elif op == IN_I or op == IN_F:  # constants: ints a to b, floats c to d
            found = False
            if op == IN_I and known[top - 1] == LARGE:  # no constant is as large; as a float it may be equal
                for place in range(c, d):
                    found |= program_floats(ctx)[place] == large_float(ctx)[ints[top - 1]]
            elif op == IN_I:
                for place in range(a, b):
                    found |= program_ints(ctx)[place] == ints[top - 1]
                for place in range(c, d):
                    found |= program_floats(ctx)[place] == np.float64(ints[top - 1])
            else:
                for place in range(c, d):
                    found |= program_floats(ctx)[place] == floats[top - 1]
            truth = found
        elif op == TEST:  # a: negated, b: the list holds NULL
            top -= 1
            truth = known[top] != MISSING and (not b if a and not truth else truth != (a != 0))
        elif op == JUMP:
            pc = a
        elif op == JUMP_FALSE:
            if not truth:
                pc = a
        elif op == JUMP_TRUE:
            if truth:
                pc = a
        elif op == TRUTH:
            truth = a != 0
        elif op == LOOP_SET:  # a: loop, b: first number
            loops[a] = program_ints(ctx)[b]
        elif op == LOOP_TEST:  # a: loop, b: group or -1, c: last number where b is -1, d: where to go when done
            if loops[a] > (members_size(ctx)[which, b] if b >= 0 else program_ints(ctx)[c]):
                pc = d
        elif op == LOOP_NEXT:  # a: loop, b: where to go
            loops[a] += 1
            pc = b
        elif op == ABS_I:
            ints[top - 1], known[top - 1] = _absolute(ctx, ints[top - 1], known[top - 1])
        elif op == ABS_F:
            floats[top - 1] = abs(floats[top - 1])
        elif op == SQRT:
            known[top - 1] = known[top - 1] if floats[top - 1] >= 0.0 else MISSING
            floats[top - 1] = math.sqrt(floats[top - 1]) if floats[top - 1] >= 0.0 else 0.0
        elif op == FLOOR or op == CEIL:
            p = floats[top - 1]
            if abs(p) < 9.2e18:
                ints[top - 1] = np.int64(math.floor(p) if op == FLOOR else math.ceil(p))
            elif math.isinf(p):
                known[top - 1] = MISSING
            elif known[top - 1]:
                ints[top - 1], _, known[top - 1] = _asked(ctx, np.int64(-1 - op), bits_of(p), np.int64(0), np.int64(0))
        elif op == HOUR:
            ints[top - 1] = ints[top - 1] // _HOUR_US % 24
        elif op == DAY:
            ints[top - 1] = (ints[top - 1] // (24 * _HOUR_US) + 4) % 7 + 1
        elif op == DISTANCE or op == HAVERSINE:
            top -= 3
            x1, y1, x2, y2 = floats[top - 1], floats[top], floats[top + 1], floats[top + 2]
            if op == DISTANCE:
                p = math.sqrt((x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1))
            else:
                p = _haversine(x1, y1, x2, y2)
            for place in range(top, top + 3):
                known[top - 1] &= known[place]
            floats[top - 1] = p
            known[top - 1] = MISSING if math.isnan(p) else known[top - 1]
        elif op == COALESCE:
            top -= 1
            if not known[top - 1]:
                ints[top - 1], floats[top - 1], known[top - 1] = ints[top], floats[top], known[top]
        elif op <= GREATEST_F:
            top -= 1
            if op == LEAST_F or op == GREATEST_F:
                better = floats[top] < floats[top - 1] if op == LEAST_F else floats[top] > floats[top - 1]
            else:
                x, y = _alike(ctx, ints[top - 1], known[top - 1], ints[top], known[top])
                if a:  # strings
                    x, y = program_rank(ctx)[x] if known[top - 1] else 0, program_rank(ctx)[y] if known[top] else 0
                better = y < x if op == LEAST_I else y > x
            if known[top] and (better or not known[top - 1]):
                ints[top - 1], floats[top - 1], known[top - 1] = ints[top], floats[top], known[top]
        elif op == AGGREGATE_I or op == AGGREGATE_F:  # a: function, b: column, c: group or -1, d: first slot, e: slots
            count: Any = members_size(ctx)[which, c] if c >= 0 else np.int64(code[pc - 1, 5])
            if op == AGGREGATE_I:
                ints[top], floats[top], known[top] = _aggregate_ints(ctx, which, a, b, c, d, count)
            else:
                floats[top], known[top] = _aggregate_floats(ctx, which, a, b, c, d, count)
            top += 1
        elif op == RANK:
            ints[top - 1] = program_rank(ctx)[ints[top - 1]] if known[top - 1] else 0
        elif op == EXTERNAL:  # a: function, b: arguments (one or two), c: bits say which arguments are floats
            top -= b
            ok, large = known[top] != MISSING, np.int64(known[top] == LARGE)
            first, second = bits_of(floats[top]) if c & 1 else ints[top], np.int64(0)
            if b == 2:
                ok, large = ok and known[top + 1] != MISSING, large | (np.int64(known[top + 1] == LARGE) << 1)
                second = bits_of(floats[top + 1]) if c & 2 else ints[top + 1]
            known[top] = MISSING
            if ok:
                ints[top], floats[top], known[top] = _asked(ctx, a + 1, first, second, large)
            top += 1
    return truth


@njit(cache=True)
def _whole(ctx: Any, op: Any, x: Any, x_known: Any, y: Any, y_known: Any) -> Any:
    """(value, validity) of an operation on two whole numbers; one that leaves 64 bits is asked for."""
    if x_known == MISSING or y_known == MISSING or (op == MOD_I and y_known == KNOWN and y == 0):
        return np.int64(0), MISSING
    if x_known == KNOWN and y_known == KNOWN:
        if op == ADD_I:
            z = x + y
            if ((x ^ z) & (y ^ z)) >= 0:
                return z, KNOWN
        elif op == SUB_I:
            z = x - y
            if ((x ^ y) & (x ^ z)) >= 0:
                return z, KNOWN
        elif op == MUL_I:
            z = x * y
            # a product that left 64 bits is far from what it should be
            if abs(np.float64(x) * np.float64(y) - np.float64(z)) < 4.6e18:
                return z, KNOWN
        else:
            z = np.int64(0) if y == -1 else x % y
            return z - y if z != 0 and (x < 0) != (y < 0) else z, KNOWN  # it has the dividend's sign
    large = np.int64(x_known == LARGE) | (np.int64(y_known == LARGE) << 1)
    value, _, ok = _asked(ctx, np.int64(-1 - op), x, y, large)
    return value, ok


@njit(cache=True)
def _absolute(ctx: Any, x: Any, x_known: Any) -> Any:
    if x_known == MISSING or (x_known == KNOWN and x != _LOWEST):
        return abs(x), x_known
    value, _, ok = _asked(ctx, np.int64(-1 - ABS_I), x, np.int64(0), np.int64(x_known == LARGE))
    return value, ok


@njit(cache=True)
def _alike(ctx: Any, x: Any, x_known: Any, y: Any, y_known: Any) -> Any:
    """Two numbers that compare as these do: a large one is beyond all others, on its side."""
    if x_known != LARGE and y_known != LARGE:
        return x, y
    return (
        large_rank(ctx)[x] if x_known == LARGE else np.int64(0),
        large_rank(ctx)[y] if y_known == LARGE else np.int64(0),
    )


@njit(cache=True)
def _haversine(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    p1, p2 = math.radians(lat1), math.radians(lat2)
    s, t = math.sin((p2 - p1) / 2), math.sin(math.radians(lon2 - lon1) / 2)
    h = s**2 + math.cos(p1) * math.cos(p2) * t**2
    return math.nan if math.isnan(h) else 2 * EARTH_METRES * math.asin(math.sqrt(min(1.0, h)))


@njit(cache=True)
def _member_row(ctx: Any, which: Any, group: Any, first: Any, index: Any) -> Any:
    return (
        np.int64(store_row(ctx)[members_place(ctx)[which, group, index]])
        if group >= 0
        else bound_row(ctx)[first + index]
    )


@njit(cache=True)
def _aggregate_ints(ctx: Any, which: Any, function: Any, column: Any, group: Any, first: Any, count: Any) -> Any:
    """(value, average, validity). An average is a float."""
    if function == COUNT:
        return count, 0.0, KNOWN
    total, total_known = np.int64(0), KNOWN
    seen = 0
    declared, valid, data = program_declared(ctx)[column], program_valid(ctx)[column], program_data(ctx)[column]
    for index in range(count):
        row = _member_row(ctx, which, group, first, index)
        if declared and not load8(declared + row):
            continue
        known = KNOWN if valid == 0 else np.int8(load8(valid + row))
        if known == MISSING:
            continue
        value = np.int64(load64(data + 8 * row))
        seen += 1
        if function == SUM or function == AVG:
            total, total_known = _whole(ctx, np.int64(ADD_I), total, total_known, value, known)
        elif seen == 1 or function == LAST:
            total, total_known = value, known
        elif function != FIRST:
            x, y = _alike(ctx, value, known, total, total_known)
            if (x < y) if function == MIN else (x > y):
                total, total_known = value, known
    if seen == 0:
        return total, 0.0, MISSING
    if function == AVG:
        whole = large_float(ctx)[total] if total_known == LARGE else np.float64(total)
        return total, whole / seen, KNOWN if total_known != MISSING else MISSING
    return total, 0.0, total_known


@njit(cache=True)
def _aggregate_floats(ctx: Any, which: Any, function: Any, column: Any, group: Any, first: Any, count: Any) -> Any:
    total, seen = 0.0, 0
    declared, valid, data = program_declared(ctx)[column], program_valid(ctx)[column], program_data(ctx)[column]
    for index in range(count):
        row = _member_row(ctx, which, group, first, index)
        if (declared and not load8(declared + row)) or (valid and not load8(valid + row)):
            continue
        value: Any = load_float(data + 8 * row)
        seen += 1
        if seen == 1 or function == LAST:
            total = value
        elif function == SUM or function == AVG:
            total += value
        elif function == MIN:
            total = min(total, value)
        elif function == MAX:
            total = max(total, value)
    if function == AVG and seen:
        total /= seen
    return total, KNOWN if seen > 0 and not math.isnan(total) else MISSING


@njit(cache=True)
def _asked(ctx: Any, function: Any, first: Any, second: Any, large: Any) -> Any:
    """(int, float, validity) of what has no kernel; an unknown one is written to the misses. function: an external one
    + 1, or -1 - operation."""
    mask = np.int64(len(memo_keys(ctx)) - 1)
    place = place_of(function, first, second, large) & mask
    while memo_keys(ctx)[place, 0]:
        keys = memo_keys(ctx)[place]
        if keys[0] == function and keys[1] == first and keys[2] == second and keys[3] == large:
            return memo_ints(ctx)[place], memo_floats(ctx)[place], memo_known(ctx)[place]
        place = (place + 1) & mask
    count = memo_missed(ctx)[0]
    memo_missed(ctx)[0] = count + 1
    if count < len(memo_misses(ctx)):
        memo_misses(ctx)[count, 0] = function
        memo_misses(ctx)[count, 1], memo_misses(ctx)[count, 2], memo_misses(ctx)[count, 3] = first, second, large
    return np.int64(0), 0.0, MISSING


@njit(cache=True)
def place_of(function: Any, first: Any, second: Any, large: Any) -> Any:
    """Where the memo begins to look for a result."""
    return np.int64(mix(np.uint64(first) ^ mix(np.uint64(second) ^ mix(np.uint64(large) ^ np.uint64(function)))))
