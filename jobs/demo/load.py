"""Bandwidth of the nodes of a network (plan-based paper, section 5: capturing load spikes).

Enters: a generator and a size. Leaves: node_traffic, one sampled minute per node every ten minutes, from which a
declaration's SQL makes the aggregated primitives "more than half of the nodes are idle" and "... active"; the planted
load_spike.
Always holds: outside the stories at most half of the nodes are idle, and at most half are active; stories are over an
hour apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import DAY_US, MINUTE_US, START_US, TIME, Ints, RawTable, Size, World, names, plant

EVERY_US = 10 * MINUTE_US
SLOT = 18  # samples in a story's three hours
# what happens at the samples of a slot: 'i' most nodes idle, 'a' most active, 'h' exactly half idle, '.' nothing
STORIES = {
    "spike": "...ii.aa..........",
    "sudden_spike": "....ia............",
    "slow": "...i....a.........",  # fifty minutes
    "backwards": "...a.i............",
    "half": "...ha.............",
    "quiet": "." * SLOT,
}
MATCHES = {"spike": (4, 6), "sudden_spike": (4, 5)}  # the last idle sample and the first active one
IDLE_KB, USUAL_KB, ACTIVE_KB = (10, 120), (150, 450), (520, 1500)  # kilobytes a second, in and out together


def load_world(rng: np.random.Generator, size: Size) -> World:
    samples = size.days * DAY_US // EVERY_US
    nodes = max(6, size.rows // samples // 2 * 2)
    kinds = list(STORIES)
    slots = samples // SLOT
    told = rng.permutation(np.arange(slots) % (2 * len(kinds)))  # half of the slots are quiet
    script = "".join(STORIES[kinds[min(n, len(kinds) - 1)]] for n in told).ljust(samples, ".")
    at = START_US + np.arange(samples) * EVERY_US
    idle, active = _levels(rng, script, nodes)
    spikes = [
        (n * SLOT + MATCHES[kinds[k]][0], n * SLOT + MATCHES[kinds[k]][1])
        for n, k in enumerate(told)
        if k < len(kinds) and kinds[k] in MATCHES
    ]
    planted = plant(
        "load_spike",
        [f"idle-{_stamp(at[first])}" for first, _ in spikes],
        [f"active-{_stamp(at[last])}" for _, last in spikes],
    )
    return World("load", (RawTable("node_traffic", _table(rng, at, idle, active, nodes)),), tuple(planted))


def _levels(rng: np.random.Generator, script: str, nodes: int) -> tuple[Ints, Ints]:
    """How many nodes are idle and how many are active at each sample."""
    half, count = nodes // 2, len(script)
    kind = np.array(list(script))
    few = rng.integers(0, half, count) // 2
    most = half + 1 + rng.integers(0, half, count)
    idle = np.select([kind == "i", kind == "h", kind == "a"], [most, np.full(count, half), np.zeros(count, int)], few)
    active = np.select([kind == "a", kind == "i"], [most, np.zeros(count, int)], rng.integers(0, half, count) // 2)
    return idle.astype(np.int64), active.astype(np.int64)


def _stamp(at_us: int) -> str:
    """20260105T0010, as the declaration's SQL writes it."""
    return str(np.datetime_as_string(np.datetime64(int(at_us), "us"), unit="m")).replace("-", "").replace(":", "")


def _table(rng: np.random.Generator, at: Ints, idle: Ints, active: Ints, nodes: int) -> pa.Table:
    count = len(at)
    rank = rng.permuted(np.tile(np.arange(nodes), (count, 1)), axis=1)  # which nodes are the idle ones changes
    level = np.where(rank < idle[:, None], 0, np.where(rank >= nodes - active[:, None], 2, 1)).ravel()
    bounds = np.array([IDLE_KB, USUAL_KB, ACTIVE_KB])[level]
    kb = rng.integers(bounds[:, 0], bounds[:, 1])
    inward = (kb * rng.uniform(0.3, 0.7, len(kb))).astype(np.int64)
    return pa.table(
        {
            "node": pa.array(np.tile(names("node-", range(nodes), 3), count), pa.string()),
            "measured_at": pa.array(np.repeat(at, nodes), TIME),
            "bytes_in": pa.array(inward * 60_000, pa.int64()),
            "bytes_out": pa.array((kb - inward) * 60_000, pa.int64()),
        }
    )
