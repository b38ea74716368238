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
    COUNTED,
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
)
from cep_core.engine.text import load64


@njit(cache=True)
def search(
    store: Any, lists: Any, shape: Any, plans: Any, drive: Any, program: Any, memo: Any, stack: Any, frame: Any,
    bound: Any, members: Any, spare: Any, best: Any, out: Any, options: Any,
) -> Any:  # fmt: skip
    """Goes on from Frame.state. members, spare, best: the groups of this answer, of another branch's, of the best."""
    state = frame.state
    count = len(drive.plan)
    dry = False  # after a miss nothing is kept: later events only say what else is missing
    dry_at, dry_part, dry_ordinal, dry_counted = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while state[AT_ITEM] < count:
        first = state[AT_ITEM]
        place = drive.place[first]
        last = first + 1
        while place >= 0 and last < count and drive.place[last] == place:
            last += 1
        part = np.int64(store.part[place]) if place >= 0 else np.int64(drive.part[first])
        if not state[RESUMED]:
            if part != state[PART]:
                state[PART], state[COUNTED] = part, 0
            state[ORDINAL] += 1
            state[STAMP] += 1
            state[ITEM] = first
            state[EMITTED] = 0
            frame.best[0] = -1
        written, in_members, in_timers = state[WRITTEN], state[WRITTEN_MEMBERS], state[WRITTEN_TIMERS]
        counted = state[COUNTED]
        if options.mode == MERGED:
            frame.span[2], frame.span[3] = 1 << 62, -(1 << 62)
        status = DONE
        while state[ITEM] < last:
            status = _item(
                store, lists, shape, plans, drive, program, memo, stack, frame, bound, members, spare, best, out,
                options, state[ITEM], part,
            )  # fmt: skip
            if status != DONE:
                break
            state[ITEM] += 1
        if status == DONE and options.mode != ALL and memo.missed[0] == 0:
            status = _settle(store, shape, frame, best, out, options, place, part, written, in_members)
        if status == FULL and not options.restarts:
            state[RESUMED] = 1
            return FULL
        state[RESUMED] = 0
        if memo.missed[0] or dry or status == FULL:
            if memo.missed[0] and not dry:
                dry = True
                dry_at, dry_part, dry_ordinal, dry_counted = first, part, state[ORDINAL] - 1, counted
            state[WRITTEN], state[WRITTEN_MEMBERS], state[WRITTEN_TIMERS] = written, in_members, in_timers
            state[COUNTED] = counted
            if not dry:  # full: this event is begun again with an empty buffer, or a larger one
                state[ORDINAL] -= 1
                return FULL if written else GROW
            if memo.missed[0] >= len(memo.misses):
                break
        elif status == OVER_LIMIT:
            state[OVER_PART] = part
            return OVER_LIMIT
        elif options.consume == OLDER and state[EMITTED]:
            frame.older[part] = place + 1
        state[AT_ITEM] = last
    if dry:
        state[AT_ITEM], state[PART], state[ORDINAL], state[COUNTED] = dry_at, dry_part, dry_ordinal, dry_counted
        for number in range(len(frame.back)):  # lists are walked forward only
            frame.back[number] = frame.head[number] = lists.first[number]
        return MISSED
    return DONE


