"""Whether slots that are bound stand to each other as the pattern says: order, timers, nested windows, consumption.

Enters: arrays of tables.py with some slots bound. Leaves: a yes or no; AFTER timers are bound on the way.
Always holds: only what the bound slots say is looked at; a condition on attributes is the machine's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.tables import (
    AFTER,
    FOLLOWS,
    O_CONSUME,
    O_ORDERED,
    O_WINDOW,
    ORDINAL,
    PRECEDES,
    USED,
    bound_end,
    bound_place,
    bound_row,
    bound_start,
    frame_state,
    frame_used,
    options,
    plans_order,
    shape_after,
    shape_afters,
    shape_amount,
    shape_flat,
    shape_kind,
    shape_position,
    shape_relation,
    shape_slots,
    shape_span,
    shape_spans,
)


@njit(cache=True)
def is_used(ctx: Any, place: Any) -> Any:
    """Whether an earlier match has consumed the event; what this event's own matches use is still free."""
    if options(ctx)[O_CONSUME] != USED:
        return False
    when = frame_used(ctx)[place]
    return when != 0 and when < frame_state(ctx)[ORDINAL]


@njit(cache=True)
def timer_fits(ctx: Any, branch: Any, plan: Any, depth: Any, slot: Any) -> Any:
    """Whether the timer in `slot` stands as the pattern says to the slots bound before it, inside the window."""
    start, end = bound_start(ctx)[slot], bound_end(ctx)[slot]
    for other in range(depth):
        if not _stands(ctx, branch, slot, plans_order(ctx)[plan, other]):
            return False
        start = min(start, bound_start(ctx)[plans_order(ctx)[plan, other]])
        end = max(end, bound_end(ctx)[plans_order(ctx)[plan, other]])
    return end - start <= options(ctx)[O_WINDOW]


@njit(cache=True)
def _stands(ctx: Any, branch: Any, slot: Any, other: Any) -> Any:
    relation = shape_relation(ctx)[branch, slot, other]
    if relation == PRECEDES:
        return _precedes(ctx, branch, slot, other)
    if relation == FOLLOWS:
        return _precedes(ctx, branch, other, slot)
    return True


@njit(cache=True)
def _precedes(ctx: Any, branch: Any, one: Any, other: Any) -> Any:
    if options(ctx)[O_ORDERED] == 0:
        return bound_end(ctx)[one] < bound_start(ctx)[other]
    if bound_end(ctx)[one] > bound_start(ctx)[other]:
        return False
    if bound_end(ctx)[one] != bound_end(ctx)[other]:
        return bound_end(ctx)[one] < bound_end(ctx)[other]
    if bound_start(ctx)[one] != bound_start(ctx)[other]:
        return bound_start(ctx)[one] < bound_start(ctx)[other]
    if bound_place(ctx)[one] >= 0 or bound_place(ctx)[other] >= 0:  # a timer comes after every event of the same times
        return bound_place(ctx)[one] >= 0 and (
            bound_place(ctx)[other] < 0 or bound_place(ctx)[one] < bound_place(ctx)[other]
        )
    return shape_position(ctx)[branch, one] < shape_position(ctx)[branch, other]


@njit(cache=True)
def nested_fit(ctx: Any, branch: Any, plan: Any, depth: Any) -> Any:
    """Whether the slots bound so far keep the WITHIN of every nested pattern."""
    for number in range(shape_spans(ctx)[branch, 0], shape_spans(ctx)[branch, 1]):
        start, end = np.int64(1 << 62), np.int64(-(1 << 62))
        for place in range(shape_span(ctx)[number, 0], shape_span(ctx)[number, 1]):
            for other in range(depth + 1):
                if plans_order(ctx)[plan, other] == shape_flat(ctx)[place]:
                    start = min(start, bound_start(ctx)[shape_flat(ctx)[place]])
                    end = max(end, bound_end(ctx)[shape_flat(ctx)[place]])
        if end - start > shape_span(ctx)[number, 2] and end >= start:
            return False
    return True


@njit(cache=True)
def afters_fit(ctx: Any, branch: Any) -> Any:
    """Binds the timers that follow from others, and tests them against all slots."""
    for number in range(shape_afters(ctx)[branch, 0], shape_afters(ctx)[branch, 1]):
        slot = shape_after(ctx)[number, 0]
        end = np.int64(-(1 << 62))
        for place in range(shape_after(ctx)[number, 1], shape_after(ctx)[number, 2]):
            end = max(end, bound_end(ctx)[shape_flat(ctx)[place]])
        bound_row(ctx)[slot] = bound_place(ctx)[slot] = -1
        bound_start(ctx)[slot] = bound_end(ctx)[slot] = end + shape_amount(ctx)[branch, slot]
    if shape_afters(ctx)[branch, 0] == shape_afters(ctx)[branch, 1]:
        return True
    start, end = np.int64(1 << 62), np.int64(-(1 << 62))
    for slot in range(shape_slots(ctx)[branch]):
        start, end = min(start, bound_start(ctx)[slot]), max(end, bound_end(ctx)[slot])
        if shape_kind(ctx)[branch, slot] == AFTER:
            for other in range(shape_slots(ctx)[branch]):
                if other != slot and not _stands(ctx, branch, slot, other):
                    return False
    if end - start > options(ctx)[O_WINDOW]:
        return False
    for number in range(shape_spans(ctx)[branch, 0], shape_spans(ctx)[branch, 1]):
        start, end = np.int64(1 << 62), np.int64(-(1 << 62))
        for place in range(shape_span(ctx)[number, 0], shape_span(ctx)[number, 1]):
            start = min(start, bound_start(ctx)[shape_flat(ctx)[place]])
            end = max(end, bound_end(ctx)[shape_flat(ctx)[place]])
        if end - start > shape_span(ctx)[number, 2]:
            return False
    return True
