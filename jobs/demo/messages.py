"""Messages sent and received by processes (EPS, section 8: cycles in message transmissions).

Enters: a generator and a size. Leaves: process_log, whose clock has whole seconds and whose line numbers order the rows
of one second; the planted message_cycle.
Always holds: a message belongs to one story.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
    HOUR_US,
    SECOND_US,
    START_US,
    TIME,
    Ints,
    RawTable,
    Size,
    Steps,
    World,
    between,
    names,
    plant,
    shares,
)

PROCESSES = 24


def messages_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        max(12, size.rows // 4),
        common={"forwarded": 0.95},
        rare={"cycle": 0.01, "quick_cycle": 0.005, "slow_cycle": 0.01},
    )
    steps = Steps()
    message, start, process = {}, {}, {}
    first = 0
    for kind, count in counts.items():
        message[kind] = np.arange(first, first + count)
        start[kind] = START_US + between(rng, 0, size.days * DAY_US - 3 * HOUR_US, count)
        start[kind] = start[kind] // SECOND_US * SECOND_US
        process[kind] = rng.integers(0, PROCESSES, count)
        first += count

    def log(kind: str, after: Ints, hop: int, what: str) -> int:
        where = (process[kind] + hop) % PROCESSES
        return steps.add(start[kind] + after, process=where, message=message[kind], kind=what)

    def pass_on(kind: str, hops: int, low_us: int, high_us: int, last_us: int = 0) -> tuple[int, int]:
        """Processes 0, 1, .. hand the message on; with a last hop back to process 0 where `last_us` is not zero."""
        count = counts[kind]
        after = np.zeros(count, np.int64)
        sent = log(kind, after, 0, "send")
        received = sent
        for hop in range(1, hops + 1):
            back = bool(last_us) and hop == hops
            after = after + (last_us if back else between(rng, low_us, high_us, count))
            received = log(kind, after, 0 if back else hop, "receive")
            if hop < hops:
                after = after + between(rng, low_us, high_us, count)
                log(kind, after, hop, "send")
        return sent, received

    pass_on("forwarded", 2, 200_000, 90 * SECOND_US)
    cycle = pass_on("cycle", 3, SECOND_US, 300 * SECOND_US, last_us=20 * SECOND_US)
    quick = pass_on("quick_cycle", 3, 1000, 90_000, last_us=50_000)  # all within one second of the log's clock
    pass_on("slow_cycle", 3, SECOND_US, 300 * SECOND_US, last_us=61 * 60 * SECOND_US)

    rows, places = steps.in_order()
    ids = names("line-", range(1, len(rows["at"]) + 1), 0)
    planted = [
        match
        for sent, received in (cycle, quick)
        for match in plant("message_cycle", ids[places[sent]], ids[places[received]])
    ]
    table = pa.table(
        {
            "line_no": pa.array(np.arange(1, len(ids) + 1), pa.int64()),
            "process": pa.array(names("proc-", rows["process"], 2), pa.string()),
            "kind": pa.array(rows["kind"], pa.string()),
            "message": pa.array(names("msg-", rows["message"], 7), pa.string()),
            "logged_at": pa.array(rows["at"] // SECOND_US * SECOND_US, TIME),
        }
    )
    return World("messages", (RawTable("process_log", table),), tuple(planted))
