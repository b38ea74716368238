"""The demo's last words: per query what was found, two matches to look at, and where to go on.

Enters: catalogue entries, verdicts, sample rows of composite_events, places of tables. Leaves: lines of text.
Always holds: the same results give the same text; nothing here reads a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from cep_core.language import Entry
from jobs.console import counted
from jobs.demo.truth import Verdict
from jobs.names import or_list
from jobs.settings import Settings

# Each runs with `hindsight sql` as it stands (a test does so).
SQL_TO_TRY = (
    "SELECT query_id, count(*) AS matches, min(start_ts) AS first, max(end_ts) AS last"
    " FROM composite_events GROUP BY query_id ORDER BY matches DESC",
    "SELECT product, count(*) AS stolen, round(avg(minutes)) AS minutes"
    " FROM shoplifting GROUP BY product ORDER BY stolen DESC",
    "SELECT source AS patient, medicine, total_mg, m.element, m.event_id, m.start_ts AS taken_at"
    " FROM overdose LATERAL VIEW explode(members) t AS m ORDER BY patient, taken_at LIMIT 10",
)
_MEMBERS_SHOWN = 8


@dataclass(frozen=True)
class Sample:
    """One match as it is shown: members are (element, class, event id, start, end)."""

    query_id: str
    match_id: str
    source: str | None
    start: datetime
    end: datetime
    members: tuple[tuple[str, str, str, datetime, datetime], ...]
    fields: tuple[tuple[str, str | None], ...]


def told_matches(
    entries: Iterable[Entry], verdicts: Mapping[str, Verdict], samples: Mapping[str, Sequence[Sample]]
) -> list[str]:
    """A paragraph for each query, in the order of the catalogue."""
    lines: list[str] = []
    for entry in entries:
        if entry.id in verdicts:
            verdict = verdicts[entry.id]
            lines += ["", f"{entry.id}: {entry.title} ({entry.severity}; {entry.owner})"]
            lines.append(f"  {counted(verdict.found, 'match', 'matches')}; {verdict.told()}")
            for sample in samples.get(entry.id, ()):
                lines += told_sample(sample)
    return lines


def told_sample(sample: Sample) -> list[str]:
    """A match in a few lines: when, about whom, what it returns, and its events."""
    fields = " ".join(f"{name}={_short(value)}" for name, value in sample.fields)
    about = f"  {sample.source}" if sample.source is not None else ""
    lines = [f"  - {_time(sample.start)} to {_time(sample.end)}{about}  {fields}".rstrip()]
    width = max(len(member[0]) for member in sample.members)
    for element, event_class, event_id, start, end in sample.members[:_MEMBERS_SHOWN]:
        until = "" if start == end else f" to {_time(end)}"
        what = "timer" if event_id.startswith("timer:") else f"{event_class} {event_id}"
        lines.append(f"      {element.ljust(width)}  {what} at {_time(start)}{until}")
    if len(sample.members) > _MEMBERS_SHOWN:
        lines.append(f"      ... and {len(sample.members) - _MEMBERS_SHOWN} more")
    return lines


def told_places(settings: Settings, raw: Mapping[str, str], results: Mapping[str, str], program: str) -> list[str]:
    """Where the tables are, and what to type next. `program` is what the user calls Hindsight by."""
    flag = f"--lake {settings.lake_path} " if settings.origin("lake") == "flag" else ""
    lines = ["", "Tables"]
    width = max(len(name) for name in (*raw, *results))
    lines += [f"  {name.ljust(width)}  {place}" for name, place in (*results.items(), *sorted(raw.items()))]
    lines += ["", "Three SQL queries to try"]
    return lines + [f'  {program} sql {flag}"{statement}"' for statement in SQL_TO_TRY]


def told_end(verdicts: Mapping[str, Verdict]) -> str:
    """The one line that says whether all is well."""
    bad = [query_id for query_id, verdict in verdicts.items() if not verdict.good]
    planted = sum(verdict.planted for verdict in verdicts.values())
    if bad:
        return f"NOT all planted matches were found once: look at {or_list(bad)}"
    others = sum(len(verdict.others) for verdict in verdicts.values())
    more = "there are no others"
    if others:
        more = f"{counted(others, 'other match', 'other matches')} came from the background"
    return f"All {planted:,} planted matches of {counted(len(verdicts), 'query', 'queries')} were found; {more}."


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _short(value: str | None) -> str:
    """Numbers with at most two places behind the point; text as it is.

    >>> _short("12.3456"), _short("coffee"), _short(None)
    ('12.35', 'coffee', 'NULL')
    """
    if value is None:
        return "NULL"
    try:
        return f"{float(value):.2f}".rstrip("0").rstrip(".") if "." in value else value
    except ValueError:
        return value
