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
from cep_core.engine.machine import DEPTH
from cep_core.engine.search import search
from cep_core.engine.task import Task
from cep_core.engine.vocabulary import new_memo
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
    window = t.NO_WINDOW if query.within_us is None else query.within_us
    low = -_FAR if low_us is None or task.post else low_us
    high = _FAR if high_us is None or task.post else high_us
    restarts = task.mode != t.ALL or task.vocabulary.asks
    ctx = task.ctx
    _narrow(task, low, high, window if postponed else 0, detected is not None)
    _begin(task, taken)
    ordered = query.ties == "ordered"
    address = 0 if detected is None else detected.ctypes.data
    ctx.put(
        options=np.asarray(
            [task.mode, consume, ordered, window, postponed, low, high, limit, restarts, address], np.int64
        )
    )
    state = ctx["frame_state"]
    room = ROOM
    _make_room(task, room)
    while True:
        status = search(ctx.address)
        if status == t.MISSED:
            assert restarts, "asked for what was not foreseen"
            task.vocabulary.answer(ctx)
            continue
        if state[t.WRITTEN]:
            yield _chunk(ctx)
            state[[t.WRITTEN, t.WRITTEN_MEMBERS, t.WRITTEN_TIMERS]] = 0
        if status == t.DONE:
            return
        if status == t.OVER_LIMIT:
            partition = name_of(int(state[t.OVER_PART]))
            raise LimitError(
                f"query {query.id}: more than {limit} answers in partition {partition or '(all)'}; narrow its "
                f"conditions or its WITHIN, use SELECT recent, or raise its limit on answers per partition"
            )
        if status == t.GROW or room < MOST_ROOM:
            room *= 4
            _make_room(task, room)


def _narrow(task: Task, low: int, high: int, postponed_us: int, detected: bool) -> None:
    """Leaves only last events whose answers can be detected in the range."""
    ctx = task.ctx
    place, moment = ctx["drive_place"], ctx["drive_moment"]
    if not len(place) or (low <= -_FAR and high >= _FAR):
        return
    ends = np.where(place >= 0, ctx["store_end"][np.maximum(place, 0)], moment)
    keep = ends < high  # an answer is never detected before its last event ends
    timers = bool((ctx["shape_kind"] != t.EVENT).any())
    group = ctx["shape_group"]
    trailing = bool((group[:, t.FOLLOWING] == group[:, t.FOLLOWING + 1]).any())
    if not detected and not timers and not trailing:
        keep &= ends + postponed_us >= low
    ctx.put(**{name: ctx[name][keep] for name in ("drive_place", "drive_plan", "drive_part", "drive_moment")})


def _begin(task: Task, taken: Taken) -> None:
    """The arrays of a search that has not begun."""
    ctx = task.ctx
    slots, deep = ctx["shape_kind"].shape[1], ctx["plans_order"].shape[1]
    first = ctx["lists_first"][:-1]
    elements = int(ctx["shape_emit"][:, 2].max(initial=0)) + 1
    height = DEPTH + len(ctx["program_code"])  # no condition pushes more than it has instructions
    state = np.zeros(t.STATES, np.int64)
    state[t.PART], state[t.ORDINAL] = -1, 1
    ctx.put(
        **{f"bound_{name}": np.zeros(slots + 1, np.int64) for name in ("row", "place", "start", "end")},
        **{f"members_{name}": np.zeros((3, task.groups), np.int64) for name in ("size", "start", "end")},
        members_place=np.zeros((3, task.groups, task.longest), np.int32),
        stack_ints=np.zeros(height, np.int64),
        stack_floats=np.zeros(height),
        stack_known=np.zeros(height, np.int8),
        stack_loops=np.zeros(task.loops + 1, np.int64),
        frame_cursor=np.zeros(deep, np.int64),
        frame_stop=np.zeros(deep, np.int64),
        frame_back=first.copy(),
        frame_head=first.copy(),
        frame_part_of=np.full(len(first), -1, np.int64),
        frame_part_low=np.zeros(len(first), np.int64),
        frame_part_high=np.zeros(len(first), np.int64),
        frame_bins=np.zeros(len(ctx["lists_code_first"]) if ctx["lists_need"].any() else 0, np.int64),
        frame_full=np.zeros(len(ctx["lists_need"]), np.int64),
        frame_pending=np.empty(len(ctx["lists_place"]) if ctx["lists_need"].any() else 0, np.int64),
        frame_used=taken.used,
        frame_older=taken.older,
        frame_state=state,
        frame_best=np.full(slots + 3, -1, np.int64),
        frame_span=np.zeros(4, np.int64),
        frame_mark=np.zeros((elements, len(ctx["store_row"])) if task.mode == t.MERGED else (0, 0), np.int64),
        **(new_memo() if task.vocabulary.asks else new_memo(1, 1)),
    )


def _make_room(task: Task, room: int) -> None:
    kind = task.ctx["shape_kind"]
    wide = room * (kind.shape[1] + 4 * task.groups) + task.groups * task.longest
    task.ctx.put(
        out_offsets=np.zeros(room + 1, np.int64),
        out_branch=np.empty(room, np.int32),
        out_groupings=np.empty(room, np.int64),
        out_detection=np.empty(room, np.int64),
        out_element=np.empty(wide, np.int32),
        out_member=np.empty(wide, np.int32),
        out_moment=np.empty(wide if (kind != t.EVENT).any() else 0, np.int64),
    )


def _chunk(ctx: t.Context) -> Chunk:
    state = ctx["frame_state"]
    found, members, timers = (int(state[at]) for at in (t.WRITTEN, t.WRITTEN_MEMBERS, t.WRITTEN_TIMERS))
    sizes = {"offsets": found + 1, "branch": found, "groupings": found, "detection": found, "element": members}
    sizes |= {"member": members, "moment": timers}
    return Chunk(**{name: ctx[f"out_{name}"][:size].copy() for name, size in sizes.items()})
