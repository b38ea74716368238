"""runs: one row a run, whatever became of it."""

from __future__ import annotations

from schemas.contract import Column, Constraint, Contract

OUTCOMES = ("published", "empty", "failed", "refused", "superseded")

RUNS = Contract(
    name="runs",
    doc="What was mined when, from what, with which result.",
    columns=(
        Column("run_id", "string", "Identifies the run; published anew under its id, it has a row of each time.", True),
        Column("from_ts", "timestamp", "Start of the mined range of detection times.", required=True),
        Column("to_ts", "timestamp", "End of the range, exclusive.", required=True),
        Column(
            "outcome", "string", "published, empty (nothing matched), failed, refused (by quality), superseded.", True
        ),
        Column("message", "string", "Why a run failed, was refused or was superseded."),
        Column("started_at", "timestamp", "When the run started, by the clock of the driver.", required=True),
        Column("finished_at", "timestamp", "When it ended."),
        Column("query_versions", "map<string,string>", "Query id -> version that was mined.", required=True),
        Column("input_versions", "map<string,bigint>", "Declared table -> Delta version that was read.", required=True),
        Column("rows_read", "bigint", "Events read from the declared tables."),
        Column("rows_sent", "bigint", "Events sent to the engine, overlaps counted each time."),
        Column("engine_calls", "bigint", "Calls of the engine: buckets and slices."),
        Column("matches", "map<string,bigint>", "Query id -> matches found."),
        Column("seconds", "map<string,double>", "Stage -> seconds it took."),
        Column("pinned", "boolean", "Whether it read the tables as they once were; null: it did not."),
    ),
    key=("run_id", "started_at"),
    constraints=(
        Constraint("range_is_not_empty", "from_ts < to_ts"),
        Constraint("outcome_is_known", f"outcome IN ({', '.join(repr(o) for o in OUTCOMES)})"),
    ),
)
