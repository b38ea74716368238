"""DuckDB as a peer for groups and for an AND inside a SEQ: hand-written SQL, two or more formulations of each.

Enters: a workload. Leaves: an Arrow table as in peers_duckdb.py; a group's events are a list.
Always holds: events of equal times precede each other in neither way, so ranges are open at both ends.
"""

from __future__ import annotations

import pyarrow as pa

from bench.peers_duckdb import Tables
from bench.workloads import Workload


def groups_join(workload: Workload) -> pa.Table:
    """Pairs of the first and the last event by a bucket join, the events between joined to each pair."""
    db = _tables_with_x(workload)
    return db.table(
        f"select {db.q} as q, e0.event_id as i0, list(e1.event_id order by e1.ts, e1.event_id) as i1,"
        f" e2.event_id as i2 from {db.joins([2, 1, 0])} group by {db.q}, e0.event_id, e2.event_id"
        f" having sum(e1.x) > {workload.facts['sum_above']}"
    )


def groups_ranks(workload: Workload) -> pa.Table:
    """Sums as differences of running sums (ASOF), so that only pairs that match meet the events between, by rank."""
    db = _tables_with_x(workload)
    run = db.connection.execute
    run(
        "create temp table ranked as select event_id, ts, row_number() over (order by ts, event_id) as n,"
        " sum(x) over (order by ts, event_id rows unbounded preceding) as s from late1"
    )
    run("create temp table running as select ts, max(n) as n, max_by(s, n) as s from ranked group by ts")
    for name, events, after in (("first", "early0", ">="), ("last", "late2", ">")):
        run(
            f"create temp table {name} as select e.event_id, e.ts, e.b, coalesce(r.s, 0) as s, coalesce(r.n, 0) as n"
            f" from {events} e asof left join running r on e.ts {after} r.ts"
        )
    run(
        "create temp table pairs as select a.event_id as i0, a.n as below, c.event_id as i2, c.n as upto"
        f" from last c join first a on a.b = c.b and a.ts < c.ts and c.ts - a.ts <= {db.w}"
        f" and c.s - a.s > {workload.facts['sum_above']}"
    )
    return db.table(
        f"select {db.q} as q, i0, list(event_id order by n) as i1, i2"
        " from (select i0, i2, unnest(range(below + 1, upto + 1)) as n from pairs) join ranked using (n)"
        " group by i0, i2"
    )


def nested_bucket(workload: Workload) -> pa.Table:
    """All four in one bucket join; the order of joins is DuckDB's."""
    db = Tables(workload)
    return db.table(f"select {db.q} as q, {_FOUR} from {_nested(db, 'late3 e3')}")


def nested_pairs(workload: Workload) -> pa.Table:
    """First the pairs of the first and the last event, then what lies between."""
    db = Tables(workload)
    return db.table(
        "with ends as materialized (select e0.event_id as i0, e3.event_id as i3, e0.ts as low, e3.ts as high, e3.b as b"
        f" from late3 e3 join early0 e0 on e0.b = e3.b and e0.ts < e3.ts and e3.ts - e0.ts <= {db.w}),"
        " with_b as materialized (select ends.*, e1.event_id as i1 from ends join early1 e1 on e1.b = ends.b"
        " and e1.ts > low and e1.ts < high)"
        f" select {db.q} as q, i0, i1, e2.event_id as i2, i3 from with_b join early2 e2 on e2.b = with_b.b"
        " and e2.ts > low and e2.ts < high"
    )


def nested_range(workload: Workload) -> pa.Table:
    """Range joins without a bucket: the pairs of the ends, then what lies between."""
    db = Tables(workload)
    return db.table(
        "with ends as materialized (select e0.event_id as i0, e3.event_id as i3, e0.ts as low, e3.ts as high"
        f" from late3 e3 join late0 e0 on e0.ts < e3.ts and e0.ts >= e3.ts - {db.w}),"
        " with_b as materialized (select ends.*, e1.event_id as i1 from ends join late1 e1"
        " on e1.ts > low and e1.ts < high)"
        f" select {db.q} as q, i0, i1, e2.event_id as i2, i3 from with_b join late2 e2 on e2.ts > low and e2.ts < high"
    )


_FOUR = ", ".join(f"e{place}.event_id as i{place}" for place in range(4))


def _nested(db: Tables, last: str) -> str:
    between = "".join(
        f" join early{place} e{place} on e{place}.b = e3.b and e{place}.ts > e0.ts and e{place}.ts < e3.ts"
        for place in (1, 2)
    )
    return f"{last} join early0 e0 on e0.b = e3.b and e0.ts < e3.ts and e3.ts - e0.ts <= {db.w}{between}"


def _tables_with_x(workload: Workload) -> Tables:
    return Tables(Workload(**(vars(workload) | {"facts": workload.facts | {"returns": ("x", 1)}})))
