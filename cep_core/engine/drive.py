"""Where searches begin: the last events of possible answers, in event order.

Enters: the plans with their first slots, and the candidates. Leaves: the arrays drive_* (tables.py).
Always holds: an answer's greatest event by event order is the one place where it is found. A branch without an event of
its own (timers and groups) begins at every timer that lies within a window of a group's event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cep_core.language.algebra import Element, TimerAt


def drive_of(
    firsts: Sequence[tuple[int, int, Any]],
    lists: Sequence[int],
    group_lists: Sequence[Sequence[int]],
    places: Mapping[int, np.ndarray],
    store: Mapping[str, np.ndarray],
    window_us: int,
) -> dict[str, np.ndarray]:
    """firsts: per plan its branch, first slot and element; lists: per plan the list of that slot, -1 for a timer."""
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    for plan, (branch, _, element) in enumerate(firsts):
        if isinstance(element, Element):
            own = places[int(lists[plan])].astype(np.int64)
            found.append(
                (own, np.full(len(own), plan, np.int64), store["store_part"][own], np.zeros(len(own), np.int64))
            )
            continue
        near = np.unique(np.concatenate([np.empty(0, np.int32), *(places[number] for number in group_lists[branch])]))
        part, moment = _timers(element, near, store, window_us)
        nowhere = np.full(len(part), -1, np.int64)
        found.append((nowhere, np.full(len(part), plan, np.int64), part, moment))
    if len(found) == 1:
        place, plan_of, parts, moments = found[0]
    else:
        place, plan_of, parts, moments = (
            np.concatenate([column, *(own[number] for own in found)])
            for number, column in enumerate(
                (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
            )
        )
        order = np.argsort(place, kind="stable")
        place, plan_of, parts, moments = place[order], plan_of[order], parts[order], moments[order]
    return {"drive_place": place, "drive_plan": plan_of, "drive_part": parts.astype(np.int64), "drive_moment": moments}


def _timers(
    element: Any, near: np.ndarray, store: Mapping[str, np.ndarray], window_us: int
) -> tuple[np.ndarray, np.ndarray]:
    """(partition, moment) of each timer within a window of one of the places."""
    parts: list[int] = []
    moments: list[int] = []
    part_of = store["store_part"][near]
    for part in np.unique(part_of).tolist():
        own = near[part_of == part]
        low, high = store["store_start"][own] - window_us, store["store_end"][own] + window_us
        order = np.argsort(low)
        low, high = low[order], np.maximum.accumulate(high[order])
        gaps = np.flatnonzero(low[1:] > high[:-1]) + 1
        for begin, end in zip(low[np.r_[0, gaps]].tolist(), high[np.r_[gaps - 1, len(low) - 1]].tolist(), strict=True):
            if isinstance(element, TimerAt):
                at = [element.moment_us] if begin <= element.moment_us <= end else []
            else:
                period = element.period_us
                at = list(range(-(-begin // period) * period, end + 1, period))
            parts.extend([part] * len(at))
            moments.extend(at)
    return np.asarray(parts, np.int32), np.asarray(moments, np.int64)
