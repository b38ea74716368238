"""The general matcher: any query of the contract over one store, in chunks.

Enters: a `Task`, the range of detection times, what earlier runs consumed. Leaves: `Chunk`s of matches; what this run
consumed.
Always holds: memory is bounded by the chunk, whatever the number of answers; a query with more answers than its limit
stops with an error. The search is one kernel for all queries; this module feeds it and answers its questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cep_core.engine import tables as t
from cep_core.engine.machine import Bound, Members, new_stack
from cep_core.engine.program import new_memo
from cep_core.engine.search import search
from cep_core.engine.task import Task
from cep_core.errors import LimitError

ROOM, MOST_ROOM = 1 << 10, 1 << 18
_FAR = 1 << 62


@dataclass(frozen=True)
class Chunk:
    """Matches as the search wrote them: offsets int64[n+1]; branch int32, groupings, detection int64 [n]; element,
    member int32 [k]: a row, or -1 - i for the i-th of moment int64."""

    offsets: np.ndarray
    branch: np.ndarray
    groupings: np.ndarray
    detection: np.ndarray
    element: np.ndarray
    member: np.ndarray
    moment: np.ndarray


@dataclass
class Taken:
    """What is consumed. used int64[m]: 0 where free, else when (1: before this run); older int64[parts]: first free
    place."""

    used: np.ndarray
    older: np.ndarray


def chunks(
    task: Task, low_us: int | None, high_us: int | None, limit: int, taken: Taken, detected: np.ndarray | None,
    name_of: Callable[[int], str],
) -> Iterator[Chunk]:  # fmt: skip
    """All matches with low_us <= detection < high_us; of a task with `post`, all answers. detected int64[n]: when rows
    that are matches were detected. name_of: a partition's name, for errors."""
    query = task.checked.query
    consume = {"none": t.NOT_CONSUMED, "used": t.USED, "older": t.OLDER}[query.consume] if not task.post else 0
    postponed = 0 if not task.checked.postponed else 1 if query.select == "all" else 2
    options = t.Options(
        task.mode, consume, query.ties == "ordered", t.NO_WINDOW if query.within_us is None else query.within_us,
        postponed, -_FAR if low_us is None or task.post else low_us, _FAR if high_us is None or task.post else high_us,
        limit, task.mode != t.ALL or bool(task.vocabulary.externals), 0 if detected is None else detected.ctypes.data,
    )  # fmt: skip
    drive = _drive(task, options)
    slots, deep = task.shape.kind.shape[1], task.plans.order.shape[1]
    bound = Bound(*(np.zeros(slots + 1, np.int64) for _ in range(4)))
    members, spare, best = (
        Members(np.zeros((task.groups, task.longest), np.int32), *(np.zeros(task.groups, np.int64) for _ in range(3)))
        for _ in range(3)
    )
    elements = int(task.shape.emit[:, 2].max(initial=0)) + 1
    mark = np.zeros((elements, len(task.store.row)) if task.mode == t.MERGED else (0, 0), np.int64)
    lists = len(task.lists.first) - 1
    frame = t.Frame(
        np.zeros(deep, np.int64), np.zeros(deep, np.int64), task.lists.first[:-1].copy(), task.lists.first[:-1].copy(),
        np.full(lists, -1, np.int64), np.zeros(lists, np.int64), np.zeros(lists, np.int64), taken.used, taken.older,
        np.zeros(t.STATES, np.int64), np.full(slots + 3, -1, np.int64), np.zeros(4, np.int64), mark,
    )  # fmt: skip
    frame.state[t.PART], frame.state[t.ORDINAL] = -1, 1
    stack, memo, program = new_stack(task.loops), new_memo(), task.program
    room = ROOM
    out = _out(room, task)
    while True:
        status = search(
            task.store, task.lists, task.shape, task.plans, drive, program, memo, stack, frame, bound, members, spare,
            best, out, options,
        )  # fmt: skip
        if status == t.MISSED:
            memo, rank = task.vocabulary.answer(memo)
            program = program._replace(rank=rank)
            continue
        found = int(frame.state[t.WRITTEN])
        if found:
            yield _chunk(out, found, frame.state)
            frame.state[[t.WRITTEN, t.WRITTEN_MEMBERS, t.WRITTEN_TIMERS]] = 0
        if status == t.DONE:
            return
        if status == t.OVER_LIMIT:
            partition = name_of(int(frame.state[t.OVER_PART]))
            raise LimitError(
                f"query {query.id}: more than {limit} answers in partition {partition or '(all)'}; narrow its "
                f"conditions or its WITHIN, use SELECT recent, or raise its limit on answers per partition"
            )
        if status == t.GROW or room < MOST_ROOM:
            room *= 4
        out = _out(room, task)


def _drive(task: Task, options: t.Options) -> t.Drive:
    """Only last events whose answers can be detected in the range."""
    drive = task.drive
    if not len(drive.place):
        return drive
    if options.low <= -_FAR and options.high >= _FAR:
        return drive
    ends = np.where(drive.place >= 0, task.store.end[np.maximum(drive.place, 0)], drive.moment)
    keep = np.ones(len(ends), bool)
    if options.high < _FAR:
        keep &= ends < options.high  # an answer is never detected before its last event ends
    timers = bool((task.shape.kind != t.EVENT).any())
    trailing = bool((task.shape.group[:, t.FOLLOWING] == task.shape.group[:, t.FOLLOWING + 1]).any())
    if options.low > -_FAR and not options.detected and not timers and not trailing:
        keep &= ends + (options.window if options.postponed else 0) >= options.low
    return t.Drive(*(column[keep] for column in drive))


def _out(room: int, task: Task) -> t.Out:
    wide = room * (task.shape.kind.shape[1] + 4 * task.groups) + task.groups * task.longest
    return t.Out(
        np.zeros(room + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64),
        np.empty(wide, np.int32),
        np.empty(wide, np.int32), np.empty(wide if (task.shape.kind != t.EVENT).any() else 0, np.int64),
    )  # fmt: skip


def _chunk(out: t.Out, found: int, state: np.ndarray) -> Chunk:
    members, timers = int(state[t.WRITTEN_MEMBERS]), int(state[t.WRITTEN_TIMERS])
    return Chunk(
        out.offsets[: found + 1].copy(), out.branch[:found].copy(), out.groupings[:found].copy(),
        out.detection[:found].copy(), out.element[:members].copy(),
        out.member[:members].copy(), out.moment[:timers].copy(),
    )  # fmt: skip
