"""event_stats: how many events of each class there are, per day: what plans are costed with."""

from __future__ import annotations

from schemas.contract import Column, Constraint, Contract

ATTRIBUTE_STATS_TYPE = "struct<nulls:bigint,distinct_values:bigint,low:string,high:string>"

EVENT_STATS = Contract(
    name="event_stats",
    doc="Statistics of the primitive events, per class and day.",
    columns=(
        Column("event_class", "string", "The declared class.", required=True),
        Column("event_date", "date", "The UTC day of end_ts.", required=True),
        Column("events", "bigint", "Number of events.", required=True),
        Column("sources", "bigint", "Number of different sources, approximate."),
        Column("first_ts", "timestamp", "Earliest start."),
        Column("last_ts", "timestamp", "Latest end."),
        Column("longest_us", "bigint", "Longest event, in microseconds; 0 where all are points."),
        Column("attributes", f"map<string,{ATTRIBUTE_STATS_TYPE}>", "Attribute -> its statistics, values as text."),
        Column("input_versions", "map<string,bigint>", "Declared table -> Delta version that was measured.", True),
    ),
    key=("event_class", "event_date"),
    constraints=(Constraint("counts_are_positive", "events >= 0"),),
)
