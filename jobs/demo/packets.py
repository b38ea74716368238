"""TCP packets captured at servers (plan-based paper, sections 1 and 5: syn, syn flood, port scan).

Enters: a generator and a size. Leaves: packets; the planted half_open, syn_flood (over half_open) and port_scan.
Always holds: ordinary connections are answered within a second on one of five ports, so they never take part in a
match; the other stories of a server are over a minute apart.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
    MINUTE_US,
    SECOND_US,
    START_US,
    TIME,
    Ints,
    Planted,
    RawTable,
    Size,
    Steps,
    Strings,
    World,
    between,
    deal,
    names,
    plant,
    shares,
)

PORTS = np.array([22, 25, 53, 80, 443])
FLOOD = 6  # half-open connections that make a flood


def packets_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        max(20, size.rows // 40),
        common={},
        rare={
            "lost": 0.3, "late": 0.1, "flood": 0.02, "flood_more": 0.01, "flood_few": 0.02, "flood_slow": 0.02,
            "flood_answered": 0.02, "scan": 0.02, "scan_slow": 0.02, "scan_one_port": 0.02,
        },
    )  # fmt: skip
    cells = deal(rng, counts, size.days, slot_us=10 * MINUTE_US, slack_us=6 * MINUTE_US, fill=0.01)
    steps = Steps()
    connections = iter(range(1 << 40))

    def packet(at: Ints, server: Ints, client: Strings, port: Ints, connection: Ints, flag: str) -> int:
        return steps.add(at, server=server, client=client, port=port, connection=connection, flag=flag)

    def connect(
        kind: str, after_s: float, port: Ints | int, client: str, answer_s: float | None, spread_s: float = 1
    ) -> int:
        """A SYN of each story of a kind and, unless None, its ACK."""
        count = counts[kind]
        at = cells[kind].start_us + between(rng, after_s * SECOND_US, (after_s + spread_s) * SECOND_US, count)
        port = np.full(count, port) if isinstance(port, int) else port
        number = np.array([next(connections) for _ in range(count)], dtype=np.int64)
        caller = names(client, cells[kind].subject % 250 + 1, 0)
        syn = packet(at, cells[kind].subject, caller, port, number, "SYN")
        if answer_s is not None:
            packet(at + round(answer_s * SECOND_US), cells[kind].subject, caller, port, number, "ACK")
        return syn

    def flood(kind: str, count: int, every_s: float, answer_s: float | None = None) -> list[int]:
        return [connect(kind, n * every_s, 80, f"198.51.{n}.", answer_s, spread_s=0.5) for n in range(count)]

    def scan(kind: str, every_s: float, step: int) -> list[int]:
        first = rng.integers(1, 900, counts[kind])
        return [connect(kind, n * every_s, first + n * step, "203.0.113.", 0.02, spread_s=0.5) for n in range(6)]

    alone = connect("lost", 0, 443, "192.0.2.", None), connect("late", 0, 443, "192.0.2.", 61)
    floods = flood("flood", FLOOD, 1.5)
    more = flood("flood_more", FLOOD + 1, 1.2)
    few = flood("flood_few", FLOOD - 1, 1)
    slow = flood("flood_slow", FLOOD, 5)
    flood("flood_answered", FLOOD + 2, 1, answer_s=0.3)
    scans = scan("scan", 4, 7)
    scan("scan_slow", 12, 7)
    scan("scan_one_port", 3, 0)
    _ordinary(rng, size, packet, connections, servers=max(int(cells[k].subject.max()) for k in cells) + 1)

    rows, places = steps.in_order()
    ids = names("pk-", range(len(rows["at"])), 8)

    def of(step: int) -> Strings:
        return ids[places[step]]

    planted: list[Planted] = [
        *(match for step in (*alone, *floods, *more, *few, *slow) for match in plant("half_open", of(step))),
        *plant("syn_flood", *map(of, floods)),
        *(match for some in combinations(more, FLOOD) for match in plant("syn_flood", *map(of, some))),
        *plant("port_scan", *map(of, scans)),
    ]
    return World("packets", (RawTable("packets", _table(rows, ids)),), tuple(planted))


def _ordinary(rng: np.random.Generator, size: Size, packet, connections, servers: int) -> None:  # type: ignore[no-untyped-def]
    """Connections that come, are answered, carry data and end."""
    count = max(10, size.rows // 5)
    at = START_US + between(rng, 0, size.days * DAY_US - MINUTE_US, count)
    server, port = rng.integers(0, servers, count), PORTS[rng.integers(0, len(PORTS), count)]
    client = names("10.0.0.", rng.integers(1, 250, count), 0)
    number = np.array([next(connections) for _ in range(count)], dtype=np.int64)
    for flag, after_ms in (("SYN", 0), ("ACK", 40), ("PSH", 120), ("FIN", 4000)):
        packet(
            at + after_ms * 1000 + between(rng, 0, 30_000, count) * (after_ms > 0), server, client, port, number, flag
        )


def _table(rows: dict[str, np.ndarray], ids: Strings) -> pa.Table:
    return pa.table(
        {
            "packet_id": pa.array(ids, pa.string()),
            "captured_at": pa.array(rows["at"], TIME),
            "server": pa.array(names("server-", rows["server"], 3), pa.string()),
            "client": pa.array(rows["client"], pa.string()),
            "port": pa.array(rows["port"].astype(np.int64), pa.int32()),
            "connection": pa.array(names("cx-", rows["connection"], 8), pa.string()),
            "flag": pa.array(rows["flag"], pa.string()),
        }
    )