@njit(cache=True)
def _item(
    store: Any, lists: Any, shape: Any, plans: Any, drive: Any, program: Any, memo: Any, stack: Any, frame: Any,
    bound: Any, members: Any, spare: Any, best: Any, out: Any, options: Any, item: Any, part: Any,
) -> Any:  # fmt: skip
    """All answers with this last event in this plan's first slot."""
    state = frame.state
    plan = drive.plan[item]
    branch, deep = plans.branch[plan], plans.depth[plan]
    place = drive.place[item]
    floor = -(1 << 62)
    resumed = state[RESUMED]
    state[RESUMED] = 0
    if place >= 0 and options.window != NO_WINDOW:
        floor = store.end[place] - options.window
    lowest = store.offsets[part]
    if options.consume == OLDER:
        lowest = max(lowest, frame.older[part])
    if resumed:
        depth = state[DEPTH]
    else:
        first = plans.order[plan, 0]
        if place >= 0:
            if place < lowest or store.start[place] < floor or _is_used(frame, options, place):
                return DONE
            if not _can_match(store, lists, shape, plans, frame, branch, plan, deep, place, lowest, floor):
                return DONE
            _bind(store, bound, first, place)
        else:
            bound.row[first] = bound.place[first] = -1
            bound.start[first] = bound.end[first] = drive.moment[item]
        if not _nested_fit(shape, plans, bound, branch, plan, 0) or not hold_all(
            program, memo, store.row, bound, members, stack, shape.due, plans.due[plan, 0, 0], plans.due[plan, 0, 1]
        ):
            return DONE
        depth = 1
        if deep > 1:
            _open(store, lists, shape, plans, frame, bound, options, branch, plan, depth, place, lowest, floor)
    while depth > 0:
        if depth == deep:
            status = _complete(
                store, lists, shape, plans, frame, program, memo, stack, bound, members, spare, best, out, options,
                branch, plan, deep, part, lowest,
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
            store, lists, shape, plans, frame, program, memo, stack, bound, members, options, branch, plan, depth, floor
        ):  # fmt: skip
            depth += 1
            if depth < deep:
                _open(store, lists, shape, plans, frame, bound, options, branch, plan, depth, place, lowest, floor)
        else:
            depth -= 1
    return DONE


@njit(cache=True)
def _bind(store: Any, bound: Any, slot: Any, place: Any) -> Any:
    bound.row[slot], bound.place[slot] = store.row[place], place
    bound.start[slot], bound.end[slot] = store.start[place], store.end[place]


@njit(cache=True)
def _is_used(frame: Any, options: Any, place: Any) -> Any:
    """Whether an earlier match has consumed the event; what this event's own matches use is still free."""
    if options.consume != USED:
        return False
    when = frame.used[place]
    return when != 0 and when < frame.state[ORDINAL]


@njit(cache=True)
def _can_match(
    store: Any, lists: Any, shape: Any, plans: Any, frame: Any, branch: Any, plan: Any, deep: Any, place: Any,
    lowest: Any, floor: Any,
) -> Any:  # fmt: skip
    """Whether every other element has a candidate in the window at all: lists are walked once for all last events."""
    for depth in range(1, deep):
        slot = plans.order[plan, depth]
        if shape.kind[branch, slot] != EVENT:
            continue
        number = shape.list[branch, slot]
        low, high = frame.back[number], frame.head[number]
        stop = lists.first[number + 1]
        while low < stop and (lists.place[low] < lowest or store.end[lists.place[low]] < floor) and (
            lists.place[low] < place
        ):
            low += 1
        high = max(high, low)
        while high < stop and lists.place[high] < place:
            high += 1
        frame.back[number], frame.head[number] = low, high
        if low == high:
            return False
    return True


