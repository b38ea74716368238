"""quarantine: input rows that were set aside because they cannot be mined."""

from __future__ import annotations

from schemas.contract import Column, Contract

QUARANTINE = Contract(
    name="quarantine",
    doc="Rows of declared tables that a run left out, and why; see conf/quality.yaml.",
    columns=(
        Column("run_id", "string", "The run that left the row out.", required=True),
        Column("quarantined_at", "timestamp", "When, by the clock of the driver.", required=True),
        Column("table_name", "string", "The declared table of the row.", required=True),
        Column("reasons", "array<string>", "The names of the checks that the row broke.", required=True),
        Column("event_id", "string", "The event id that the row would have had, where it has one."),
        Column("row", "string", "The whole row as it is stored, as JSON.", required=True),
    ),
    key=("run_id", "table_name", "row"),
)
