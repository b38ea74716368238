"""What must hold for the data around a run, derived from the table contracts, the declarations and the queries.

Enters: what is known without looking at data: a declared table's attributes, a contract's columns, checked queries,
the run's range and the settings of conf/quality.yaml.
Leaves: `Suite` values, one per table looked at. jobs/quality_suites.py turns them into Great Expectations suites.
Always holds: a check is one of the six kinds below; `of` names the rows that it looks at (jobs/quality_tally.py counts
them), and its name is the key that conf/quality.yaml and `quality_results` use. This module imports neither Spark nor
Great Expectations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cep_core.language.algebra import And, Element, One, Or, Pattern, Seq, TimerAfter
from cep_core.language.checked import CheckedQuery

Level = Literal["error", "warning", "off"]
ROWS = "rows"  # the only rows that a suite is about, where it does not say otherwise
MATCHES, MEMBERS, EVENTS, QUERIES = "matches", "members", "events", "queries"


@dataclass(frozen=True, slots=True)
class RowCheck:
    """At most `share` of the rows are in breach. `breach` is SQL over the rows; NULL counts as no breach."""

    name: str
    about: str
    breach: str
    level: Level = "error"
    share: float = 0.0
    of: str = ROWS


@dataclass(frozen=True, slots=True)
class RepeatCheck:
    """At most `share` of the rows repeat the values that another row has in these columns. Rows that lack one of them
    are not looked at. `one_in`: only one value in so many is looked at, by its hash, in all its rows."""

    name: str
    about: str
    columns: tuple[str, ...]
    level: Level = "error"
    share: float = 0.0
    of: str = ROWS
    one_in: int = 1


@dataclass(frozen=True, slots=True)
class LookupCheck:
    """Every row of `of` has its values in these columns in common with a row of `among`."""

    name: str
    about: str
    columns: tuple[str, ...]
    of: str
    among: str
    level: Level = "error"


@dataclass(frozen=True, slots=True)
class MatchCheck:
    """No match is in breach; jobs/quality_matches.py says by its name which one is."""

    name: str
    about: str
    level: Level = "error"
    of: str = MATCHES


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """The column is there and has this Spark type."""

    name: str
    about: str
    column: str
    type: str
    level: Level = "error"


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """An aggregate over all rows (`rows`, or the greatest value of `column`) lies in [low, high]; None is no bound."""

    name: str
    about: str
    low: float | None
    high: float | None
    column: str | None = None
    level: Level = "warning"
    of: str = ROWS


Check = RowCheck | RepeatCheck | LookupCheck | MatchCheck | ColumnCheck | RangeCheck


@dataclass(frozen=True, slots=True)
class Suite:
    """The checks of one table in one role: `inputs`, `schema`, `outputs`."""

    role: str
    table: str
    checks: tuple[Check, ...]

    @property
    def name(self) -> str:
        return f"{self.role}.{self.table}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The run's range [from_us, to_us) of detection times, how far back it reads, and the moment of checking."""

    from_us: int
    to_us: int
    read_from_us: int
    now_us: int

    @property
    def read_hours(self) -> float:
        return (self.to_us - self.read_from_us) / 3_600_000_000


@dataclass(frozen=True, slots=True)
class InputRules:
    """Settings of one declared table. Volume is in rows per hour of range; None: no history to compare with."""

    levels: Mapping[str, Level]
    duplicate_share: float = 0.0
    fresh_within_us: int | None = None
    clock_skew_us: int = 300_000_000
    earliest_us: int = 631_152_000_000_000  # 1990-01-01: times in seconds or milliseconds land before it
    latest_us: int | None = None
    volume_low: float = 0.5
    volume_high: float = 2.0
    volume_runs: int = 7
    quarantine: bool = False


# The checks that say which rows of an input cannot be mined; such rows can be set aside one by one. `no_future_events`
# is not among them: what a run leaves out must not depend on the clock.
UNUSABLE = (
    "event_id_not_null", "source_not_null", "class_not_null", "times_not_null", "start_before_end", "times_in_table",
    "declared_types",
)  # fmt: skip


def input_suite(
    table: str, bounds: Bounds, rules: InputRules, mean_rows_per_hour: float | None, one_id_in: int = 1
) -> Suite:
    """Checks of a declared table, seen as events before equal ids become one (jobs/quality_rows.py).

    Besides an event's columns the rows have `bad_type`: a value of the row does not fit its declared type; and
    `known_ts`: its end, where that is not in the future. Events of several classes that one row gives are no repeats.
    """
    checks: list[Check] = [*unusable_rows(rules)]
    future_us = bounds.now_us + rules.clock_skew_us
    checks.append(RowCheck("no_future_events", "no event lies in the future", f"end_ts > {future_us}"))
    if rules.fresh_within_us is not None:
        fresh_us = min(bounds.to_us, bounds.now_us) - rules.fresh_within_us
        checks.append(RangeCheck("freshness", "the latest event is recent enough", fresh_us, None, "known_ts"))
    low = high = None
    if mean_rows_per_hour is not None:
        low = mean_rows_per_hour * bounds.read_hours * rules.volume_low
        high = mean_rows_per_hour * bounds.read_hours * rules.volume_high
    checks.append(RangeCheck("volume", "the number of rows is near the mean of recent runs", low, high))
    share = rules.duplicate_share
    named = ("event_class", "event_id")
    checks.append(RepeatCheck("duplicate_rate", "few rows repeat an id", named, "warning", share, one_in=one_id_in))
    levels = dict(rules.levels)
    if rules.quarantine:
        # Their rows are set aside and counted: they no longer stand in the way of publishing.
        levels |= {name: "warning" for name in UNUSABLE if levels.get(name) != "off"}
    return Suite("inputs", table, _levelled(checks, levels))


