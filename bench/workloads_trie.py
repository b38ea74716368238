"""W4, GenTrie's workload (section 4.3): 250 classes, patterns of three classes with a k-size window of 5.

Enters: sizes. Leaves: a `Workload` of the shape `trie` (workloads.py).
Always holds: each pattern links all its events, by an equality (the window with the second class), a range and an
inequality (second and third class); one event in ten passes its class's filter, which is the paper's selectivity of
10%; each event is used by one match of a query at most. One event a millisecond.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.workloads import SECOND_US, Pattern, Workload, names, numbered

SIZE = 5
WINDOW_US = 60 * SECOND_US
WINDOW = 60


def w4(events: int, queries: int = 120, classes: int = 250, values: int = 4, seed: int = 17) -> Workload:
    random = np.random.default_rng(seed)
    called = names("T{:03d}", classes)
    table = pa.table(
        {
            "event_id": numbered(events, random),
            "source": names("s{:d}", 1).take(pa.array(np.zeros(events, np.int64))),
            "event_class": called.take(pa.array(random.integers(0, classes, events))),
            "ts": random.permutation(events) * 1000,
            "u": random.integers(0, 100, events),
            "x": random.integers(0, values, events),
            "y": random.integers(0, 1000, events),
            "z": random.integers(0, 10, events),
        }
    )
    chosen = np.random.default_rng(seed + 1)
    patterns = []
    for number in range(queries):
        a, b, c = (called[int(code)].as_py() for code in chosen.choice(classes, 3, replace=False))
        patterns.append(
            Pattern(
                f"q{number:04d}",
                (a, b, c),
                WINDOW_US,
                f"PATTERN SEQ({a}(u < 10)[{SIZE}] a, {b}(u < 10) b, {c}(u < 10) c)"
                f" WHERE a.x = b.x AND b.y < c.y AND b.z != c.z WITHIN {WINDOW} s SELECT recent CONSUME used",
            )
        )
    return Workload("trie", table, tuple(patterns), key=(), select="recent")


def explosive(events: int, window: int = 40, seed: int = 19) -> Workload:
    """One query whose answers are many times its events: any 5 of the events in a window of `window` events."""
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "event_id": numbered(events, random),
            "source": names("s{:d}", 1).take(pa.array(np.zeros(events, np.int64))),
            "event_class": names("A", 1).take(pa.array(np.zeros(events, np.int64))),
            "ts": random.permutation(events) * SECOND_US,
        }
    )
    text = f"PATTERN A[{SIZE}] a WHERE [source] WITHIN {window} s"
    return Workload("explosive", table, (Pattern("q0000", ("A",), window * SECOND_US, text),), facts={"size": SIZE})
