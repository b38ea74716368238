"""RFID readings of a shop (SASE, section 2): shelves, counters and exits in one wide table.

Enters: a generator and a size. Leaves: rfid_readings, and the planted shoplifting and misplaced_inventory.
Always holds: a story takes under five hours of its twelve-hour slot, so two stories of a tag are over three hours
apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    HOUR_US,
    TIME,
    Cells,
    Ints,
    Planted,
    RawTable,
    Size,
    Steps,
    Strings,
    World,
    again,
    deal,
    minutes,
    names,
    plant,
    shares,
)

SHELVES = 40
PRODUCTS = np.array(
    ["razor blades", "coffee", "batteries", "headphones", "perfume", "chocolate", "whisky", "vitamins"], dtype=object
)
CATEGORIES = np.array(["care", "food", "tools", "media", "care", "food", "food", "care"], dtype=object)
NO_SHELF = -1


def store_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        round(size.rows / 3.2),
        common={"bought": 0.6, "browsed": 0.2, "put_back": 0.06, "moved_and_bought": 0.05},
        rare={
            "moved_slowly": 0.02,
            "left_late": 0.02,
            "came_back": 0.02,
            "stolen": 0.004,
            "stolen_read_twice": 0.002,
            "misplaced": 0.004,
            "misplaced_bought_later": 0.002,
        },
    )
    cells = deal(rng, counts, size.days, slot_us=12 * HOUR_US, slack_us=4 * HOUR_US)
    steps = Steps()

    def later(kind: str, low: float, high: float) -> Ints:
        return minutes(rng, low, high, counts[kind])

    def shelf(kind: str, after: Ints | int, number: Ints) -> int:
        return _reading(rng, steps, cells[kind], after, "shelf", number)

    def zone(kind: str, after: Ints, name: str) -> int:
        return _reading(rng, steps, cells[kind], after, name, np.full(counts[kind], NO_SHELF))

    home = {kind: rng.integers(1, SHELVES + 1, count) for kind, count in counts.items()}
    other = {kind: (home[kind] - 1 + rng.integers(1, SHELVES, count)) % SHELVES + 1 for kind, count in counts.items()}

    shelf("bought", 0, home["bought"])
    shelf("bought", later("bought", 5, 20), home["bought"])
    paid = later("bought", 25, 60)
    zone("bought", paid, "counter")
    zone("bought", paid + later("bought", 3, 10), "exit")

    shelf("browsed", 0, home["browsed"])
    shelf("browsed", later("browsed", 10, 50), home["browsed"])

    shelf("put_back", 0, home["put_back"])
    shelf("put_back", later("put_back", 5, 10), other["put_back"])
    shelf("put_back", later("put_back", 12, 20), home["put_back"])
    paid = later("put_back", 25, 40)
    zone("put_back", paid, "counter")
    zone("put_back", paid + later("put_back", 3, 8), "exit")

    shelf("moved_and_bought", 0, home["moved_and_bought"])
    shelf("moved_and_bought", later("moved_and_bought", 10, 20), other["moved_and_bought"])
    paid = later("moved_and_bought", 30, 50)
    zone("moved_and_bought", paid, "counter")
    zone("moved_and_bought", paid + later("moved_and_bought", 3, 8), "exit")

    shelf("moved_slowly", 0, home["moved_slowly"])  # the second shelf is outside the hour
    shelf("moved_slowly", later("moved_slowly", 61, 90), other["moved_slowly"])

    shelf("left_late", 0, home["left_late"])  # the exit is outside the three hours
    zone("left_late", later("left_late", 181, 280), "exit")

    zone("came_back", later("came_back", 0, 1), "exit")  # the wrong order
    shelf("came_back", later("came_back", 20, 60), home["came_back"])

    taken = shelf("stolen", 0, home["stolen"])
    out = zone("stolen", later("stolen", 20, 150), "exit")

    first = shelf("stolen_read_twice", 0, home["stolen_read_twice"])
    second = shelf("stolen_read_twice", later("stolen_read_twice", 5, 15), home["stolen_read_twice"])
    gone = zone("stolen_read_twice", later("stolen_read_twice", 30, 150), "exit")

    from_shelf = shelf("misplaced", 0, home["misplaced"])
    to_shelf = shelf("misplaced", later("misplaced", 10, 50), other["misplaced"])

    kind = "misplaced_bought_later"  # paid after the hour, which is too late to undo the misplacement
    from_too = shelf(kind, 0, home[kind])
    to_too = shelf(kind, later(kind, 10, 50), other[kind])
    paid = later(kind, 70, 100)
    zone(kind, paid, "counter")
    zone(kind, paid + later(kind, 3, 8), "exit")

    rows, places = steps.in_order()
    ids = names("R", range(len(rows["at"])), 8)

    def of(step: int) -> Strings:
        return ids[places[step]]

    planted: list[Planted] = [
        *plant("shoplifting", of(taken), of(out)),
        *plant("shoplifting", of(first), of(gone)),
        *plant("shoplifting", of(second), of(gone)),
        *plant("misplaced_inventory", of(from_shelf), of(to_shelf)),
        *plant("misplaced_inventory", of(from_too), of(to_too)),
    ]
    return World("store", (RawTable("rfid_readings", _table(rng, rows, ids)),), tuple(planted))


def _reading(rng: np.random.Generator, steps: Steps, cells: Cells, after: Ints | int, zone: str, shelf: Ints) -> int:
    reader = shelf if zone == "shelf" else rng.integers(1, 5, len(cells))
    return steps.add(cells.start_us + after, tag=cells.subject, zone=zone, shelf=shelf, reader=reader)


def _table(rng: np.random.Generator, rows: dict[str, np.ndarray], ids: Strings) -> pa.Table:
    """The readings, then what the shop's readers add: torn tags without an id, the backroom, rows sent twice."""
    tag = rows["tag"].astype(np.int64)
    shelf = rows["shelf"].astype(np.int64)
    table = pa.table(
        {
            "reading_id": pa.array(ids, pa.string()),
            "tag_id": pa.array(names("tag-", tag, 6), pa.string()),
            "product": pa.array(PRODUCTS[tag % len(PRODUCTS)], pa.string()),
            "category": pa.array(CATEGORIES[tag % len(PRODUCTS)], pa.string()),
            "zone": pa.array(rows["zone"], pa.string()),
            "reader": pa.array([f"{z}-{n}" for z, n in zip(rows["zone"], rows["reader"], strict=True)], pa.string()),
            "shelf_no": pa.array(shelf, pa.int32(), mask=shelf == NO_SHELF),
            "signal_dbm": pa.array(np.round(rng.uniform(-75, -40, len(tag)), 1), pa.float64()),
            "read_at": pa.array(rows["at"], TIME),
        }
    )
    backroom = table.take(pa.array(rng.integers(0, len(table), max(1, len(table) // 25))))
    backroom = _replaced(backroom, "reading_id", [f"B{n:08d}" for n in range(len(backroom))])
    backroom = _replaced(backroom, "zone", ["backroom"] * len(backroom))
    torn = table.take(pa.array(rng.integers(0, len(table), max(1, len(table) // 300))))
    torn = _replaced(torn, "reading_id", [f"T{n:08d}" for n in range(len(torn))])
    torn = _replaced(torn, "tag_id", [None] * len(torn))
    everything = pa.concat_tables([again(rng, table, 0.005), backroom, torn])
    return everything.sort_by([("read_at", "ascending"), ("reading_id", "ascending")])


def _replaced(table: pa.Table, column: str, values: list[str | None]) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, pa.array(values, pa.string()))
