"""The kernels of the shared walk (walk.py says what they are for).

Enters and leaves: arrays only, shapes and dtypes as in `Items` and `Network`.
Always holds: nothing here depends on a query's text; one compiled kernel serves every network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_NARROW = 64
_ONE, _EVERY = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True)
def expand_items(cls: Any, offsets: Any, of_class: Any, symbols: Any, mask_of: Any, masks: Any) -> Any:
    """places int32[k] in the store, symbol int32[k], offsets int64[p+1]: one item per event and symbol that takes
    it."""
    count = 0
    for fill in range(2):
        places, found = np.empty(count * fill, np.int32), np.empty(count * fill, np.int32)
        starts = np.zeros(len(offsets), np.int64)
        count = 0
        for part in range(len(offsets) - 1):
            starts[part] = count
            for place in range(offsets[part], offsets[part + 1]):
                for index in range(of_class[cls[place]], of_class[cls[place] + 1]):
                    mask = mask_of[symbols[index]]
                    if mask < 0 or masks[mask, place]:
                        if fill:
                            places[count], found[count] = place, symbols[index]
                        count += 1
        starts[len(offsets) - 1] = count
    return places, found, starts


@njit(cache=True)
def symbol_lists(symbol: Any, symbols: Any, out: Any) -> Any:
    """Writes out int32[k], items by symbol, ascending; returns int64[symbols+1], where each symbol's begin."""
    offsets = np.zeros(symbols + 1, np.int64)
    for item in range(len(symbol)):
        offsets[symbol[item] + 1] += 1
    for number in range(symbols):
        offsets[number + 1] += offsets[number]
    free = offsets[:symbols].copy()
    for item in range(len(symbol)):
        out[free[symbol[item]]] = item
        free[symbol[item]] += 1
    return offsets


@njit(cache=True)
def reach(offsets: Any, row: Any, start: Any, end: Any, mode: Any, out: Any) -> Any:
    """Writes out int32[k]: the last item that may stand before each; below the partition's first where there is none.

    Ends ascend, so the items that precede one are a prefix of its partition: end < start (mode 0), end <= start and
    earlier in event order (mode 1), or any earlier event (mode 2)."""
    for part in range(len(offsets) - 1):
        low = offsets[part]
        for item in range(low, offsets[part + 1]):
            if item > low and row[item] == row[item - 1]:
                out[item] = out[item - 1]
                continue
            last: Any = item - 1
            if mode < 2 and last >= low:
                begin = start[item]
                if item > low and start[item - 1] == begin and end[item - 1] == end[item] and mode == 0:
                    last = np.int64(out[item - 1])
                elif not (end[last] < begin or (mode == 1 and end[last] == begin)):
                    left, right = low, item  # the first that does not precede
                    while left < right:
                        middle = (left + right) >> 1
                        if end[middle] < begin or (mode == 1 and end[middle] == begin):
                            left = middle + 1
                        else:
                            right = middle
                    last = left - 1
            out[item] = last


@njit(cache=True)
def _latest(lists: Any, low: Any, head: Any, item: Any) -> Any:
    """The greatest index in lists[low..head] whose item is at most `item`, or low - 1: by doubling steps back."""
    if head < low or lists[head] <= item:
        return head
    step, right = 1, head
    while head - step >= low and lists[head - step] > item:
        right = head - step
        step *= 2
    left = max(head - step, low - 1)
    while right - left > 1:
        middle = (left + right) >> 1
        if lists[middle] > item:
            right = middle
        else:
            left = middle
    return left


