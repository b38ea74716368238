"""The engine on the demo's worlds, without Spark: what is planted is found, and nothing else."""

from __future__ import annotations

import pytest

import cep_core
from jobs.demo.generator import generate
from jobs.demo.truth import Found, compare
from jobs.demo.world import World
from tests.demo.primitives import as_table, events_of
from tests.demo.test_generator import SCHEMA, TEXTS

pytestmark = pytest.mark.core


@pytest.mark.parametrize("world", generate(20_000), ids=lambda world: world.name)
def test_the_engine_finds_what_is_planted_and_nothing_else(world: World) -> None:
    queries = {name: TEXTS[name] for name in {match.query_id for match in world.planted}}
    table = cep_core.mine(as_table(events_of([world])), queries, schema=SCHEMA)
    found = [
        Found(row["query_id"], row["match_id"], tuple((m["event_class"], m["event_id"]) for m in row["members"]))
        for row in table.to_pylist()
    ]
    for query_id, verdict in compare(world.planted, found).items():
        assert verdict.good, f"{query_id}: {verdict.told()}"
        assert not verdict.others, f"{query_id}: {verdict.told()}"
