"""One match with its events, from the input tables as they were when it was found.

Enters: a match id (or its first digits). Leaves: text.
Always holds: the events are read at the versions that the match carries; where a version is gone (vacuumed) or a table
has none, the text says so instead of showing today's rows as if they were those.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cep_core.errors import TableError
from jobs import tables
from jobs.declarations import Declarations, load_declarations
from jobs.primitives import read_primitives
from jobs.runs import moment

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from jobs.settings import Settings


def show_match(spark: SparkSession, settings: Settings, match_id: str) -> str:
    """The match as a person reads it."""
    match = find_match(spark, settings, match_id)
    declarations = load_declarations(settings.path(settings.events))
    events, notes = member_events(spark, settings, declarations, match)
    lines = [
        f"match {match['match_id']} of {match['query_id']} (version {match['query_version']})",
        f"  from {moment(match['start_us'])} to {moment(match['end_us'])}, detected {moment(match['detection_us'])}"
        + (f", source {match['source']}" if match["source"] is not None else ""),
        f"  published by run {match['run_id']}, from "
        + (", ".join(f"{name} version {v}" for name, v in sorted(match["input_versions"].items())) or "no versions"),
    ]
    lines += [f"  {name} = {value}" for name, value in sorted((match["fields"] or {}).items())]
    lines.append("members:")
    for member in json.loads(match["members_json"]):
        lines.append(f"  {member['element']}: {member['event_class']} {member['event_id']} at {member['at']}")
        for row in events.get((member["event_class"], member["event_id"]), []):
            lines.append("      " + ", ".join(f"{name}={value}" for name, value in row.items()))
    return "\n".join(lines + [f"note: {note}" for note in notes])


def find_match(spark: SparkSession, settings: Settings, match_id: str) -> Row:
    from pyspark.sql import functions as F

    rows = tables.read(spark, settings, "composite_events").where(F.col("match_id").startswith(match_id.lower()))
    found = rows.selectExpr(
        "match_id", "query_id", "query_version", "run_id", "source", "fields", "input_versions",
        "unix_micros(start_ts) AS start_us", "unix_micros(end_ts) AS end_us",
        "unix_micros(detection_ts) AS detection_us",
        "to_json(transform(members, m -> named_struct('element', m.element, 'event_class', m.event_class, 'event_id', "
        "m.event_id, 'at', date_format(m.end_ts, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\")))) AS members_json",
    ).limit(3).collect()  # fmt: skip
    if not found:
        raise TableError(f"no published match has an id that starts with {match_id!r}; find ids with: hindsight sql "
                         f"\"SELECT query_id, match_id FROM composite_events LIMIT 10\"")  # fmt: skip
    if len(found) > 1:
        ids = ", ".join(row["match_id"] for row in found)
        raise TableError(f"several matches have ids that start with {match_id!r}, such as {ids}; give more digits")
    return found[0]


def member_events(
    spark: SparkSession, settings: Settings, declarations: Declarations, match: Row
) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], list[str]]:
    """(class, event id) -> rows of that event with its attributes; and notes on what could not be read."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    members = json.loads(match["members_json"])
    declared = set(declarations.class_names())
    notes = [
        f"{member['event_id']} is a match of {member['event_class']}: hindsight show {member['event_id']}"
        for member in members
        if member["event_class"] not in declared and not member["event_id"].startswith("timer:")
    ]
    classes = sorted({member["event_class"] for member in members} & declared)
    if not classes:
        return {}, notes
    versions = dict(match["input_versions"])
    for table in declarations.tables_of(classes):
        if table.name not in versions:
            notes.append(f"table {table.name} has no versions; its rows are shown as they are now")
    ids = sorted({member["event_id"] for member in members})
    try:
        frame = read_primitives(
            spark, settings, declarations, classes, None, match["start_us"], match["end_us"] + 1, versions
        )
        rows = frame.where(F.col("event_id").isin(ids)).collect()
    except (PySparkException, TableError) as error:
        first = next(iter(str(error).splitlines()), "")
        return {}, [*notes, f"the input tables cannot be read at those versions any more: {first}"]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        plain = {"source": row["source"]} | {
            name: value for name, value in row.asDict().items()
            if value is not None and name not in ("event_id", "source", "event_class", "start_ts", "end_ts")
        }  # fmt: skip
        held = found.setdefault((row["event_class"], row["event_id"]), [])
        if plain not in held:
            held.append(plain)
    return found, notes
