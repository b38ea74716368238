"""Product releases and reviews (GenTrie, section 2: a new Volkswagen with five positive reviews).

Enters: a generator and a size. Leaves: product_releases and product_reviews; the planted five_good_reviews and
still_praised.
Always holds: a model is released once, so the reviews of two stories never meet.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from jobs.demo.world import (
    DAY_US,
    HOUR_US,
    START_US,
    TIME,
    Ints,
    RawTable,
    Size,
    Steps,
    Strings,
    World,
    between,
    names,
    plant,
    shares,
    timer_id,
)

MAKERS = np.array(["Volkswagen", "Volvo", "Fiat", "Seat"], dtype=object)
VOLKSWAGEN = 0
LAST_STORY_DAYS = 9  # no release in the last days, so that every story is whole
GOOD, BAD = (36, 51), (10, 36)  # tenths of a star; good is above 3.5


def products_world(rng: np.random.Generator, size: Size) -> World:
    counts = shares(
        max(20, round(size.rows / 5.5)),
        common={"plain": 0.85},
        rare={
            "five_good": 0.02, "press": 0.015, "four_good": 0.03, "other_maker": 0.02, "too_slow": 0.02,
            "praised": 0.02, "praised_twice": 0.02,
        },
    )  # fmt: skip
    releases, reviews = Steps(), Steps()
    model: dict[str, Ints] = {}
    born: dict[str, Ints] = {}
    out: dict[str, int] = {}
    first = 0
    for kind, count in counts.items():
        model[kind] = np.arange(first, first + count)
        born[kind] = START_US + 2 * DAY_US + between(rng, 0, max(1, size.days - LAST_STORY_DAYS - 2) * DAY_US, count)
        any_maker = kind in ("plain", "praised", "praised_twice")
        maker = rng.integers(0, len(MAKERS), count) if any_maker else np.full(count, int(kind == "other_maker"))
        out[kind] = releases.add(born[kind], model=model[kind], maker=maker)
        first += count

    def review(kind: str, hour: float, stars: tuple[int, int], spread_hours: float = 5) -> int:
        at = born[kind] + between(rng, hour * HOUR_US, (hour + spread_hours) * HOUR_US, counts[kind])
        return reviews.add(at, model=model[kind], tenths=rng.integers(*stars, counts[kind]))

    for hour, stars in ((2, GOOD), (10, BAD), (30, GOOD), (60, BAD)):
        review("plain", hour, stars, spread_hours=6)
    five = [review("five_good", 6 * n + 1, GOOD) for n in range(7)][:5]
    for hour in (3, 20):
        review("five_good", hour, BAD)
    press = [review("press", hour, GOOD) for hour in (-30, -20, 2, 10, 20, 30)][:5]
    for hour in (1, 8, 16, 24):
        review("four_good", hour, GOOD)
        review("four_good", hour + 30, BAD)
        review("too_slow", hour, GOOD)
    review("too_slow", 7 * 24 + 1, GOOD)
    for n in range(6):
        review("other_maker", 6 * n + 1, GOOD)
    review("praised", 10, GOOD)
    late = [review("praised", 24 * day, GOOD) for day in (3.2, 4.1, 5.2)]
    for day in (1, 3.2, 5.2):
        review("praised_twice", 24 * day, GOOD)

    rows, places = reviews.in_order()
    made, made_places = releases.in_order()
    ids = names("rev-", range(len(rows["at"])), 7)
    release_ids = np.array([f"release:{name}" for name in _model_names(made["model"])], dtype=object)

    def of(step: int) -> Strings:
        return ids[places[step]]

    def release(kind: str) -> Strings:
        return release_ids[made_places[out[kind]]]

    timers = [timer_id(at + 3 * DAY_US) for at in born["praised"]]
    planted = [
        *plant("five_good_reviews", release("five_good"), *map(of, five)),
        *plant("five_good_reviews", release("press"), *map(of, press)),
        *plant("still_praised", release("praised"), timers, *map(of, late)),
    ]
    tables = (RawTable("product_releases", _releases(made)), RawTable("product_reviews", _reviews(rows, ids)))
    return World("products", tables, tuple(planted))


def _model_names(numbers: Ints) -> Strings:
    return names("model-", numbers, 5)


def _releases(rows: dict[str, np.ndarray]) -> pa.Table:
    return pa.table(
        {
            "model": pa.array(_model_names(rows["model"]), pa.string()),
            "maker": pa.array(MAKERS[rows["maker"]], pa.string()),
            "released_at": pa.array(rows["at"], TIME),
        }
    )


def _reviews(rows: dict[str, np.ndarray], ids: Strings) -> pa.Table:
    return pa.table(
        {
            "review_id": pa.array(ids, pa.string()),
            "model": pa.array(_model_names(rows["model"]), pa.string()),
            "rating": pa.array(rows["tenths"] / 10.0, pa.float64()),
            "posted_at": pa.array(rows["at"], TIME),
        }
    )
