"""The kernel that binds slots: every answer of a query over one store, or the best of each completing event.

Enters: arrays of tables.py. Leaves: answers in `Out`, and how the search ended; called again it goes on.
Always holds: a search begins at an answer's last event (SASE 3: construction goes back from the accepting event) and
binds the other slots one by one, each within the range that the window and the bound slots leave, cut by an index
where an equality names a bound event (GenTrie 3: correlation by hash). A condition is tested as soon as all that it
names is bound. Where SELECT keeps one answer per completing event, candidates come in the order of preference and the
first answer ends the search: what would be discarded is not enumerated. An event that a match has consumed is never
tried again. Memory does not depend on the number of answers: where `Out` is full the search stops, and goes on from
there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.bins import count_bins, is_short, take_consumed
from cep_core.engine.fit import is_used, nested_fit, timer_fits
from cep_core.engine.leaf import first_ending, first_from, hold_all, looked_up
from cep_core.engine.settle import complete, settle
from cep_core.engine.tables import (
    ALL,
    AT,
    AT_ITEM,
    COUNTED,
    CURRENT,
    DEPTH,
    DONE,
    EARLIER,
    EMITTED,
    EVENT,
    EVERY,
    FIRST_EARLIEST,
    FOLLOWS,
    FULL,
    GROW,
    ITEM,
    LATER,
    MERGED,
    MISSED,
    NO_WINDOW,
    O_CONSUME,
    O_MODE,
    O_ORDERED,
    O_RESTARTS,
    O_WINDOW,
    OLDER,
    ORDINAL,
    OVER_LIMIT,
    OVER_PART,
    PART,
    PRECEDES,
    RESUMED,
    STAMP,
    USED,
    WRITTEN,
    WRITTEN_MEMBERS,
    WRITTEN_TIMERS,
    bound_end,
    bound_place,
    bound_row,
    bound_start,
    drive_moment,
    drive_part,
    drive_place,
    drive_plan,
    frame_back,
    frame_best,
    frame_bins,
    frame_cursor,
    frame_full,
    frame_head,
    frame_older,
    frame_span,
    frame_state,
    frame_stop,
    lists_first,
    lists_held,
    lists_need,
    lists_place,
    memo_missed,
    memo_misses,
    options,
    plans_ahead,
    plans_branch,
    plans_depth,
    plans_due,
    plans_more,
    plans_order,
    plans_outer,
    plans_through,
    shape_amount,
    shape_kind,
    shape_list,
    shape_relation,
    store_before,
    store_end,
    store_offsets,
    store_part,
    store_row,
    store_start,
)


@njit(cache=True)
def search(ctx: Any) -> Any:
    """Goes on from frame_state."""
    state = frame_state(ctx)
    count = len(drive_plan(ctx))
    dry = False  # after a miss nothing is kept: later events only say what else is missing
    dry_at, dry_part, dry_ordinal, dry_counted = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while state[AT_ITEM] < count:
        first = state[AT_ITEM]
        place = drive_place(ctx)[first]
        last = first + 1
        while place >= 0 and last < count and drive_place(ctx)[last] == place:
            last += 1
        part = np.int64(store_part(ctx)[place]) if place >= 0 else np.int64(drive_part(ctx)[first])
        if not state[RESUMED]:
            if part != state[PART]:
                state[PART], state[COUNTED] = part, 0
            state[ORDINAL] += 1
            state[STAMP] += 1
            take_consumed(ctx)
            state[ITEM] = first
            state[EMITTED] = 0
            frame_best(ctx)[0] = -1
        written, in_members, in_timers = state[WRITTEN], state[WRITTEN_MEMBERS], state[WRITTEN_TIMERS]
        counted = state[COUNTED]
        if options(ctx)[O_MODE] == MERGED:
            frame_span(ctx)[2], frame_span(ctx)[3] = 1 << 62, -(1 << 62)
        status = DONE
        while state[ITEM] < last:
            status = _item(
                ctx, state[ITEM], part,
            )  # fmt: skip
            if status != DONE:
                break
            state[ITEM] += 1
        if status == DONE and options(ctx)[O_MODE] != ALL and memo_missed(ctx)[0] == 0:
            status = settle(ctx, place, part, written, in_members)
        if status == FULL and not options(ctx)[O_RESTARTS]:
            state[RESUMED] = 1
            return FULL
        state[RESUMED] = 0
        if memo_missed(ctx)[0] or dry or status == FULL:
            if memo_missed(ctx)[0] and not dry:
                dry = True
                dry_at, dry_part, dry_ordinal, dry_counted = first, part, state[ORDINAL] - 1, counted
            state[WRITTEN], state[WRITTEN_MEMBERS], state[WRITTEN_TIMERS] = written, in_members, in_timers
            state[COUNTED] = counted
            if not dry:  # full: this event is begun again with an empty buffer, or a larger one
                state[ORDINAL] -= 1
                return FULL if written else GROW
            if memo_missed(ctx)[0] >= len(memo_misses(ctx)):
                break
        elif status == OVER_LIMIT:
            state[OVER_PART] = part
            return OVER_LIMIT
        elif options(ctx)[O_CONSUME] == OLDER and state[EMITTED]:
            frame_older(ctx)[part] = place + 1
        state[AT_ITEM] = last
    if dry:
        state[AT_ITEM], state[PART], state[ORDINAL], state[COUNTED] = dry_at, dry_part, dry_ordinal, dry_counted
        for number in range(len(frame_back(ctx))):  # lists are walked forward only
            frame_back(ctx)[number] = frame_head(ctx)[number] = lists_first(ctx)[number]
        return MISSED
    return DONE


@njit(cache=True)
def _item(
    ctx: Any, item: Any, part: Any,
) -> Any:  # fmt: skip
    """All answers with this last event in this plan's first slot."""
    state = frame_state(ctx)
    plan = drive_plan(ctx)[item]
    branch, deep = plans_branch(ctx)[plan], plans_depth(ctx)[plan]
    place = drive_place(ctx)[item]
    floor = -(1 << 62)
    resumed = state[RESUMED]
    state[RESUMED] = 0
    if place >= 0 and options(ctx)[O_WINDOW] != NO_WINDOW:
        floor = store_end(ctx)[place] - options(ctx)[O_WINDOW]
    lowest = store_offsets(ctx)[part]
    if options(ctx)[O_CONSUME] == OLDER:
        lowest = max(lowest, frame_older(ctx)[part])
    if resumed:
        depth = state[DEPTH]
    else:
        first = plans_order(ctx)[plan, 0]
        if place >= 0:
            if place < lowest or store_start(ctx)[place] < floor or is_used(ctx, place):
                return DONE
            if not _can_match(ctx, branch, plan, deep, place, lowest, floor):
                return DONE
            _bind(ctx, first, place)
        else:
            bound_row(ctx)[first] = bound_place(ctx)[first] = -1
            bound_start(ctx)[first] = bound_end(ctx)[first] = drive_moment(ctx)[item]
        if not nested_fit(ctx, branch, plan, np.int64(0)) or not hold_all(
            ctx, CURRENT, plans_due(ctx)[plan, 0, 0], plans_due(ctx)[plan, 0, 1]
        ):
            return DONE
        depth = np.int64(1)
        if deep > 1:
            _open(ctx, branch, plan, depth, place, lowest, floor)
    while depth > 0:
        if depth == deep:
            status = complete(
                ctx, branch, plan, deep, part, lowest,
            )  # fmt: skip
            if status == FULL:
                state[DEPTH] = depth
                return FULL
            if status == OVER_LIMIT:
                return OVER_LIMIT
            if status == GROW:  # the first answer is the best: the search is over
                return DONE
            depth -= 1
            continue
        if _next(
            ctx, branch, plan, depth, floor
        ):  # fmt: skip
            depth += 1
            if depth < deep:
                _open(ctx, branch, plan, depth, place, lowest, floor)
        else:
            depth -= 1
    return DONE