@njit(cache=True)
def _open(
    store: Any, lists: Any, shape: Any, plans: Any, frame: Any, bound: Any, options: Any, branch: Any, plan: Any,
    depth: Any, last: Any, lowest: Any, floor: Any,
) -> Any:  # fmt: skip
    """Sets the range of candidates for the slot at this depth."""
    slot = plans.order[plan, depth]
    kind = shape.kind[branch, slot]
    if kind != EVENT:
        moment = shape.amount[branch, slot]
        if kind == AT:
            frame.cursor[depth], frame.stop[depth] = 0, 1
        else:
            start, end = bound.start[plans.order[plan, 0]], bound.end[plans.order[plan, 0]]
            for other in range(1, depth):
                start = min(start, bound.start[plans.order[plan, other]])
                end = max(end, bound.end[plans.order[plan, other]])
            # multiples of the period, as numbers
            frame.cursor[depth] = -((options.window - end) // moment)
            frame.stop[depth] = (start + options.window) // moment + 1
        return
    low, high = lowest, last - 1
    for other in range(depth):
        bound_slot = plans.order[plan, other]
        at = bound.place[bound_slot]
        relation = shape.relation[branch, slot, bound_slot]
        if relation == PRECEDES:
            high = min(high, np.int64(store.before[at]))
        elif relation == EARLIER:
            high = min(high, at - 1)
        elif relation == FOLLOWS or relation == LATER:
            low = max(low, at + 1)
    index = plans.through[plan, depth]
    if index >= 0:
        begin, end = looked_up(lists, bound, index, plans.outer[plan, depth])
        begin = first_from(lists.held, begin, end, low)
        begin = first_ending(lists.held, store.end, begin, end, floor)
        end = first_from(lists.held, begin, end, high + 1)
    else:
        number = shape.list[branch, slot]
        begin, end = frame.back[number], frame.head[number]
        if low > lowest:
            begin = first_from(lists.place, begin, end, low)
        end = _up_to(lists.place, begin, end, high)
    if options.mode == FIRST_EARLIEST:
        frame.cursor[depth], frame.stop[depth] = begin, end
    else:
        frame.cursor[depth], frame.stop[depth] = end - 1, begin - 1


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
    store: Any, lists: Any, shape: Any, plans: Any, frame: Any, program: Any, memo: Any, stack: Any, bound: Any,
    members: Any, options: Any, branch: Any, plan: Any, depth: Any, floor: Any,
) -> Any:  # fmt: skip
    """Binds the next candidate that fits to the slot at this depth; False: there is none."""
    slot = plans.order[plan, depth]
    kind = shape.kind[branch, slot]
    step = 1 if kind != EVENT or options.mode == FIRST_EARLIEST else -1
    index = plans.through[plan, depth]
    while frame.cursor[depth] != frame.stop[depth]:
        if kind != EVENT and frame.cursor[depth] > frame.stop[depth]:
            return False
        cursor = frame.cursor[depth]
        frame.cursor[depth] = cursor + step
        if kind == EVENT:
            place = np.int64(lists.place[cursor]) if index < 0 else np.int64(lists.held[cursor])
            if store.start[place] < floor or _is_used(frame, options, place):
                continue
            fits = True
            for other in range(depth):
                bound_slot = plans.order[plan, other]
                if bound.place[bound_slot] == place:
                    fits = False
                    break
                if shape.relation[branch, slot, bound_slot] == FOLLOWS:
                    end = bound.end[bound_slot]
                    if store.start[place] < end or (store.start[place] == end and not options.ordered):
                        fits = False
                        break
            if not fits:
                continue
            _bind(store, bound, slot, place)
        else:
            moment = shape.amount[branch, slot]
            if kind == EVERY:
                moment *= cursor
            bound.row[slot] = bound.place[slot] = -1
            bound.start[slot] = bound.end[slot] = moment
            if not _timer_fits(shape, plans, bound, options, branch, plan, depth, slot):
                continue
        if _nested_fit(shape, plans, bound, branch, plan, depth) and hold_all(
            program, memo, store.row, bound, members, stack, shape.due,
            plans.due[plan, depth, 0], plans.due[plan, depth, 1],
        ):  # fmt: skip
            return True
    return False


@njit(cache=True)
def _timer_fits(
    shape: Any, plans: Any, bound: Any, options: Any, branch: Any, plan: Any, depth: Any, slot: Any
) -> Any:
    """Whether the timer in `slot` stands as the pattern says to the slots bound before it, inside the window."""
    start, end = bound.start[slot], bound.end[slot]
    for other in range(depth):
        if not _stands(shape, bound, options, branch, slot, plans.order[plan, other]):
            return False
        start = min(start, bound.start[plans.order[plan, other]])
        end = max(end, bound.end[plans.order[plan, other]])
    return end - start <= options.window


