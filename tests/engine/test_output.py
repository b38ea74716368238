"""The table of matches: its contract, its ids, its order."""

import numpy as np
import pyarrow as pa
import pytest

from cep_core.engine import output
from cep_core.engine.identity import match_id
from cep_core.engine.load import load
from cep_core.engine.output import SCHEMA, Answers, matches_table

pytestmark = pytest.mark.core
COUNT = 200


@pytest.fixture(scope="module")
def events():
    random = np.random.default_rng(2)
    start = random.integers(0, 20, COUNT)
    return load(
        pa.table(
            {
                "event_id": [f"{'é' * (i % 5)}id{'-' * (i % 23)}{i}" for i in range(COUNT)],
                "source": ["s"] * COUNT,
                "event_class": [("Shelf", "a class of some length")[i % 2] for i in range(COUNT)],
                "start_ts": start,
                "end_ts": start + 5,
            }
        ),
        ["Shelf", "a class of some length"],
    )


def random_answers(count):
    random = np.random.default_rng(3)
    rows = np.stack([random.permutation(COUNT)[:3] for _ in range(count)]).astype(np.int32)
    rows[::7, 1] = -1
    return Answers(random.integers(0, 3, count).astype(np.int32), rows)


def micro(moment):
    return round(moment.timestamp() * 1_000_000)


def test_each_match_has_its_members_times_and_id(events):
    ids, elements = ["q1", "second query", "3"], [("a", "b", "c"), ("x", "y", "z"), ("1", "2", "3")]
    answers = random_answers(50)
    table = matches_table(events, [answers], ids, elements)
    table.validate(full=True)
    assert table.schema == SCHEMA
    expected = set()
    for query, rows in zip(answers.query.tolist(), answers.rows.tolist(), strict=True):
        bound = [(elements[query][slot], row) for slot, row in enumerate(rows) if row >= 0]
        expected.add(
            (
                ids[query],
                match_id(ids[query], [(name, [events.event_id[row].as_py()]) for name, row in bound]),
                min(int(events.start[row]) for _, row in bound),
                max(int(events.end[row]) for _, row in bound),
                tuple((name, events.classes[events.cls[row]], events.event_id[row].as_py()) for name, row in bound),
            )
        )
    found = {
        (
            row["query_id"],
            row["match_id"],
            micro(row["start_ts"]),
            micro(row["end_ts"]),
            tuple((m["element"], m["event_class"], m["event_id"]) for m in row["members"]),
        )
        for row in table.to_pylist()
    }
    assert found == expected
    assert all(row["detection_ts"] == row["end_ts"] and row["fields"] == [] for row in table.to_pylist())


def test_the_order_is_fixed_and_does_not_depend_on_the_answers_order(events):
    ids, elements = ["b", "a", "c"], [("a", "b", "c")] * 3
    answers = random_answers(300)
    table = matches_table(events, [answers], ids, elements)
    keys = [
        (ids.index(r["query_id"]), r["detection_ts"], r["end_ts"], r["start_ts"], r["match_id"])
        for r in table.to_pylist()
    ]
    assert keys == sorted(keys)
    assert len({key[:4] for key in keys}) < len({key[:5] for key in keys})
    turned = Answers(answers.query[::-1].copy(), answers.rows[::-1].copy())
    halves = [Answers(turned.query[:100], turned.rows[:100]), Answers(turned.query[100:], turned.rows[100:])]
    assert matches_table(events, halves, ids, elements).equals(table)


def test_groups_timers_detection_and_fields(events):
    answers = Answers(
        np.array([1, 0], np.int32),
        offsets=np.array([0, 3, 5]),
        slot=np.array([0, 1, 1, 0, 1]),
        member=np.array([4, 9, 7, 2, COUNT + 1]),
        detection=np.array([50, 40]),
        fields={"n": pa.array(["2", None]), "m": pa.array(["x", "y"])},
    )
    plain = Answers(np.array([1], np.int32), np.array([[3, 5]], np.int32))
    table = matches_table(events, [answers, plain], ["q", "r"], [("a", "t"), ("a", "g")], np.array([7, 12]))
    table.validate(full=True)
    first, second, third = table.to_pylist()
    assert (first["query_id"], second["query_id"], third["query_id"]) == ("q", "r", "r")
    timer = "timer:1970-01-01T00:00:00.000012Z"
    assert first["members"][1]["event_id"] == timer
    assert micro(first["members"][1]["start_ts"]) == 12
    assert first["fields"] == [("n", None), ("m", "y")]
    assert second["fields"] == []
    assert third["fields"] == [("n", "2"), ("m", "x")]
    assert (micro(first["detection_ts"]), micro(third["detection_ts"])) == (40, 50)
    name = [events.event_id[row].as_py() for row in (4, 9, 7)]
    assert third["match_id"] == match_id("r", [("a", name[:1]), ("g", name[1:])])
    assert first["match_id"] == match_id("q", [("a", [events.event_id[2].as_py()]), ("t", [timer])])


def test_large_results_come_in_several_arrays_with_the_same_rows(events, monkeypatch):
    answers = random_answers(100)
    whole = matches_table(events, [answers], ["a", "b", "c"], [("a", "b", "c")] * 3)
    monkeypatch.setattr(output, "_MEMBERS_A_BATCH", 40)
    cut = matches_table(events, [answers], ["a", "b", "c"], [("a", "b", "c")] * 3)
    assert cut.column("match_id").num_chunks > 3
    assert cut.equals(whole)


def test_no_answers_is_an_empty_table(events):
    assert matches_table(events, [], ["q"], [("a",)]).schema == SCHEMA


def test_an_id_tells_elements_members_and_queries_apart():
    parts = [
        ("q", [("a", ["x", "y"]), ("b", ["z"])]),
        ("q", [("a", ["x"]), ("b", ["y", "z"])]),
        ("q", [("a", ["x", "y", "z"])]),
        ("q", [("b", ["x", "y"]), ("a", ["z"])]),
        ("qa", [("", ["x", "y"]), ("b", ["z"])]),
        ("q", [("a", ["xy"]), ("b", ["z"])]),
        ("q", [("a", ["y", "x"]), ("b", ["z"])]),
        ("q", [("a", ["x\0", "y"]), ("b", ["z"])]),
    ]
    ids = [match_id(*part) for part in parts]
    assert len(set(ids)) == len(ids)
    assert all(len(value) == 32 and int(value, 16) >= 0 for value in ids)


def test_the_id_of_a_match_never_changes():
    assert match_id("theft", [("s", ["e1"]), ("x", ["e2"])]) == "4290f637956aa653a44dbff97872496b"