@njit(cache=True)
def _bind(ctx: Any, slot: Any, place: Any) -> Any:
    bound_row(ctx)[slot], bound_place(ctx)[slot] = store_row(ctx)[place], place
    bound_start(ctx)[slot], bound_end(ctx)[slot] = store_start(ctx)[place], store_end(ctx)[place]


@njit(cache=True)
def _can_match(
    ctx: Any, branch: Any, plan: Any, deep: Any, place: Any,
    lowest: Any, floor: Any,
) -> Any:  # fmt: skip
    """Whether every other element has a candidate in the window at all: lists are walked once for all last events."""
    binned = len(frame_bins(ctx)) > 0
    for depth in range(1, deep):
        slot = plans_order(ctx)[plan, depth]
        if shape_kind(ctx)[branch, slot] != EVENT:
            continue
        number = shape_list(ctx)[branch, slot]
        low, high = frame_back(ctx)[number], frame_head(ctx)[number]
        stop = lists_first(ctx)[number + 1]
        while (
            low < stop
            and (lists_place(ctx)[low] < lowest or store_end(ctx)[lists_place(ctx)[low]] < floor)
            and (lists_place(ctx)[low] < place)
        ):
            if binned and low < high:
                count_bins(ctx, number, np.int64(lists_place(ctx)[low]), np.int64(-1))
            low += 1
        high = max(high, low)
        while high < stop and lists_place(ctx)[high] < place:
            if binned:
                count_bins(ctx, number, np.int64(lists_place(ctx)[high]), np.int64(1))
            high += 1
        frame_back(ctx)[number], frame_head(ctx)[number] = low, high
        if high - low < plans_more(ctx)[plan, depth]:
            return False
        index = plans_through(ctx)[plan, depth]
        if binned and index >= 0 and lists_need(ctx)[index] and frame_full(ctx)[index] == 0:
            return False
    return True


