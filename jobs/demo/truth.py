"""What was planted against what was found.

Enters: planted matches, and found ones with their members' classes and ids. Leaves: one `Verdict` per query.
Always holds: a member that is itself a match of another query is replaced by that match's members, so both sides name
events of the raw tables (and timers) only, in pattern order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.demo.world import Planted


@dataclass(frozen=True)
class Found:
    """One match: its members are pairs of class and event id, in pattern order."""

    query_id: str
    match_id: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Verdict:
    """found: rows of the query; planted: how many must be there; missing: those that are not; others: matches that
    nobody planted; twice: rows that repeat a match."""

    query_id: str
    found: int
    planted: int
    missing: tuple[Planted, ...]
    others: tuple[Planted, ...]
    twice: int

    @property
    def good(self) -> bool:
        return not self.missing and not self.twice

    def told(self) -> str:
        """
        >>> Verdict("q", 5, 5, (), (), 0).told()
        'all 5 planted ones found, and no others'
        """
        if self.missing:
            first = ", ".join(self.missing[0].members)
            return f"{len(self.missing)} OF {self.planted} PLANTED ONES ARE MISSING, such as ({first})"
        text = f"all {self.planted} planted ones found"
        text += f", and {len(self.others)} others" if self.others else ", and no others"
        return text + (f"; {self.twice} ROWS REPEAT A MATCH" if self.twice else "")


def compare(planted: Iterable[Planted], found: Iterable[Found]) -> dict[str, Verdict]:
    """A verdict for every query that has planted matches, sorted by its id."""
    rows = tuple(found)
    by_id = {match.match_id: match for match in rows}
    wanted: dict[str, set[Planted]] = {}
    for match in planted:
        wanted.setdefault(match.query_id, set()).add(match)
    held: dict[str, list[Planted]] = {query_id: [] for query_id in wanted}
    for row in rows:
        if row.query_id in held:
            held[row.query_id].append(Planted(row.query_id, tuple(_events(row, by_id, frozenset(wanted)))))
    return {query_id: _verdict(query_id, wanted[query_id], held[query_id]) for query_id in sorted(wanted)}


def _verdict(query_id: str, wanted: set[Planted], held: list[Planted]) -> Verdict:
    distinct = set(held)
    return Verdict(
        query_id=query_id,
        found=len(held),
        planted=len(wanted),
        missing=tuple(sorted(wanted - distinct)),
        others=tuple(sorted(distinct - wanted)),
        twice=len(held) - len(distinct),
    )


def _events(match: Found, by_id: Mapping[str, Found], queries: frozenset[str]) -> list[str]:
    events: list[str] = []
    for event_class, event_id in match.members:
        inner = by_id.get(event_id) if event_class in queries else None
        events += [event_id] if inner is None else _events(inner, by_id, queries)
    return events