@njit(cache=True)
def _stands(shape: Any, bound: Any, options: Any, branch: Any, slot: Any, other: Any) -> Any:
    relation = shape.relation[branch, slot, other]
    if relation == PRECEDES:
        return _precedes(shape, bound, options, branch, slot, other)
    if relation == FOLLOWS:
        return _precedes(shape, bound, options, branch, other, slot)
    return True


@njit(cache=True)
def _precedes(shape: Any, bound: Any, options: Any, branch: Any, one: Any, other: Any) -> Any:
    if not options.ordered:
        return bound.end[one] < bound.start[other]
    if bound.end[one] > bound.start[other]:
        return False
    if bound.end[one] != bound.end[other]:
        return bound.end[one] < bound.end[other]
    if bound.start[one] != bound.start[other]:
        return bound.start[one] < bound.start[other]
    if bound.place[one] >= 0 or bound.place[other] >= 0:  # a timer comes after every event of the same times
        return bound.place[one] >= 0 and (bound.place[other] < 0 or bound.place[one] < bound.place[other])
    return shape.position[branch, one] < shape.position[branch, other]


@njit(cache=True)
def _nested_fit(shape: Any, plans: Any, bound: Any, branch: Any, plan: Any, depth: Any) -> Any:
    """Whether the slots bound so far keep the WITHIN of every nested pattern."""
    for number in range(shape.spans[branch, 0], shape.spans[branch, 1]):
        start, end = np.int64(1 << 62), np.int64(-(1 << 62))
        for place in range(shape.span[number, 0], shape.span[number, 1]):
            for other in range(depth + 1):
                if plans.order[plan, other] == shape.flat[place]:
                    start = min(start, bound.start[shape.flat[place]])
                    end = max(end, bound.end[shape.flat[place]])
        if end - start > shape.span[number, 2] and end >= start:
            return False
    return True


@njit(cache=True)
def _afters_fit(shape: Any, bound: Any, options: Any, branch: Any) -> Any:
    """Binds the timers that follow from others, and tests them against all slots."""
    for number in range(shape.afters[branch, 0], shape.afters[branch, 1]):
        slot = shape.after[number, 0]
        end = np.int64(-(1 << 62))
        for place in range(shape.after[number, 1], shape.after[number, 2]):
            end = max(end, bound.end[shape.flat[place]])
        bound.row[slot] = bound.place[slot] = -1
        bound.start[slot] = bound.end[slot] = end + shape.amount[branch, slot]
    if shape.afters[branch, 0] == shape.afters[branch, 1]:
        return True
    start, end = np.int64(1 << 62), np.int64(-(1 << 62))
    for slot in range(shape.slots[branch]):
        start, end = min(start, bound.start[slot]), max(end, bound.end[slot])
        if shape.kind[branch, slot] == AFTER:
            for other in range(shape.slots[branch]):
                if other != slot and not _stands(shape, bound, options, branch, slot, other):
                    return False
    if end - start > options.window:
        return False
    for number in range(shape.spans[branch, 0], shape.spans[branch, 1]):
        start, end = np.int64(1 << 62), np.int64(-(1 << 62))
        for place in range(shape.span[number, 0], shape.span[number, 1]):
            start = min(start, bound.start[shape.flat[place]])
            end = max(end, bound.end[shape.flat[place]])
        if end - start > shape.span[number, 2]:
            return False
    return True


