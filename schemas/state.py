"""state: what CONSUME queries carry from one run to the next, per boundary between runs."""

from __future__ import annotations

from schemas.contract import Column, Contract

STATE = Contract(
    name="state",
    doc="The state of CONSUME queries at each boundary: what matches detected before it have consumed.",
    columns=(
        Column("query_id", "string", "The query.", required=True),
        Column("query_version", "string", "The version whose state it is; another version starts anew.", required=True),
        Column("boundary_ts", "timestamp", "The state after all runs over detection times before this moment.", True),
        Column("origin_ts", "timestamp", "Where the unbroken line of runs to this boundary starts.", required=True),
        Column("content", "binary", "The engine's state, as an Arrow stream; empty where nothing is consumed."),
        Column("run_id", "string", "The run that left it.", required=True),
        Column("input_versions", "map<string,bigint>", "Declared table -> Delta version that it was made from.", True),
    ),
    key=("query_id", "query_version", "boundary_ts"),
)
