"""Polars as a peer: the same formulations as DuckDB's (peers_duckdb.py), where it can express them.

Enters: a workload. Leaves: an Arrow table as in peers_duckdb.py.
Always holds: one thread (POLARS_MAX_THREADS, set before the process starts); one lazy plan, collected once.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bench.peers_duckdb import pattern_table
from bench.workloads import Workload


def seq(workload: Workload) -> pa.Table:
    import polars as pl

    size = len(workload.patterns[0].classes)
    last = size - 1
    found = _joined(workload, list(range(last, -1, -1)))
    if "less" in workload.facts:
        name, one, other = workload.facts["less"]
        found = found.filter(pl.col(f"{name}{one}") < pl.col(f"{name}{other}"))
    columns = [pl.col("q"), *(pl.col(f"i{place}") for place in range(size))]
    if "returns" in workload.facts:
        name, place = workload.facts["returns"]
        columns.append(pl.col(f"{name}{place}").alias("x"))
    if workload.select == "recent":
        down = [name for place in range(last - 1, -1, -1) for name in (f"t{place}", f"i{place}")]
        found = found.sort(down, descending=True).unique(["q", f"i{last}"], keep="first", maintain_order=True)
    return found.select(columns).collect().to_arrow()


def or_(workload: Workload) -> pa.Table:
    import polars as pl

    pairs = [(pattern.id, name) for pattern in workload.patterns for name in pattern.classes]
    wanted = pl.LazyFrame({"q": [q for q, _ in pairs], "event_class": [name for _, name in pairs]})
    events = pl.DataFrame(workload.events).lazy().select("event_class", i0="event_id")
    return events.join(wanted, on="event_class").select("q", "i0").collect().to_arrow()


def negation(workload: Workload) -> pa.Table:
    """The latest event of the negated class before the completing one, by ASOF; one pattern at a time, as it must."""
    return pa.concat_tables(_negation(workload, number) for number in range(len(workload.patterns))).combine_chunks()


def _negation(workload: Workload, number: int) -> pa.Table:
    import polars as pl

    alone = Workload(**(vars(workload) | {"patterns": (workload.patterns[number],)}))
    (pattern,) = alone.patterns
    absent = workload.facts["absent"]
    bound = [place for place in range(len(pattern.classes)) if place != absent]
    last, key = bound[-1], list(workload.key)
    lacking = (
        pl.DataFrame(workload.events)
        .lazy()
        .filter(pl.col("event_class") == pattern.classes[absent])
        .select(*key, absent="ts")
        .sort("absent")
    )
    found = _joined(alone, bound[::-1], lambda ends: _before(ends, lacking, f"t{last}", key))
    found = found.filter((pl.col("absent") <= pl.col(f"t{bound[-2]}")).fill_null(True))
    if "less" in workload.facts:
        name, one, other = workload.facts["less"]
        found = found.filter(pl.col(f"{name}{one}") < pl.col(f"{name}{other}"))
    ids = [pl.col(f"i{place}").alias(f"i{number}") for number, place in enumerate(bound)]
    return found.select("q", *ids).collect().to_arrow()


def _before(ends: Any, lacking: Any, time: str, key: list[str]) -> Any:
    return ends.sort(time).join_asof(
        lacking,
        left_on=time,
        right_on="absent",
        by=key,
        allow_exact_matches=False,
        coalesce=False,
        check_sortedness=False,
    )


def groups(workload: Workload) -> pa.Table:
    """Sums as differences of running sums; the group of a pair that matches by the ranks of its events."""
    import polars as pl

    (pattern,) = workload.patterns
    events = _events(workload, ("x",)).collect()
    first, middle, last = (events.filter(pl.col("event_class") == name) for name in pattern.classes)
    ranked = middle.sort("ts", "event_id").with_columns(s=pl.col("x").cum_sum(), n=pl.int_range(1, pl.len() + 1))
    running = ranked.lazy().group_by("ts", maintain_order=True).agg(pl.col("s").last(), pl.col("n").last())
    zero = (pl.col("s").fill_null(0), pl.col("n").fill_null(0))
    starts = first.lazy().sort("ts").join_asof(running, on="ts").with_columns(zero)
    ends = last.lazy().sort("ts").join_asof(running, on="ts", allow_exact_matches=False).with_columns(zero)
    starts = pl.concat([starts, starts.with_columns(b=pl.col("b") + 1)])
    starts = starts.select("b", i0="event_id", t0="ts", s0="s", n0="n")
    pairs = (
        ends.select("b", i2="event_id", t2="ts", s2="s", n2="n")
        .join(starts, on="b")
        .filter(
            (pl.col("t0") < pl.col("t2"))
            & (pl.col("t2") - pl.col("t0") <= pattern.window_us)
            & (pl.col("s2") - pl.col("s0") > workload.facts["sum_above"])
        )
        .select("i0", "i2", i1=pl.int_ranges("n0", "n2"))
        .collect()
    )
    spread = pairs.with_row_index("n").select("n", "i1").explode("i1")
    spread = spread.with_columns(ranked["event_id"].gather(spread["i1"]).alias("id"))
    grouped = spread.group_by("n", maintain_order=True).agg(pl.col("id"))["id"]
    return pairs.select(pl.lit(pattern.id).alias("q"), "i0", grouped.alias("i1"), "i2").to_arrow()


def many_groups(workload: Workload) -> pa.Table:
    """The events between joined to each pair of a first and a last event."""
    import polars as pl

    found = _joined(Workload(**(vars(workload) | {"facts": workload.facts | {"returns": ("x", 1)}})), [2, 1, 0])
    grouped = (
        found.sort("t1", "i1")
        .group_by("q", "i0", "i2", maintain_order=True)
        .agg(pl.col("i1"), pl.col("x1").sum())
        .filter(pl.col("x1") > workload.facts["sum_above"])
    )
    return grouped.select("q", "i0", "i1", "i2").collect().to_arrow()


def nested(workload: Workload) -> pa.Table:
    import polars as pl

    (pattern,) = workload.patterns
    events = _events(workload, ())
    late = [events.filter(pl.col("event_class") == name) for name in pattern.classes]
    early = [pl.concat([side, side.with_columns(b=pl.col("b") + 1)]) for side in late]
    found = late[3].select("b", i3="event_id", t3="ts")
    found = found.join(early[0].select("b", i0="event_id", t0="ts"), on="b").filter(
        (pl.col("t0") < pl.col("t3")) & (pl.col("t3") - pl.col("t0") <= pattern.window_us)
    )
    for place in (1, 2):
        found = found.join(early[place].select("b", t="ts", **{f"i{place}": "event_id"}), on="b")
        found = found.filter((pl.col("t0") < pl.col("t")) & (pl.col("t") < pl.col("t3"))).drop("t")
    return found.select(pl.lit(pattern.id).alias("q"), "i0", "i1", "i2", "i3").collect().to_arrow()


def _events(workload: Workload, attributes: tuple[str, ...]) -> Any:
    import polars as pl

    widest = max(p.window_us for p in workload.patterns)
    wanted = sorted({name for pattern in workload.patterns for name in pattern.classes})
    columns = ["event_id", "event_class", "ts", *workload.key, *attributes]
    events = pl.DataFrame(workload.events).lazy().select(*columns, b=pl.col("ts") // widest)
    return events.filter(pl.col("event_class").is_in(wanted))


def _joined(workload: Workload, down: list[int], at_the_end: Any = None) -> Any:
    """The sequence of the elements `down`, from the last to the first: q, i0, t0, ..., and attributes."""
    import polars as pl

    used = sorted({workload.facts[part][0] for part in ("less", "returns") if part in workload.facts})
    events = _events(workload, tuple(used))
    single = len(workload.patterns) == 1
    patterns = pl.DataFrame(pattern_table(workload)).lazy()
    key, last = list(workload.key), down[0]

    def named(side: Any, place: int) -> Any:
        return side.rename({"event_id": f"i{place}", "ts": f"t{place}"} | {name: f"{name}{place}" for name in used})

    if single:
        (pattern,) = workload.patterns
        late = [events.filter(pl.col("event_class") == name).drop("event_class") for name in pattern.classes]
        early = [pl.concat([side, side.with_columns(b=pl.col("b") + 1)]) for side in late]
        found = named(late[last], last).with_columns(q=pl.lit(pattern.id))
        window: Any = pl.lit(pattern.window_us)
    else:
        both = pl.concat([events, events.with_columns(b=pl.col("b") + 1)])
        found = named(events, last).join(patterns, left_on="event_class", right_on=f"c{last}")
        window = pl.col("w")
    if at_the_end is not None:
        found = at_the_end(found)
    following = last
    for place in down[1:]:
        if single:
            found = found.join(named(early[place], place), on=[*key, "b"])
        else:
            side = named(both, place).rename({"event_class": f"c{place}"})
            found = found.join(side, on=[*key, "b", f"c{place}"])
        found = found.filter(
            (pl.col(f"t{place}") < pl.col(f"t{following}")) & (pl.col(f"t{last}") - pl.col(f"t{place}") <= window)
        )
        following = place
    return found
