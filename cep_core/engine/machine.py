"""The machine that tests conditions inside a search: a loop over flat instructions.

Enters: a program (program.py compiles it), the events bound so far, the members of groups. Leaves: whether a condition
holds.
Always holds: the meaning is the contract's: a comparison with NULL is false; one that names an undeclared attribute or
an index out of range is true. NaN, a division by zero and an integer that leaves 64 bits are NULL. Nothing here depends
on a query's text: one compiled kernel runs every program.

A value is an int64 (ints, times, booleans, codes of strings) or a float64, with a validity. What has no kernel (new
strings, rounding by decimal digits) is looked up in the memo; what is not there yet is written to its misses, the
caller computes it and begins the event again.
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
ARGUMENTS = 3  # of an external function
DEPTH = 64  # of the machine's stack

_HOUR_US = 3_600_000_000


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
            known[top] = program_valid(ctx)[b] == 0 or load8(program_valid(ctx)[b] + row) != 0
            if op == LOAD_I or op == PICK_I:
                ints[top] = np.int64(load64(program_data(ctx)[b] + 8 * row))
            else:
                floats[top] = load_float(program_data(ctx)[b] + 8 * row)
            top += 1
        elif op == TIME:  # a: slot, b: 0 start, 1 end
            ints[top], known[top] = (bound_end(ctx)[a] if b else bound_start(ctx)[a]), True
            top += 1
        elif op == CONST_I:
            ints[top], known[top] = program_ints(ctx)[a], True
            top += 1
        elif op == CONST_F:
            floats[top], known[top] = program_floats(ctx)[a], True
            top += 1
        elif op == NULL:
            ints[top], floats[top], known[top] = 0, 0.0, False
            top += 1
        elif op == TO_FLOAT:  # the value a places below the top
            floats[top - 1 - a] = np.float64(ints[top - 1 - a])
        elif op <= DIV:
            top -= 1
            known[top - 1] = known[top - 1] and known[top]
            if op <= MOD_I:
                x, y = ints[top - 1], ints[top]
                if op == ADD_I:
                    z = x + y
                    known[top - 1] &= ((x ^ z) & (y ^ z)) >= 0
                elif op == SUB_I:
                    z = x - y
                    known[top - 1] &= ((x ^ y) & (x ^ z)) >= 0
                elif op == MUL_I:
                    z = x * y
                    rough = np.float64(ctx) * np.float64(y)
                    # a product that left 64 bits is far from what it should be
                    known[top - 1] &= abs(rough - np.float64(z)) < 4.6e18
                else:
                    known[top - 1] &= y != 0
                    z = np.int64(0)
                    if y != 0:
                        z = abs(ctx) % abs(y)
                        z = -z if x < 0 else z
                ints[top - 1] = z
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
                known[top - 1] = known[top - 1] and not math.isnan(p)
        elif op == CMP_I:  # a: comparison
            top -= 2
            truth = False
            if known[top] and known[top + 1]:
                x, y = ints[top], ints[top + 1]
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
            truth = known[top] == (a != 0)
        elif op == IN_I or op == IN_F:  # constants: ints a to b, floats c to d
            found = False
            if op == IN_I:
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
            truth = known[top] and (not b if a and not truth else truth != (a != 0))
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
            ints[top - 1] = abs(ints[top - 1])
            known[top - 1] &= ints[top - 1] >= 0
        elif op == ABS_F:
            floats[top - 1] = abs(floats[top - 1])
        elif op == SQRT:
            known[top - 1] &= floats[top - 1] >= 0.0
            floats[top - 1] = math.sqrt(floats[top - 1]) if floats[top - 1] >= 0.0 else 0.0
        elif op == FLOOR or op == CEIL:
            p = floats[top - 1]
            known[top - 1] &= abs(p) < 9.2e18
            if abs(p) < 9.2e18:
                ints[top - 1] = np.int64(math.floor(p) if op == FLOOR else math.ceil(p))
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
            known[top - 1] &= not math.isnan(p)
        elif op == COALESCE:
            top -= 1
            if not known[top - 1]:
                ints[top - 1], floats[top - 1], known[top - 1] = ints[top], floats[top], known[top]
        elif op <= GREATEST_F:
            top -= 1
            if op == LEAST_F or op == GREATEST_F:
                better = floats[top] < floats[top - 1] if op == LEAST_F else floats[top] > floats[top - 1]
            else:
                x, y = ints[top - 1], ints[top]
                if a:  # strings
                    x, y = program_rank(ctx)[x] if known[top - 1] else 0, program_rank(ctx)[y] if known[top] else 0
                better = y < x if op == LEAST_I else y > x
            if known[top] and (better or not known[top - 1]):
                ints[top - 1], floats[top - 1], known[top - 1] = ints[top], floats[top], True
        elif op == AGGREGATE_I or op == AGGREGATE_F:  # a: function, b: column, c: group or -1, d: first slot, e: slots
            count: Any = members_size(ctx)[which, c] if c >= 0 else np.int64(code[pc - 1, 5])
            if op == AGGREGATE_I:
                ints[top], floats[top], known[top] = _aggregate_ints(ctx, which, a, b, c, d, count)
            else:
                floats[top], known[top] = _aggregate_floats(ctx, which, a, b, c, d, count)
            top += 1
        elif op == RANK:
            ints[top - 1] = program_rank(ctx)[ints[top - 1]] if known[top - 1] else 0
        elif op == EXTERNAL:  # a: function, b: arguments, c: bits say which arguments are floats
            top -= b
            ok = True
            for place in range(b):
                ok &= known[top + place]
            if ok:
                ok = _external(ctx, ints, floats, top, a, b, c)
            known[top] = ok
            top += 1
    return truth


@njit(cache=True)
def _haversine(lat1: Any, lon1: Any, lat2: Any, lon2: Any) -> Any:
    p1, p2 = math.radians(lat1), math.radians(lat2)
    s, t = math.sin((p2 - p1) / 2), math.sin(math.radians(lon2 - lon1) / 2)
    return 2 * EARTH_METRES * math.asin(math.sqrt(min(1.0, s**2 + math.cos(p1) * math.cos(p2) * t**2)))


@njit(cache=True)
def _member_row(ctx: Any, which: Any, group: Any, first: Any, index: Any) -> Any:
    return (
        np.int64(store_row(ctx)[members_place(ctx)[which, group, index]])
        if group >= 0
        else bound_row(ctx)[first + index]
    )


@njit(cache=True)
def _aggregate_ints(ctx: Any, which: Any, function: Any, column: Any, group: Any, first: Any, count: Any) -> Any:
    """(value, average, known). An average is a float."""
    if function == COUNT:
        return count, 0.0, True
    total: Any = np.int64(0)
    rough, seen = 0.0, 0
    declared, valid, data = program_declared(ctx)[column], program_valid(ctx)[column], program_data(ctx)[column]
    for index in range(count):
        row = _member_row(ctx, which, group, first, index)
        if (declared and not load8(declared + row)) or (valid and not load8(valid + row)):
            continue
        value = np.int64(load64(data + 8 * row))
        seen += 1
        if function == SUM or function == AVG:
            total += value
            rough += np.float64(value)
        elif seen == 1 or function == LAST:
            total = value
        elif function != FIRST:
            total = min(value, total) if function == MIN else max(value, total)
    if function == SUM or function == AVG:
        left = abs(rough - np.float64(total)) >= 4.6e18  # the sum left 64 bits
        if function == AVG:
            return total, (rough if left else np.float64(total)) / max(seen, 1), seen > 0
        return total, 0.0, seen > 0 and not left
    return total, 0.0, seen > 0


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
    return total, seen > 0 and not math.isnan(total)


@njit(cache=True)
def _external(ctx: Any, ints: Any, floats: Any, top: Any, function: Any, arguments: Any, as_floats: Any) -> Any:
    """Puts the result on the stack and says whether it is not NULL; an unknown one is written to the misses."""
    first, second, third = np.int64(0), np.int64(0), np.int64(0)
    for place in range(arguments):
        value: Any = ints[top + place]
        if (as_floats >> place) & 1:
            value = bits_of(floats[top + place])
        if place == 0:
            first = value
        elif place == 1:
            second = value
        else:
            third = value
    mask = np.int64(len(memo_keys(ctx)) - 1)
    place = place_of(function + 1, first, second, third) & mask
    while memo_keys(ctx)[place, 0]:
        keys = memo_keys(ctx)[place]
        if keys[0] == function + 1 and keys[1] == first and keys[2] == second and keys[3] == third:
            ints[top], floats[top] = memo_ints(ctx)[place], memo_floats(ctx)[place]
            return memo_known(ctx)[place] != 0
        place = (place + 1) & mask
    count = memo_missed(ctx)[0]
    memo_missed(ctx)[0] = count + 1
    if count < len(memo_misses(ctx)):
        memo_misses(ctx)[count, 0] = function + 1
        memo_misses(ctx)[count, 1], memo_misses(ctx)[count, 2], memo_misses(ctx)[count, 3] = first, second, third
    ints[top], floats[top] = 0, 0.0
    return False


@njit(cache=True)
def place_of(function: Any, first: Any, second: Any, third: Any) -> Any:
    """Where the memo begins to look for a result."""
    return np.int64(mix(np.uint64(first) ^ mix(np.uint64(second) ^ mix(np.uint64(third) ^ np.uint64(function)))))
