"""The generator: the same seed gives the same tables, and what it plants is all that the naive meaning finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cep_core.errors import TableError
from cep_core.language import check, load_catalogue, parse
from jobs.declarations import load_declarations
from jobs.demo.generator import generate
from jobs.demo.truth import Found, compare
from jobs.demo.world import Planted, World
from tests import naive
from tests.demo.primitives import events_of

pytestmark = pytest.mark.core
CONF = Path(__file__).resolve().parents[2] / "conf"
TEXTS = {entry.id: entry.query for entry in load_catalogue(CONF / "queries")}
SCHEMA = load_declarations(CONF / "events").schema()
SMALL = 1500


def test_the_same_seed_gives_the_same_tables_and_another_one_does_not() -> None:
    first, second, other = generate(SMALL), generate(SMALL), generate(SMALL, seed=8)
    assert [t.rows for w in first for t in w.tables] == [t.rows for w in second for t in w.tables]
    assert [w.planted for w in first] == [w.planted for w in second]
    for one, another in zip(first, other, strict=True):
        assert one.tables[0].rows != another.tables[0].rows


def test_the_size_follows_the_options() -> None:
    rows = {events: sum(t.rows.num_rows for w in generate(events) for t in w.tables) for events in (60_000, 120_000)}
    assert 0.8 < rows[60_000] / 60_000 < 1.25
    assert 1.7 < rows[120_000] / rows[60_000] < 2.3


def test_too_few_days_are_refused_with_the_number_that_is_needed() -> None:
    with pytest.raises(TableError, match="at least 14"):
        generate(SMALL, days=3)


def test_the_catalogue_is_what_the_worlds_plant() -> None:
    planted = {match.query_id for world in generate(SMALL) for match in world.planted}
    assert planted == set(TEXTS)
    entries = load_catalogue(CONF / "queries")
    assert all(e.title and e.description and e.owner and e.tags and e.enabled for e in entries)
    check({name: parse(text, name) for name, text in TEXTS.items()}, SCHEMA)


@pytest.mark.parametrize("world", generate(SMALL), ids=lambda world: world.name)
def test_the_naive_meaning_finds_what_is_planted_and_nothing_else(world: World) -> None:
    queries = {name: TEXTS[name] for name in {match.query_id for match in world.planted}}
    matches = naive.evaluate(events_of([world]), queries, schema=SCHEMA)
    for query_id, verdict in compare(world.planted, map(_found, matches)).items():
        assert verdict.good, f"{query_id}: {verdict.told()}"
        assert not verdict.others, f"{query_id}: {verdict.told()}"


def test_near_misses_are_there() -> None:
    """Without its negation, or with a longer window, each of these queries would find more."""
    worlds = {world.name: world for world in generate(SMALL)}
    looser = {
        "store": {
            "shoplifting": "PATTERN SEQ(ShelfReading s, ExitReading e) WHERE [source] WITHIN 3 hours",
            "misplaced_inventory": TEXTS["misplaced_inventory"].replace("WITHIN 1 hour", "WITHIN 2 hours"),
        },
        "cards": {"dating": TEXTS["dating"].replace("5 hours", "8 hours")},
        "ward": {"overdose": TEXTS["overdose"].replace("> 1000", ">= 1000")},
        "load": {"load_spike": TEXTS["load_spike"].replace("30 min", "60 min")},
        "machines": {"recovered_after_retries": TEXTS["recovered_after_retries"].replace(">= 2", ">= 1")},
        "cameras": {"running_person": TEXTS["running_person"].replace("WITHIN 3 s", "WITHIN 5 s")},
        "messages": {"message_cycle": TEXTS["message_cycle"].replace("1 hour", "2 hours")},
    }
    for name, queries in looser.items():
        found = Counter(m.query_id for m in naive.evaluate(events_of([worlds[name]]), queries, schema=SCHEMA))
        planted = Counter(match.query_id for match in worlds[name].planted)
        for query_id in queries:
            assert found[query_id] > planted[query_id], query_id


def test_a_missing_match_a_surplus_one_and_a_repeated_one_are_told() -> None:
    planted = [Planted("outer", ("e1", "e2")), Planted("inner", ("e1",)), Planted("inner", ("e9",))]
    found = [
        Found("inner", "m1", (("A", "e1"),)),
        Found("outer", "m2", (("inner", "m1"), ("A", "e2"))),
        Found("inner", "m3", (("A", "e3"),)),
        Found("outer", "m4", (("inner", "m1"), ("A", "e2"))),
    ]
    verdicts = compare(planted, found)
    assert verdicts["inner"].missing == (Planted("inner", ("e9",)),)
    assert verdicts["inner"].others == (Planted("inner", ("e3",)),)
    assert not verdicts["inner"].good
    assert "1 OF 2 PLANTED ONES ARE MISSING" in verdicts["inner"].told()
    assert verdicts["outer"].twice == 1
    assert not verdicts["outer"].good


def _found(match: naive.Match) -> Found:
    """A naive match. It does not know its members' classes: an id that may be a match's (32 hex digits, as hashed event
    ids have too) is looked up by `compare`, and is a plain event where no match has it."""
    ids = (event_id for _, bound in match.elements for event_id in bound)
    members = tuple((match.query_id if len(event_id) == 32 else "an event", event_id) for event_id in ids)
    return Found(match.query_id, naive.sha_id(match.query_id, match.elements), members)