@njit(cache=True)
def _complete(
    store: Any, lists: Any, shape: Any, plans: Any, frame: Any, program: Any, memo: Any, stack: Any, bound: Any,
    members: Any, spare: Any, best: Any, out: Any, options: Any, branch: Any, plan: Any, deep: Any, part: Any,
    lowest: Any,
) -> Any:  # fmt: skip
    """All slots are bound: keeps the answer if it is one. GROW says that no other of this item is wanted."""
    if not _afters_fit(shape, bound, options, branch):
        return DONE
    if not hold_all(
        program, memo, store.row, bound, members, stack, shape.due, plans.due[plan, deep, 0], plans.due[plan, deep, 1]
    ):
        return DONE
    if not is_answer(store, lists, shape, frame, program, memo, stack, bound, members, options, branch, part):
        return DONE
    if options.consume != NOT_CONSUMED and _takes_consumed(frame, shape, members, options, branch, lowest):
        return DONE
    state = frame.state
    if options.mode == FIRST_RECENT or options.mode == FIRST_EARLIEST:
        _keep_best(shape, frame, bound, members, best, options, branch)
        return GROW
    start, end = frame.span[0], frame.span[1]
    if options.mode == ALL and _found_before(
        store, lists, shape, frame, program, memo, stack, bound, members, spare, options, branch, part
    ):
        return DONE
    detection = _detection(store, shape, bound, members, options, branch, start, end)
    if options.mode == ALL and (detection < options.low or detection >= options.high):
        return DONE
    if options.mode == ALL and not _has_room(shape, members, out, state, branch):
        return FULL
    if memo.missed[0]:
        return DONE
    state[COUNTED] += 1
    state[EMITTED] = 1
    if state[COUNTED] > options.limit:
        return OVER_LIMIT
    if options.mode == MERGED:
        frame.span[2], frame.span[3] = min(frame.span[2], start), max(frame.span[3], end)
        return _merge(store, shape, frame, bound, members, out, branch, state)
    _write(store, shape, bound, members, out, state, branch, detection)
    if options.consume == USED:
        _consume(frame, shape, bound, members, branch)
    return DONE


@njit(cache=True)
def _takes_consumed(frame: Any, shape: Any, members: Any, options: Any, branch: Any, lowest: Any) -> Any:
    """Whether a group holds an event that an earlier match has consumed."""
    for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
        for index in range(members.size[group]):
            place = np.int64(members.place[group, index])
            if place < lowest or _is_used(frame, options, place):
                return True
    return False


@njit(cache=True)
def _found_before(
    store: Any, lists: Any, shape: Any, frame: Any, program: Any, memo: Any, stack: Any, bound: Any, members: Any,
    spare: Any, options: Any, branch: Any, part: Any,
) -> Any:  # fmt: skip
    """Whether an earlier disjunct of WHERE has the same answer (it counts once)."""
    start, end = frame.span[0], frame.span[1]
    found = False
    for other in range(branch):
        if found or shape.alternative[other] != shape.alternative[branch]:
            continue
        if not hold_all(
            program, memo, store.row, bound, spare, stack, shape.due, shape.whole[other, 0], shape.whole[other, 1]
        ):
            continue
        if not is_answer(store, lists, shape, frame, program, memo, stack, bound, spare, options, other, part):
            continue
        found = True
        for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
            found = found and spare.size[group] == members.size[group]
            if found:
                for index in range(spare.size[group]):
                    if spare.place[group, index] != members.place[group, index]:
                        found = False
                        break
    frame.span[0], frame.span[1] = start, end
    return found


@njit(cache=True)
def _detection(
    store: Any, shape: Any, bound: Any, members: Any, options: Any, branch: Any, start: Any, end: Any
) -> Any:
    detection = end
    if options.postponed == 1:
        detection = start + options.window
    elif options.postponed == 2:
        detection = end + options.window
    if options.detected:
        for slot in range(shape.slots[branch]):
            if bound.row[slot] >= 0:
                detection = max(detection, np.int64(load64(options.detected + 8 * bound.row[slot])))
        for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
            for index in range(members.size[group]):
                row = np.int64(store.row[members.place[group, index]])
                detection = max(detection, np.int64(load64(options.detected + 8 * row)))
    return detection


