"""The store is in partition and event order, whatever the order of the rows."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from cep_core.engine.keys import key_codes
from cep_core.engine.load import load
from cep_core.engine.order import order
from cep_core.engine.sorting import sort_runs

pytestmark = pytest.mark.core


def random_table(seed, count, span):
    random = np.random.default_rng(seed)
    start = random.integers(-span, span, count)
    return pa.table(
        {
            "event_id": [f"{'x' * int(random.integers(0, 9))}{i}" for i in range(count)],
            "source": pa.array(
                [None if i % 17 == 0 else f"source {i}" for i in random.integers(0, 40, count)], pa.string()
            ),
            "event_class": [("A", "B")[i] for i in random.integers(0, 2, count)],
            "start_ts": start,
            "end_ts": start + random.integers(0, 3, count),
            "tie": pa.array([None if i == 0 else int(i) for i in random.integers(0, 3, count)], pa.int64()),
        }
    )


@pytest.mark.parametrize(("count", "span"), [(0, 5), (1, 5), (300, 4), (3000, 2000), (3000, 3)])
def test_the_store_is_sorted_by_partition_end_start_tie_and_id(count, span):
    table = random_table(count + span, count, span)
    events = load(table, ["A", "B"])
    codes = key_codes([events.attribute("source")])
    store = order(events, codes)
    rows = table.to_pylist()
    place = {}
    for row in rows:
        if row["source"] is not None:
            place.setdefault(row["source"], len(place))
    expected = sorted(
        (i for i, row in enumerate(rows) if row["source"] is not None),
        key=lambda i: (
            place[rows[i]["source"]],
            rows[i]["end_ts"],
            rows[i]["start_ts"],
            -1 if rows[i]["tie"] is None else rows[i]["tie"],
            rows[i]["event_id"].encode(),
        ),
    )
    assert store.row.tolist() == expected
    assert store.part.tolist() == [place[rows[i]["source"]] for i in expected]
    assert store.end.tolist() == [rows[i]["end_ts"] for i in expected]
    assert store.start.tolist() == [rows[i]["start_ts"] for i in expected]
    assert store.cls.tolist() == [("A", "B").index(rows[i]["event_class"]) for i in expected]


def test_sorted_rows_stay_and_ties_among_them_settle():
    table = pa.table(
        {
            "event_id": ["b", "a", "d", "c"],
            "source": ["s", "s", "t", "t"],
            "event_class": list("AAAA"),
            "ts": [1, 1, 1, 1],
        }
    )
    events = load(table, ["A"])
    store = order(events, key_codes([events.attribute("source")]))
    assert store.row.tolist() == [1, 0, 3, 2]


def test_without_a_key_there_is_one_partition():
    events = load(random_table(3, 50, 1000), ["A", "B"])
    store = order(events)
    assert store.offsets.tolist() == [0, 50]
    assert (np.diff(store.end) >= 0).all()


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ([["x", None, "y", "x"]], [0, -1, 1, 0]),
        ([[5, 7, None, 5]], [0, 1, -1, 0]),
        ([[5, 7, 2**62, 5]], [0, 1, 2, 0]),
        ([[0.0, -0.0, float("nan"), 1.0]], [0, 0, -1, 1]),
        ([[True, False, None, True]], [0, 1, -1, 0]),
        ([["x", "x", "y", "x"], [1, 2, 1, 1]], [0, 1, 2, 0]),
        ([["x", None, "y", "x"], [1, 2, None, 1]], [0, -1, -1, 0]),
        ([pa.array(["x", None, "y", "x"]).dictionary_encode()], [0, -1, 1, 0]),
    ],
)
def test_key_codes(columns, codes):
    assert (
        key_codes([column if isinstance(column, pa.Array) else pa.array(column) for column in columns]).tolist()
        == codes
    )


def test_many_keys_of_every_length():
    values = [f"{'k' * (number % 20)}{number}" for number in range(5000)]
    column = pa.array(values + values[::-1])
    assert key_codes([column]).tolist() == [*range(5000), *range(4999, -1, -1)]


@pytest.mark.parametrize("spread", [1, 100, 10**15, "outlier"])
def test_sort_runs_sorts_each_run(spread):
    random = np.random.default_rng(1)
    keys = random.integers(0, 50, 4000) if spread == "outlier" else random.integers(-spread, spread, 4000)
    if spread == "outlier":
        keys[1] = 2**60
    offsets = np.array([0, 0, 5, 30, 31, 1500, 4000])
    payload = np.arange(4000)
    given = keys.copy()
    sort_runs(offsets[:-1], offsets[1:], keys, payload)
    assert (given[payload] == keys).all()
    assert sorted(payload.tolist()) == list(range(4000))
    for low, high in pairwise(offsets):
        assert (np.diff(keys[low:high]) >= 0).all()
        assert set(payload[low:high].tolist()) == set(range(low, high))
