"""W5: all events are of one source, 1% of them at the time of another; groups with sums, and an AND inside a SEQ.

Enters: sizes. Leaves: a `Workload` of one query (workloads.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.workloads import SECOND_US, Pattern, Workload, names, numbered

CLASSES = 10


def w5(events: int, shape: str = "groups", seed: int = 23) -> Workload:
    """One event a second on average. shape: groups: SEQ(A a, B+ b, C c) whose sum is large; nested: AND in SEQ."""
    random = np.random.default_rng(seed)
    ts = np.cumsum(random.integers(1, 2 * SECOND_US, events))
    again = np.flatnonzero(random.random(events - 1) < 0.01) + 1
    ts[again] = ts[again - 1]
    order = random.permutation(events)
    called = names("K{:d}", CLASSES)
    table = pa.table(
        {
            "event_id": numbered(events, random),
            "source": names("s{:d}", 1).take(pa.array(np.zeros(events, np.int64))),
            "event_class": called.take(pa.array(random.integers(0, CLASSES, events))),
            "ts": ts[order],
            "x": random.integers(0, 1000, events),
        }
    )
    if shape == "groups":
        text = "PATTERN SEQ(K0 a, K1+ b, K2 c) WHERE [source] AND sum(b.x) > 1500 WITHIN 40 s"
        pattern = Pattern("q0000", ("K0", "K1", "K2"), 40 * SECOND_US, text)
        return Workload("groups", table, (pattern,), facts={"sum_above": 1500})
    text = "PATTERN SEQ(K0 a, AND(K1 b, K2 c), K3 d) WHERE [source] WITHIN 20 s"
    return Workload("nested", table, (Pattern("q0000", ("K0", "K1", "K2", "K3"), 20 * SECOND_US, text),))
