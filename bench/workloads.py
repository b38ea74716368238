"""The workloads of the engine's benchmark, made from a seed: the same bytes on every machine.

Enters: a workload's name and its sizes. Leaves: `Workload`: an Arrow table of events and the queries as text.
Always holds: `event_id`, `source` and `event_class` are strings, rows are in arbitrary order unless `ordered` is
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

MINUTE_US = 60_000_000


@dataclass(frozen=True)
class Pattern:
    """One query of three or more single-event elements, as the peers need it. kind: seq, and, or."""

    id: str
    kind: OneOf["seq", "and", "or"]
    classes: tuple[str, ...]
    window_us: int
    select: str

    @property
    def text(self) -> str:
        within = (
            f"{self.window_us // MINUTE_US} min" if self.window_us % MINUTE_US == 0 else f"{self.window_us // 1000} ms"
        )
        elements = ", ".join(f"{name} {'abcdefgh'[place]}" for place, name in enumerate(self.classes))
        return f"PATTERN {self.kind.upper()}({elements}) WHERE [source] WITHIN {within} SELECT {self.select}"


@dataclass(frozen=True)
class Workload:
    name: str
    events: pa.Table
    patterns: tuple[Pattern, ...]


def w1(
    events: int,
    sources: int,
    queries: int,
    select: str,
    kind: OneOf["seq", "and", "or"],
    ordered: bool,
    size: int,
    seed: int = 11,
) -> Workload:
    """SCEMon: 50 classes, one event per source every 30 minutes on average, windows of 200 to 240 minutes."""
    random = np.random.default_rng(seed)
    source = random.integers(0, sources, events)
    ts = random.integers(0, max(events // sources, 1) * 30 * MINUTE_US, events)
    if ordered:
        order = np.lexsort((ts, source))
        source, ts = source[order], ts[order]
    classes = _names("C{:02d}", 50)
    table = pa.table(
        {
            "event_id": _numbered(events, random),
            "source": _names("s{:06d}", sources).take(pa.array(source)),
            "event_class": classes.take(pa.array(random.integers(0, 50, events))),
            "ts": ts,
        }
    )
    chosen = np.random.default_rng(seed + 1)
    patterns = []
    for number in range(queries):
        names = tuple(classes[int(code)].as_py() for code in chosen.choice(50, size, replace=False))
        patterns.append(Pattern(f"q{number:04d}", kind, names, int(chosen.integers(200, 241)) * MINUTE_US, select))
    return Workload(f"{kind} {select} {queries}", table, tuple(patterns))


def w2(events: int, length: int, window_ms: int, seed: int = 13) -> Workload:
    """SASE: 20 types, one event per ms, an attribute of 1,000 values as the source."""
    random = np.random.default_rng(seed)
    types = _names("E{:d}", 20)
    table = pa.table(
        {
            "event_id": _numbered(events, random),
            "source": _names("v{:03d}", 1000).take(pa.array(random.integers(0, 1000, events))),
            "event_class": types.take(pa.array(random.integers(0, 20, events))),
            "ts": random.permutation(events) * 1000,
        }
    )
    names = tuple(types[place].as_py() for place in range(length))
    return Workload("w2", table, (Pattern("q0000", "seq", names, window_ms * 1000, "all"),))


def _names(form: str, count: int) -> pa.Array:
    return pa.array([form.format(number) for number in range(count)])


def _numbered(count: int, random: np.random.Generator) -> pa.Array:
    """Ids in a random order, made without a Python string each."""
    digits = random.permutation(count)[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")
    text = np.full((count, 10), ord("e"), np.uint8)
    text[:, 1:] = digits
    offsets = np.arange(0, 10 * count + 1, 10, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
