"""Events and expected matches as short texts, and one way to run the naive meaning and the engine on them.

Enters: events such as `A1 B2-5 C7{x=1,s=foo}@s2`, query texts. Leaves: `Row`s, equal in both evaluators, or as short
texts. Always holds: one notation for all cases of the suite:
- an event is CLASS TIME, with optional parts in this order: `-END` for an interval, `~name` to tell apart events that
  are else written alike, `#tie`, `@source` (default s1), `{attribute=value,...}`. Its id is what stands before `#`, `@`
  and `{`.
- a match is `a=A1 b=B2,B3` (`p=pair(A1,B2)` where a member is a match of the query pair), then if wanted
  `@ DETECTION`, `[START..END]` and `-> name=value ...`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import cep_core
from cep_core.engine.identity import match_id
from tests import naive
from tests.naive_values import moment_us

SECOND = 1_000_000
TOKEN = re.compile(
    r"(?P<id>(?P<cls>[A-Za-z_]+)(?P<start>[\d.]+)(-(?P<end>[\d.]+))?(~\w+)?)"
    r"(#(?P<tie>-?\d+))?(@(?P<source>\w+))?(\{(?P<attributes>[^}]*)\})?$"
)
KINDS = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True, order=True)
class Row:
    """A match without its id; elements without members are left out; fields sorted by name."""

    query_id: str
    detection_ts: int
    elements: tuple[tuple[str, tuple[str, ...]], ...]
    start_ts: int
    end_ts: int
    fields: tuple[tuple[str, str | None], ...] = field(compare=True)


def events_from(text: str, unit: int = SECOND) -> list[dict[str, Any]]:
    """Events as naive.py takes them."""
    return [_event(word, unit) for word in text.split()]


def _event(word: str, unit: int) -> dict[str, Any]:
    found = TOKEN.match(word)
    assert found, f"not an event: {word}"
    start = round(float(found["start"]) * unit)
    pairs = [pair.split("=") for pair in (found["attributes"] or "").split(",") if pair]
    return {
        "event_id": found["id"],
        "source": None if found["source"] == "null" else found["source"] or "s1",
        "event_class": found["cls"],
        "start_ts": start,
        "end_ts": round(float(found["end"]) * unit) if found["end"] else start,
        "tie": int(found["tie"]) if found["tie"] else None,
        "attributes": {name: _value(text) for name, text in pairs},
    }


def _value(text: str) -> Any:
    if text in ("null", "true", "false", "NaN"):
        return {"null": None, "true": True, "false": False, "NaN": float("nan")}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def run_naive(
    events: Sequence[Mapping[str, Any]],
    queries: Mapping[str, str],
    start: int | None = None,
    end: int | None = None,
    schema: Mapping[str, Any] | None = None,
) -> list[Row]:
    return naive_rows(naive.evaluate([dict(e) for e in events], queries, start, end, schema, ids=match_id))


def naive_rows(matches: Sequence[naive.Match]) -> list[Row]:
    rows = []
    for match in matches:
        elements = tuple((name, ids) for name, ids in match.elements if ids)
        fields = tuple(sorted(match.fields.items()))
        rows.append(Row(match.query_id, match.detection_ts, elements, match.start_ts, match.end_ts, fields))
    return sorted(rows, key=repr)


def run_engine(
    events: Sequence[Mapping[str, Any]],
    queries: Mapping[str, str],
    start: int | None = None,
    end: int | None = None,
    schema: Mapping[str, Any] | None = None,
) -> list[Row]:
    declared = None if schema is None else {name: list(attributes) for name, attributes in schema.items()}
    return engine_rows(cep_core.mine(table_of(events, schema), dict(queries), start, end, schema=declared))


def engine_rows(table: pa.Table) -> list[Row]:
    rows = []
    for match in table.to_pylist():
        members: dict[str, list[str]] = {}
        for member in match["members"]:
            members.setdefault(member["element"], []).append(member["event_id"])
        elements = tuple((name, tuple(ids)) for name, ids in members.items())
        times = [naive_us(match[name]) for name in ("detection_ts", "start_ts", "end_ts")]
        fields = tuple(sorted(dict(match["fields"] or ()).items()))
        rows.append(Row(match["query_id"], times[0], elements, times[1], times[2], fields))
        assert match["match_id"] == match_id(match["query_id"], elements), match
    return sorted(rows, key=repr)


def naive_us(moment: Any) -> int:
    return moment if isinstance(moment, int) else moment_us(moment)


def table_of(events: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None = None) -> pa.Table:
    """The events as `cep_core.mine` takes them: a column an attribute, typed by the schema, or else by the values."""
    kinds: dict[str, pa.DataType] = {}
    for declared in (schema or {}).values():
        if isinstance(declared, dict):
            kinds |= {name: KINDS[kind] for name, kind in declared.items()}
    names = sorted({name for event in events for name in event["attributes"]} | set(kinds))
    columns: dict[str, pa.Array] = {
        "event_id": pa.array([e["event_id"] for e in events], pa.string()),
        "source": pa.array([e["source"] for e in events], pa.string()),
        "event_class": pa.array([e["event_class"] for e in events], pa.string()),
        "start_ts": pa.array([e["start_ts"] for e in events], pa.int64()),
        "end_ts": pa.array([e["end_ts"] for e in events], pa.int64()),
        "tie": pa.array([e.get("tie") for e in events], pa.int64()),
    }
    for name in names:
        columns[name] = pa.array([e["attributes"].get(name) for e in events], kinds.get(name))
    return pa.table(columns)


EVALUATORS: dict[str, Callable[..., list[Row]]] = {"naive": run_naive, "engine": run_engine}


@dataclass(frozen=True)
class Case:
    """One rule of the contract: events, query, and the matches that must come out, as texts."""

    name: str
    events: str
    query: str
    matches: tuple[str, ...]
    schema: Mapping[str, Any] | None = None
    unit: int = SECOND
    others: Mapping[str, str] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None


def case(name: str, events: str, query: str, *matches: str, **rest: Any) -> Case:
    return Case(name, events, query, matches, **rest)


def check(evaluator: str, one: Case) -> None:
    """Fails with both lists if the matches are not those expected."""
    events = events_from(one.events, one.unit)
    scale = {name: None if moment is None else moment * one.unit for name, moment in (("s", one.start), ("e", one.end))}
    rows = EVALUATORS[evaluator](events, {"q": one.query, **one.others}, scale["s"], scale["e"], one.schema)
    named = _named(rows)
    shown = sorted(_shown(row, one, named) for row in rows if row.query_id == "q")
    wanted = sorted(" ".join(text.split()) for text in one.matches)
    cut = sorted(_cut(text, one.matches) for text in shown)
    assert cut == wanted, f"{one.name}\nfound  {shown}\nwanted {wanted}"


def _named(rows: Sequence[Row]) -> dict[str, str]:
    """Ids of matches -> `query(members)`, for members that are matches of other queries."""
    found = {match_id(row.query_id, row.elements): row for row in rows}

    def name(member: str) -> str:
        row = found.get(member)
        if row is None:
            return member
        return f"{row.query_id}({','.join(name(inner) for _, ids in row.elements for inner in ids)})"

    return {member: name(member) for member in found}


def _shown(row: Row, one: Case, named: Mapping[str, str]) -> str:
    members = " ".join(f"{name}={','.join(named.get(i, i) for i in ids)}" for name, ids in row.elements)
    times = [f"{moment / one.unit:g}" for moment in (row.detection_ts, row.start_ts, row.end_ts)]
    returned = " ".join(f"{name}={'null' if text is None else text}" for name, text in row.fields)
    return f"{members} @ {times[0]} [{times[1]}..{times[2]}]" + (f" -> {returned}" if returned else "")


def _cut(shown: str, wanted: Sequence[str]) -> str:
    """Only the parts that the case speaks of: all its matches speak of the same ones."""
    spoken = wanted[0] if wanted else ""
    if "->" not in spoken:
        shown = shown.split(" ->")[0]
    if "[" not in spoken:
        shown = re.sub(r" \[[^]]*\]", "", shown)
    return shown if "@" in spoken else re.sub(r" @ \S+", "", shown)
