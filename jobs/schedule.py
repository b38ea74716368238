"""What a scheduled run does: its range, its name and its arguments, from what the scheduler knows.

Enters: a run's name in the scheduler, its data interval, the updates of its input tables, its parameters. Leaves: texts
for the command line.
Always holds: the same run of the scheduler, retried or cleared, gets the same range and the same run id, so every step
of it replaces what the attempt before left; another run gets another id, so that two never share a staging. Wrong
parameters are refused here, before Spark starts. Nothing here reads a table or a clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from cep_core.errors import DeclarationError
from jobs.ranges import parse_duration, parse_us
from jobs.runs import moment

DAY_US = 86_400_000_000
MINUTE_US = 60_000_000
MOST_CHUNKS = 1000  # mapped tasks; Airflow's own limit is 1024

Extra = Mapping[str, Any]  # what goes with an update of a table: `from` and `to` where it says which range is new


def plan_run(
    scheduled_as: str, run_after: datetime, interval: tuple[datetime, datetime] | None, params: Mapping[str, Any],
    updates: Iterable[Extra] = (), published: Iterable[Extra] = (),
) -> dict[str, str]:  # fmt: skip
    """The range of one run: its parameters `from` and `to`; else its data interval; else, for a run that updates of
    input tables have started, the ranges that those updates name. Where they name none: up to the minute of the run,
    from the end of what was `published` before, and at least `lookback` long, so that no stretch is left out."""
    queries = ",".join(_ids(params))
    named = [(parse_us(str(e["from"])), parse_us(str(e["to"]))) for e in updates if e.get("from") and e.get("to")]
    if params.get("from") or params.get("to"):
        if not (params.get("from") and params.get("to")):
            raise DeclarationError("give both parameters, `from` and `to`, or neither")
        start, end = parse_us(str(params["from"])), parse_us(str(params["to"]))
    elif interval is not None and interval[0] < interval[1]:
        start, end = (parse_us(edge.isoformat()) for edge in interval)
    elif named:
        start, end = min(low for low, _ in named), max(high for _, high in named)
    else:
        end = parse_us(run_after.isoformat()) // MINUTE_US * MINUTE_US
        before = [parse_us(str(e["to"])) for e in published if e.get("to") and e.get("queries", "") in ("", queries)]
        start = min(end - parse_duration(str(params.get("lookback") or "1 day")), max(before, default=end))
    if start >= end:
        raise DeclarationError(f"the range is empty: from {moment(start)} to {moment(end)}; give an earlier `from`")
    compact = re.sub(r"[-:]", "", f"{moment(start)}_{moment(end)}")
    run_id = f"{compact}_{sha256(f'{scheduled_as} {queries}'.encode()).hexdigest()[:8]}"
    return {"from": moment(start), "to": moment(end), "run_id": run_id, "queries": queries}


def plan_backfill(params: Mapping[str, Any]) -> list[list[str]]:
    """The arguments of `hindsight backfill` for each chunk, oldest first."""
    from jobs.backfill import cut_range

    start, end = parse_us(str(params["from"])), parse_us(str(params["to"]))
    chunks = cut_range(start, end, parse_duration(str(params["chunk"])))
    if len(chunks) > MOST_CHUNKS:
        raise DeclarationError(f"{len(chunks)} chunks are too many tasks for one backfill; take a longer chunk")
    queries = ",".join(_ids(params))
    fixed = ["--chunk", str(params["chunk"]), *(["--queries", queries] if queries else [])]
    fixed += ["--again"] if params.get("again") else []
    return [["backfill", "--from", moment(low), "--to", moment(high), *fixed] for low, high in chunks]


def plan_maintenance(params: Mapping[str, Any]) -> list[str]:
    """The arguments of `hindsight maintain`."""
    from jobs.maintain import check_retention

    days = params["retain_days"]
    check_retention(round(float(days) * DAY_US))
    return ["maintain", "--retain", f"{days} days", *(["--dry-run"] if params.get("dry_run") else [])]


def check_queries(params: Mapping[str, Any]) -> None:
    """Refuse a query that the catalogue does not have, or a catalogue with mistakes."""
    from jobs.catalogue import load_workload
    from jobs.settings import load_settings

    load_workload(load_settings(), _ids(params) or None)


def _ids(params: Mapping[str, Any]) -> list[str]:
    return sorted({str(name).strip() for name in params.get("queries") or [] if str(name).strip()})
