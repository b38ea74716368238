"""What becomes of an answer whose slots are all bound: written, kept as the best, merged, or dropped.

Enters: arrays of tables.py with every slot of a branch bound. Leaves: answers in `Out`, what they consume, and for
SELECT recent, earliest and merged the one match of a completing event.
Always holds: an answer that two disjuncts of WHERE give is kept once; nothing is written past the room that `Out` has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.bins import consume
from cep_core.engine.fit import afters_fit, is_used
from cep_core.engine.leaf import hold_all, is_answer
from cep_core.engine.tables import (
    ALL,
    BEST,
    COUNTED,
    CURRENT,
    DONE,
    EMITTED,
    FIRST_EARLIEST,
    FIRST_RECENT,
    FULL,
    GROW,
    MERGED,
    NOT_CONSUMED,
    O_CONSUME,
    O_DETECTED,
    O_HIGH,
    O_LIMIT,
    O_LOW,
    O_MODE,
    O_POSTPONED,
    O_WINDOW,
    OVER_LIMIT,
    SPARE,
    STAMP,
    USED,
    WRITTEN,
    WRITTEN_MEMBERS,
    WRITTEN_TIMERS,
    bound_end,
    bound_place,
    bound_row,
    frame_best,
    frame_mark,
    frame_span,
    frame_state,
    frame_used,
    members_place,
    members_size,
    memo_missed,
    options,
    out_branch,
    out_detection,
    out_element,
    out_groupings,
    out_member,
    out_moment,
    out_offsets,
    plans_due,
    shape_alternative,
    shape_emit,
    shape_emits,
    shape_grouping,
    shape_groups,
    shape_rank,
    shape_slots,
    shape_whole,
    store_row,
)
from cep_core.engine.text import load64


@njit(cache=True)
def complete(
    ctx: Any, branch: Any, plan: Any, deep: Any, part: Any,
    lowest: Any,
) -> Any:  # fmt: skip
    """All slots are bound: keeps the answer if it is one. GROW says that no other of this item is wanted."""
    if not afters_fit(ctx, branch):
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
            if place < lowest or is_used(ctx, place):
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
            consume(ctx, bound_place(ctx)[slot])
    for group in range(shape_groups(ctx)[branch, 1] - shape_groups(ctx)[branch, 0]):
        for index in range(members_size(ctx)[CURRENT, group]):
            if frame_used(ctx)[members_place(ctx)[CURRENT, group, index]] == 0:
                consume(ctx, np.int64(members_place(ctx)[CURRENT, group, index]))


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
def settle(
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
                consume(ctx, member)
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
                consume(ctx, member)
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
