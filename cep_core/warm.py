"""Compiles the engine's kernels before anybody waits for them: `python -m cep_core.warm`.

Enters: nothing. Leaves: kernels on disk (engine/__init__.py says where); every process after it loads them.
Always holds: it mines for real, points and intervals, as a notebook and as Spark hand them over; a kernel that it
misses is compiled when it is first needed.
"""

from __future__ import annotations

import pyarrow as pa

import cep_core

_QUERIES = {
    "seq": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 min",
    "recent": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 min SELECT recent",
    "both": "PATTERN AND(A a, B b) WHERE [source] WITHIN 1 min",
    "search": "PATTERN SEQ(A a, !C c, B+ g, D d) WHERE [x] AND a.s = d.s AND sum(g.x) > 0 WITHIN 1 min "
    "RETURN a.s AS s, count(g) AS n",
    "used": "PATTERN SEQ(A[2] a, B b) WITHIN 1 min SELECT recent CONSUME used",
}


def events(interval_us: int, coded: bool) -> pa.Table:
    """A few events of four classes; coded: strings as Spark's tasks hand them over."""
    classes = pa.array(list("ABCDABDABD"))
    count = len(classes)
    start = [number * 1_000_000 for number in range(count)]
    return pa.table(
        {
            "event_id": [f"e{number}" for number in range(count)],
            "source": ["s1", "s2"] * (count // 2),
            "event_class": classes.dictionary_encode() if coded else classes,
            "start_ts": start,
            "end_ts": [moment + interval_us for moment in start],
            "x": [1] * count,
            "s": ["t"] * count,
        }
    )


def warm() -> int:
    """How many matches the small queries found, all in all."""
    found = 0
    for interval_us, coded in ((0, False), (0, True), (100_000, False)):
        found += len(cep_core.mine_with_state(events(interval_us, coded), _QUERIES)[0])
    return found


if __name__ == "__main__":
    warm()
