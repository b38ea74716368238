"""What a demo world is made of: stories about subjects, laid into slots of time that never meet.

Enters: a numpy Generator and sizes. Leaves: raw tables as a shop has them, and the matches that were planted in them.
Always holds: one slot of one subject holds one story, and the pause between the slots of a subject is longer than the
windows of the queries over that world. So no match can reach over two stories, and the planted matches are not only
found: they are all that there is to find. No clock is read; the same seed gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Rows = dict[str, npt.NDArray[Any]]

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
START_US = 1_767_571_200 * SECOND_US  # Monday, 2026-01-05T00:00:00Z
TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class RawTable:
    """One table as the shop keeps it. `format` is how it is stored."""

    name: str
    rows: pa.Table
    format: Literal["delta", "parquet"] = "delta"


@dataclass(frozen=True, order=True)
class Planted:
    """A match that must be found: the query and the ids of its events in pattern order. The members of a match that is
    itself a member stand in its place."""

    query_id: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class World:
    """The raw tables of one world and what there is to find in them."""

    name: str
    tables: tuple[RawTable, ...]
    planted: tuple[Planted, ...]


@dataclass(frozen=True)
class Size:
    """How much to generate: rows in all raw tables of a world together (about), and the days that they spread over."""

    rows: int
    days: int

    @property
    def end_us(self) -> int:
        return START_US + self.days * DAY_US


@dataclass(frozen=True)
class Cells:
    """The slots that the stories of one kind got: subject number and start of each story."""

    subject: Ints
    start_us: Ints

    def __len__(self) -> int:
        return len(self.subject)


def shares(stories: int, common: Mapping[str, float], rare: Mapping[str, float]) -> dict[str, int]:
    """How many stories of each kind: a share of all, but at least two of each rare kind, so that every world of any
    size has its matches and its near misses.

    >>> shares(100, {"bought": 0.9}, {"stolen": 0.001})
    {'bought': 90, 'stolen': 2}
    """
    counts = {kind: max(1, round(stories * share)) for kind, share in common.items()}
    return counts | {kind: max(2, round(stories * share)) for kind, share in rare.items()}


def deal(
    rng: np.random.Generator, counts: Mapping[str, int], days: int, slot_us: int, slack_us: int, fill: float = 0.6
) -> dict[str, Cells]:
    """A free slot for every story, no two alike; a story starts up to `slack_us` after its slot does."""
    slots = max(1, days * DAY_US // slot_us)
    total = sum(counts.values())
    subjects = int(np.ceil(total / (slots * fill)))
    chosen = rng.permutation(subjects * slots)[:total]
    starts = START_US + (chosen % slots) * slot_us + between(rng, 0, slack_us, total)
    cells, at = {}, 0
    for kind, count in counts.items():
        part = slice(at, at + count)
        cells[kind] = Cells((chosen[part] // slots).astype(np.int64), starts[part])
        at += count
    return cells


def between(rng: np.random.Generator, low: float, high: float, count: int) -> Ints:
    """Whole microseconds in [low, high), in steps of a millisecond, as clocks of devices have them."""
    return rng.integers(int(low) // 1000, int(high) // 1000, count) * 1000


def minutes(rng: np.random.Generator, low: float, high: float, count: int) -> Ints:
    return between(rng, low * MINUTE_US, high * MINUTE_US, count)


@dataclass
class Steps:
    """The steps of all stories of one table, collected, then put in order of time."""

    parts: list[Rows] = field(default_factory=list)

    def add(self, at: Ints, **columns: Any) -> int:
        """One step of many stories: its times, and each column as an array or one value for all. Returns its number."""
        step: Rows = {"at": at}
        for name, value in columns.items():
            array = value if isinstance(value, np.ndarray) else np.full(len(at), value, dtype=object)
            step[name] = array
        self.parts.append(step)
        return len(self.parts) - 1

    def in_order(self) -> tuple[Rows, list[Ints]]:
        """All rows by time (then as added), and for each step the places of its rows in them."""
        names = self.parts[0].keys()
        rows = {name: np.concatenate([part[name] for part in self.parts]) for name in names}
        order = np.argsort(rows["at"], kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        ends = np.cumsum([len(part["at"]) for part in self.parts])
        return {name: column[order] for name, column in rows.items()}, np.split(place, ends[:-1])


def names(prefix: str, numbers: Ints | range, width: int) -> Strings:
    """`names('card-', [7], 4)` gives card-0007."""
    return np.array([f"{prefix}{number:0{width}d}" for number in numbers], dtype=object)


def plant(query_id: str, *columns: Sequence[str] | Strings) -> list[Planted]:
    """One match a story from columns of member ids, in pattern order."""
    return [Planted(query_id, tuple(members)) for members in zip(*columns, strict=True)]


def timer_id(at_us: int) -> str:
    """The id that the language gives a timer of this moment.

    >>> timer_id(START_US)
    'timer:2026-01-05T00:00:00.000000Z'
    """
    return f"timer:{np.datetime_as_string(np.datetime64(int(at_us), 'us'), unit='us')}Z"


def hashed_id(event_class: str, *columns: str | int) -> str:
    """The id that a declaration gives an event by hashing columns (jobs.primitives); a time goes in as `json_time`."""
    content = {"class": event_class} | {f"c{n}": value for n, value in enumerate(columns)}
    return hashlib.md5(json.dumps(content, separators=(",", ":")).encode(), usedforsecurity=False).hexdigest()


def json_time(at_us: int) -> str:
    """
    >>> json_time(START_US + 1_500_000)
    '2026-01-05T00:00:01.500Z'
    """
    return f"{np.datetime_as_string(np.datetime64(int(at_us), 'us'), unit='ms')}Z"


def again(rng: np.random.Generator, table: pa.Table, share: float) -> pa.Table:
    """The table with some of its rows written twice, as devices and message queues do."""
    count = max(1, round(len(table) * share))
    return pa.concat_tables([table, table.take(pa.array(rng.integers(0, len(table), count)))])