def unusable_rows(rules: InputRules) -> tuple[RowCheck, ...]:
    """The checks of UNUSABLE, as they are whatever their level."""
    outside = f"start_ts < {rules.earliest_us}"
    if rules.latest_us is not None:
        outside += f" OR end_ts >= {rules.latest_us}"
    return (
        RowCheck("event_id_not_null", "every row has an event id", "event_id IS NULL"),
        RowCheck("source_not_null", "every row has a source", "source IS NULL"),
        RowCheck("class_not_null", "every row has an event class", "event_class IS NULL"),
        RowCheck("times_not_null", "every row has its times", "start_ts IS NULL OR end_ts IS NULL"),
        RowCheck("start_before_end", "no event ends before it starts", "start_ts > end_ts"),
        RowCheck("times_in_table", "every time lies in the span of the table", outside),
        RowCheck("declared_types", "every value fits its declared type", "bad_type"),
    )


def schema_suite(table: str, columns: Iterable[tuple[str, str]], levels: Mapping[str, Level]) -> Suite:
    """Checks of staged matches as they are stored: every column of the contract is there, with its type."""
    level = levels.get("schema", "error")
    checks = [ColumnCheck("schema", f"column {name} is {kind}", name, kind, level) for name, kind in columns]
    return Suite("schema", table, _levelled(checks, levels))


def output_suite(table: str, levels: Mapping[str, Level]) -> Suite:
    """Checks of MATCHES, the staged matches; of MEMBERS, their members that are events of the input, and EVENTS, that
    input; and of QUERIES (query_id, matches, low, high), where NULL is no bound."""
    checks: list[Check] = [
        MatchCheck("match_times", "a match lasts from its first member's start to its last one's end"),
        MatchCheck("match_window", "no match is longer than its query's WITHIN"),
        MatchCheck("members_in_order", "members of a SEQ are all there and precede one another"),
        MatchCheck("detection_in_run", "every match is detected within the run's range and not before it ends"),
        MatchCheck("query_version_known", "every match names a query of the catalogue at its present version"),
        RepeatCheck("match_id_unique", "no match id stands twice", ("match_id",), of=MATCHES),
        LookupCheck(
            "members_exist", "every member is an event of the input, with its class and times",
            ("event_class", "event_id", "start_ts", "end_ts"), MEMBERS, EVENTS,
        ),
        RowCheck(
            "matches_per_query", "matches of each query are within its bounds", "matches < low OR matches > high",
            "warning", of=QUERIES,
        ),
    ]  # fmt: skip
    return Suite("outputs", table, _levelled(checks, levels))


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a query's text says about each of its matches.

    order: `flat` where members precede one another one by one, `staged` where all members of a stage precede all of a
    later one, `none` where the text promises no order. stages: element name -> number of its stage.
    """

    query_id: str
    version: str
    within_us: int | None
    order: Literal["flat", "staged", "none"]
    stages: tuple[tuple[str, int], ...]
    ties_ordered: bool


def query_facts(checked: CheckedQuery) -> QueryFacts:
    """The facts of one query. `merged` binds an event to several elements, so it promises no order."""
    query = checked.query
    stages: tuple[tuple[str, int], ...] = ()
    order: Literal["flat", "staged", "none"] = "none"
    if isinstance(query.pattern, Seq) and query.select != "merged":
        parts = [part for part in _flattened(query.pattern) if not (isinstance(part, Element) and part.negated)]
        flat = all(isinstance(part, Element) and isinstance(part.quantity, One) for part in parts)
        order = "flat" if flat else "staged"
        stages = tuple((name, number) for number, part in enumerate(parts) for name in _point_names(part))
    return QueryFacts(query.id, checked.version, query.within_us, order, stages, query.ties == "ordered")


def _flattened(pattern: Seq) -> tuple[Pattern, ...]:
    """The parts of a SEQ; a SEQ directly inside a SEQ orders its parts the same way."""
    return tuple(inner for part in pattern.parts for inner in (_flattened(part) if isinstance(part, Seq) else (part,)))


def _point_names(part: Pattern) -> tuple[str, ...]:
    """Names of the elements whose members stand for the part in a SEQ; for AFTER that is the timer alone."""
    match part:
        case TimerAfter():
            return (part.name,)
        case Seq() | And() | Or():
            return tuple(name for inner in part.parts for name in _point_names(inner))
        case _:
            return (part.name,)


def _levelled(checks: Iterable[Check], levels: Mapping[str, Level]) -> tuple[Check, ...]:
    """The checks at the levels of the settings, without those that are off."""
    levelled = (replace(check, level=levels.get(check.name, check.level)) for check in checks)
    return tuple(check for check in levelled if check.level != "off")
