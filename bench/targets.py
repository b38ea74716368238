"""The engine's targets, each a ratio of figures from one run.

Enters: the results of a run. Leaves: for each target whose cases were run, what was measured and whether that is
enough. A case that took too long has no figure, and its targets are missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

OURS = ("hindsight", "alone", "chunks", "prepared", "cold")


@dataclass(frozen=True)
class Figures:
    """(case, engine) -> result."""

    results: Mapping[tuple[str, str], dict[str, Any]]

    def of(self, case: str, engine: str = "hindsight", figure: str = "seconds") -> float:
        found = self.results[case, engine].get(figure)
        if found is None:
            raise NotMeasured(f"{case}: {engine} did not finish")
        return float(found)

    def best_peer(self, case: str, named: str = "") -> float | None:
        """The fastest peer, or the fastest whose name begins so."""
        own = [
            r["seconds"]
            for (name, engine), r in self.results.items()
            if name == case and engine not in OURS and engine.startswith(named)
        ]
        return min((seconds for seconds in own if seconds is not None), default=None)

    def ratio(self, case: str, named: str = "") -> float:
        """How many times faster than the best peer."""
        best = self.best_peer(case, named)
        if best is None:
            raise NotMeasured(f"{case}: no peer finished")
        return best / self.of(case)

    def grows(self, case: str, base: str, figure: str = "seconds", engine: str = "hindsight") -> float:
        return self.of(case, engine, figure) / self.of(base, engine, figure)

    def per_answer(self, case: str) -> float:
        return self.of(case) / self.of(case, figure="answers")


class NotMeasured(Exception):
    """A case did not finish."""


@dataclass(frozen=True)
class Target:
    says: str
    cases: tuple[str, ...]
    measured: Callable[[Figures], float]
    bound: float
    at_least: bool = False

    def judged(self, figures: Figures) -> dict[str, Any]:
        try:
            value = self.measured(figures)
        except NotMeasured as reason:
            return {"target": self.says, "bound": self.bound, "measured": None, "reached": False, "reason": str(reason)}
        reached = value >= self.bound if self.at_least else value <= self.bound
        return {"target": self.says, "bound": self.bound, "measured": round(value, 3), "reached": reached}


def judge(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    figures = Figures({(r["case"], r["engine"]): r for r in results})
    run = {case for case, _ in figures.results}
    return [target.judged(figures) for target in TARGETS if run.issuperset(target.cases)]


def line(judged: Mapping[str, Any]) -> str:
    measured = "not measured" if judged["measured"] is None else f"{judged['measured']:.2f}"
    reached = "reached" if judged["reached"] else "missed"
    return f"target {judged['target']} ({judged['bound']:g}): {measured} {reached}"


def _beats(case: str, times: float, whom: str = "peer", named: str = "") -> Target:
    return Target(f"{case}: times the best {whom}, at least", (case,), lambda f: f.ratio(case, named), times, True)


def _grows(says: str, case: str, base: str, most: float, figure: str = "seconds", engine: str = "hindsight") -> Target:
    both = (case, base)
    return Target(f"{case} to {base}: {says}, at most", both, lambda f: f.grows(case, base, figure, engine), most)


def _per_answer(case: str, base: str, most: float) -> Target:
    return Target(
        f"{case} to {base}: time per answer, at most",
        (case, base),
        lambda f: f.per_answer(case) / f.per_answer(base),
        most,
    )


def _flat(cases: tuple[str, ...], within: float) -> Target:
    def spread(f: Figures) -> float:
        own = [f.of(case, figure="events_per_second") for case in cases]
        return max(own) / min(own) - 1

    return Target(f"{', '.join(cases)}: spread of events a second, at most", cases, spread, within)


_ALONE = "w1-recent-5000-alone"
TARGETS: tuple[Target, ...] = (
    _beats("w1-recent-1000", 6),
    _beats("w1-all-1000", 5),
    _beats("w1-recent-1000-sorted", 10),
    _beats("w1-all-1000-sorted", 10),
    *(_beats(f"w1-{how}-{n}", 1) for how in ("recent", "all") for n in (1, 10, 100)),
    *(_grows("time", f"w1-{how}-5000", f"w1-{how}-1000", 4) for how in ("recent", "all")),
    Target(
        f"{_ALONE}: shared, times the same one by one, at least",
        (_ALONE,),
        lambda f: f.of(_ALONE, "alone") / f.of(_ALONE),
        50,
        True,
    ),
    *(
        _grows("bytes per event", f"store-{n}", "store-1", 1.05, "store_bytes_per_event", "prepared")
        for n in (10, 100, 1000, 5000)
    ),
    *(
        _grows("time", f"w1-{how}-1000-{n}k-sources", f"w1-{how}-1000", 1.5)
        for how in ("recent", "all")
        for n in (10, 100)
    ),
    _per_answer("w1c-and-1000", "w1-all-1000", 2),
    _per_answer("w1c-or-1000", "w1-all-1000", 2),
    *(_beats(case, 1) for case in ("w2-a1", "w2-a1-a2", "w2-negation")),
    _grows("time for three times the events read", "w2-length-6", "w2-length-2", 3),
    *(_per_answer(f"w2-window-{s}s", "w2-a1", 1) for s in (20, 50, 100)),
    *(_grows("time with few answers", f"w2-a1-a2-window-{s}s", "w2-a1-a2", 1.25) for s in (20, 50, 100)),
    _flat(("w4-120", "w4-120-5M", "w4-120-10M"), 0.1),
    _grows("time for 10 times the patterns", "w4-1200", "w4-120", 2),
    _beats("w5-groups", 1, "SQL", "duckdb"),
    _beats("w5-nested", 1, "SQL", "duckdb"),
    *(
        Target(f"{case}: seconds by the clock, at most", (case,), lambda f, c=case: f.of(c, "cold", "wall_seconds"), 3)  # type: ignore[misc]
        for case in ("cold-start", "cold-start-negation")
    ),
)
