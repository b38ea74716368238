"""Packs of events: cut by number, sorted, and opened again without a loss."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import jobs.encode
from jobs.encode import CONTENT, NUMBER, cut, gather, opened

pytestmark = pytest.mark.core

T0 = 1_767_225_600_000_000
COLUMNS = ("event_id", "source", "start_ts", "x")


def events(count: int, seed: int, *, several: bool, intervals: bool, far_us: int = 0) -> pa.Table:
    """Events with null sources and attributes, each with one number, or with some or none."""
    draw = random.Random(seed)
    ends = [T0 + draw.randrange(50) + (far_us if draw.random() < 0.5 else 0) for _ in range(count)]
    numbers = [[n for n in range(4) if draw.random() < 0.4] if several else draw.randrange(4) for _ in range(count)]
    return pa.table({
        NUMBER: pa.array(numbers, pa.list_(pa.int32()) if several else pa.int32()),
        "event_id": [f"e{n}" for n in range(count)],
        "source": pa.array([draw.choice(["s1", "s0", "s2", None]) for _ in range(count)], pa.string()),
        "event_class": pa.array([draw.choice("ABC") for _ in range(count)], pa.string()),
        "start_ts": [end - (draw.randrange(3) if intervals else 0) for end in ends], "end_ts": ends,
        "x": pa.array([draw.choice([1, 2, None]) for _ in range(count)], pa.int64()),
    })  # fmt: skip


def packs_of(table: pa.Table, rows: int) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for batch in cut(rows)(iter(table.to_batches(max_chunksize=17))):
        for number, content in zip(batch.column(NUMBER).to_pylist(), batch.column(CONTENT).to_pylist(), strict=True):
            found.setdefault(number, []).append(content)
    return found


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("intervals", [False, True])
@pytest.mark.parametrize("rows", [20, 1_000])
def test_each_number_gets_exactly_its_events(several: bool, intervals: bool, rows: int) -> None:
    table = events(120, 1, several=several, intervals=intervals)
    packs = packs_of(table, rows)
    low, high = T0 + 5, T0 + 40
    for number in range(4):
        found = gather(packs.pop(number), COLUMNS, ("A", "C", "absent"), low, high)
        wanted = Counter(
            (r["event_id"], r["source"], r["event_class"], r["start_ts"], r["end_ts"], r["x"])
            for r in table.to_pylist()
            if (number in r[NUMBER] if several else number == r[NUMBER])
            and r["event_class"] in "AC" and low <= r["end_ts"] < high
        )  # fmt: skip
        names = ("event_id", "source", "event_class", "start_ts", "end_ts", "x")
        assert Counter(tuple(r[name] for name in names) for r in found.to_pylist()) == wanted
        assert all(column.num_chunks <= 1 for column in found.columns)
    assert not packs


@pytest.mark.parametrize("far_us", [0, 2**61])  # source and time in one number, and where both do not fit
def test_a_pack_is_sorted_by_source_and_time(far_us: int) -> None:
    for content in (c for some in packs_of(events(200, 2, several=True, intervals=True, far_us=far_us), 90).values()
                    for c in some):  # fmt: skip
        pack = opened(content, ["source", "end_ts"])
        codes = pack.column("source").chunk(0).indices.fill_null(99).to_pylist()
        keys = list(zip(codes, pack.column("end_ts").to_pylist(), strict=True))
        assert keys == sorted(keys)


def test_a_pack_holds_no_more_than_its_events_need() -> None:
    few = events(40, 3, several=False, intervals=False).set_column(2, "source", [[f"s{n}" for n in range(40)]])
    for contents in packs_of(few, 1_000).values():
        for content in contents:
            pack = pa.ipc.open_stream(content).read_all()
            assert "start_ts" not in pack.column_names
            assert len(pack.column("source").chunk(0).dictionary) == len(pack)
            assert opened(content).column("start_ts").equals(pack.column("end_ts"))


def test_what_is_held_is_bounded_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = events(100, 4, several=False, intervals=False)
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for batch in table.to_batches(max_chunksize=10):
            read += len(batch)
            yield batch

    seen = [read for _ in cut(30)(batches())]
    assert seen == [30, 60, 90, 100]
    monkeypatch.setattr(jobs.encode, "CUT_BYTES", 1)
    read = 0
    assert [read for _ in cut(30)(batches())] == list(range(10, 101, 10))


def test_packs_that_follow_one_another_in_time_keep_each_source_in_order() -> None:
    table = events(300, 5, several=False, intervals=False).sort_by("end_ts").drop_columns(NUMBER)
    table = table.append_column(NUMBER, pa.array(np.zeros(300, np.int32)))
    packs = packs_of(table, 60)[0]
    found = gather([packs[place] for place in (3, 0, 4, 1, 2)], COLUMNS, ("A", "B", "C"), T0, T0 + 100)
    for source in ("s0", "s1", "s2", None):
        ends = [row["end_ts"] for row in found.to_pylist() if row["source"] == source]
        assert ends == sorted(ends)
