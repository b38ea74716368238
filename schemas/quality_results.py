"""quality_results: one row a check of a run's inputs or outputs."""

from __future__ import annotations

from schemas.contract import Column, Constraint, Contract

QUALITY_RESULTS = Contract(
    name="quality_results",
    doc="What the data-quality checks found, check by check.",
    columns=(
        Column("run_id", "string", "The run that was checked.", required=True),
        Column("checked_at", "timestamp", "When, by the clock of the driver.", required=True),
        Column("stage", "string", "input (declared tables) or output (staged matches).", required=True),
        Column("table_name", "string", "The table that was checked.", required=True),
        Column("expectation", "string", "The name of the check.", required=True),
        Column("column_name", "string", "The column that it is about, where it is about one."),
        Column("level", "string", "error (blocks publishing) or warning.", required=True),
        Column("success", "boolean", "Whether it held.", required=True),
        Column("rows_checked", "bigint", "Rows looked at."),
        Column("rows_failed", "bigint", "Rows that broke it."),
        Column("observed", "string", "What was seen, as text."),
        Column("details", "string", "The whole result, as JSON."),
    ),
    key=("run_id", "stage", "table_name", "expectation", "column_name"),
    constraints=(
        Constraint("stage_is_known", "stage IN ('input', 'output')"),
        Constraint("level_is_known", "level IN ('error', 'warning')"),
    ),
)
