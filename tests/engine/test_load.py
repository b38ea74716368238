"""What may enter the engine, and what is refused with which words."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cep_core.engine.load import load
from cep_core.errors import EventError

pytestmark = pytest.mark.core


def events(**columns):
    given = {"event_id": ["a", "b", "c"], "source": ["s", "s", "t"], "event_class": ["A", "B", "A"], "ts": [30, 20, 10]}
    return pa.table({name: values for name, values in (given | columns).items() if values is not None})


def test_classes_are_coded_by_their_place_and_other_rows_dropped():
    loaded = load(events(x=[1, 2, 3]), ["B", "Z", "A"])
    assert loaded.cls.tolist() == [2, 0, 2]
    only = load(events(x=[1, 2, 3]), ["A"])
    assert only.event_id.to_pylist() == ["a", "c"]
    assert only.rows.tolist() == [0, 2]
    assert only.end.tolist() == [30, 10]
    assert only.attribute("x").to_pylist() == [1, 3]
    assert load(events(), None).classes == ("A", "B")


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_string_column_gives_the_same(kind):
    names = pa.array(["A", "a longer class name", "A"])
    table = events(event_class=names.cast(kind))
    assert load(table, ["a longer class name", "A"]).cls.tolist() == [1, 0, 1]


def test_chunks_and_slices_are_read_as_one():
    table = pa.concat_tables([events(), events(event_id=["d", "e", "f"])]).slice(1, 4)
    loaded = load(table, ["A", "B"])
    assert loaded.event_id.to_pylist() == ["b", "c", "d", "e"]
    assert loaded.cls.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("unit", "times"),
    [("s", [3, 2, 1]), ("ms", [3000, 2000, 1000]), ("ns", [3_000_000_999, 2_000_000_000, 1_000_000_000])],
)
def test_timestamps_of_any_unit_become_microseconds(unit, times):
    loaded = load(events(ts=pa.array(times, pa.timestamp(unit, "UTC"))), ["A", "B"])
    assert loaded.end.tolist() == [3_000_000, 2_000_000, 1_000_000]
    assert loaded.points


def test_times_before_the_epoch_round_down():
    assert load(events(ts=pa.array([-1, 0, 1], pa.timestamp("ns"))), None).end.tolist() == [-1, 0, 0]


def test_integer_ids_and_pandas_frames_are_taken():
    frame = pd.DataFrame(
        {"event_id": [7, 8], "source": ["s", "t"], "event_class": ["A", "B"], "ts": [1, 2], "x": [1.5, np.nan]}
    )
    loaded = load(frame, ["B", "A"])
    assert loaded.event_id.to_pylist() == ["7", "8"]
    assert loaded.attribute("x").to_pylist() == [1.5, None]


def test_nan_is_null():
    assert load(events(x=[1.0, float("nan"), None]), None).attribute("x").to_pylist() == [1.0, None, None]


@pytest.mark.parametrize(
    ("ties", "before"),
    [
        ([2, None, 1], [1, 2, 0]),
        ([1.5, float("nan"), -3.0], [1, 2, 0]),
        (["b", None, "a"], [1, 2, 0]),
        ([0, None, -(2**63)], [1, 2, 0]),
    ],
)
def test_ties_keep_their_order_and_missing_is_lowest(ties, before):
    codes = load(events(tie=ties), None).tie
    assert np.argsort(codes, kind="stable").tolist() == before


def test_equal_rows_are_one_event():
    table = pa.concat_tables([events(x=[1.0, None, float("nan")])] * 3)
    loaded = load(table, ["A", "B"])
    assert loaded.event_id.to_pylist() == ["a", "b", "c"]
    assert loaded.attribute("x").to_pylist() == [1.0, None, None]


def test_many_ids_with_few_duplicates():
    count = 50_000
    ids = [f"id-{number % 49_990}" for number in range(count)]
    table = pa.table(
        {
            "event_id": ids,
            "source": ["s"] * count,
            "event_class": ["A"] * count,
            "ts": [n % 49_990 for n in range(count)],
        }
    )
    assert load(table, ["A"]).event_id.to_pylist() == ids[:49_990]


def test_rows_that_share_an_id_and_differ_are_named():
    with pytest.raises(EventError, match=r"'a' differs in source, ts, x"):
        load(events(event_id=["a", "b", "a"], x=[1, 2, 3]), ["A", "B"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": None, "sorce": ["s"] * 3}, r"lack the column 'source' \(did you mean 'sorce'\?\)"),
        ({"ts": None}, r"'start_ts', 'end_ts'.*one column 'ts'"),
        ({"ts": [1, None, 3]}, r"'ts' is null in 1 of 3 rows"),
        ({"event_id": ["a", None, "c"]}, r"'event_id' is null"),
        ({"event_class": ["A", None, "c"]}, r"'event_class' is null"),
        ({"ts": ["x", "y", "z"]}, r"'ts' is string; times are timestamps"),
        (
            {"ts": None, "start_ts": [1, 5, 1], "end_ts": [1, 2, 3]},
            r"start_ts is after end_ts in 1 events, among them 'b'",
        ),
        ({"event_class": [1, 2, 3]}, r"'event_class' is int64; it must be a string"),
        ({"event_id": [1.5, 2.5, 3.5]}, r"'event_id' is double"),
    ],
)
def test_what_cannot_be_mined_is_refused(columns, message):
    with pytest.raises(EventError, match=message):
        load(events(**columns), ["A", "B"])


def test_an_empty_table_is_no_error():
    assert load(events().slice(0, 0), ["A"]).count == 0
    assert load(pa.table({name: [] for name in ("event_id", "source", "event_class", "ts")}), None).count == 0
