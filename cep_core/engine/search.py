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

from cep_core.engine.leaf import first_ending, first_from, hold_all, is_answer, looked_up
from cep_core.engine.tables import (
    AFTER,
    ALL,
    AT,
    AT_ITEM,
    BEST,
    COUNTED,
    CURRENT,
    DEPTH,
    DONE,
    EARLIER,
    EMITTED,
    EVENT,
    EVERY,
    FIRST_EARLIEST,
    FIRST_RECENT,
    FOLLOWS,
    FULL,
    GROW,
    ITEM,
    LATER,
    MERGED,
    MISSED,
    NO_WINDOW,
    NOT_CONSUMED,
    O_CONSUME,
    O_DETECTED,
    O_HIGH,
    O_LIMIT,
    O_LOW,
    O_MODE,
    O_ORDERED,
    O_POSTPONED,
    O_RESTARTS,
    O_WINDOW,
    OLDER,
    ORDINAL,
    OVER_LIMIT,
    OVER_PART,
    PART,
    PRECEDES,
    RESUMED,
    SPARE,
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
    frame_cursor,
    frame_head,
    frame_mark,
    frame_older,
    frame_span,
    frame_state,
    frame_stop,
    frame_used,
    lists_first,
    lists_held,
    lists_place,
    members_place,
    members_size,
    memo_missed,
    memo_misses,
    options,
    out_branch,
    out_detection,
    out_element,
    out_groupings,
    out_member,
    out_moment,
    out_offsets,
    plans_branch,
    plans_depth,
    plans_due,
    plans_more,
    plans_order,
    plans_outer,
    plans_through,
    shape_after,
    shape_afters,
    shape_alternative,
    shape_amount,
    shape_emit,
    shape_emits,
    shape_flat,
    shape_grouping,
    shape_groups,
    shape_kind,
    shape_list,
    shape_position,
    shape_rank,
    shape_relation,
    shape_slots,
    shape_span,
    shape_spans,
    shape_whole,
    store_before,
    store_end,
    store_offsets,
    store_part,
    store_row,
    store_start,
)
from cep_core.engine.text import load64


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
            status = _settle(ctx, place, part, written, in_members)
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
            if place < lowest or store_start(ctx)[place] < floor or _is_used(ctx, place):
                return DONE
            if not _can_match(ctx, branch, plan, deep, place, lowest, floor):
                return DONE
            _bind(ctx, first, place)
        else:
            bound_row(ctx)[first] = bound_place(ctx)[first] = -1
            bound_start(ctx)[first] = bound_end(ctx)[first] = drive_moment(ctx)[item]
        if not _nested_fit(ctx, branch, plan, np.int64(0)) or not hold_all(
            ctx, CURRENT, plans_due(ctx)[plan, 0, 0], plans_due(ctx)[plan, 0, 1]
        ):
            return DONE
        depth = np.int64(1)
        if deep > 1:
            _open(ctx, branch, plan, depth, place, lowest, floor)
    while depth > 0:
        if depth == deep:
            status = _complete(
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
def _is_used(ctx: Any, place: Any) -> Any:
    """Whether an earlier match has consumed the event; what this event's own matches use is still free."""
    if options(ctx)[O_CONSUME] != USED:
        return False
    when = frame_used(ctx)[place]
    return when != 0 and when < frame_state(ctx)[ORDINAL]


@njit(cache=True)
def _can_match(
    ctx: Any, branch: Any, plan: Any, deep: Any, place: Any,
    lowest: Any, floor: Any,
) -> Any:  # fmt: skip
    """Whether every other element has a candidate in the window at all: lists are walked once for all last events."""
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
            low += 1
        high = max(high, low)
        while high < stop and lists_place(ctx)[high] < place:
            high += 1
        frame_back(ctx)[number], frame_head(ctx)[number] = low, high
        if low == high:
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
        if not _is_used(ctx, np.int64(places[index])):
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
    while frame_cursor(ctx)[depth] != frame_stop(ctx)[depth]:
        if kind != EVENT and frame_cursor(ctx)[depth] > frame_stop(ctx)[depth]:
            return False
        cursor = frame_cursor(ctx)[depth]
        frame_cursor(ctx)[depth] = cursor + step
        if kind == EVENT:
            place = np.int64(lists_place(ctx)[cursor]) if index < 0 else np.int64(lists_held(ctx)[cursor])
            if store_start(ctx)[place] < floor or _is_used(ctx, place):
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
        else:
            moment = shape_amount(ctx)[branch, slot]
            if kind == EVERY:
                moment *= cursor
            bound_row(ctx)[slot] = bound_place(ctx)[slot] = -1
            bound_start(ctx)[slot] = bound_end(ctx)[slot] = moment
            if not _timer_fits(ctx, branch, plan, depth, slot):
                continue
        if _nested_fit(ctx, branch, plan, depth) and hold_all(
            ctx, CURRENT,
            plans_due(ctx)[plan, depth, 0], plans_due(ctx)[plan, depth, 1],
        ):  # fmt: skip
            return True
    return False


@njit(cache=True)
def _timer_fits(ctx: Any, branch: Any, plan: Any, depth: Any, slot: Any) -> Any:
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
def _nested_fit(ctx: Any, branch: Any, plan: Any, depth: Any) -> Any:
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
def _afters_fit(ctx: Any, branch: Any) -> Any:
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


@njit(cache=True)
def _complete(
    ctx: Any, branch: Any, plan: Any, deep: Any, part: Any,
    lowest: Any,
) -> Any:  # fmt: skip
    """All slots are bound: keeps the answer if it is one. GROW says that no other of this item is wanted."""
    if not _afters_fit(ctx, branch):
        return DONE
    if not hold_all(ctx, CURRENT, plans_due(ctx)[plan, deep, 0], plans_due(ctx)[plan, deep, 1]):
        return DONE
    if not is_answer(ctx, CURRENT, branch, part):
        return DONE
    if options(ctx)[O_CONSUME] != NOT_CONSUMED and _takes_consumed(ctx, branch, lowest):
        return DONE
    state = frame_state(ctx)
    if options(ctx)[O_MODE] == FIRST_RECENT or options(ctx)[O_MODE] == FIRST_EARLIEST:
        _keep_best(ctx, branch)
        return GROW
    start, end = frame_span(ctx)[0], frame_span(ctx)[1]
    if options(ctx)[O_MODE] == ALL and _found_before(ctx, branch, part):
        return DONE
    detection = _detection(ctx, branch, start, end)
    if options(ctx)[O_MODE] == ALL and (detection < options(ctx)[O_LOW] or detection >= options(ctx)[O_HIGH]):
        return DONE
    if options(ctx)[O_MODE] == ALL and not _has_room(ctx, state, branch):
        return FULL
    if memo_missed(ctx)[0]:
        return DONE
    state[COUNTED] += 1
    state[EMITTED] = 1
    if state[COUNTED] > options(ctx)[O_LIMIT]:
        return OVER_LIMIT
    if options(ctx)[O_MODE] == MERGED:
        frame_span(ctx)[2], frame_span(ctx)[3] = min(frame_span(ctx)[2], start), max(frame_span(ctx)[3], end)
        return _merge(ctx, branch, state)
    _write(ctx, state, branch, detection)
    if options(ctx)[O_CONSUME] == USED:
        _consume(ctx, branch)
    return DONE


@njit(cache=True)
def _takes_consumed(ctx: Any, branch: Any, lowest: Any) -> Any:
    """Whether a group holds an event that an earlier match has consumed."""
    for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
        for index in range(members_size(ctx)[CURRENT, group]):
            place = np.int64(members_place(ctx)[CURRENT, group, index])
            if place < lowest or _is_used(ctx, place):
                return True
    return False


@njit(cache=True)
def _found_before(
    ctx: Any, branch: Any, part: Any,
) -> Any:  # fmt: skip
    """Whether an earlier disjunct of WHERE has the same answer (it counts once)."""
    start, end = frame_span(ctx)[0], frame_span(ctx)[1]
    found = False
    for other in range(branch):
        if found or shape_alternative(ctx)[other] != shape_alternative(ctx)[branch]:
            continue
        if not hold_all(ctx, CURRENT, shape_whole(ctx)[other, 0], shape_whole(ctx)[other, 1]):
            continue
        if not is_answer(ctx, SPARE, other, part):
            continue
        found = True
        for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
            found = found and members_size(ctx)[SPARE, group] == members_size(ctx)[CURRENT, group]
            if found:
                for index in range(members_size(ctx)[SPARE, group]):
                    if members_place(ctx)[SPARE, group, index] != members_place(ctx)[CURRENT, group, index]:
                        found = False
                        break
    frame_span(ctx)[0], frame_span(ctx)[1] = start, end
    return found


@njit(cache=True)
def _detection(ctx: Any, branch: Any, start: Any, end: Any) -> Any:
    detection = end
    if options(ctx)[O_POSTPONED] == 1:
        detection = start + options(ctx)[O_WINDOW]
    elif options(ctx)[O_POSTPONED] == 2:
        detection = end + options(ctx)[O_WINDOW]
    if options(ctx)[O_DETECTED]:
        for slot in range(shape_slots(ctx)[branch]):
            if bound_row(ctx)[slot] >= 0:
                detection = max(detection, np.int64(load64(options(ctx)[O_DETECTED] + 8 * bound_row(ctx)[slot])))
        for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
            for index in range(members_size(ctx)[CURRENT, group]):
                row = np.int64(store_row(ctx)[members_place(ctx)[CURRENT, group, index]])
                detection = max(detection, np.int64(load64(options(ctx)[O_DETECTED] + 8 * row)))
    return detection


@njit(cache=True)
def _has_room(ctx: Any, state: Any, branch: Any) -> Any:
    wanted = shape_slots(ctx)[branch]
    for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
        wanted += members_size(ctx)[CURRENT, group]
    return state[WRITTEN] < len(out_branch(ctx)) and state[WRITTEN_MEMBERS] + wanted <= len(out_member(ctx))


@njit(cache=True)
def _write(ctx: Any, state: Any, branch: Any, detection: Any) -> Any:
    written, at = state[WRITTEN], state[WRITTEN_MEMBERS]
    out_branch(ctx)[written], out_detection(ctx)[written] = branch, detection
    out_groupings(ctx)[written] = np.int64(1) << shape_grouping(ctx)[branch]
    for number in range(shape_emits(ctx)[branch, 0], shape_emits(ctx)[branch, 1]):
        own, element = shape_emit(ctx)[number, 1], shape_emit(ctx)[number, 2]
        if shape_emit(ctx)[number, 0] == 0:
            out_element(ctx)[at] = element
            if bound_row(ctx)[own] >= 0:
                out_member(ctx)[at] = bound_row(ctx)[own]
            else:
                out_member(ctx)[at] = -1 - state[WRITTEN_TIMERS]
                out_moment(ctx)[state[WRITTEN_TIMERS]] = bound_end(ctx)[own]
                state[WRITTEN_TIMERS] += 1
            at += 1
        else:
            for index in range(members_size(ctx)[CURRENT, own]):
                out_element(ctx)[at] = element
                out_member(ctx)[at] = store_row(ctx)[members_place(ctx)[CURRENT, own, index]]
                at += 1
    state[WRITTEN], state[WRITTEN_MEMBERS] = written + 1, at
    out_offsets(ctx)[written + 1] = at


@njit(cache=True)
def _consume(ctx: Any, branch: Any) -> Any:
    for slot in range(shape_slots(ctx)[branch]):
        if bound_place(ctx)[slot] >= 0 and frame_used(ctx)[bound_place(ctx)[slot]] == 0:
            frame_used(ctx)[bound_place(ctx)[slot]] = frame_state(ctx)[ORDINAL]
    for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
        for index in range(members_size(ctx)[CURRENT, group]):
            if frame_used(ctx)[members_place(ctx)[CURRENT, group, index]] == 0:
                frame_used(ctx)[members_place(ctx)[CURRENT, group, index]] = frame_state(ctx)[ORDINAL]


@njit(cache=True)
def _merge(ctx: Any, branch: Any, state: Any) -> Any:
    """Adds the members that the merged match does not have yet; an element's are sorted when it is settled."""
    stamp = state[STAMP]
    for number in range(shape_emits(ctx)[branch, 0], shape_emits(ctx)[branch, 1]):
        own, element = shape_emit(ctx)[number, 1], shape_emit(ctx)[number, 2]
        count = 1 if shape_emit(ctx)[number, 0] == 0 else members_size(ctx)[CURRENT, own]
        for index in range(count):
            place = (
                bound_place(ctx)[own]
                if shape_emit(ctx)[number, 0] == 0
                else np.int64(members_place(ctx)[CURRENT, own, index])
            )
            if frame_mark(ctx)[element, place] == stamp:
                continue
            if state[WRITTEN_MEMBERS] == len(out_member(ctx)) or state[WRITTEN] == len(out_branch(ctx)):
                return FULL
            frame_mark(ctx)[element, place] = stamp
            out_element(ctx)[state[WRITTEN_MEMBERS]], out_member(ctx)[state[WRITTEN_MEMBERS]] = element, place
            state[WRITTEN_MEMBERS] += 1
    frame_best(ctx)[1] = (frame_best(ctx)[1] if frame_best(ctx)[0] >= 0 else 0) | (
        np.int64(1) << shape_grouping(ctx)[branch]
    )
    frame_best(ctx)[0] = branch
    return DONE


@njit(cache=True)
def _keep_best(ctx: Any, branch: Any) -> Any:
    """Keeps the answer if SELECT prefers it to the best so far of the same completing event."""
    slots = shape_slots(ctx)[branch]
    if frame_best(ctx)[0] >= 0 and not _is_better(ctx, branch):
        return
    frame_best(ctx)[0], frame_best(ctx)[1] = branch, frame_span(ctx)[0]
    frame_best(ctx)[2] = frame_span(ctx)[1]
    for slot in range(slots):
        frame_best(ctx)[3 + slot] = bound_place(ctx)[slot]
    for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
        members_size(ctx)[BEST, group] = members_size(ctx)[CURRENT, group]
        for index in range(members_size(ctx)[CURRENT, group]):
            members_place(ctx)[BEST, group, index] = members_place(ctx)[CURRENT, group, index]


@njit(cache=True)
def _is_better(ctx: Any, branch: Any) -> Any:
    recent = options(ctx)[O_MODE] == FIRST_RECENT
    other = frame_best(ctx)[0]
    mine, its = shape_slots(ctx)[branch], shape_slots(ctx)[other]
    for step in range(min(mine, its)):
        one = bound_place(ctx)[mine - 1 - step] if recent else bound_place(ctx)[step]
        two = frame_best(ctx)[3 + its - 1 - step] if recent else frame_best(ctx)[3 + step]
        if one != two:
            return one > two if recent else one < two
    if mine != its:
        return mine > its if recent else mine < its
    mine = shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]
    its = shape_groups(ctx)[other, 1] - shape_groups(ctx)[other, 0]
    for step in range(min(mine, its)):
        a = mine - 1 - step if recent else step
        b = its - 1 - step if recent else step
        if members_size(ctx)[CURRENT, a] != members_size(ctx)[BEST, b]:
            return (
                members_size(ctx)[CURRENT, a] > members_size(ctx)[BEST, b]
                if recent
                else members_size(ctx)[CURRENT, a] < members_size(ctx)[BEST, b]
            )
        for index in range(members_size(ctx)[CURRENT, a]):
            at = members_size(ctx)[CURRENT, a] - 1 - index if recent else index
            one, two = np.int64(members_place(ctx)[CURRENT, a, at]), np.int64(members_place(ctx)[BEST, b, at])
            if one != two:
                return one > two if recent else one < two
    if mine != its:
        return mine > its if recent else mine < its
    return shape_rank(ctx)[branch] < shape_rank(ctx)[other]