@njit(cache=True)
def _has_room(shape: Any, members: Any, out: Any, state: Any, branch: Any) -> Any:
    wanted = shape.slots[branch]
    for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
        wanted += members.size[group]
    return state[WRITTEN] < len(out.branch) and state[WRITTEN_MEMBERS] + wanted <= len(out.member)


@njit(cache=True)
def _write(
    store: Any, shape: Any, bound: Any, members: Any, out: Any, state: Any, branch: Any, detection: Any
) -> Any:
    written, at = state[WRITTEN], state[WRITTEN_MEMBERS]
    out.branch[written], out.detection[written] = branch, detection
    out.groupings[written] = np.int64(1) << shape.grouping[branch]
    for number in range(shape.emits[branch, 0], shape.emits[branch, 1]):
        own, element = shape.emit[number, 1], shape.emit[number, 2]
        if shape.emit[number, 0] == 0:
            out.element[at] = element
            if bound.row[own] >= 0:
                out.member[at] = bound.row[own]
            else:
                out.member[at] = -1 - state[WRITTEN_TIMERS]
                out.moment[state[WRITTEN_TIMERS]] = bound.end[own]
                state[WRITTEN_TIMERS] += 1
            at += 1
        else:
            for index in range(members.size[own]):
                out.element[at] = element
                out.member[at] = store.row[members.place[own, index]]
                at += 1
    state[WRITTEN], state[WRITTEN_MEMBERS] = written + 1, at
    out.offsets[written + 1] = at


@njit(cache=True)
def _consume(
    frame: Any, shape: Any, bound: Any, members: Any, branch: Any
) -> Any:
    for slot in range(shape.slots[branch]):
        if bound.place[slot] >= 0 and frame.used[bound.place[slot]] == 0:
            frame.used[bound.place[slot]] = frame.state[ORDINAL]
    for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
        for index in range(members.size[group]):
            if frame.used[members.place[group, index]] == 0:
                frame.used[members.place[group, index]] = frame.state[ORDINAL]


@njit(cache=True)
def _merge(
    store: Any, shape: Any, frame: Any, bound: Any, members: Any, out: Any, branch: Any, state: Any
) -> Any:
    """Adds the members that the merged match does not have yet; an element's are sorted when it is settled."""
    stamp = state[STAMP]
    for number in range(shape.emits[branch, 0], shape.emits[branch, 1]):
        own, element = shape.emit[number, 1], shape.emit[number, 2]
        count = 1 if shape.emit[number, 0] == 0 else members.size[own]
        for index in range(count):
            place = bound.place[own] if shape.emit[number, 0] == 0 else np.int64(members.place[own, index])
            if frame.mark[element, place] == stamp:
                continue
            if state[WRITTEN_MEMBERS] == len(out.member) or state[WRITTEN] == len(out.branch):
                return FULL
            frame.mark[element, place] = stamp
            out.element[state[WRITTEN_MEMBERS]], out.member[state[WRITTEN_MEMBERS]] = element, place
            state[WRITTEN_MEMBERS] += 1
    frame.best[1] = (frame.best[1] if frame.best[0] >= 0 else 0) | (np.int64(1) << shape.grouping[branch])
    frame.best[0] = branch
    return DONE


@njit(cache=True)
def _keep_best(
    shape: Any, frame: Any, bound: Any, members: Any, best: Any, options: Any, branch: Any
) -> Any:
    """Keeps the answer if SELECT prefers it to the best so far of the same completing event."""
    slots = shape.slots[branch]
    if frame.best[0] >= 0 and not _is_better(shape, frame, bound, members, best, options, branch):
        return
    frame.best[0], frame.best[1] = branch, frame.span[0]
    frame.best[2] = frame.span[1]
    for slot in range(slots):
        frame.best[3 + slot] = bound.place[slot]
    for group in range(shape.groups[branch, 1] - shape.groups[branch, 0]):
        best.size[group] = members.size[group]
        for index in range(members.size[group]):
            best.place[group, index] = members.place[group, index]


