"""packs: the declared events once more, sorted and encoded, many to a row; made from the declared tables alone."""

from __future__ import annotations

from schemas.contract import Column, Constraint, Contract

PACKS = Contract(
    name="packs",
    doc="The events of the declared tables, packed for mining: one row for the events of some sources in some time.",
    columns=(
        Column("hash_range", "int", "The range of source hashes that the events belong to.", required=True),
        Column("stretch", "bigint", "The stretch of time that their end_ts lies in, counted from the epoch.", True),
        Column("part", "int", "Numbers the packs of one hash range and stretch.", required=True),
        Column("events", "bigint", "How many events the pack holds.", required=True),
        Column("first_us", "bigint", "The least end_ts in it, microseconds since the epoch.", required=True),
        Column("last_us", "bigint", "The greatest end_ts in it.", required=True),
        Column("content", "binary", "The events by source and time, as a compressed Arrow stream.", required=True),
    ),
    key=("hash_range", "stretch", "part"),
    constraints=(Constraint("has_events", "events > 0"), Constraint("times_in_order", "first_us <= last_us")),
)
