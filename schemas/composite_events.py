"""composite_events: one row a match, for all queries. There is no clock in it: the same run gives the same rows."""

from __future__ import annotations

from schemas.contract import Column, Constraint, Contract

MEMBER_TYPE = "struct<element:string,event_class:string,event_id:string,start_ts:timestamp,end_ts:timestamp>"

COMPOSITE_EVENTS = Contract(
    name="composite_events",
    doc="The composite events that the queries found: one row a match.",
    columns=(
        Column("query_id", "string", "The query that the match answers.", required=True),
        Column("match_id", "string", "32 hex digits over the query and its members' ids: the same in every run.", True),
        Column("start_ts", "timestamp", "The earliest start of a member.", required=True),
        Column("end_ts", "timestamp", "The latest end of a member.", required=True),
        Column("detection_ts", "timestamp", "The moment from which the match is known; runs are cut by it.", True),
        Column("detection_date", "date", "The UTC day of detection_ts; the table is partitioned by it.", True),
        Column("members", f"array<{MEMBER_TYPE}>", "The events of the match, in pattern order.", True),
        Column("fields", "map<string,string>", "What the query RETURNs, as text; the query's view has it typed.", True),
        Column("source", "string", "The source that all members share, where the query tests [source]."),
        Column("run_id", "string", "The run that published the match; see the table runs.", True),
        Column("query_version", "string", "16 hex digits over the query's canonical text and all it refers to.", True),
        Column("input_versions", "map<string,bigint>", "Declared table -> Delta version that the run read.", True),
    ),
    key=("match_id",),
    partition_by=("detection_date",),
    skip_by=("query_id", "start_ts", "end_ts", "detection_ts", "source", "run_id"),  # match_id is a hash
    constraints=(
        Constraint("match_id_is_hash", "length(match_id) = 32"),
        Constraint("starts_before_end", "start_ts <= end_ts"),
        Constraint("known_after_end", "end_ts <= detection_ts"),
        Constraint("date_of_detection", "detection_date = CAST(detection_ts AS DATE)"),
        Constraint("has_members", "size(members) > 0"),
    ),
)
