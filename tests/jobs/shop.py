"""A small lake for the tests of the jobs: one wide table, queries of every kind, and what the naive meaning finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cep_core.engine.identity import match_id
from jobs import tables
from jobs.settings import Settings, load_settings
from tests.naive import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000
T0 = 1_767_225_600 * S  # 2026-01-01

DECLARATIONS = """
tables: {raw: {path: raw}}
events:
  - table: raw
    source: src
    start: begins
    end: ends
    unit: us
    tie: seq
    event_id: id
    class: kind
    attributes: {x: int, user: string}
    classes: {A: {}, B: {}, C: {}}
"""

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s RETURN a.x AS x, b.x AS y",
    "calm": "PATTERN SEQ(A a, B b, !C c) WHERE [source] WITHIN 15 s SELECT recent",
    "quiet": "PATTERN AND(A a, B b, !C(x > 1) c) WHERE [source] WITHIN 12 s",
    "by_user": "PATTERN SEQ(A(x < 4) a, C+ c, B b) WHERE [user] WITHIN 30 s RETURN count(c) AS n, a.user AS user",
    "on_user": "PATTERN SEQ(by_user u, A a) WHERE [user] WITHIN 25 s",
    "anywhere": "PATTERN SEQ(A a, C c) WHERE a.x > c.x WITHIN 6 s",
    "chain": "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10 s SELECT recent",
    "single": "PATTERN C(x = 3) c",
    "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used",
    "older": "PATTERN SEQ(A a, B b) WITHIN 30 s SELECT recent CONSUME older",
    "on_pair": "PATTERN SEQ(pair p, C c) WHERE [source] WITHIN 40 s",
    "on_calm": "PATTERN SEQ(calm p, C c) WITHIN 20 s",
    "on_used": "PATTERN SEQ(used u, C c) WHERE [source] WITHIN 15 s",
}

Row = tuple[str, str, str, int, int, int | None, int | None, str]
Found = Counter[tuple[str, str, int, tuple[tuple[str, str | None], ...]]]


@dataclass(frozen=True)
class Shop:
    """A project folder with its rows."""

    settings: Settings
    rows: tuple[Row, ...]
    queries: Mapping[str, str]

    @property
    def end_us(self) -> int:
        return max(row[4] for row in self.rows) + 200 * S

    def expected(self, names: Iterable[str] | None = None) -> Found:
        """What one run over the whole history finds, by the naive meaning."""
        events = [
            {"event_id": r[0], "source": r[1], "event_class": r[2], "start_ts": r[3], "end_ts": r[4], "tie": r[5],
             "attributes": {"x": r[6], "user": r[7]}}
            for r in self.rows
        ]  # fmt: skip
        schema = {name: {"x": "int", "user": "string"} for name in "ABC"}
        wanted = set(self.queries if names is None else names)
        found = evaluate(events, dict(self.queries), None, None, schema, None, match_id)
        return Counter(
            (m.query_id, match_id(m.query_id, m.elements), m.detection_ts, tuple(sorted(m.fields.items())))
            for m in found
            if m.query_id in wanted
        )

    def published(self, spark: SparkSession) -> Found:
        rows = tables.read(spark, self.settings, "composite_events").selectExpr(
            "query_id", "match_id", "unix_micros(detection_ts) AS at", "fields"
        )
        return Counter(
            (r["query_id"], r["match_id"], r["at"], tuple(sorted(r["fields"].items()))) for r in rows.collect()
        )


def make_shop(
    spark: SparkSession, folder: Path, *, events: int = 240, span_s: int = 400, seed: int = 1,
    queries: Mapping[str, str] = QUERIES, hot: float = 0.0, **flags: object,
) -> Shop:  # fmt: skip
    """A project folder under `folder` with its declarations, catalogue and one Delta table. `hot`: the share of all
    events that one source has beyond its own."""
    (folder / "conf/events").mkdir(parents=True)
    (folder / "conf/queries").mkdir()
    (folder / "conf/settings.yaml").write_text("lake: lake\nmaster: local[2]\n", encoding="utf-8")
    (folder / "conf/events/shop.yaml").write_text(DECLARATIONS, encoding="utf-8")
    write_queries(folder, queries)
    rows = random_rows(events, span_s, seed, hot)
    schema = "id string, src string, kind string, begins bigint, ends bigint, seq bigint, x bigint, user string"
    spark.createDataFrame(list(rows), schema).write.format("delta").save(str(folder / "lake/raw"))
    return Shop(load_settings(dict(flags), project=folder, environment={}), rows, dict(queries))


def write_queries(folder: Path, queries: Mapping[str, str]) -> None:
    text = "\n\n".join(f"QUERY {name}\n{query}" for name, query in queries.items())
    (folder / "conf/queries/shop.cep").write_text(text + "\n", encoding="utf-8")


def random_rows(events: int, span_s: int, seed: int, hot: float = 0.0) -> tuple[Row, ...]:
    """Points and some intervals, ties in time, null attributes, one row twice."""
    draw = random.Random(seed)
    rows: list[Row] = []
    for number in range(events):
        begins = T0 + draw.randrange(span_s) * S
        ends = begins + (draw.randrange(4) * S if draw.random() < 0.2 else 0)
        tie = draw.randrange(3) if draw.random() < 0.5 else None
        x = draw.randrange(5) if draw.random() < 0.95 else None
        source = "s0" if hot and draw.random() < hot else f"s{draw.randrange(5)}"
        rows.append((f"e{number}", source, draw.choice("ABC"), begins, ends, tie, x, f"u{draw.randrange(6)}"))
    return (*rows, rows[0])