@njit(cache=True)
def descend(
    row: Any,
    start: Any,
    end: Any,
    symbol: Any,
    offsets: Any,
    before: Any,
    lists: Any,
    list_offsets: Any,
    root: Any,
    inner: Any,
    child: Any,
    kids: Any,
    kid_symbol: Any,
    kid_node: Any,
    wants: Any,
    onward: Any,
    window: Any,
    ends: Any,
    end_query: Any,
    end_window: Any,
    end_slot: Any,
    any_order: Any,
    recent: Any,
    points: Any,
    lo: Any,
    hi: Any,
    first: Any,
    skip: Any,
    out_query: Any,
    out_rows: Any,
    limits: Any,
    counted: Any,
    part_of: Any,
) -> Any:
    """Answers of the completing items from `first` on, without the first `skip` of that item's.

    Returns (answers written, item to go on from or -1, answers of it already written, query over its limit or -1, its
    partition). For each completing item e the frames of one path are on a stack; frame d looks for the (d+2)-th event.
    """
    symbols = len(root)
    depth_most = out_rows.shape[1]
    item: Any = 0
    room = len(out_query)
    written = 0
    chain, node_at = np.empty(depth_most, np.int64), np.empty(depth_most, np.int64)
    cursor, least = np.empty(depth_most, np.int64), np.empty(depth_most, np.int64)
    kid_at, by_list = np.empty(depth_most, np.int64), np.empty(depth_most, np.bool_)
    floor = np.empty(depth_most, np.int64)
    sorted_chain = np.empty(depth_most, np.int64)
    done = np.full(len(limits) if recent else 0, -1, np.int64)
    entered = np.full(len(window) if recent else 0, -1, np.int64)
    reached = np.empty(len(window) if recent else 0, np.int64)
    present = np.zeros(_NARROW, np.uint64)  # the symbols of the window's items up to each, as bits
    chosen = np.empty(_NARROW, np.int64)  # the window's items that the root wants and that can go on
    widest = np.int64(0)
    for number in range(symbols):
        if root[number] >= 0:
            widest = max(widest, window[root[number]])
    head = list_offsets[:-1] - 1
    first_part = max(np.searchsorted(offsets, first, side="right") - 1, 0)
    if first:
        for number in range(symbols):
            head[number] += np.searchsorted(lists[list_offsets[number] : list_offsets[number + 1]], first)
    for part in range(first_part, len(offsets) - 1):
        low, high = offsets[part], offsets[part + 1]
        back = low  # the first item that any window of e reaches
        for e in range(max(low, first), high):
            head[symbol[e]] += 1
            finish = end[e]
            top = root[symbol[e]]
            if top < 0 or finish < lo or finish >= hi:
                continue
            while end[back] < finish - widest:
                back += 1
            narrow = len(onward) > 0 and before[e] - back < _NARROW
            choices = 0
            if narrow:  # no branch but for ties, and unsigned places: this loop is most of the walk
                bits, base = np.uint64(0), np.uint64(symbol[e]) * np.uint64(symbols)
                for near in range(before[e] - back + 1):
                    place = np.uint64(back + near)
                    own = np.uint64(symbol[place])
                    wanted = onward[base + own]
                    earlier = bits
                    last = before[place]
                    if last != back + near - 1:
                        earlier = present[last - back] if last >= back else np.uint64(0)
                    chosen[np.uint64(choices)] = back + near
                    choices += (wanted & earlier != 0) | (wanted == _EVERY)
                    bits |= _ONE << (own & np.uint64(63))
                    present[np.uint64(near)] = bits
                if choices == 0 and ends[top] == ends[top + 1]:
                    continue
            found = 0  # answers of e so far
            depth = 0
            chain[0] = e
            item, node = e, top
            least_start = start[e]
            entering = True
            while True:
                if entering:  # `item` was bound at `node`: report what ends there, then look for what stands before it
                    entering = False
                    for ending in range(ends[node], ends[node + 1]):
                        query = end_query[ending]
                        if least_start < finish - end_window[ending] or (recent and done[query] == e):
                            continue
                        if recent:
                            done[query] = e
                        found += 1
                        if found <= skip:
                            continue
                        if written == room:
                            return written, e, found - 1, -1, part
                        if part_of[query] != part:
                            part_of[query], counted[query] = part, 0
                        counted[query] += 1
                        if counted[query] > limits[query]:
                            return written, e, found, query, part
                        out_query[written] = query
                        for slot in range(depth_most):
                            out_rows[written, slot] = -1
                        if any_order:
                            for index in range(depth + 1):  # by symbol, as the ending's slots are
                                own = symbol[chain[index]]
                                hole = index
                                while hole > 0 and symbol[sorted_chain[hole - 1]] > own:
                                    sorted_chain[hole] = sorted_chain[hole - 1]
                                    hole -= 1
                                sorted_chain[hole] = chain[index]
                            for index in range(depth + 1):
                                out_rows[written, end_slot[ending, index]] = row[sorted_chain[index]]
                        else:
                            for index in range(depth + 1):
                                out_rows[written, end_slot[ending, index]] = row[chain[index]]
                        written += 1
                    descends = node < inner
                    if descends and recent and not points:
                        descends = entered[node] != e or before[item] > reached[node]
                        if descends:
                            entered[node], reached[node] = e, before[item]
                    if descends:
                        node_at[depth], least[depth] = node, least_start
                        cursor[depth] = before[item]
                        floor[depth] = finish - window[node]
                        count = kids[node + 1] - kids[node]
                        by_list[depth] = len(child) == 0 or before[item] - back > 4 * count + 8
                        if depth == 0 and narrow:
                            by_list[depth] = False
                            cursor[depth] = choices - 1
                        elif by_list[depth]:
                            kid_at[depth] = kids[node]
                            own = kid_symbol[kids[node]]
                            cursor[depth] = _latest(lists, list_offsets[own], head[own], before[item])
                        depth += 1
                if depth == 0:
                    break
                level = depth - 1
                node = node_at[level]
                after = np.int64(-1)
                if by_list[level]:
                    kid = kid_at[level]
                    index = cursor[level]
                    own = kid_symbol[kid]
                    item = np.int64(lists[index]) if index >= list_offsets[own] else np.int64(-1)
                    if item < back or end[item] < floor[level]:
                        kid += 1
                        if kid == kids[node + 1]:
                            depth -= 1
                            continue
                        kid_at[level] = kid
                        own = kid_symbol[kid]
                        cursor[level] = _latest(lists, list_offsets[own], head[own], before[chain[level]])
                        continue
                    cursor[level] = index - 1
                    after = np.int64(kid_node[kid])
                elif level == 0 and narrow:
                    item = chosen[cursor[0]] if cursor[0] >= 0 else np.int64(-1)
                    if item < back or end[item] < floor[0]:
                        depth -= 1
                        continue
                    cursor[0] -= 1
                    after = np.int64(child[node * symbols + symbol[item]])
                else:
                    item = cursor[level]
                    own_wants = wants[node]
                    while item >= back:  # the window's events one by one, until one is wanted and can go on
                        if (own_wants >> np.uint64(symbol[item] & 63)) & _ONE:
                            after = np.int64(child[node * symbols + symbol[item]])
                            if after >= 0:
                                if after >= inner or not narrow:
                                    break
                                last = before[item]
                                if wants[after] & (present[last - back] if last >= back else np.uint64(0)):
                                    break
                                if wants[after] == _EVERY:
                                    break
                        item -= 1
                    if item < back or end[item] < floor[level]:
                        depth -= 1
                        continue
                    cursor[level] = item - 1
                if start[item] < finish - window[after]:
                    continue
                if recent and points:
                    if entered[after] == e:  # a later event of the same symbol had every chance that this one has
                        continue
                    entered[after] = e
                node = after
                chain[depth] = item
                least_start = min(least[level], start[item])
                entering = True
            skip = 0
    return written, -1, 0, -1, -1
