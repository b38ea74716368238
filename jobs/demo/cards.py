"""Card payments and merchants (SCEMon, section 3.1): evenings out, mall shopping, and cards that thieves try out.

Enters: a generator and a size. Leaves: card_payments and merchants, to be joined by a declaration's SQL; the planted
dating, mall_shopping, day_out (a query over the other two) and card_testing.
Always holds: a card's story starts between ten and one o'clock and is over by ten at night, so two are twelve
hours apart.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
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
    deal,
    minutes,
    names,
    plant,
    shares,
)

KINDS = ["cinema", "restaurant", "bar", "northwind", "alder", "fjord", "online", "grocery", "fuel"]
BRANDS = ["northwind", "alder", "fjord"]
SHOPS = 6  # merchants of each kind
UNKNOWN = len(KINDS) * SHOPS  # a merchant that closed and is no longer in the merchants table


def cards_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        round(size.rows / 2.4),
        common={"daily": 0.75, "parcels": 0.1},
        rare={
            "date": 0.006, "date_backwards": 0.01, "date_expensive": 0.01, "date_long": 0.01,
            "mall": 0.006, "mall_rich": 0.01, "mall_slow": 0.01, "mall_two": 0.01, "day_out": 0.004,
            "testing": 0.004, "testing_two": 0.006, "testing_small": 0.006, "testing_late": 0.006,
        },
    )  # fmt: skip
    cells = {
        kind: Cells(cell.subject, cell.start_us + 10 * HOUR_US)
        for kind, cell in deal(rng, counts, size.days, slot_us=DAY_US, slack_us=3 * HOUR_US).items()
    }
    steps = Steps()

    def pay(kind: str, after: Ints | int, what: str | np.ndarray, low: float, high: float) -> int:
        count = counts[kind]
        category = np.array([KINDS.index(w) for w in ([what] * count if isinstance(what, str) else what)])
        shop = category * SHOPS + rng.integers(0, SHOPS, count)
        amount = rng.integers(round(low * 100), round(high * 100), count)
        return steps.add(cells[kind].start_us + after, card=cells[kind].subject, shop=shop, cents=amount)

    def later(kind: str, low: float, high: float) -> Ints:
        return minutes(rng, low, high, counts[kind])

    def date(kind: str, begin: Ints | int, dinner: tuple[float, float] = (80.01, 120)) -> tuple[int, int, int]:
        meal = begin + later(kind, 90, 150)
        drink = meal + later(kind, 60, 90)
        return (
            pay(kind, begin, "cinema", 20.01, 50),
            pay(kind, meal, "restaurant", *dinner),
            pay(kind, drink, "bar", 8, 50),
        )

    def mall(kind: str, third: tuple[float, float], low: float, high: float) -> list[int]:
        """The three brands in any order; returns the steps in the order of BRANDS."""
        times = np.stack([np.zeros(counts[kind], np.int64), later(kind, 15, 40), later(kind, *third)], axis=1)
        times = rng.permuted(times, axis=1)
        return [pay(kind, times[:, place], brand, low, high) for place, brand in enumerate(BRANDS)]

    pay("daily", 0, "grocery", 5, 120)
    pay("daily", later("daily", 30, 300), np.where(rng.random(counts["daily"]) < 0.5, "fuel", "grocery"), 20, 90)
    for begin in (0, 20, 45):
        pay("parcels", later("parcels", begin, begin + 15), "online", 10, 149)

    dates = date("date", 0)
    date("date_expensive", 0, dinner=(120, 300))
    pay("date_backwards", 0, "bar", 8, 50)
    pay("date_backwards", later("date_backwards", 60, 90), "restaurant", 80.01, 120)
    pay("date_backwards", later("date_backwards", 150, 200), "cinema", 20.01, 50)
    pay("date_long", 0, "cinema", 20.01, 50)
    pay("date_long", later("date_long", 90, 150), "restaurant", 80.01, 120)
    pay("date_long", later("date_long", 301, 360), "bar", 8, 50)

    malls = mall("mall", (45, 89), 15, 66)
    mall("mall_rich", (45, 89), 67, 150)
    mall("mall_slow", (91, 170), 15, 66)
    for brand in BRANDS[:2]:
        pay("mall_two", later("mall_two", 0, 60), brand, 15, 66)

    out_malls = mall("day_out", (45, 89), 15, 66)
    out_dates = date("day_out", later("day_out", 180, 240))

    def test_card(kind: str, big: int, begin: float, low: float, high: float) -> list[int]:
        probe = pay(kind, 0, "online", 0.5, 2)
        return [
            probe,
            *(pay(kind, later(kind, begin + 20 * n, begin + 20 * n + 15), "online", low, high) for n in range(big)),
        ]

    tests = test_card("testing", 4, 5, 260, 600)
    test_card("testing_two", 2, 5, 600, 900)
    test_card("testing_small", 3, 5, 150, 300)
    test_card("testing_late", 3, 121, 400, 600)

    rows, places = steps.in_order()
    ids = names("P", range(len(rows["at"])), 8)

    def of(step: int) -> Strings:
        return ids[places[step]]

    planted: list[Planted] = [
        *plant("dating", *map(of, dates)),
        *plant("dating", *map(of, out_dates)),
        *plant("mall_shopping", *map(of, malls)),
        *plant("mall_shopping", *map(of, out_malls)),
        *plant("day_out", *map(of, out_malls), *map(of, out_dates)),
        *plant("card_testing", *map(of, tests)),
    ]
    tables = (RawTable("card_payments", _payments(rng, rows, ids)), RawTable("merchants", _merchants()))
    return World("cards", tables, tuple(planted))


def _payments(rng: np.random.Generator, rows: dict[str, np.ndarray], ids: Strings) -> pa.Table:
    table = pa.table(
        {
            "payment_id": pa.array(ids, pa.string()),
            "card_no": pa.array(names("card-", rows["card"], 6), pa.string()),
            "merchant_id": pa.array(rows["shop"].astype(np.int64), pa.int32()),
            "amount": pa.array(rows["cents"].astype(np.int64) / 100.0, pa.float64()),
            "currency": pa.array(["EUR"] * len(ids), pa.string()),
            "paid_at": pa.array(rows["at"], TIME),
        }
    )
    closed = table.take(pa.array(rng.integers(0, len(table), max(1, len(table) // 300))))
    closed = closed.set_column(0, "payment_id", pa.array(names("C", range(len(closed)), 8), pa.string()))
    closed = closed.set_column(2, "merchant_id", pa.array(np.full(len(closed), UNKNOWN), pa.int32()))
    return pa.concat_tables([table, closed])


def _merchants() -> pa.Table:
    return pa.table(
        {
            "merchant_id": pa.array(range(len(KINDS) * SHOPS), pa.int32()),
            "merchant": pa.array([f"{kind} {n + 1}" for kind in KINDS for n in range(SHOPS)], pa.string()),
            "category": pa.array(["brand" if k in BRANDS else k for k in KINDS for _ in range(SHOPS)], pa.string()),
            "brand": pa.array([k if k in BRANDS else None for k in KINDS for _ in range(SHOPS)], pa.string()),
        }
    )
