"""Plain Python as a peer where SQL cannot say it: consumption, and the counts of an explosive query.

Enters: a workload. Leaves: an Arrow table: q and the event ids of each match; for the explosive query, counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from math import comb

import numpy as np
import pyarrow as pa

from bench.workloads import Workload
from bench.workloads_trie import SIZE


def trie(workload: Workload) -> pa.Table:
    """Event by event, as a hand-written program: for each third event the latest second one that has five unused
    events of the first class before it."""
    rows = workload.events.sort_by([("ts", "ascending")]).to_pylist()
    by_class: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        by_class[row["event_class"]].append(row)
    found: list[tuple[str, ...]] = []
    for pattern in workload.patterns:
        a, b, c = (by_class[name] for name in pattern.classes)
        found += _consuming(pattern.id, a, b, c, pattern.window_us)
    columns = {"q": [row[0] for row in found]}
    columns |= {f"i{place}": [row[place + 1] for row in found] for place in range(SIZE + 2)}
    return pa.table(columns, schema=pa.schema([(name, pa.string()) for name in columns]))


def _consuming(q: str, a: list[dict], b: list[dict], c: list[dict], window_us: int) -> list[tuple[str, ...]]:
    windows: dict[int, list[dict]] = defaultdict(list)
    for row in a:
        if row["u"] < 10:
            windows[row["x"]].append(row)
    seconds = [row for row in b if row["u"] < 10]
    times = [row["ts"] for row in seconds]
    used: set[str] = set()
    found = []
    for third in (row for row in c if row["u"] < 10):
        low = third["ts"] - window_us
        for place in range(bisect_left(times, third["ts"]) - 1, -1, -1):
            second = seconds[place]
            if second["ts"] < low:
                break
            if second["event_id"] in used or not second["y"] < third["y"] or second["z"] == third["z"]:
                continue
            fitting = [
                row["event_id"]
                for row in windows[second["x"]]
                if low <= row["ts"] < second["ts"] and row["event_id"] not in used
            ]
            if len(fitting) >= SIZE:
                members = (*fitting[-SIZE:], second["event_id"], third["event_id"])
                used.update(members)
                found.append((q, *members))
                break
    return found


def explosive(workload: Workload) -> pa.Table:
    """How many answers each event completes: the choices among the events of its window."""
    (pattern,) = workload.patterns
    size = workload.facts["size"]
    events = workload.events.sort_by([("ts", "ascending")])
    ts = events["ts"].to_numpy()
    before = np.arange(len(ts)) - np.searchsorted(ts, ts - pattern.window_us)
    counts = [comb(int(number), size - 1) for number in before]
    table = pa.table({"q": [pattern.id] * len(ts), "i0": events["event_id"], "answers": counts})
    return table.filter(pa.array([count > 0 for count in counts]))