@njit(cache=True)
def _settle(
    ctx: Any, place: Any, part: Any, written: Any,
    in_members: Any,
) -> Any:  # fmt: skip
    """Writes the one match of a completing event, if it has one, and consumes its events."""
    branch = frame_best(ctx)[0]
    if branch < 0:
        return DONE
    state = frame_state(ctx)
    if options(ctx)[O_MODE] == MERGED:
        low, high = in_members, state[WRITTEN_MEMBERS]
        _sort_members(out_element(ctx), out_member(ctx), low, high)
        detection = frame_span(ctx)[3] + (options(ctx)[O_WINDOW] if options(ctx)[O_POSTPONED] else 0)
        for at in range(low, high):
            member = np.int64(out_member(ctx)[at])
            if options(ctx)[O_CONSUME] == USED and frame_used(ctx)[member] == 0:
                frame_used(ctx)[member] = state[ORDINAL]
            row = np.int64(store_row(ctx)[member])
            out_member(ctx)[at] = row
            if options(ctx)[O_DETECTED]:
                detection = max(detection, np.int64(load64(options(ctx)[O_DETECTED] + 8 * row)))
        if detection < options(ctx)[O_LOW] or detection >= options(ctx)[O_HIGH]:
            state[WRITTEN_MEMBERS] = low
            return DONE
        out_branch(ctx)[written], out_detection(ctx)[written], out_groupings(ctx)[written] = (
            branch,
            detection,
            frame_best(ctx)[1],
        )
        out_offsets(ctx)[written + 1] = high
        state[WRITTEN] = written + 1
        return DONE
    slots = shape_slots(ctx)[branch]
    detection = frame_best(ctx)[2] + (options(ctx)[O_WINDOW] if options(ctx)[O_POSTPONED] else 0)
    wanted = slots
    groups = shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]
    for group in range(groups):
        wanted += members_size(ctx)[BEST, group]
    if written == len(out_branch(ctx)) or in_members + wanted > len(out_member(ctx)):
        return FULL
    at = in_members
    for number in range(shape_emits(ctx)[branch, 0], shape_emits(ctx)[branch, 1]):
        own, element = shape_emit(ctx)[number, 1], shape_emit(ctx)[number, 2]
        count = 1 if shape_emit(ctx)[number, 0] == 0 else members_size(ctx)[BEST, own]
        for index in range(count):
            member = (
                frame_best(ctx)[3 + own]
                if shape_emit(ctx)[number, 0] == 0
                else np.int64(members_place(ctx)[BEST, own, index])
            )
            if options(ctx)[O_CONSUME] == USED:
                frame_used(ctx)[member] = state[ORDINAL]
            row = np.int64(store_row(ctx)[member])
            out_element(ctx)[at], out_member(ctx)[at] = element, row
            at += 1
            if options(ctx)[O_DETECTED]:
                detection = max(detection, np.int64(load64(options(ctx)[O_DETECTED] + 8 * row)))
    state[EMITTED] = 1
    if detection < options(ctx)[O_LOW] or detection >= options(ctx)[O_HIGH]:
        return DONE
    state[COUNTED] += 1
    if state[COUNTED] > options(ctx)[O_LIMIT]:
        return OVER_LIMIT
    out_branch(ctx)[written], out_detection(ctx)[written], out_offsets(ctx)[written + 1] = branch, detection, at
    out_groupings(ctx)[written] = np.int64(1) << shape_grouping(ctx)[branch]
    state[WRITTEN], state[WRITTEN_MEMBERS] = written + 1, at
    return DONE


@njit(cache=True)
def _sort_members(element: Any, member: Any, low: Any, high: Any) -> Any:
    """By element and place; merged matches are small or nearly sorted, so a heap keeps the worst case in bounds."""
    count = high - low
    keys = np.empty(count, np.int64)
    for at in range(count):
        keys[at] = (np.int64(element[low + at]) << 32) | np.int64(member[low + at])
    keys.sort()
    for at in range(count):
        element[low + at], member[low + at] = keys[at] >> 32, keys[at] & 0xFFFFFFFF
