"""Every case of the engine's benchmark: the workload, who runs it, and how large it is.

Always holds: a case's peers are all that can answer its shape (peers.py). `tiny` are the options of the same case
with a few thousand events that still have matches: it warms a process up, and the tests compare engines on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.peers import PEERS
from bench.workloads import Workload, w1
from bench.workloads_one_source import w5
from bench.workloads_sase import w2
from bench.workloads_trie import explosive, w4


@dataclass(frozen=True)
class Case:
    """scale: events as a share of the size asked for; events: a number of their own instead."""

    make: Callable[..., Workload]
    options: dict[str, Any]
    tiny: dict[str, Any]
    engines: tuple[str, ...] = ("hindsight",)
    peers: tuple[str, ...] | None = None
    scale: float = 1.0
    events: int | None = None
    repeat: int | None = None
    why: str = field(default="", compare=False)

    def workload(self, size: int) -> Workload:
        return self.make(**self.options, events=self.events or int(size * self.scale))

    def tiny_workload(self) -> Workload:
        return self.make(**(self.options | self.tiny))

    def runners(self, shape: str) -> tuple[str, ...]:
        """Our engines, then the peers."""
        return (*self.engines, *(PEERS.get(shape, {}) if self.peers is None else self.peers))


def _w1(queries: int, select: str = "all", **options: Any) -> Case:
    own = {name: options.pop(name) for name in ("shape", "size", "sources", "ordered") if name in options}
    tiny = {"events": 4000, "queries": min(queries, 20), "sources": 20}
    return Case(w1, {"queries": queries, "select": select} | own, tiny, **options)


def _w2(tiny_values: int = 20, **options: Any) -> Case:
    return Case(w2, options, {"events": 2000, "values": tiny_values})


_TINY_W4 = {"events": 800, "queries": 3, "classes": 3, "values": 2}

CASES: dict[str, Case] = {
    **{f"w1-{how}-{n}": _w1(n, how) for how in ("recent", "all") for n in (1, 10, 100, 1000)},
    **{f"w1-{how}-5000": _w1(5000, how, repeat=2, peers=("duckdb/coded",)) for how in ("recent", "all")},
    **{f"w1-{how}-{n}-sorted": _w1(n, how, ordered=True) for how in ("recent", "all") for n in (1, 100, 1000)},
    **{
        f"w1-{how}-1000-{sources // 1000}k-sources": _w1(1000, how, sources=sources, peers=("duckdb/coded",))
        for how in ("recent", "all")
        for sources in (10_000, 100_000)
    },
    "w1-recent-5000-alone": _w1(5000, "recent", engines=("hindsight", "alone"), peers=(), repeat=2),
    **{f"store-{n}": _w1(n, shape="covered", engines=("prepared",)) for n in (1, 10, 100, 1000, 5000)},
    "w1c-and-1000": _w1(1000, shape="and"),
    "w1c-or-1000": _w1(1000, shape="or", size=5, scale=0.01, why="one event in ten is an answer of each query"),
    **{f"w2-length-{n}": _w2(length=n) for n in (2, 4, 5, 6)},
    "w2-a1": _w2(),
    "w2-a1-a2": _w2(key=("a1", "a2"), tiny_values=4),
    "w2-negation": _w2(shape="negation"),
    **{f"w2-window-{s}s": _w2(window_s=s) for s in (20, 50, 100)},
    **{f"w2-a1-a2-window-{s}s": _w2(window_s=s, key=("a1", "a2"), tiny_values=4) for s in (20, 50, 100)},
    "w4-120": Case(w4, {}, _TINY_W4, peers=()),
    "w4-120-check": Case(w4, {}, _TINY_W4, scale=0.1, why="plain Python is slow"),
    "w4-120-5M": Case(w4, {}, _TINY_W4, peers=(), scale=2.5, repeat=2),
    "w4-120-10M": Case(w4, {}, _TINY_W4, peers=(), scale=5, repeat=2),
    "w4-1200": Case(w4, {"queries": 1200}, _TINY_W4, peers=()),
    "w5-groups": Case(w5, {"shape": "groups"}, {"events": 1000}),
    "w5-nested": Case(w5, {"shape": "nested"}, {"events": 1000}),
    "cold-start": _w1(100, sources=10, events=1000, engines=("cold",), peers=("duckdb/coded",)),
    "cold-start-negation": _w1(
        100, shape="negation", sources=10, events=1000, engines=("cold",), peers=("duckdb/anti",)
    ),
    # What users will do next, without a target.
    **{f"x-compared-{how}-1000": _w1(1000, how, shape="compared") for how in ("recent", "all")},
    "x-negation-100": _w1(100, shape="negation"),
    "x-groups-100": _w1(100, shape="groups"),
    "x-chained": _w2(shape="chained"),
    "x-never": _w1(1, shape="never"),
    "x-never-1000": _w1(1000, shape="never"),
    "x-explosive": Case(explosive, {}, {"events": 60, "window": 12}, engines=("chunks",), scale=0.0025),
}