@njit(cache=True)
def _open(
    ctx: Any, branch: Any, plan: Any,
    depth: Any, last: Any, lowest: Any, floor: Any,
) -> Any:  # fmt: skip
    """Sets the range of candidates for the slot at this depth."""
    slot = plans_order(ctx)[plan, depth]
    kind = shape_kind(ctx)[branch, slot]
    if kind != EVENT:
        moment = shape_amount(ctx)[branch, slot]
        if kind == AT:
            frame_cursor(ctx)[depth], frame_stop(ctx)[depth] = 0, 1
        else:
            start, end = bound_start(ctx)[plans_order(ctx)[plan, 0]], bound_end(ctx)[plans_order(ctx)[plan, 0]]
            for other in range(1, depth):
                start = min(start, bound_start(ctx)[plans_order(ctx)[plan, other]])
                end = max(end, bound_end(ctx)[plans_order(ctx)[plan, other]])
            # multiples of the period, as numbers
            frame_cursor(ctx)[depth] = -((options(ctx)[O_WINDOW] - end) // moment)
            frame_stop(ctx)[depth] = (start + options(ctx)[O_WINDOW]) // moment + 1
        return
    low, high = lowest, last - 1
    for other in range(depth):
        bound_slot = plans_order(ctx)[plan, other]
        at = bound_place(ctx)[bound_slot]
        relation = shape_relation(ctx)[branch, slot, bound_slot]
        if relation == PRECEDES:
            high = min(high, np.int64(store_before(ctx)[at]))
        elif relation == EARLIER:
            high = min(high, at - 1)
        elif relation == FOLLOWS or relation == LATER:
            low = max(low, at + 1)
    index = plans_through(ctx)[plan, depth]
    if index >= 0 and is_short(ctx, index, plans_outer(ctx)[plan, depth], plans_more(ctx)[plan, depth]):
        frame_cursor(ctx)[depth] = frame_stop(ctx)[depth] = 0
        return
    if index >= 0:
        begin, end = looked_up(ctx, index, plans_outer(ctx)[plan, depth])
        begin = first_from(lists_held(ctx), begin, end, low)
        end = first_from(lists_held(ctx), begin, end, high + 1)  # first: ends ascend in one partition only
        begin = first_ending(lists_held(ctx), store_end(ctx), begin, end, floor)
    else:
        number = shape_list(ctx)[branch, slot]
        begin, end = frame_back(ctx)[number], frame_head(ctx)[number]
        if low > lowest:
            begin = first_from(lists_place(ctx), begin, end, low)
        end = _up_to(lists_place(ctx), begin, end, high)
    if not _enough(ctx, plan, depth, begin, end):
        end = begin
    if options(ctx)[O_MODE] == FIRST_EARLIEST:
        frame_cursor(ctx)[depth], frame_stop(ctx)[depth] = begin, end
    else:
        frame_cursor(ctx)[depth], frame_stop(ctx)[depth] = end - 1, begin - 1


@njit(cache=True)
def _enough(ctx: Any, plan: Any, depth: Any, begin: Any, end: Any) -> Any:
    """Whether a window can be filled: it needs as many free candidates as it has slots (GenTrie 3: aggregation bins
    are full before they are correlated)."""
    more = plans_more(ctx)[plan, depth]
    if end - begin < more:
        return False
    if more < 2 or options(ctx)[O_CONSUME] != USED:
        return True
    places = lists_place(ctx) if plans_through(ctx)[plan, depth] < 0 else lists_held(ctx)
    free = 0
    for index in range(begin, end):
        if not is_used(ctx, np.int64(places[index])):
            free += 1
            if free == more:
                return True
    return False


@njit(cache=True)
def _up_to(places: Any, low: Any, high: Any, most: Any) -> Any:
    """Behind the last of places[low..high] that is at most `most`: by doubling steps back, as it is mostly near."""
    if high <= low or places[high - 1] <= most:
        return high
    step = 1
    right = high - 1
    while right - step >= low and places[right - step] > most:
        right -= step
        step *= 2
    return first_from(places, max(low, right - step), right, most + 1)


@njit(cache=True)
def _next(
    ctx: Any, branch: Any, plan: Any, depth: Any, floor: Any,
) -> Any:  # fmt: skip
    """Binds the next candidate that fits to the slot at this depth; False: there is none."""
    slot = plans_order(ctx)[plan, depth]
    kind = shape_kind(ctx)[branch, slot]
    step = 1 if kind != EVENT or options(ctx)[O_MODE] == FIRST_EARLIEST else -1
    index = plans_through(ctx)[plan, depth]
    ahead = plans_ahead(ctx)[plan, depth] if len(frame_bins(ctx)) else np.int64(-1)
    while frame_cursor(ctx)[depth] != frame_stop(ctx)[depth]:
        if kind != EVENT and frame_cursor(ctx)[depth] > frame_stop(ctx)[depth]:
            return False
        cursor = frame_cursor(ctx)[depth]
        frame_cursor(ctx)[depth] = cursor + step
        if kind == EVENT:
            place = np.int64(lists_place(ctx)[cursor]) if index < 0 else np.int64(lists_held(ctx)[cursor])
            if store_start(ctx)[place] < floor or is_used(ctx, place):
                continue
            fits = True
            for other in range(depth):
                bound_slot = plans_order(ctx)[plan, other]
                if bound_place(ctx)[bound_slot] == place:
                    fits = False
                    break
                if shape_relation(ctx)[branch, slot, bound_slot] == FOLLOWS:
                    end = bound_end(ctx)[bound_slot]
                    if store_start(ctx)[place] < end or (
                        store_start(ctx)[place] == end and options(ctx)[O_ORDERED] == 0
                    ):
                        fits = False
                        break
            if not fits:
                continue
            _bind(ctx, slot, place)
            if ahead >= 0 and is_short(ctx, plans_through(ctx)[plan, ahead], slot, plans_more(ctx)[plan, ahead]):
                continue
        else:
            moment = shape_amount(ctx)[branch, slot]
            if kind == EVERY:
                moment *= cursor
            bound_row(ctx)[slot] = bound_place(ctx)[slot] = -1
            bound_start(ctx)[slot] = bound_end(ctx)[slot] = moment
            if not timer_fits(ctx, branch, plan, depth, slot):
                continue
        if nested_fit(ctx, branch, plan, depth) and hold_all(
            ctx, CURRENT,
            plans_due(ctx)[plan, depth, 0], plans_due(ctx)[plan, depth, 1],
        ):  # fmt: skip
            return True
    return False
