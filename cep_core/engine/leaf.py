"""The kernels behind the last slot of a search: groups, the conditions on them, and negations (language contract,
Matches).

Enters: the bound slots of one branch. Leaves: whether they are an answer; the members of its groups, and its start and
end in frame_span.
Always holds: a group is found from its neighbours' slots, a negation from the groups too. Each candidate's range is cut
by time, and by an index where an equality names a bound event, before any condition is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.machine import holds
from cep_core.engine.tables import (
    AFTER_GROUP,
    BEFORE_GROUP,
    DUE,
    FOLLOWING,
    HIGH,
    INDEX,
    LIST,
    LOW,
    NO_WINDOW,
    O_ORDERED,
    O_WINDOW,
    OUTER,
    PREVIOUS,
    bound_end,
    bound_place,
    bound_row,
    bound_start,
    frame_part_high,
    frame_part_low,
    frame_part_of,
    frame_span,
    lists_base,
    lists_code_first,
    lists_first,
    lists_held,
    lists_looked,
    lists_place,
    members_end,
    members_place,
    members_size,
    members_start,
    options,
    shape_due,
    shape_flat,
    shape_group,
    shape_groups,
    shape_late,
    shape_negation,
    shape_negations,
    shape_slots,
    store_end,
    store_offsets,
    store_row,
    store_start,
)
from cep_core.engine.text import load64

_NEVER, _EVER = -(1 << 62), 1 << 62


@njit(cache=True)
def hold_all(ctx: Any, which: Any, low: Any, high: Any) -> Any:
    """Whether the conditions low to high of `due` hold."""
    due = shape_due(ctx)
    for number in range(low, high):
        if not holds(ctx, which, due[number, 0], due[number, 1]):
            return False
    return True


@njit(cache=True)
def is_answer(ctx: Any, which: Any, branch: Any, part: Any) -> Any:
    """Whether the bound slots, with the groups that follow from them, are an answer of the branch."""
    slots = shape_slots(ctx)[branch]
    start, end = bound_start(ctx)[0], bound_end(ctx)[0]
    for slot in range(1, slots):
        start, end = min(start, bound_start(ctx)[slot]), max(end, bound_end(ctx)[slot])
    first, last = shape_groups(ctx)[branch, 0], shape_groups(ctx)[branch, 1]
    whole_start, whole_end = start, end
    for number in range(first, last):
        group = number - first
        found = _gather(ctx, which, branch, part, shape_group(ctx)[number], group, start, end, np.int64(0))
        if found < shape_group(ctx)[number, LOW] or found > shape_group(ctx)[number, HIGH]:
            return False
        if found:
            whole_start = min(whole_start, members_start(ctx)[which, group])
            whole_end = max(whole_end, members_end(ctx)[which, group])
    if last - first > 1 and _shared(ctx, which, last - first):
        return False
    if not hold_all(ctx, which, shape_late(ctx)[branch, 0], shape_late(ctx)[branch, 1]):
        return False
    for number in range(shape_negations(ctx)[branch, 0], shape_negations(ctx)[branch, 1]):
        element = shape_negation(ctx)[number]
        if _gather(ctx, which, branch, part, element, np.int64(-1), whole_start, whole_end, np.int64(1)):
            return False
    frame_span(ctx)[0], frame_span(ctx)[1] = whole_start, whole_end
    return True


@njit(cache=True)
def _shared(ctx: Any, which: Any, groups: Any) -> Any:
    """Whether an event is in two groups."""
    for one in range(groups):
        for two in range(one + 1, groups):
            i, j = 0, 0
            while i < members_size(ctx)[which, one] and j < members_size(ctx)[which, two]:
                a, b = members_place(ctx)[which, one, i], members_place(ctx)[which, two, j]
                if a == b:
                    return True
                if a < b:
                    i += 1
                else:
                    j += 1
    return False


@njit(cache=True)
def in_partition(ctx: Any, number: Any, part: Any) -> Any:
    """The part of a list that lies in the partition, remembered until another one is asked for."""
    if frame_part_of(ctx)[number] != part:
        low, high = lists_first(ctx)[number], lists_first(ctx)[number + 1]
        frame_part_low(ctx)[number] = first_from(lists_place(ctx), low, high, store_offsets(ctx)[part])
        frame_part_high(ctx)[number] = first_from(lists_place(ctx), low, high, store_offsets(ctx)[part + 1])
        frame_part_of(ctx)[number] = part
    return frame_part_low(ctx)[number], frame_part_high(ctx)[number]


@njit(cache=True)
def first_from(places: Any, low: Any, high: Any, least: Any) -> Any:
    """The first of places[low..high] that is `least` or more, or high."""
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def first_ending(places: Any, end: Any, low: Any, high: Any, moment: Any) -> Any:
    """The first of places[low..high] that ends at `moment` or later, or high."""
    while low < high:
        middle = (low + high) >> 1
        if end[places[middle]] < moment:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def looked_up(ctx: Any, index: Any, outer: Any) -> Any:
    """(low, high) in lists_held(ctx): the places whose value is that of the event in slot `outer`."""
    code = np.int64(load64(lists_looked(ctx)[index] + 8 * bound_row(ctx)[outer]))
    if code < 0:
        return np.int64(0), np.int64(0)
    at = lists_base(ctx)[index] + code
    return lists_code_first(ctx)[at], lists_code_first(ctx)[at + 1]


@njit(cache=True)
def _gather(
    ctx: Any, which: Any, branch: Any, part: Any, element: Any, group: Any, start: Any, end: Any, only_one: Any,
) -> Any:  # fmt: skip
    """How many events stand between an element's neighbours and meet its conditions; those of a group are kept.

    With only_one it stops at the first. start, end: of the answer, as the edges of the pattern are bounded by them."""
    previous_low, previous_high = element[PREVIOUS], element[PREVIOUS + 1]
    following_low, following_high = element[FOLLOWING], element[FOLLOWING + 1]
    previous_group, following_group = element[BEFORE_GROUP], element[AFTER_GROUP]
    if previous_group >= 0 and members_size(ctx)[which, previous_group] == 0:
        previous_group = -1
    if following_group >= 0 and members_size(ctx)[which, following_group] == 0:
        following_group = -1
    at_start = previous_low == previous_high and previous_group < 0
    at_end = following_low == following_high and following_group < 0
    # Ends of candidates lie between earliest and latest; each is then tested exactly.
    earliest: Any = _NEVER
    least_start: Any = _NEVER
    latest: Any = _EVER
    if at_start:
        if options(ctx)[O_WINDOW] != NO_WINDOW:
            least_start = end - options(ctx)[O_WINDOW]
            earliest = least_start
    elif previous_group >= 0:
        earliest = members_end(ctx)[which, previous_group]
    else:
        for number in range(previous_low, previous_high):
            earliest = max(earliest, bound_end(ctx)[shape_flat(ctx)[number]])
    if at_end:
        if options(ctx)[O_WINDOW] != NO_WINDOW:
            latest = start + options(ctx)[O_WINDOW]
    elif following_group >= 0:
        latest = members_start(ctx)[which, following_group]
    else:
        for number in range(following_low, following_high):
            latest = min(latest, bound_start(ctx)[shape_flat(ctx)[number]])
    low, high = in_partition(ctx, element[LIST], part)
    places = lists_place(ctx)
    if element[INDEX] >= 0:
        places = lists_held(ctx)
        low, high = looked_up(ctx, element[INDEX], element[OUTER])
        low = first_from(places, low, high, store_offsets(ctx)[part])
        high = first_from(places, low, high, store_offsets(ctx)[part + 1])
    low = first_ending(places, store_end(ctx), low, high, earliest)
    found = 0
    slots = shape_slots(ctx)[branch]
    tried = len(bound_row(ctx)) - 1
    for index in range(low, high):
        place: Any = np.int64(places[index])
        own_start, own_end = store_start(ctx)[place], store_end(ctx)[place]
        if own_end > latest:
            break
        if own_start < least_start:
            continue
        fits = True
        if not at_start:
            if previous_group >= 0:
                last = np.int64(members_place(ctx)[which, previous_group, members_size(ctx)[which, previous_group] - 1])
                fits = _event_after(
                    (options(ctx)[O_ORDERED] != 0),
                    own_start,
                    own_end,
                    place,
                    members_end(ctx)[which, previous_group],
                    last,
                )
            else:
                for number in range(previous_low, previous_high):
                    slot = shape_flat(ctx)[number]
                    fits = fits and _event_after(
                        (options(ctx)[O_ORDERED] != 0),
                        own_start,
                        own_end,
                        place,
                        bound_end(ctx)[slot],
                        bound_place(ctx)[slot],
                    )
        if fits and not at_end:
            if following_group >= 0:
                near = np.int64(members_place(ctx)[which, following_group, 0])
                fits = _event_before(
                    (options(ctx)[O_ORDERED] != 0), own_end, place, members_start(ctx)[which, following_group], near
                )
            else:
                for number in range(following_low, following_high):
                    slot = shape_flat(ctx)[number]
                    fits = fits and _event_before(
                        (options(ctx)[O_ORDERED] != 0), own_end, place, bound_start(ctx)[slot], bound_place(ctx)[slot]
                    )
        if not fits:
            continue
        for slot in range(slots):  # events bound by other elements are left out
            if bound_place(ctx)[slot] == place:
                fits = False
        if not fits:
            continue
        if element[DUE] < element[DUE + 1]:
            bound_row(ctx)[tried], bound_place(ctx)[tried] = store_row(ctx)[place], place
            bound_start(ctx)[tried], bound_end(ctx)[tried] = own_start, own_end
            if not hold_all(ctx, which, element[DUE], element[DUE + 1]):
                continue
        if only_one:
            return 1
        members_place(ctx)[which, group, found] = place
        members_start(ctx)[which, group] = own_start if found == 0 else min(members_start(ctx)[which, group], own_start)
        members_end(ctx)[which, group] = own_end
        found += 1
    if group >= 0:
        members_size(ctx)[which, group] = found
    return found


@njit(cache=True)
def _event_after(ordered: Any, start: Any, end: Any, place: Any, other_end: Any, other_place: Any) -> Any:
    """Whether another (an event, or a timer with place -1) precedes the event."""
    if not ordered:
        return other_end < start
    if other_end > start:
        return False
    return other_place < place if other_place >= 0 else end > other_end


@njit(cache=True)
def _event_before(ordered: Any, end: Any, place: Any, other_start: Any, other_place: Any) -> Any:
    """Whether the event precedes another."""
    if not ordered:
        return end < other_start
    return end <= other_start and (other_place < 0 or place < other_place)
