"""W2, SASE's workload: 20 types, one event per millisecond, attributes of 1,000 and of 20 values.

Enters: sizes. Leaves: a `Workload` of one query (workloads.py).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from bench.workloads import LETTERS, Pattern, Workload, names, numbered


def w2(
    events: int,
    length: int = 3,
    window_s: int = 10,
    key: tuple[str, ...] = ("a1",),
    shape: str = "seq",
    values: int = 1000,
    seed: int = 13,
) -> Workload:
    """shape: seq: SEQ(E1, ..., En) with the key as an equivalence test. chained: the same said as equalities between
    neighbours. negation: SEQ(E1, E2, !E3, E4) WHERE [a1] AND e1.a3 < e4.a3."""
    random = np.random.default_rng(seed)
    types = names("E{:d}", 21)
    table = pa.table(
        {
            "event_id": numbered(events, random),
            "source": names("s{:d}", 1).take(pa.array(np.zeros(events, np.int64))),
            "event_class": types.take(pa.array(random.integers(1, 21, events))),
            "ts": random.permutation(events) * 1000,
            "a1": random.integers(0, values, events),
            "a2": random.integers(0, 20, events),
            "a3": random.integers(0, 1_000_000, events),
        }
    )
    length = 4 if shape == "negation" else length
    own = tuple(types[place].as_py() for place in range(1, length + 1))
    elements = [f"{name} {LETTERS[place]}" for place, name in enumerate(own)]
    where = f"[{', '.join(key)}]"
    if shape == "negation":
        elements[2] = "!" + elements[2]
        where += " AND a.a3 < d.a3"
    if shape == "chained":
        pairs = pairwise(LETTERS[:length])
        where = " AND ".join(f"{one}.{name} = {other}.{name}" for one, other in pairs for name in key)
    text = f"PATTERN SEQ({', '.join(elements)}) WHERE {where} WITHIN {window_s} s"
    pattern = Pattern("q0000", own, window_s * 1_000_000, text)
    facts = {"absent": 2, "less": ("a3", 0, 3)} if shape == "negation" else {}
    return Workload("seq" if shape == "chained" else shape, table, (pattern,), key, facts=facts)
