"""How far back in time a match can reach, and which queries a query stands on.

Enters: checked queries. Leaves: microseconds and sets of ids.
Always holds: a match detected in [start, end) is made of events, and avoids events, whose end_ts lies in
[start - lookback, end). Nothing after the detection is ever needed, so no call needs events from `end` on: detection
that is postponed waits for the end of its own window, and the wait is part of the lookback.

Why the figures hold, for a query with window W:
- every member, and every event that a negation or a group looks at, starts at end_ts - W or later (contract, Matches);
- detection_ts <= end_ts + delay, where the delay is W for postponed detection and otherwise the longest delay of the
  queries that it refers to (a match is never detected before a member that is itself a match);
- so whatever it looks at starts at detection_ts - delay - W or later; a member that is a match has its own lookback
  before its own detection, which is not before its end. Hence the sum along references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cep_core.language.checked import CheckedQuery

Queries = Mapping[str, CheckedQuery]


def closure(ids: Iterable[str], queries: Queries) -> tuple[str, ...]:
    """The ids and all that they refer to, directly or not, sorted."""
    found: set[str] = set()
    waiting = list(ids)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(queries[name].refers_to)
    return tuple(sorted(found))


def window_us(checked: CheckedQuery) -> int:
    """WITHIN; 0 for a single-event query without one: nothing but the event itself is looked at."""
    return checked.query.within_us or 0


def delay_us(name: str, queries: Queries) -> int:
    """The most that detection_ts can lie behind end_ts."""
    checked = queries[name]
    own = window_us(checked) if checked.postponed else 0
    return max([own, *(delay_us(referred, queries) for referred in checked.refers_to)])


def lookback_us(name: str, queries: Queries) -> int:
    """How far before its detection the events of a match of this query may end."""
    checked = queries[name]
    before = max((lookback_us(referred, queries) for referred in checked.refers_to), default=0)
    return delay_us(name, queries) + window_us(checked) + before


def consumes(name: str, queries: Queries) -> bool:
    """Whether its matches depend on earlier matches: its own CONSUME, or that of a query that it refers to."""
    return any(queries[member].query.consume != "none" for member in closure([name], queries))


def settle_us(name: str, queries: Queries) -> int:
    """How long before a run's start the state must be known for this query: 0 for its own CONSUME; where it refers to a
    query that consumes, that query's matches must be known as far back as this query may bind them."""
    return lookback_us(name, queries) if queries[name].refers_to else 0
