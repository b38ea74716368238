"""Runs of nightly jobs on hosts: events that last, in a Parquet table.

Enters: a generator and a size. Leaves: job_runs; the planted recovered_after_retries and overlapping_backups.
Always holds: a host has one story a day, over by eight in the morning, so two are over six hours apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
    HOUR_US,
    TIME,
    Ints,
    RawTable,
    Size,
    Steps,
    World,
    deal,
    minutes,
    names,
    plant,
    shares,
)

JOBS = np.array(["import", "report", "index", "export"], dtype=object)


def machines_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        max(20, round(size.rows / 1.5)),
        common={"fine": 0.6, "backup": 0.2},
        rare={
            "failed_once": 0.05, "failed_twice": 0.03, "gave_up": 0.02, "recovered": 0.01, "recovered_and_ran": 0.01,
            "overlap": 0.01, "touching": 0.02,
        },
    )  # fmt: skip
    cells = deal(rng, counts, size.days, slot_us=DAY_US, slack_us=2 * HOUR_US)
    steps = Steps()

    def run(kind: str, start: Ints, end: Ints, status: str, job: str | None = None) -> int:
        name = np.full(counts[kind], job, dtype=object) if job else JOBS[cells[kind].subject % len(JOBS)]
        return steps.add(start, end=end, host=cells[kind].subject, job=name, status=status)

    def runs(kind: str, statuses: str) -> list[int]:
        """Runs one after the other: f failed, k ok. Every second one starts the moment that the one before ends."""
        done, at = [], cells[kind].start_us
        for place, status in enumerate(statuses):
            start = at if place % 2 else at + minutes(rng, 1, 10, counts[kind])
            at = start + minutes(rng, 5, 20, counts[kind])
            done.append(run(kind, start, at, "failed" if status == "f" else "ok"))
        return done

    runs("fine", "k")
    runs("failed_once", "fk")
    runs("failed_twice", "ffk")
    runs("gave_up", "ffff")
    recovered = runs("recovered", "fffk")
    longer = runs("recovered_and_ran", "ffffkk")[:5]

    begin = cells["backup"].start_us
    run("backup", begin, begin + minutes(rng, 30, 90, counts["backup"]), "ok", "backup")
    begin = cells["overlap"].start_us
    end = begin + minutes(rng, 40, 90, counts["overlap"])
    over = (
        run("overlap", begin, end, "ok", "backup"),
        run("overlap", begin + minutes(rng, 10, 39, len(end)), end + minutes(rng, 5, 60, len(end)), "ok", "backup"),
    )
    begin = cells["touching"].start_us
    end = begin + minutes(rng, 40, 90, counts["touching"])
    run("touching", begin, end, "ok", "backup")
    run("touching", end, end + minutes(rng, 20, 40, counts["touching"]), "ok", "backup")

    rows, places = steps.in_order()
    ids = names("run-", range(len(rows["at"])), 7)
    planted = [
        *plant("recovered_after_retries", *(ids[places[step]] for step in recovered)),
        *plant("recovered_after_retries", *(ids[places[step]] for step in longer)),
        *plant("overlapping_backups", *(ids[places[step]] for step in over)),
    ]
    table = pa.table(
        {
            "run_id": pa.array(ids, pa.string()),
            "host": pa.array(names("host-", rows["host"], 4), pa.string()),
            "job": pa.array(rows["job"], pa.string()),
            "status": pa.array(rows["status"], pa.string()),
            "started_at": pa.array(rows["at"], TIME),
            "finished_at": pa.array(rows["end"], TIME),
        }
    )
    return World("machines", (RawTable("job_runs", table, "parquet"),), tuple(planted))
