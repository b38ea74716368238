"""What the search reads and writes: arrays by address, in one table, so that a kernel's call passes one number.

Enters: nothing. Leaves: one reader for each array (`store_row(ctx)` is that array inside a kernel), and `Context`, with
the arrays and the table of their addresses. task.py fills shape, plans, drive and lists; matcher.py the rest.
Always holds: every array has the dtype and the dimensions given here, and lives as long as its Context, so one compiled
kernel serves every search; numbers that are passed on are int64 everywhere, so it is compiled
once. m: events of the store; b: branches; s: most slots of a branch; p: plans; d: their depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

NO_WINDOW = 1 << 62

# shape_kind: what binds a slot
EVENT, AT, EVERY, AFTER = range(4)
# shape_relation[b, s, t]: how slot s stands to slot t
ANY_ORDER, PRECEDES, FOLLOWS, EARLIER, LATER = range(5)
# columns of shape_group and shape_negation; pairs are ranges: PREVIOUS and FOLLOWING of shape_flat, DUE of shape_due
LIST, INDEX, OUTER, PREVIOUS, FOLLOWING, DUE, LOW, HIGH, BEFORE_GROUP, AFTER_GROUP = 0, 1, 2, 3, 5, 7, 9, 10, 11, 12
COLUMNS = 13
# options: how the search is done. O_POSTPONED: 0 no, 1 from the start, 2 from the end. O_LOW, O_HIGH: detection times.
# O_RESTARTS: an event whose answers do not fit is begun again, instead of being gone on with. O_DETECTED: address of
# int64 by row, when members that are matches were detected; 0: none are.
(
    O_MODE, O_CONSUME, O_ORDERED, O_WINDOW, O_POSTPONED, O_LOW, O_HIGH, O_LIMIT, O_RESTARTS, O_DETECTED,
) = range(10)  # fmt: skip
ALL, FIRST_RECENT, FIRST_EARLIEST, MERGED = range(4)
NOT_CONSUMED, USED, OLDER = range(3)
# frame_state
(
    AT_ITEM, ITEM, DEPTH, RESUMED, PART, COUNTED, ORDINAL, STAMP, EMITTED, WRITTEN, WRITTEN_MEMBERS, WRITTEN_TIMERS,
    OVER_PART, PENDING,
) = range(14)  # fmt: skip
STATES = 14
# members_*: whose groups: of this answer, of another branch with the same slots, of the best answer so far
# (typed, as are all numbers that kernels pass on: a literal would compile them once for each value)
CURRENT, SPARE, BEST = np.int64(0), np.int64(1), np.int64(2)
# what a search ends with
DONE, FULL, GROW, OVER_LIMIT, MISSED = range(5)

_WORDS = 4  # of an entry: address and up to three dimensions
_KINDS: dict[str, tuple[int, Any, int]] = {}  # name -> number, dtype, dimensions


_NUMBA: dict[Any, Any] = {
    np.int64: types.int64,
    np.int32: types.int32,
    np.int8: types.int8,
    np.float64: types.float64,
    np.bool_: types.boolean,
}


def _array(name: str, dtype: Any, dimensions: int = 1) -> Any:
    """Declares an array; leaves its reader for kernels."""
    number = len(_KINDS)
    _KINDS[name] = number, dtype, dimensions
    kind = _NUMBA[dtype]
    array = types.Array(kind, dimensions, "C")

    @intrinsic
    def read(typingctx: Any, ctx: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            base = builder.inttoptr(args[0], word.as_pointer())

            def entry(at: int) -> Any:
                return builder.load(builder.gep(base, [word(_WORDS * number + at)]))

            size = context.get_abi_sizeof(context.get_data_type(kind))
            shape = [entry(1 + dimension) for dimension in range(dimensions)]
            strides = [word(size)]
            for dimension in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], dimension))
            made = context.make_array(array)(context, builder)
            data = builder.inttoptr(entry(0), context.get_data_type(kind).as_pointer())
            populate_array(made, data=data, shape=shape, strides=strides, itemsize=word(size), meminfo=None)
            return made._getvalue()

        return array(types.int64), generate

    return read


# The store: the events of one key in partition and event order.
store_row = _array("store_row", np.int32)  # [m]
store_start = _array("store_start", np.int64)  # [m]
store_end = _array("store_end", np.int64)  # [m]
store_before = _array("store_before", np.int32)  # [m] the last place that precedes each
store_part = _array("store_part", np.int32)  # [m]
store_offsets = _array("store_offsets", np.int64)  # [parts+1]

# The candidates of each element: places, ascending in each list.
lists_place = _array("lists_place", np.int32)
lists_first = _array("lists_first", np.int64)  # [lists+1]
# An index holds a list's places by the value of an attribute: by code, then ascending.
lists_held = _array("lists_held", np.int32)
lists_code_first = _array("lists_code_first", np.int64)  # where the places of each code begin ..
lists_base = _array("lists_base", np.int64)  # .. from here on, by index
lists_looked = _array("lists_looked", np.int64)  # address of int64 by row: the code to look for, -1: none
lists_own = _array("lists_own", np.int64)  # address of int64 by row: the code that an event is held by
lists_list = _array("lists_list", np.int64)  # the list that an index is of
lists_need = _array("lists_need", np.int64)  # slots of a window that is looked up there (bins.py); 0: no bins

# The branches of a query.
shape_slots = _array("shape_slots", np.int64)  # [b]
shape_alternative = _array("shape_alternative", np.int64)  # [b] disjuncts of one alternative may have the same answer
shape_rank = _array("shape_rank", np.int64)  # [b] settles between answers with the same members
shape_grouping = _array("shape_grouping", np.int64)  # [b] equal where a branch has the same groups
shape_kind = _array("shape_kind", np.int64, 2)  # [b, s]
shape_list = _array("shape_list", np.int64, 2)  # [b, s] -1 for timers
shape_amount = _array("shape_amount", np.int64, 2)  # [b, s] moment, period or delay of a timer
shape_position = _array("shape_position", np.int64, 2)  # [b, s]
shape_relation = _array("shape_relation", np.int64, 3)  # [b, s, s]
shape_spans = _array("shape_spans", np.int64, 2)  # [b, 2] range of shape_span; and so on
shape_afters = _array("shape_afters", np.int64, 2)
shape_groups = _array("shape_groups", np.int64, 2)
shape_negations = _array("shape_negations", np.int64, 2)
shape_emits = _array("shape_emits", np.int64, 2)
shape_late = _array("shape_late", np.int64, 2)  # [b, 2] range of shape_due: conditions that wait for groups
shape_whole = _array("shape_whole", np.int64, 2)  # [b, 2] all conditions of the slots
shape_span = _array("shape_span", np.int64, 2)  # [k, 3] range of shape_flat, most microseconds
shape_after = _array("shape_after", np.int64, 2)  # [k, 3] slot, range of shape_flat
shape_group = _array("shape_group", np.int64, 2)  # [k, COLUMNS]
shape_negation = _array("shape_negation", np.int64, 2)  # [k, COLUMNS]
shape_emit = _array("shape_emit", np.int64, 2)  # [k, 3] 0 slot or 1 group, its number, the element
shape_due = _array("shape_due", np.int64, 2)  # [k, 2] instructions of a condition
shape_flat = _array("shape_flat", np.int64)  # lists of slots

# In which order slots are bound: a plan for each branch and slot that its last event may stand in.
plans_branch = _array("plans_branch", np.int64)  # [p]
plans_depth = _array("plans_depth", np.int64)  # [p]
plans_order = _array("plans_order", np.int64, 2)  # [p, d] the slot
plans_through = _array("plans_through", np.int64, 2)  # [p, d] the index to look in, -1: none ..
plans_outer = _array("plans_outer", np.int64, 2)  # [p, d] .. for the value of this bound slot
plans_more = _array("plans_more", np.int64, 2)  # [p, d] slots of the same window still to be found in the same place
plans_ahead = _array("plans_ahead", np.int64, 2)  # [p, d] where a window is looked up by this slot's value, -1: nowhere
plans_due = _array("plans_due", np.int64, 3)  # [p, d+1, 2] range of shape_due to test once it is bound; last: all are

# Where searches begin, ascending by place.
drive_place = _array("drive_place", np.int64)  # the last event; -1: a timer ..
drive_plan = _array("drive_plan", np.int64)
drive_part = _array("drive_part", np.int64)  # .. in this partition ..
drive_moment = _array("drive_moment", np.int64)  # .. at this moment

# The conditions: instructions (machine.py), constants and columns.
program_code = _array("program_code", np.int32, 2)  # [n, 6]
program_ints = _array("program_ints", np.int64)
program_floats = _array("program_floats", np.float64)
program_data = _array("program_data", np.int64)  # by column: address of values by row (8 bytes; 1 for masks)
program_valid = _array("program_valid", np.int64)  # address of bytes by row, as stack_known has them; 0: no row is NULL
program_declared = _array("program_declared", np.int64)  # 1 where the event's class declares it; 0: all do
program_rank = _array("program_rank", np.int64)  # code of a string -> its place in the order of strings
large_rank = _array("large_rank", np.int64)  # code of a large number -> its place in their order, 0 between the signs
large_float = _array("large_float", np.float64)  # and the float nearest to it

# Results of functions without a kernel: function + 1, or -1 - an operation of the machine (0: free), two arguments, and
# bits for those that are codes of large numbers; what was asked and is not there yet.
memo_keys = _array("memo_keys", np.int64, 2)  # [size, 4]
memo_known = _array("memo_known", np.int8)
memo_ints = _array("memo_ints", np.int64)
memo_floats = _array("memo_floats", np.float64)
memo_misses = _array("memo_misses", np.int64, 2)  # [room, 4]
memo_missed = _array("memo_missed", np.int64)  # [1] how many

# The events bound so far, by slot; the last place is the event that a group or a negation tries.
bound_row = _array("bound_row", np.int64)  # -1 for a timer
bound_place = _array("bound_place", np.int64)
bound_start = _array("bound_start", np.int64)
bound_end = _array("bound_end", np.int64)

# The members of each group, by whose they are.
members_place = _array("members_place", np.int32, 3)
members_size = _array("members_size", np.int64, 2)
members_start = _array("members_start", np.int64, 2)  # the least start
members_end = _array("members_end", np.int64, 2)

# What the machine works with.
stack_ints = _array("stack_ints", np.int64)
stack_floats = _array("stack_floats", np.float64)
stack_known = _array("stack_known", np.int8)  # NULL 0, else 1; 3: the code of a large number
stack_loops = _array("stack_loops", np.int64)  # the numbers of FORALL

# What a search remembers.
frame_cursor = _array("frame_cursor", np.int64)  # [d]
frame_stop = _array("frame_stop", np.int64)  # [d]
frame_back = _array("frame_back", np.int64)  # [lists] the first candidate in the window of the last event
frame_head = _array("frame_head", np.int64)  # [lists] behind the last candidate before it
frame_part_of = _array("frame_part_of", np.int64)  # [lists] the partition whose range of the list is ..
frame_part_low = _array("frame_part_low", np.int64)  # .. from here ..
frame_part_high = _array("frame_part_high", np.int64)  # .. to here
frame_bins = _array("frame_bins", np.int64)  # as lists_code_first, or 0: candidates of each code in reach
frame_full = _array("frame_full", np.int64)  # [indexes] codes with enough candidates for a window
frame_pending = _array("frame_pending", np.int64)  # consumed by the last event: still to be taken out of the bins
frame_used = _array("frame_used", np.int64)  # [m or 0] when each event was consumed, 0: never
frame_older = _array("frame_older", np.int64)  # [parts or 0] the first place that is not consumed
frame_state = _array("frame_state", np.int64)  # [STATES]
frame_best = _array("frame_best", np.int64)  # [s+3] branch, -1: none; start, end; places of slots
frame_span = _array("frame_span", np.int64)  # [4] start and end of the answer, and of a merged match
frame_mark = _array("frame_mark", np.int64, 2)  # [elements or 0, m] the last merged match that has an event
options = _array("options", np.int64)

# Answers as they are found.
out_offsets = _array("out_offsets", np.int64)  # [room+1]
out_branch = _array("out_branch", np.int32)  # [room]
out_groupings = _array("out_groupings", np.int64)  # [room] a bit for each grouping among the answers of the match
out_detection = _array("out_detection", np.int64)  # [room]
out_element = _array("out_element", np.int32)  # [members]
out_member = _array("out_member", np.int32)  # [members] a row, or -1 - i for the i-th of ..
out_moment = _array("out_moment", np.int64)  # .. these


class Context:
    """Arrays by name, and the table of their addresses."""

    def __init__(self) -> None:
        self.table = np.zeros((len(_KINDS), _WORDS), np.int64)
        self.arrays: dict[str, np.ndarray] = {}

    def copy(self) -> Context:
        """Another table of the same arrays."""
        other = Context.__new__(Context)
        other.table, other.arrays = self.table.copy(), self.arrays.copy()
        return other

    def put(self, **arrays: np.ndarray) -> None:
        """Sets arrays; each must be as declared above."""
        for name, array in arrays.items():
            number, dtype, dimensions = _KINDS[name]
            assert (array.dtype, array.ndim) == (dtype, dimensions), name
            assert array.flags.c_contiguous, name
            self.arrays[name] = array
            self.table[number, 0] = array.__array_interface__["data"][0]  # half the time of array.ctypes
            self.table[number, 1 : 1 + dimensions] = array.shape

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def address(self) -> int:
        return int(self.table.ctypes.data)
