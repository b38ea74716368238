"""Random cases: events, a set of queries over them, what the classes declare, and a range of detection times.

Enters: a seed. Leaves: a `RandomCase`; the same seed gives the same case on every machine.
Always holds: every query of a case is accepted by the checker; times are coarse enough for ties; floats are mostly
multiples of a half, so that conditions on them often hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from math import comb
from random import Random
from typing import Any

from cep_core.errors import QueryError
from cep_core.language import algebra as q
from cep_core.language import check, format_query
from tests.naive_values import EPOCH
from tests.random_features import Schema, features_of, walk
from tests.random_queries import SECOND, is_late, random_query
from tests.random_values import KINDS

CLASSES = ("A", "B", "C", "D")
ATTRIBUTES = ("x", "y", "f", "s", "k", "t")
BASES_US = (0, 0, 0, -8 * SECOND, 1_767_225_600 * SECOND)  # across the epoch, and far from it, too


MOST_BINDINGS = 200_000  # more would take the naive meaning minutes and gigabytes
# small domains, so that conditions often hold; at times numbers at the edge of 64 bits, and zeros with signs
WHOLES = (
    (0, 0, 0, 1, 1, 1, 1, 2, 2, 2, -1, -3),
    (0, 1, 2, -1, 2**31, -3_000_000_000, 2**62, 2**63 - 1, 2**63 - 1, -(2**63), -(2**63) + 1),
)
FRACTIONS = (
    (0.0, 0.5, 1.0, 1.5, 2.0, float("nan")),
    (0.0, -0.0, 0.5, -1.5, 2.5, 1e19, -1e300, float("inf"), float("-inf"), float("nan")),
)


@dataclass(frozen=True)
class RandomCase:
    """events as naive.py takes them; queries as text; schema: class -> attribute -> type; start, end: the run's
    range.
    """

    seed: int
    events: tuple[dict[str, Any], ...]
    queries: dict[str, str]
    schema: Schema
    features: frozenset[str]
    start: int | None = None
    end: int | None = None

    def with_events(self, events: tuple[dict[str, Any], ...]) -> RandomCase:
        return replace(self, events=events)

    def only(self, name: str) -> RandomCase:
        """The case with one query and those that it refers to."""
        wanted = {name}
        while (
            more := {o for o in self.queries if any(f"{o}" in self.queries[w].split("WHERE")[0] for w in wanted)}
            - wanted
        ):
            wanted |= more
        return replace(self, queries={n: text for n, text in self.queries.items() if n in wanted})


def random_case(seed: int, size: int = 14) -> RandomCase:
    """A case with one to three queries, the later ones at times over the matches of the earlier ones."""
    rng = Random(seed)
    span_s = rng.choice((6, 10, 20))
    base_us = rng.choice(BASES_US)
    stretch = 3 if rng.random() < 0.15 else 1  # a history that is long against the windows
    schema = _schema(rng)
    present = rng.sample(CLASSES, rng.choice((2, 2, 3, 4)))
    count = rng.randint(min(6, size), size) * stretch
    events = tuple(_events(rng, schema, present, base_us, span_s * stretch, count))
    queries: dict[str, q.Query] = {}
    declared = {name: (*attributes, "source") for name, attributes in schema.items()}
    sources, late = set(CLASSES), set[str]()
    wanted = rng.choice((1, 1, 1, 1, 2, 2, 3, 3, 3, 6))
    for _ in range(60):
        if len(queries) == wanted:
            break
        name = f"q{len(queries) + 1}"
        classes = _pool(rng, present, declared)
        query = random_query(rng, name, classes, span_s * SECOND, frozenset(sources), frozenset(late), base_us)
        if _bindings(query, events) > MOST_BINDINGS or not _accepted({**queries, name: query}, schema):
            continue
        queries[name] = query
        tests_source = any(isinstance(n, q.Equivalence) and "source" in dict(n.terms) for n in walk(query.where))
        sources |= {name} if tests_source else set()
        declared[name] = (*(field for _, field in query.returns), *(("source",) if tests_source else ()))
        referred = {c for node in walk(query.pattern) if isinstance(node, q.Element) for c in node.classes}
        if is_late(query.pattern) or referred & late:
            late.add(name)
    start, end = _range(rng, queries, base_us, span_s * stretch)
    texts = {name: format_query(query) for name, query in queries.items()}
    return RandomCase(seed, events, texts, schema, features_of(queries, events, schema, start, end), start, end)


def random_cases(seed: int, size: int = 14, features: frozenset[str] = frozenset()) -> Iterator[RandomCase]:
    """Cases without end, all with these features."""
    while True:
        one = random_case(seed, size)
        if features <= one.features and one.queries:
            yield one
        seed += 1


def _accepted(queries: dict[str, q.Query], schema: Schema) -> bool:
    try:
        check({name: format_query(query) for name, query in queries.items()}, schema)  # type: ignore[arg-type]
    except QueryError:
        return False
    return True


def _bindings(query: q.Query, events: tuple[dict[str, Any], ...]) -> int:
    """In how many ways the naive meaning may try to bind the elements, about."""
    found = 1
    for node in walk(query.pattern):
        if isinstance(node, q.Element) and not node.negated and not isinstance(node.quantity, q.Group):
            own = sum(event["event_class"] in node.classes for event in events) or 5  # matches of a query: a few
            found *= comb(own, node.quantity.size) if isinstance(node.quantity, q.Window) else own
        elif isinstance(node, q.TimerEvery):
            found *= 6
    return found


def _pool(rng: Random, present: list[str], declared: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The classes that have events, so that patterns meet some, rarely another; at times the queries made so far."""
    primitive = present if rng.random() < 0.9 else rng.sample(CLASSES, 3)
    others = [name for name in declared if name not in CLASSES and rng.random() < 0.5]
    return {name: declared[name] for name in (*primitive, *others)}


