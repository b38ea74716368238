"""Answers that wait for SELECT and CONSUME, because their completing member is not the last event of the search.

Enters: chunks of answers (matcher.py). Leaves: their rows, group by group: those of a partition with the same
completing member, partitions and completing members in order; and a row's answer as a value.
Always holds: an answer is held as a few numbers (12 bytes, and 20 a member); as a value only while its group is looked
at. How many there are in a partition is bounded by the query's limit (matcher.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cep_core.engine.matcher import Chunk
from cep_core.engine.select import Answer, Key
from cep_core.engine.task import Task

if TYPE_CHECKING:
    from cep_core.engine.evaluate import Keyed


class Held:
    """n answers. place int64[k] of each member, for a timer -1; moment int64[k] of a timer."""

    def __init__(self, chunks: Sequence[Chunk], task: Task, keyed: Keyed) -> None:
        self._task, self._keyed = task, keyed
        sizes = [np.diff(chunk.offsets) for chunk in chunks]
        self._offsets = np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)
        self._branch = _joined([chunk.branch for chunk in chunks], np.int32)
        self._element = _joined([chunk.element for chunk in chunks], np.int32)
        members = _joined([chunk.member for chunk in chunks], np.int64)
        self._place = np.where(members >= 0, keyed.place_of[np.maximum(members, 0)] if len(members) else 0, -1)
        self._moment = _joined([_moments(chunk) for chunk in chunks], np.int64)

    def groups(self) -> Iterator[tuple[int, list[int]]]:
        """(partition, rows of the answers) of each completing member."""
        count = len(self._branch)
        if not count:
            return
        store, first = self._keyed.store, self._offsets[:-1]
        timer = self._place < 0
        safe = np.maximum(self._place, 0)
        owner = np.repeat(np.arange(count), np.diff(self._offsets))
        key = [
            np.where(timer, self._moment, store.end[safe]), np.where(timer, self._moment, store.start[safe]),
            timer.astype(np.int64), np.where(timer, self._element, self._place),
        ]  # fmt: skip
        order = np.lexsort((*key[::-1], owner))
        last = order[np.append(first[1:], len(order)) - 1]  # each answer's greatest member
        part = np.maximum.reduceat(np.where(timer, -1, self._task.ctx["store_part"][safe]), first)
        columns = [part, *(column[last] for column in key)]
        rows = np.lexsort(columns[::-1])
        changes = np.any([column[rows][1:] != column[rows][:-1] for column in columns], axis=0)
        for group in np.split(rows, np.flatnonzero(changes) + 1):
            yield int(part[group[0]]), group.tolist()

    def answer(self, row: int) -> Answer:
        number = int(self._branch[row])
        branch = self._task.branches[number]
        events: dict[int, tuple[Any, ...]] = {place.element.position: () for place in branch.groups}
        for at in range(int(self._offsets[row]), int(self._offsets[row + 1])):
            position, place = int(self._element[at]) + 1, int(self._place[at])
            event = place if place >= 0 else (int(self._moment[at]), position)
            events[position] = (*events.get(position, ()), event)
        grouped = [place.element.position for place in branch.groups]
        slots = sorted({slot.element.position for slot in branch.slots})
        keys = [self._key(event) for own in events.values() for event in own]
        return Answer(
            number, events, tuple(event for position in slots for event in events[position]),
            tuple(events[position] for position in grouped),
            min(key[1] for key in keys), max(key[0] for key in keys), max(keys),
        )  # fmt: skip

    def _key(self, event: Any) -> Key:
        if isinstance(event, int):
            return int(self._keyed.store.end[event]), int(self._keyed.store.start[event]), 0, event
        return event[0], event[0], 1, event[1]


def _joined(arrays: Sequence[np.ndarray], kind: Any) -> np.ndarray:
    return np.concatenate([np.empty(0, kind), *arrays]).astype(kind, copy=False)


def _moments(chunk: Chunk) -> np.ndarray:
    """int64[k]: the moment of each member that is a timer, else 0."""
    if not len(chunk.moment):
        return np.zeros(len(chunk.member), np.int64)
    return np.where(chunk.member < 0, chunk.moment[np.where(chunk.member < 0, -1 - chunk.member, 0)], 0)
