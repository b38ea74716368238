"""The state of CONSUME queries as a table, from run to run.

Enters: what each partition consumed. Leaves: rows of STATE, and back.
Always holds: a used event that no later answer can reach (it ended more than WITHIN before the run's end) is left out.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from cep_core.engine.select import Consumed
from cep_core.language.algebra import Query

STATE = pa.schema(
    [
        ("query_id", pa.string()),
        ("partition", pa.string()),
        ("kind", pa.string()),  # used: an event; latest: a completing member; match: a match that others refer to
        ("event_id", pa.string()),
        ("end_us", pa.int64()),
        ("payload", pa.string()),  # latest: the member's order; match: the match as an event
    ]
)


def state_rows(
    query: Query, parts: dict[str, Consumed], carried: list[dict[str, Any]], end_us: int | None
) -> list[dict[str, Any]]:
    oldest = None if end_us is None or query.within_us is None else end_us - query.within_us
    rows = []
    for name, consumed in sorted(parts.items()):
        if query.consume == "used":
            for event, ended in sorted(consumed.used.items()):
                if oldest is None or ended >= oldest:
                    rows.append(_row(query, name, "used", event, ended, None))
        elif consumed.latest is not None:
            rows.append(_row(query, name, "latest", consumed.latest[4], consumed.latest[0], list(consumed.latest)))
    for match in carried:
        rows.append(_row(query, "", "match", match["event_id"], match["end_ts"], match))
    return rows


def consumed_from(state: pa.Table) -> tuple[dict[str, dict[str, Consumed]], dict[str, list[dict[str, Any]]]]:
    """(query -> partition -> what it consumed, query -> matches that others may refer to)."""
    consumed: dict[str, dict[str, Consumed]] = {}
    carried: dict[str, list[dict[str, Any]]] = {}
    for row in state.to_pylist():
        if row["kind"] == "match":
            carried.setdefault(row["query_id"], []).append(json.loads(row["payload"]))
            continue
        own = consumed.setdefault(row["query_id"], {}).setdefault(row["partition"], Consumed())
        if row["kind"] == "used":
            own.used[row["event_id"]] = row["end_us"]
        else:
            own.latest = tuple(json.loads(row["payload"]))
    return consumed, carried


def _row(query: Query, partition: str, kind: str, event_id: str, end_us: int, payload: Any) -> dict[str, Any]:
    return {
        "query_id": query.id,
        "partition": partition,
        "kind": kind,
        "event_id": event_id,
        "end_us": end_us,
        "payload": None if payload is None else json.dumps(payload),
    }
