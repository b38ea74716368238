"""DuckDB as a peer: the best SQL known for each shape of workload.

Enters: a workload. Leaves: an Arrow table: q, the event ids of each match (i0, i1, ... or a list for a group), and x
where the query returns it.
Always holds: one thread; all patterns in one statement through a table of patterns, or one pattern as literals.
Sequences are a bucket join: `ts // widest window` is a join key, and the earlier side stands in its own bucket and the
next, so that a pair within the window always meets. A plain range or ASOF join per pattern is 5 to 20 times slower at
1,000 patterns. `recent` is the greatest combination per query and completing event. A shape has several formulations
where it was not plain which is the fastest; all are run, and the fastest counts.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pyarrow as pa

from bench.workloads import Workload


def pattern_table(workload: Workload) -> pa.Table:
    """q, w and c0, c1, ...: a row for each pattern."""
    columns: dict[str, list[object]] = {
        "q": [p.id for p in workload.patterns],
        "w": [p.window_us for p in workload.patterns],
    }
    size = len(workload.patterns[0].classes)
    columns |= {f"c{place}": [p.classes[place] for p in workload.patterns] for place in range(size)}
    return pa.table(columns)


def seq(workload: Workload) -> pa.Table:
    """One bucket join, from the last element to the first."""
    return _seq(workload, Tables(workload))


def seq_coded(workload: Workload) -> pa.Table:
    """The same after keys and classes have become numbers."""
    return _seq(workload, Tables(workload, coded=True))


def _seq(workload: Workload, db: Tables) -> pa.Table:
    joins = db.joins(list(range(db.size - 1, -1, -1)))
    last = db.size - 1
    where = ""
    if "less" in workload.facts:
        name, one, other = workload.facts["less"]
        where = f" where e{one}.{name} < e{other}.{name}"
    returned = ""
    if "returns" in workload.facts:
        name, place = workload.facts["returns"]
        returned = f", e{place}.{name} as x"
    if workload.select == "all":
        ids = ", ".join(f"e{place}.event_id as i{place}" for place in range(db.size))
        return db.table(f"select {db.q} as q, {ids}{returned} from {joins}{where}")
    down = range(last - 1, -1, -1)
    fields = ", ".join(f"t{place} := e{place}.ts, i{place} := e{place}.event_id" for place in down)
    fields += f", x := {returned[2:].removesuffix(' as x')}" if returned else ""
    found = ", ".join(f"best.i{place} as i{place}" for place in range(last))
    return db.table(
        f"select q, {found}, i{last}{', best.x as x' if returned else ''} from"
        f" (select {db.q} as q, e{last}.event_id as i{last}, max(struct_pack({fields})) as best"
        f" from {joins}{where} group by all)"
    )


def and_(workload: Workload) -> pa.Table:
    """Each order of the classes is a sequence of its own; equal times are settled by the ids."""
    size = len(workload.patterns[0].classes)
    columns: dict[str, list[object]] = {name: [] for name in ("q", "w")}
    columns |= {f"{letter}{place}": [] for letter in "co" for place in range(size)}
    for pattern in workload.patterns:
        for order in permutations(range(size)):
            columns["q"].append(pattern.id)
            columns["w"].append(pattern.window_us)
            for place, element in enumerate(order):
                columns[f"c{place}"].append(pattern.classes[element])
                columns[f"o{element}"].append(place)
    db = Tables(workload, pa.table(columns))
    joins = db.joins(list(range(size - 1, -1, -1)), ties=True)
    placed = " ".join(f"when {place} then e{place}.event_id" for place in range(size))
    ids = ", ".join(f"case p.o{element} {placed} end as i{element}" for element in range(size))
    return db.table(f"select {db.q} as q, {ids} from {joins}")


def or_(workload: Workload) -> pa.Table:
    pairs = [(pattern.id, name) for pattern in workload.patterns for name in pattern.classes]
    wanted = pa.table({"q": [q for q, _ in pairs], "c": [name for _, name in pairs]})
    opened = connection(given=workload.events, wanted=wanted)
    return opened.sql("select q, event_id as i0 from given join wanted on event_class = c").to_arrow_table()


def negation_anti(workload: Workload) -> pa.Table:
    """The negated class by NOT EXISTS."""
    db, bound, ids, where = _negation(workload)
    last, absent = bound[-1], workload.facts["absent"]
    return db.table(
        f"select {db.q} as q, {ids} from {db.joins(bound[::-1])} where {where} not exists (from {db.early(absent)} n"
        f" where {db.same('n', f'e{last}')} and n.b = e{last}.b and {db.of_class('n', absent)}"
        f" n.ts > e{bound[-2]}.ts and n.ts < e{last}.ts)"
    )


def negation_asof(workload: Workload) -> pa.Table:
    """The latest event of the negated class before the completing one, by ASOF: it must not be after the one before."""
    db, bound, ids, where = _negation(workload)
    last, absent = bound[-1], workload.facts["absent"]
    first, *others = db.joins(bound[::-1]).split(f" join {db.early(bound[-2])} ", 1)
    return db.table(
        f"select {db.q} as q, {ids} from {first} asof left join {db.late(absent)} n"
        f" on {db.same('n', f'e{last}')} and {db.of_class('n', absent)} n.ts < e{last}.ts"
        f" join {db.early(bound[-2])} {others[0]} where {where} coalesce(n.ts <= e{bound[-2]}.ts, true)"
    )


def _negation(workload: Workload) -> tuple[Tables, list[int], str, str]:
    """The tables, the places of the bound elements, their ids, and the condition between events."""
    db = Tables(workload)
    bound = [place for place in range(db.size) if place != workload.facts["absent"]]
    ids = ", ".join(f"e{place}.event_id as i{number}" for number, place in enumerate(bound))
    where = ""
    if "less" in workload.facts:
        name, one, other = workload.facts["less"]
        where = f"e{one}.{name} < e{other}.{name} and"
    return db, bound, ids, where


class Tables:
    """A connection with the events that any pattern names, with their buckets, and how to join them.

    One pattern is joined by literals: a table for each of its classes. More are joined through the table of patterns.
    """

    def __init__(self, workload: Workload, patterns: pa.Table | None = None, coded: bool = False) -> None:
        self.key = workload.key
        first = workload.patterns[0]
        self.size = len(first.classes)
        self.patterns = "patterns"
        self.single = len(workload.patterns) == 1 and patterns is None
        self.q, self.w = (f"'{first.id}'", str(first.window_us)) if self.single else ("p.q", "p.w")
        widest = max(p.window_us for p in workload.patterns)
        wanted = pattern_table(workload) if patterns is None else patterns
        self.connection = connection(given=workload.events, patterns=wanted)
        self.used = sorted({workload.facts[part][0] for part in ("less", "returns") if part in workload.facts})
        columns = ", ".join(["event_id", "event_class", "ts", *workload.key, *self.used])
        run = self.connection.execute
        if self.single:
            for place, name in enumerate(first.classes):
                run(
                    f"create temp table late{place} as select {columns}, ts // {widest} as b from given"
                    f" where event_class = '{name}'"
                )
                run(
                    f"create temp table early{place} as from late{place}"
                    f" union all select {columns}, b + 1 as b from late{place}"
                )
            return
        named = " union ".join(f"select c{place} as name from patterns" for place in range(self.size))
        if coded:
            self._code(named, widest)
        else:
            run(
                f"create temp table events as select {columns}, ts // {widest} as b from given"
                f" where event_class in ({named})"
            )
        run(f"create temp table early as from events union all select {columns}, b + 1 as b from events")

    def _code(self, named: str, widest: int) -> None:
        """events and patterns with numbers for the key and the classes."""
        run = self.connection.execute
        run(f"create temp table classes as select name, row_number() over ()::int as code from ({named})")
        coded, joined = "event_id, classes.code as event_class, ts", "given join classes on event_class = name"
        for name in self.key:
            run(
                f"create temp table {name}s as select {name} as name, row_number() over ()::int as code"
                f" from (select distinct {name} from given)"
            )
            coded += f", {name}s.code as {name}"
            joined += f" join {name}s on given.{name} = {name}s.name"
        coded += "".join(f", {name}" for name in self.used)
        run(f"create temp table events as select {coded}, (ts // {widest})::int as b from {joined}")
        places = range(self.size)
        codes = ", ".join(f"n{place}.code as c{place}" for place in places)
        lookups = "".join(f" join classes n{place} on n{place}.name = g.c{place}" for place in places)
        run(f"create temp table coded_patterns as select q, w, {codes} from patterns g{lookups}")
        self.patterns = "coded_patterns"

    def late(self, place: int) -> str:
        return f"late{place}" if self.single else "events"

    def early(self, place: int) -> str:
        return f"early{place}" if self.single else "early"

    def of_class(self, event: str, place: int) -> str:
        """That an event is of the pattern's class at this place; the name ends in " and " where there is a test."""
        return "" if self.single else f"{event}.event_class = p.c{place} and "

    def same(self, one: str, other: str) -> str:
        return " and ".join(f"{one}.{name} = {other}.{name}" for name in self.key)

    def last(self, place: int) -> str:
        joined = "" if self.single else f" join {self.patterns} p on e{place}.event_class = p.c{place}"
        return f"{self.late(place)} e{place}{joined}"

    def joins(self, down: list[int], ties: bool = False) -> str:
        """The sequence of the elements `down`, from the last to the first."""
        last = following = down[0]
        joined = self.last(last)
        for place in down[1:]:
            one, other = f"e{place}", f"e{following}"
            before = f"{one}.ts < {other}.ts"
            if ties:
                before = f"({before} or {one}.ts = {other}.ts and {one}.event_id < {other}.event_id)"
            joined += (
                f" join {self.early(place)} {one} on {self.same(one, f'e{last}')} and {one}.b = e{last}.b"
                f" and {self.of_class(one, place)}{before} and e{last}.ts - {one}.ts <= {self.w}"
            )
            following = place
        return joined

    def table(self, statement: str) -> pa.Table:
        return self.connection.sql(statement).to_arrow_table()


def connection(**tables: pa.Table) -> Any:
    import duckdb

    opened = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        opened.register(name, table)
    return opened
