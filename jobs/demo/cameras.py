"""Persons seen by smart cameras (plan-based paper, section 2: person_detected and running_person).

Enters: a generator and a size. Leaves: person_detections, without an id column; the planted running_person.
Always holds: a person's stories last seconds and are most of an hour apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    HOUR_US,
    MINUTE_US,
    SECOND_US,
    TIME,
    RawTable,
    Size,
    Steps,
    World,
    again,
    between,
    deal,
    hashed_id,
    json_time,
    names,
    plant,
    shares,
)


def cameras_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        max(20, round(size.rows / 3.8)),
        common={"walking": 0.9},
        rare={"running": 0.01, "brisk": 0.02, "far_but_slow": 0.02},
    )
    cells = deal(rng, counts, size.days, slot_us=HOUR_US, slack_us=50 * MINUTE_US, fill=0.2)
    steps = Steps()
    place = {kind: rng.uniform(0, 200, (count, 2)) for kind, count in counts.items()}

    def see(kind: str, after_s: float, moved_m: tuple[float, float]) -> int:
        """The person is seen again, so far from where it was last."""
        angle, way = rng.uniform(0, 2 * np.pi, counts[kind]), rng.uniform(*moved_m, counts[kind])
        place[kind] = place[kind] + np.stack([way * np.cos(angle), way * np.sin(angle)], axis=1)
        at = cells[kind].start_us + between(rng, after_s * SECOND_US, (after_s + 0.4) * SECOND_US, counts[kind])
        x, y = place[kind][:, 0], place[kind][:, 1]
        return steps.add(at, person=cells[kind].subject, x=x, y=y, camera=rng.integers(1, 30, counts[kind]))

    for second in (0, 2, 4, 6):
        see("walking", second, (1, 3))
    runner = see("running", 0, (0, 1)), see("running", 2, (12.1, 20))
    see("brisk", 0, (0, 1))
    see("brisk", 2, (9, 11.9))
    see("far_but_slow", 0, (0, 1))
    see("far_but_slow", 4, (12.1, 20))

    rows, places = steps.in_order()
    ids = np.array(
        [
            hashed_id("PersonDetected", int(camera), f"person-{person:05d}", json_time(at))
            for camera, person, at in zip(rows["camera"], rows["person"], rows["at"], strict=True)
        ],
        dtype=object,
    )
    table = pa.table(
        {
            "camera": pa.array(rows["camera"], pa.int32()),
            "person_id": pa.array(names("person-", rows["person"], 5), pa.string()),
            "loc_x": pa.array(rows["x"], pa.float64()),
            "loc_y": pa.array(rows["y"], pa.float64()),
            "seen_at": pa.array(rows["at"], TIME),
        }
    )
    planted = plant("running_person", ids[places[runner[0]]], ids[places[runner[1]]])
    return World("cameras", (RawTable("person_detections", again(rng, table, 0.01)),), tuple(planted))
