"""What the engine's benchmark mines: events and queries made from a seed, the same bytes on every machine.

Enters: sizes. Leaves: `Workload`: an Arrow table of events, the queries as text, and what a peer must know of them.
Always holds: `event_id`, `source` and `event_class` are strings, `ts` is int64 microseconds, attributes are int64; rows
are in arbitrary order unless `ordered` is asked for. This module has SCEMon's workload (W1) and its kin; W2 is in
workloads_sase.py, W4 in workloads_trie.py, W5 in workloads_one_source.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

MINUTE_US = 60_000_000
SECOND_US = 1_000_000
LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Pattern:
    """One query: its classes in pattern order."""

    id: str
    classes: tuple[str, ...]
    window_us: int
    text: str


@dataclass(frozen=True)
class Workload:
    """shape names the peers that can answer it (bench/peers.py); facts are the numbers that such a peer needs."""

    shape: str
    events: pa.Table
    patterns: tuple[Pattern, ...]
    key: tuple[str, ...] = ("source",)
    select: str = "all"
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def queries(self) -> dict[str, str]:
        return {pattern.id: pattern.text for pattern in self.patterns}


def w1(
    events: int,
    queries: int,
    select: str = "all",
    shape: str = "seq",
    size: int = 3,
    sources: int = 1000,
    ordered: bool = False,
    seed: int = 11,
) -> Workload:
    """SCEMon: 50 classes, one event per source every 30 minutes on average, windows of 200 to 240 minutes.

    shape: seq, and, or: that pattern of `size` classes. compared: a condition between events and a RETURN. negation:
    the second class must be absent. groups: the second class is a group with a sum. never: the last class never occurs.
    covered: a first query names every class, and no window is wide enough for a match: what it costs to hold events.
    """
    random = np.random.default_rng(seed)
    source = random.integers(0, sources, events)
    ts = random.integers(0, max(events // sources, 1) * 30 * MINUTE_US, events)
    if ordered:
        order = np.lexsort((ts, source))
        source, ts = source[order], ts[order]
    classes = names("C{:02d}", 50)
    columns = {
        "event_id": numbered(events, random),
        "source": names("s{:06d}", sources).take(pa.array(source)),
        "event_class": classes.take(pa.array(random.integers(0, 50, events))),
        "ts": ts,
    }
    if shape in ("compared", "groups"):
        columns["x"] = random.integers(0, 1000, events)
    chosen = np.random.default_rng(seed + 1)
    drawn = []
    for _ in range(queries):
        own = tuple(classes[int(code)].as_py() for code in chosen.choice(50, size, replace=False))
        drawn.append((own, int(chosen.integers(200, 241)) * MINUTE_US))
    if shape == "never":
        drawn = [((*own[:-1], "Never"), window_us) for own, window_us in drawn]
    if shape == "covered":
        drawn = [(own, 1000) for own, _ in drawn]
    patterns = [
        Pattern(f"q{number:04d}", own, window_us, _w1_text(shape, own, window_us, select))
        for number, (own, window_us) in enumerate(drawn)
    ]
    if shape == "covered":
        patterns[0] = _covering(classes)
    seen = ("seq" if shape == "never" else shape) if queries == 1 else _SHAPES.get(shape, shape)
    return Workload(seen, pa.table(columns), tuple(patterns), select=select, facts=_facts(shape))


# What peers see of a shape where there are many patterns: a sequence that cannot match is a sequence.
_SHAPES = {"seq": "many seq", "compared": "many seq", "never": "many seq", "groups": "many groups"}


def _facts(shape: str) -> dict[str, Any]:
    """less: (attribute, element, other element) of the condition; returns: (attribute, element); absent: an element."""
    match shape:
        case "compared":
            return {"less": ("x", 0, 2), "returns": ("x", 0)}
        case "negation":
            return {"absent": 1}
        case "groups":
            return {"sum_above": 500}
    return {}


def _w1_text(shape: str, classes: tuple[str, ...], window_us: int, select: str) -> str:
    within = f"WITHIN {window_us // MINUTE_US} min" if window_us >= MINUTE_US else f"WITHIN {window_us // 1000} ms"
    elements = [f"{name} {LETTERS[place]}" for place, name in enumerate(classes)]
    match shape:
        case "and" | "or":
            return f"PATTERN {shape.upper()}({', '.join(elements)}) WHERE [source] {within} SELECT {select}"
        case "compared":
            where = "[source] AND a.x < c.x"
            return f"PATTERN SEQ({', '.join(elements)}) WHERE {where} {within} SELECT {select} RETURN a.x AS x"
        case "negation":
            elements[1] = "!" + elements[1]
        case "groups":
            elements[1] = f"{classes[1]}+ b"
            return f"PATTERN SEQ({', '.join(elements)}) WHERE [source] AND sum(b.x) > 500 {within} SELECT {select}"
    return f"PATTERN SEQ({', '.join(elements)}) WHERE [source] {within} SELECT {select}"


def _covering(classes: pa.Array) -> Pattern:
    """Three elements that together stand for every class, so that any set with this query reads the same events."""
    every = classes.to_pylist()
    thirds = [every[:17], every[17:34], every[34:]]
    elements = ", ".join(f"ANY({', '.join(third)}) {LETTERS[place]}" for place, third in enumerate(thirds))
    return Pattern("q0000", (), 1000, f"PATTERN SEQ({elements}) WHERE [source] WITHIN 1 ms")


def names(form: str, count: int) -> pa.Array:
    return pa.array([form.format(number) for number in range(count)])


def numbered(count: int, random: np.random.Generator) -> pa.Array:
    """Ids in a random order, made without a Python string each."""
    digits = random.permutation(count)[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")
    text = np.full((count, 10), ord("e"), np.uint8)
    text[:, 1:] = digits
    offsets = np.arange(0, 10 * count + 1, 10, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