@njit(cache=True)
def _is_better(
    shape: Any, frame: Any, bound: Any, members: Any, best: Any, options: Any, branch: Any
) -> Any:
    recent = options.mode == FIRST_RECENT
    other = frame.best[0]
    mine, its = shape.slots[branch], shape.slots[other]
    for step in range(min(mine, its)):
        one = bound.place[mine - 1 - step] if recent else bound.place[step]
        two = frame.best[3 + its - 1 - step] if recent else frame.best[3 + step]
        if one != two:
            return one > two if recent else one < two
    if mine != its:
        return mine > its if recent else mine < its
    mine = shape.groups[branch, 1] - shape.groups[branch, 0]
    its = shape.groups[other, 1] - shape.groups[other, 0]
    for step in range(min(mine, its)):
        a = mine - 1 - step if recent else step
        b = its - 1 - step if recent else step
        if members.size[a] != best.size[b]:
            return members.size[a] > best.size[b] if recent else members.size[a] < best.size[b]
        for index in range(members.size[a]):
            at = members.size[a] - 1 - index if recent else index
            one, two = np.int64(members.place[a, at]), np.int64(best.place[b, at])
            if one != two:
                return one > two if recent else one < two
    if mine != its:
        return mine > its if recent else mine < its
    return shape.rank[branch] < shape.rank[other]


@njit(cache=True)
def _settle(
    store: Any, shape: Any, frame: Any, best: Any, out: Any, options: Any, place: Any, part: Any, written: Any,
    in_members: Any,
) -> Any:  # fmt: skip
    """Writes the one match of a completing event, if it has one, and consumes its events."""
    branch = frame.best[0]
    if branch < 0:
        return DONE
    state = frame.state
    if options.mode == MERGED:
        low, high = in_members, state[WRITTEN_MEMBERS]
        _sort_members(out.element, out.member, low, high)
        detection = frame.span[3] + (options.window if options.postponed else 0)
        for at in range(low, high):
            member = np.int64(out.member[at])
            if options.consume == USED and frame.used[member] == 0:
                frame.used[member] = state[ORDINAL]
            row = np.int64(store.row[member])
            out.member[at] = row
            if options.detected:
                detection = max(detection, np.int64(load64(options.detected + 8 * row)))
        if detection < options.low or detection >= options.high:
            state[WRITTEN_MEMBERS] = low
            return DONE
        out.branch[written], out.detection[written], out.groupings[written] = branch, detection, frame.best[1]
        out.offsets[written + 1] = high
        state[WRITTEN] = written + 1
        return DONE
    slots = shape.slots[branch]
    detection = frame.best[2] + (options.window if options.postponed else 0)
    wanted = slots
    groups = shape.groups[branch, 1] - shape.groups[branch, 0]
    for group in range(groups):
        wanted += best.size[group]
    if written == len(out.branch) or in_members + wanted > len(out.member):
        return FULL
    at = in_members
    for number in range(shape.emits[branch, 0], shape.emits[branch, 1]):
        own, element = shape.emit[number, 1], shape.emit[number, 2]
        count = 1 if shape.emit[number, 0] == 0 else best.size[own]
        for index in range(count):
            member = frame.best[3 + own] if shape.emit[number, 0] == 0 else np.int64(best.place[own, index])
            if options.consume == USED:
                frame.used[member] = state[ORDINAL]
            row = np.int64(store.row[member])
            out.element[at], out.member[at] = element, row
            at += 1
            if options.detected:
                detection = max(detection, np.int64(load64(options.detected + 8 * row)))
    state[EMITTED] = 1
    if detection < options.low or detection >= options.high:
        return DONE
    state[COUNTED] += 1
    if state[COUNTED] > options.limit:
        return OVER_LIMIT
    out.branch[written], out.detection[written], out.offsets[written + 1] = branch, detection, at
    out.groupings[written] = np.int64(1) << shape.grouping[branch]
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
