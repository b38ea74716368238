"""How many free candidates of a window each value of its equality has in reach (GenTrie 3: aggregation bins).

Enters: arrays of tables.py; a list's range in reach of the last event, as search.py walks it forward. Leaves: for each
index that a k-size window is looked up in, how many events each of its values has in that range, and how many of its
values have enough for the window.
Always holds: a count is never less than the candidates that the last event leaves, so where no value has enough, there
is no answer, and nothing has to be bound to know it. What a match consumes leaves its bins before the next last event:
until then it is free for the other answers of the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cep_core.engine.leaf import first_from
from cep_core.engine.tables import (
    O_CONSUME,
    ORDINAL,
    PENDING,
    USED,
    bound_row,
    frame_back,
    frame_bins,
    frame_full,
    frame_head,
    frame_pending,
    frame_state,
    frame_used,
    lists_base,
    lists_list,
    lists_looked,
    lists_need,
    lists_own,
    lists_place,
    options,
    store_row,
)
from cep_core.engine.text import load64


@njit(cache=True)
def consume(ctx: Any, place: Any) -> Any:
    """Marks an event as used by a match of this last event."""
    if frame_used(ctx)[place] == 0 and len(frame_bins(ctx)):
        frame_pending(ctx)[frame_state(ctx)[PENDING]] = place
        frame_state(ctx)[PENDING] += 1
    frame_used(ctx)[place] = frame_state(ctx)[ORDINAL]


@njit(cache=True)
def take_consumed(ctx: Any) -> Any:
    """Takes what the matches of the last event have consumed out of the bins."""
    for number in range(frame_state(ctx)[PENDING]):
        place = frame_pending(ctx)[number]
        for index in range(len(lists_need(ctx))):
            if lists_need(ctx)[index]:
                own = lists_list(ctx)[index]
                high = frame_head(ctx)[own]
                at = first_from(lists_place(ctx), frame_back(ctx)[own], high, place)
                if at < high and lists_place(ctx)[at] == place:
                    _count(ctx, index, place, np.int64(-1))
    frame_state(ctx)[PENDING] = 0


@njit(cache=True)
def count_bins(ctx: Any, own: Any, place: Any, by: Any) -> Any:
    """A place of list `own` comes into reach (by 1) or leaves it (by -1)."""
    if options(ctx)[O_CONSUME] == USED and frame_used(ctx)[place]:
        return
    for index in range(len(lists_need(ctx))):
        if lists_need(ctx)[index] and lists_list(ctx)[index] == own:
            _count(ctx, index, place, by)


@njit(cache=True)
def _count(ctx: Any, index: Any, place: Any, by: Any) -> Any:
    code = np.int64(load64(lists_own(ctx)[index] + 8 * store_row(ctx)[place]))
    if code < 0:
        return
    at, need = lists_base(ctx)[index] + code, lists_need(ctx)[index]
    before = frame_bins(ctx)[at]
    frame_bins(ctx)[at] = before + by
    frame_full(ctx)[index] += (before + by >= need) - (before >= need)


@njit(cache=True)
def is_short(ctx: Any, index: Any, outer: Any, wanted: Any) -> Any:
    """Whether the bin of the value that slot `outer` has lacks candidates."""
    if lists_need(ctx)[index] == 0:
        return False
    code = np.int64(load64(lists_looked(ctx)[index] + 8 * bound_row(ctx)[outer]))
    return code < 0 or frame_bins(ctx)[lists_base(ctx)[index] + code] < wanted