def _schema(rng: Random) -> Schema:
    """What the classes declare: everything, or for some classes less."""
    full = {name: KINDS[name] for name in ATTRIBUTES}
    if rng.random() < 0.6:
        return {name: dict(full) for name in CLASSES}
    less = {name: set(rng.sample(ATTRIBUTES, rng.choice((2, 4, 6)))) for name in CLASSES}
    return {name: {a: kind for a, kind in full.items() if a in less[name]} for name in CLASSES}


def _events(
    rng: Random, schema: Schema, present: list[str], base_us: int, span_s: int, count: int
) -> Iterator[dict[str, Any]]:
    interval, ties, fine = rng.random() < 0.3, rng.random() < 0.3, rng.random() < 0.3
    sources = rng.choice((("s1",), ("s1", "s2"), ("s1", "s2", None), ("s1", "s2", "s3", "s4")))
    nulls = rng.choice((0.0, 0.1, 0.3))
    wholes, fractions = WHOLES[rng.random() < 0.12], FRACTIONS[rng.random() < 0.12]
    names = rng.sample(range(1, 1200), count)  # as texts they are not in the order of the numbers
    weights = [rng.choice((1, 2, 3)) for _ in present]
    for name in names:
        event_class = rng.choices(present, weights)[0]
        start = base_us + (rng.randint(0, span_s * SECOND) if fine else rng.randint(0, span_s) * SECOND)
        length = rng.choice((0, 1, 1, 2, 4)) * SECOND if interval else 0
        values = {
            "x": rng.choice(wholes),
            "y": rng.choice(wholes) if rng.random() < 0.3 else rng.randint(0, 2),
            "f": rng.choice(fractions),
            "s": rng.choice(("p", "p", "q", "q", "r", "pq", "P", "", "é")),
            "k": rng.random() < 0.5,
            "t": EPOCH + timedelta(seconds=rng.randint(0, 3)),
        }
        yield {
            "event_id": f"{rng.choice((event_class.lower(), event_class.lower(), 'é'))}{name}",
            "source": rng.choice(sources),
            "event_class": event_class,
            "start_ts": start,
            "end_ts": start + length,
            "tie": rng.choice((None, 1, 2)) if ties else None,
            "attributes": {
                a: None if rng.random() < nulls else v for a, v in values.items() if a in schema[event_class]
            },
        }


def _range(rng: Random, queries: dict[str, q.Query], base_us: int, span_s: int) -> tuple[int | None, int | None]:
    """A run's range; none where a CONSUME query is referred to, whose earlier matches only a state could tell."""
    if rng.random() < 0.75 or (any(query.consume != "none" for query in queries.values()) and len(queries) > 1):
        return None, None
    start = base_us + rng.randint(0, span_s // 2) * SECOND
    return rng.choice((None, start)), rng.choice((None, start + rng.randint(span_s // 2, span_s) * SECOND))
