"""What the search reads and writes, as arrays: the one boundary between plans and kernels.

Enters: nothing. Leaves: named tuples of arrays with one dtype and one layout each, so that one compiled kernel serves
every search. `Shape` and `Plans` come from task.py, `Lists` from lists.py, `Frame` and `Out` from matcher.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_WINDOW = 1 << 62

# Shape.kind: what binds a slot
EVENT, AT, EVERY, AFTER = range(4)
# Shape.relation[b, s, t]: how slot s stands to slot t
ANY_ORDER, PRECEDES, FOLLOWS, EARLIER, LATER = range(5)
# columns of Shape.group and Shape.negation; pairs are ranges: PREVIOUS and FOLLOWING of `flat`, DUE of `due`
LIST, INDEX, OUTER, PREVIOUS, FOLLOWING, DUE, LOW, HIGH, BEFORE_GROUP, AFTER_GROUP = 0, 1, 2, 3, 5, 7, 9, 10, 11, 12
COLUMNS = 13
# how the search is done
ALL, FIRST_RECENT, FIRST_EARLIEST, MERGED = range(4)
NOT_CONSUMED, USED, OLDER = range(3)
# Frame.state
(
    AT_ITEM, ITEM, DEPTH, RESUMED, PART, COUNTED, ORDINAL, STAMP, EMITTED, WRITTEN, WRITTEN_MEMBERS, WRITTEN_TIMERS,
    OVER_PART,
) = range(13)  # fmt: skip
STATES = 13
# what a search ends with
DONE, FULL, GROW, OVER_LIMIT, MISSED = range(5)


class Store(NamedTuple):
    """The events of one key in partition and event order, m of them: row int32, start, end int64, before int32 (the
    last place that precedes each), part int32 [m]; offsets int64[parts+1]."""

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    before: np.ndarray
    part: np.ndarray
    offsets: np.ndarray


class Lists(NamedTuple):
    """The candidates of each element. place int32[]: ascending in each list; first int64[lists+1].

    An index holds a list's places by the value of an attribute: held int32[], by code and then ascending; code_first
    int64[]: where the places of each code begin, from base[index] on; looked int64[indexes]: address of int64 by row:
    the code to look for, given the event that is bound already; -1 for none."""

    place: np.ndarray
    first: np.ndarray
    held: np.ndarray
    code_first: np.ndarray
    base: np.ndarray
    looked: np.ndarray


class Shape(NamedTuple):
    """The branches of a query, b of them, with at most s slots.

    slots, alternative, rank, grouping int32[b] (rank settles between answers with the same members; branches of one
    grouping have the same groups); kind int8, list int32,
    amount int64 (moment, period or delay of a timer), position int32 [b, s]; relation int8[b, s, s].
    spans, afters, groups, negations, late, whole, emits int32[b, 2]: ranges of the tables below, of `due` for late
    (conditions that wait for groups) and whole (all conditions of the slots).
    span int64[k, 3]: range of `flat` and the most microseconds. after int64[k, 3]: slot, range of `flat`.
    group, negation int64[k, COLUMNS]. emit int32[k, 3]: 0 slot or 1 group, its number, the element.
    due int32[k, 2]: instructions of a condition. flat int32[]: lists of slots."""

    slots: np.ndarray
    alternative: np.ndarray
    rank: np.ndarray
    grouping: np.ndarray
    kind: np.ndarray
    list: np.ndarray
    amount: np.ndarray
    position: np.ndarray
    relation: np.ndarray
    spans: np.ndarray
    afters: np.ndarray
    groups: np.ndarray
    negations: np.ndarray
    late: np.ndarray
    whole: np.ndarray
    emits: np.ndarray
    span: np.ndarray
    after: np.ndarray
    group: np.ndarray
    negation: np.ndarray
    emit: np.ndarray
    due: np.ndarray
    flat: np.ndarray


class Plans(NamedTuple):
    """In which order slots are bound: a plan for each branch and slot that its last event may stand in, p of them, d
    deep. branch, depth int32[p]; order, through, outer int32[p, d]: the slot, the index to look in or -1, and the bound
    slot whose value is looked for; due int32[p, d+1, 2]: conditions to test once it is bound; the last when all are."""

    branch: np.ndarray
    depth: np.ndarray
    order: np.ndarray
    through: np.ndarray
    outer: np.ndarray
    due: np.ndarray


class Drive(NamedTuple):
    """Where searches begin: the place of the last event (-1: a timer at `moment` in partition `part`) and the plan,
    ascending by place."""

    place: np.ndarray
    plan: np.ndarray
    part: np.ndarray
    moment: np.ndarray


class Options(NamedTuple):
    mode: int
    consume: int
    ordered: bool
    window: int
    postponed: int  # 0 no, 1 from the start, 2 from the end
    low: int  # detection times
    high: int
    limit: int
    restarts: bool  # an event whose answers do not fit is begun again, instead of being gone on with
    detected: int  # address of int64 by row: when members that are matches were detected; 0: none are


class Frame(NamedTuple):
    """What a search remembers. cursor, stop int64[d]; back, head int64[lists]; part_of, part_low, part_high
    int64[lists]; used int64[m or 0]: when each event was consumed, 0: never; older int64[parts]: the first place that
    is not; state int64[STATES]; best int64[s+3]: branch, -1: none; start, end; slots' places; span int64[4]: start and
    end of the answer, and of a merged match; mark int64[elements or 0, m]: the last merged match that has an event."""

    cursor: np.ndarray
    stop: np.ndarray
    back: np.ndarray
    head: np.ndarray
    part_of: np.ndarray
    part_low: np.ndarray
    part_high: np.ndarray
    used: np.ndarray
    older: np.ndarray
    state: np.ndarray
    best: np.ndarray
    span: np.ndarray
    mark: np.ndarray


class Out(NamedTuple):
    """Answers as they are found. offsets int64[room+1]; branch int32, groupings int64 (a bit for each grouping among
    the answers of the match), detection int64 [room]; element, member int32 [members]: member is a row, or -1 - i for
    the i-th of `moment` int64[members]."""

    offsets: np.ndarray
    branch: np.ndarray
    groupings: np.ndarray
    detection: np.ndarray
    element: np.ndarray
    member: np.ndarray
    moment: np.ndarray
