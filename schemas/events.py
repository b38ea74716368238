"""events: primitive events prepared for mining: read from the declared tables once, in source and time order.

Its attribute columns are those of the declarations; they are added to the fixed ones below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from schemas.contract import Column, Constraint, Contract

EVENTS = Contract(
    name="events",
    doc="Primitive events, prepared: one row an event, sorted by source and time inside each file.",
    columns=(
        Column("event_id", "string", "Identifies the event; equal ids are one event.", required=True),
        Column("source", "string", "Who or what the event is about."),
        Column("event_class", "string", "The declared class.", required=True),
        Column("start_ts", "bigint", "Start, in microseconds since the epoch, UTC.", required=True),
        Column(
            "end_ts", "bigint", "End, in microseconds since the epoch, UTC; equals start_ts for point events.", True
        ),
        Column("tie", "bigint", "Orders events of the same times, where the declaration has such a column."),
        Column("event_date", "date", "The UTC day of end_ts; the table is partitioned by it.", required=True),
    ),
    key=("event_id",),
    partition_by=("event_date",),
    constraints=(Constraint("starts_before_end", "start_ts <= end_ts"),),
)


def events_contract(attributes: Mapping[str, str]) -> Contract:
    """The contract with a column per attribute: name -> Spark type, in the order given."""
    own = tuple(Column(name, kind, f"Attribute {name} of the declarations.") for name, kind in attributes.items())
    return replace(EVENTS, columns=EVENTS.columns + own)
