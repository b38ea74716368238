"""The peers: DuckDB and Polars with the best formulation known, a bucket join.

Enters: a workload. Leaves: an Arrow table with the query's id and one event id per element.
Always holds: one thread; all patterns in one statement through a table of patterns. `ts // widest window` is a join
key; the earlier side stands in its own bucket and the next, so that a pair within the window always meets. A plain
range or ASOF join per pattern is 5 to 20 times slower at 1,000 patterns. `recent` is the greatest combination per
query and completing event.
"""

from __future__ import annotations

import pyarrow as pa

from bench.workloads import Workload


def pattern_table(workload: Workload) -> pa.Table:
    size = len(workload.patterns[0].classes)
    columns: dict[str, list[object]] = {
        "q": [p.id for p in workload.patterns],
        "w": [p.window_us for p in workload.patterns],
    }
    columns |= {f"c{place}": [p.classes[place] for p in workload.patterns] for place in range(size)}
    return pa.table(columns)


def duckdb(workload: Workload) -> pa.Table:
    import duckdb as engine

    first = workload.patterns[0]
    size, widest = len(first.classes), max(p.window_us for p in workload.patterns)
    last = size - 1
    connection = engine.connect(config={"threads": 1})
    connection.register("given", workload.events)
    connection.register("patterns", pattern_table(workload))
    wanted = " union ".join(f"select c{place} as n from patterns" for place in range(size))
    connection.execute(
        f"create temp table events as select event_id, source, event_class, ts, ts // {widest} as b from given"
        f" where event_class in (select n from ({wanted}))"
    )
    connection.execute(
        "create temp table both_buckets as select * from events union all"
        " select event_id, source, event_class, ts, b + 1 from events"
    )
    ids = ", ".join(f"e{place}.event_id as i{place}" for place in range(size))
    joins = f"events e{last} join patterns p on e{last}.event_class = p.c{last}"
    for place in range(last - 1, -1, -1):
        joins += (
            f" join both_buckets e{place} on e{place}.source = e{last}.source and e{place}.b = e{last}.b"
            f" and e{place}.event_class = p.c{place} and e{place}.ts < e{place + 1}.ts"
            f" and e{last}.ts - e{place}.ts <= p.w"
        )
    if first.select == "all":
        return connection.sql(f"select p.q as q, {ids} from {joins}").to_arrow_table()
    down = range(last - 1, -1, -1)
    fields = ", ".join(f"t{place} := e{place}.ts, i{place} := e{place}.event_id" for place in down)
    found = ", ".join(f"best.i{place} as i{place}" for place in range(last))
    return connection.sql(
        f"select q, {found}, i{last} from"
        f" (select p.q as q, e{last}.event_id as i{last}, max(struct_pack({fields})) as best"
        f" from {joins} group by all)"
    ).to_arrow_table()


def polars(workload: Workload) -> pa.Table:
    import polars as pl

    first = workload.patterns[0]
    size, widest = len(first.classes), max(p.window_us for p in workload.patterns)
    last = size - 1
    patterns = pl.DataFrame(pattern_table(workload)).lazy().with_row_index("p")
    events = (
        pl.DataFrame(workload.events).lazy().select("event_id", "source", "event_class", "ts", b=pl.col("ts") // widest)
    )
    wanted = {name for pattern in workload.patterns for name in pattern.classes}
    events = events.filter(pl.col("event_class").is_in(list(wanted)))
    both = pl.concat([events, events.with_columns(b=pl.col("b") + 1)])
    found = events.rename({"event_id": f"i{last}", "ts": f"t{last}"}).join(
        patterns, left_on="event_class", right_on=f"c{last}"
    )
    for place in range(last - 1, -1, -1):
        side = both.rename({"event_id": f"i{place}", "ts": f"t{place}", "event_class": f"c{place}"})
        found = found.join(side, on=["source", "b", f"c{place}"]).filter(
            (pl.col(f"t{place}") < pl.col(f"t{place + 1}")) & (pl.col(f"t{last}") - pl.col(f"t{place}") <= pl.col("w"))
        )
    ids = [f"i{place}" for place in range(size)]
    if first.select == "recent":
        down = [name for place in range(last - 1, -1, -1) for name in (f"t{place}", f"i{place}")]
        found = found.group_by("p", "q", f"i{last}").agg(pl.struct(down).sort(descending=True).first().alias("best"))
        found = found.unnest("best")
    return found.select("q", *ids).collect().to_arrow()
