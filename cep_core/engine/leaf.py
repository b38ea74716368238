"""The kernels behind the last slot of a search: groups, the conditions on them, and negations (language contract,
Matches).

Enters: the bound slots of one branch. Leaves: whether they are an answer; the members of its groups, and its start and
end in Frame.span.
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
    OUTER,
    PREVIOUS,
)
from cep_core.engine.text import load64

_NEVER, _EVER = -(1 << 62), 1 << 62


@njit(cache=True)
def hold_all(
    program: Any, memo: Any, rows: Any, bound: Any, members: Any, stack: Any, due: Any, low: Any, high: Any
) -> Any:
    """Whether the conditions low to high of `due` hold."""
    for number in range(low, high):
        if not holds(program, memo, rows, bound, members, stack, due[number, 0], due[number, 1]):
            return False
    return True


@njit(cache=True)
def is_answer(
    store: Any, lists: Any, shape: Any, frame: Any, program: Any, memo: Any, stack: Any, bound: Any, members: Any,
    options: Any, branch: Any, part: Any,
) -> Any:  # fmt: skip
    """Whether the bound slots, with the groups that follow from them, are an answer of the branch."""
    slots = shape.slots[branch]
    start, end = bound.start[0], bound.end[0]
    for slot in range(1, slots):
        start, end = min(start, bound.start[slot]), max(end, bound.end[slot])
    first, last = shape.groups[branch, 0], shape.groups[branch, 1]
    whole_start, whole_end = start, end
    for number in range(first, last):
        group = number - first
        found = _gather(
            store, lists, shape, frame, program, memo, stack, bound, members, options, branch, part,
            shape.group[number], group, start, end, False,
        )  # fmt: skip
        if found < shape.group[number, LOW] or found > shape.group[number, HIGH]:
            return False
        if found:
            whole_start = min(whole_start, members.start[group])
            whole_end = max(whole_end, members.end[group])
    if last - first > 1 and _shared(members, last - first):
        return False
    rows = store.row
    if not hold_all(
        program, memo, rows, bound, members, stack, shape.due, shape.late[branch, 0], shape.late[branch, 1]
    ):
        return False
    for number in range(shape.negations[branch, 0], shape.negations[branch, 1]):
        if _gather(
            store, lists, shape, frame, program, memo, stack, bound, members, options, branch, part,
            shape.negation[number], -1, whole_start, whole_end, True,
        ):  # fmt: skip
            return False
    frame.span[0], frame.span[1] = whole_start, whole_end
    return True


@njit(cache=True)
def _shared(members: Any, groups: Any) -> Any:
    """Whether an event is in two groups."""
    for one in range(groups):
        for two in range(one + 1, groups):
            i, j = 0, 0
            while i < members.size[one] and j < members.size[two]:
                a, b = members.place[one, i], members.place[two, j]
                if a == b:
                    return True
                if a < b:
                    i += 1
                else:
                    j += 1
    return False


@njit(cache=True)
def in_partition(store: Any, lists: Any, frame: Any, number: Any, part: Any) -> Any:
    """The part of a list that lies in the partition, remembered until another one is asked for."""
    if frame.part_of[number] != part:
        low, high = lists.first[number], lists.first[number + 1]
        frame.part_low[number] = first_from(lists.place, low, high, store.offsets[part])
        frame.part_high[number] = first_from(lists.place, low, high, store.offsets[part + 1])
        frame.part_of[number] = part
    return frame.part_low[number], frame.part_high[number]


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
def looked_up(lists: Any, bound: Any, index: Any, outer: Any) -> Any:
    """(low, high) in lists.held: the places whose value is that of the event in slot `outer`."""
    code = np.int64(load64(lists.looked[index] + 8 * bound.row[outer]))
    if code < 0:
        return np.int64(0), np.int64(0)
    at = lists.base[index] + code
    return lists.code_first[at], lists.code_first[at + 1]


@njit(cache=True)
def _gather(
    store: Any, lists: Any, shape: Any, frame: Any, program: Any, memo: Any, stack: Any, bound: Any, members: Any,
    options: Any, branch: Any, part: Any, element: Any, group: Any, start: Any, end: Any, only_one: Any,
) -> Any:  # fmt: skip
    """How many events stand between an element's neighbours and meet its conditions; those of a group are kept.

    With only_one it stops at the first. start, end: of the answer, as the edges of the pattern are bounded by them."""
    previous_low, previous_high = element[PREVIOUS], element[PREVIOUS + 1]
    following_low, following_high = element[FOLLOWING], element[FOLLOWING + 1]
    previous_group, following_group = element[BEFORE_GROUP], element[AFTER_GROUP]
    if previous_group >= 0 and members.size[previous_group] == 0:
        previous_group = -1
    if following_group >= 0 and members.size[following_group] == 0:
        following_group = -1
    at_start = previous_low == previous_high and previous_group < 0
    at_end = following_low == following_high and following_group < 0
    # Ends of candidates lie between earliest and latest; each is then tested exactly.
    earliest: Any = _NEVER
    least_start: Any = _NEVER
    latest: Any = _EVER
    if at_start:
        if options.window != NO_WINDOW:
            least_start = end - options.window
            earliest = least_start
    elif previous_group >= 0:
        earliest = members.end[previous_group]
    else:
        for number in range(previous_low, previous_high):
            earliest = max(earliest, bound.end[shape.flat[number]])
    if at_end:
        if options.window != NO_WINDOW:
            latest = start + options.window
    elif following_group >= 0:
        latest = members.start[following_group]
    else:
        for number in range(following_low, following_high):
            latest = min(latest, bound.start[shape.flat[number]])
    low, high = in_partition(store, lists, frame, element[LIST], part)
    places = lists.place
    if element[INDEX] >= 0:
        places = lists.held
        low, high = looked_up(lists, bound, element[INDEX], element[OUTER])
        low = first_from(places, low, high, store.offsets[part])
        high = first_from(places, low, high, store.offsets[part + 1])
    low = first_ending(places, store.end, low, high, earliest)
    found = 0
    slots = shape.slots[branch]
    tried = len(bound.row) - 1
    for index in range(low, high):
        place: Any = np.int64(places[index])
        own_start, own_end = store.start[place], store.end[place]
        if own_end > latest:
            break
        if own_start < least_start:
            continue
        fits = True
        if not at_start:
            if previous_group >= 0:
                last = np.int64(members.place[previous_group, members.size[previous_group] - 1])
                fits = _event_after(options.ordered, own_start, own_end, place, members.end[previous_group], last)
            else:
                for number in range(previous_low, previous_high):
                    slot = shape.flat[number]
                    fits = fits and _event_after(
                        options.ordered, own_start, own_end, place, bound.end[slot], bound.place[slot]
                    )
        if fits and not at_end:
            if following_group >= 0:
                near = np.int64(members.place[following_group, 0])
                fits = _event_before(options.ordered, own_end, place, members.start[following_group], near)
            else:
                for number in range(following_low, following_high):
                    slot = shape.flat[number]
                    fits = fits and _event_before(
                        options.ordered, own_end, place, bound.start[slot], bound.place[slot]
                    )
        if not fits:
            continue
        for slot in range(slots):  # events bound by other elements are left out
            if bound.place[slot] == place:
                fits = False
        if not fits:
            continue
        if element[DUE] < element[DUE + 1]:
            bound.row[tried], bound.place[tried] = store.row[place], place
            bound.start[tried], bound.end[tried] = own_start, own_end
            if not hold_all(
                program, memo, store.row, bound, members, stack, shape.due, element[DUE], element[DUE + 1]
            ):
                continue
        if only_one:
            return 1
        members.place[group, found] = place
        members.start[group] = own_start if found == 0 else min(members.start[group], own_start)
        members.end[group] = own_end
        found += 1
    if group >= 0:
        members.size[group] = found
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
