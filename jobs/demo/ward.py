"""Medicine intakes and prescriptions of a hospital ward (SASE, section 2.3).

Enters: a generator and a size. Leaves: medicine_intakes (which has no id column: its event ids are hashes) and
prescriptions; the planted overdose, daily_dose, not_started and patient_at_risk.
Always holds: a patient's story lies between half past midnight and 19:30 of one day, so intakes of two days are over
four hours apart and a day's sum has the intakes of one story.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
    HOUR_US,
    TIME,
    Ints,
    Planted,
    RawTable,
    Size,
    Steps,
    Strings,
    World,
    again,
    deal,
    hashed_id,
    json_time,
    minutes,
    names,
    plant,
    shares,
    timer_id,
)

MEDICINES = np.array(["antibiotics", "paracetamol", "ibuprofen", "metformin", "iron", "vitamin d"], dtype=object)


def ward_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        round(size.rows / 2.8),
        common={"regular": 0.7, "started": 0.1},
        rare={
            "mixed": 0.05, "spaced": 0.05, "just_enough": 0.02, "full_day": 0.02,
            "overdose": 0.005, "overdose_three": 0.003, "heavy_day": 0.004, "never": 0.004, "next_night": 0.003,
        },
    )  # fmt: skip
    cells = deal(rng, counts, size.days, slot_us=DAY_US, slack_us=20 * 60_000_000)
    drug = {kind: rng.integers(0, len(MEDICINES), count) for kind, count in counts.items()}
    intakes, issued = Steps(), Steps()

    def take(kind: str, hour: float, dose: int | np.ndarray, spread_min: float = 10, other: int = 0) -> int:
        at = cells[kind].start_us + round(hour * HOUR_US) + minutes(rng, 0, spread_min, counts[kind])
        medicine = (drug[kind] + other) % len(MEDICINES)
        mg = np.full(counts[kind], dose) if isinstance(dose, int) else dose
        return intakes.add(at, patient=cells[kind].subject, medicine=medicine, mg=mg)

    def prescribe(kind: str) -> int:
        at = cells[kind].start_us + 9 * HOUR_US + minutes(rng, 0, 30, counts[kind])
        return issued.add(at, patient=cells[kind].subject, medicine=drug[kind])

    usual = np.array([250, 400, 500])
    for hour in (7, 13, 18.5):
        take("regular", hour, usual[rng.integers(0, 3, counts["regular"])])
    take("mixed", 8, 600)
    take("mixed", 9.5, 600, other=1)  # another medicine
    take("spaced", 8, 600)
    take("spaced", 12.25, 600)  # more than four hours later
    take("just_enough", 8, 500)
    take("just_enough", 10, 500)  # 1000 mg are not more than 1000
    for hour in (6, 11.5, 17):
        take("full_day", hour, 1000)  # 3000 mg a day is not more than 3000
    pair = take("overdose", 8, 600), take("overdose", 9, 600, spread_min=160)
    three = [take("overdose_three", hour, 600) for hour in (8, 9, 10.5)]
    heavy = [take("heavy_day", hour, 900) for hour in (0.5, 5.25, 10, 15)]
    prescribe("started")
    take("started", 10, 400, spread_min=300)
    never = prescribe("never")
    next_night = prescribe("next_night")
    take("next_night", 18, 400)  # over eight hours after the prescription

    rows, places = intakes.in_order()
    orders, order_places = issued.in_order()
    ids = np.array(
        [
            hashed_id("MedicineTaken", f"patient-{p:05d}", MEDICINES[m], json_time(at))
            for p, m, at in zip(rows["patient"], rows["medicine"], rows["at"], strict=True)
        ],
        dtype=object,
    )
    order_ids = names("rx-", range(len(orders["at"])), 7)

    def of(step: int) -> Strings:
        return ids[places[step]]

    midnight = [timer_id(at) for at in _next_midnight(rows["at"][places[heavy[0]]])]
    overdoses = [
        *plant("overdose", of(pair[0]), of(pair[1])),
        *(match for a, b in ((0, 1), (0, 2), (1, 2)) for match in plant("overdose", of(three[a]), of(three[b]))),
    ]
    heavy_days = plant("daily_dose", *map(of, heavy), midnight)
    planted = [
        *overdoses,
        *heavy_days,
        *(Planted("patient_at_risk", match.members) for match in (*overdoses, *heavy_days)),
        *plant("not_started", order_ids[order_places[never]]),
        *plant("not_started", order_ids[order_places[next_night]]),
    ]
    tables = (
        RawTable("medicine_intakes", again(rng, _intakes(rows), 0.005)),
        RawTable("prescriptions", _prescriptions(orders, order_ids)),
    )
    return World("ward", tables, tuple(planted))


def _next_midnight(at_us: Ints) -> Ints:
    return (at_us // DAY_US + 1) * DAY_US


def _intakes(rows: dict[str, np.ndarray]) -> pa.Table:
    return pa.table(
        {
            "patient": pa.array(names("patient-", rows["patient"], 5), pa.string()),
            "medicine": pa.array(MEDICINES[rows["medicine"]], pa.string()),
            "dose_mg": pa.array(rows["mg"], pa.int32()),
            "taken_at": pa.array(rows["at"], TIME),
        }
    )


def _prescriptions(rows: dict[str, np.ndarray], ids: Strings) -> pa.Table:
    return pa.table(
        {
            "prescription_id": pa.array(ids, pa.string()),
            "patient": pa.array(names("patient-", rows["patient"], 5), pa.string()),
            "medicine": pa.array(MEDICINES[rows["medicine"]], pa.string()),
            "issued_at": pa.array(rows["at"], TIME),
        }
    )
