"""Random cases: events, a set of queries over them, what the classes declare, and a range of detection times.

Enters: a seed. Leaves: a `RandomCase`; the same seed gives the same case on every machine.
Always holds: every query of a case is accepted by the checker; times are coarse enough for ties; floats are multiples
of a
half, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from random import Random
from typing import Any

from cep_core.errors import QueryError
from cep_core.language import algebra as q
from cep_core.language import check, format_query
from tests.random_conditions import KINDS
from tests.random_queries import SECOND, is_late, random_query

CLASSES = ("A", "B", "C", "D")
ATTRIBUTES = ("x", "y", "f", "s", "k")
Schema = dict[str, dict[str, str]]


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
    schema = _schema(rng)
    present = rng.sample(CLASSES, rng.choice((2, 2, 3, 4)))
    events = tuple(_events(rng, schema, present, span_s, rng.randint(4, size)))
    queries: dict[str, q.Query] = {}
    declared = {name: (*attributes, "source") for name, attributes in schema.items()}
    sources, late = set(CLASSES), set[str]()
    wanted = rng.choice((1, 1, 2, 3))
    for _ in range(60):
        if len(queries) == wanted:
            break
        name = f"q{len(queries) + 1}"
        classes = _pool(rng, present, declared)
        query = random_query(rng, name, classes, span_s * SECOND, frozenset(sources), frozenset(late))
        if not _accepted({**queries, name: query}, schema):
            continue
        queries[name] = query
        tests_source = any(isinstance(n, q.Equivalence) and "source" in dict(n.terms) for n in _walk(query.where))
        sources |= {name} if tests_source else set()
        declared[name] = (*(field for _, field in query.returns), *(("source",) if tests_source else ()))
        referred = {c for node in _walk(query.pattern) if isinstance(node, q.Element) for c in node.classes}
        if is_late(query.pattern) or referred & late:
            late.add(name)
    start, end = _range(rng, queries, span_s)
    texts = {name: format_query(query) for name, query in queries.items()}
    return RandomCase(seed, events, texts, schema, _features(queries, events, schema, start, end), start, end)


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
    less = {name: set(rng.sample(ATTRIBUTES, rng.choice((2, 4, 5)))) for name in CLASSES}
    return {name: {a: kind for a, kind in full.items() if a in less[name]} for name in CLASSES}


def _events(rng: Random, schema: Schema, present: list[str], span_s: int, count: int) -> Iterator[dict[str, Any]]:
    interval, ties, fine = rng.random() < 0.3, rng.random() < 0.3, rng.random() < 0.3
    sources = rng.choice((("s1",), ("s1", "s2"), ("s1", "s2", None)))
    nulls = rng.choice((0.0, 0.1, 0.3))
    names = rng.sample(range(100, 999), count)
    weights = [rng.choice((1, 2, 3)) for _ in present]
    for name in names:
        event_class = rng.choices(present, weights)[0]
        start = rng.randint(0, span_s * SECOND) if fine else rng.randint(0, span_s) * SECOND
        length = rng.choice((0, 1, 1, 2, 4)) * SECOND if interval else 0
        values = {
            "x": rng.randint(0, 2),
            "y": rng.randint(0, 2),
            "f": rng.choice((0.0, 0.5, 1.0, 1.5, 2.0, float("nan"))),
            "s": rng.choice(("p", "q", "r", "pq")),
            "k": rng.random() < 0.5,
        }
        yield {
            "event_id": f"{event_class.lower()}{name}",
            "source": rng.choice(sources),
            "event_class": event_class,
            "start_ts": start,
            "end_ts": start + length,
            "tie": rng.choice((None, 1, 2)) if ties else None,
            "attributes": {
                a: None if rng.random() < nulls else v for a, v in values.items() if a in schema[event_class]
            },
        }


def _range(rng: Random, queries: dict[str, q.Query], span_s: int) -> tuple[int | None, int | None]:
    """A run's range; none where a CONSUME query is referred to, whose earlier matches only a state could tell."""
    if rng.random() < 0.75 or (any(query.consume != "none" for query in queries.values()) and len(queries) > 1):
        return None, None
    start = rng.randint(0, span_s) * SECOND
    return rng.choice((None, start)), rng.choice((None, start + rng.randint(1, span_s) * SECOND))


# ---------------------------------------------------------------- features


def _walk(node: Any) -> Iterator[Any]:
    """Every node under a query, a pattern or a condition."""
    yield node
    if is_dataclass(node):
        for one in fields(node):
            yield from _walk(getattr(node, one.name))
    elif isinstance(node, tuple):
        for one in node:
            yield from _walk(one)


def _features(
    queries: dict[str, q.Query], events: tuple[dict[str, Any], ...], schema: Schema, start: int | None, end: int | None
) -> frozenset[str]:
    found: set[str] = set()
    for query in queries.values():
        found |= {f"select_{query.select}", f"consume_{query.consume}", f"ties_{query.ties}"}
        found |= {"return"} if query.returns else set()
        found |= {"outermost_" + type(query.pattern).__name__.lower()}
        for node in _walk(query):
            match node:
                case q.Element():
                    found |= {"any"} if len(node.classes) > 1 else set()
                    found |= {"filter"} if node.filter is not None else set()
                    found |= {"reference"} if set(node.classes) & set(queries) else set()
                    found |= {"negation"} if node.negated else {type(node.quantity).__name__.lower()}
                case q.Seq() | q.And() | q.Or() if node is not query.pattern:
                    found |= {"nested"} | ({"nested_within"} if node.within_us is not None else set())
                case q.Window() if node.same or node.different:
                    found.add("times")
                case q.Equivalence():
                    found |= {"key"} | ({"constant_key"} if any(c for _, c in node.terms) else set())
                case q.Either():
                    found.add("dnf")
            if is_dataclass(node) and not isinstance(node, q.Element | q.Equivalence | q.Query | q.At):
                found.add(type(node).__name__.lower())
        found |= _edges(query.pattern)
    found |= {"interval"} if any(e["start_ts"] != e["end_ts"] for e in events) else set()
    found |= {"undeclared"} if any(len(attributes) < len(ATTRIBUTES) for attributes in schema.values()) else set()
    found |= {"range"} if start is not None or end is not None else set()
    return frozenset(found | ({"several"} if len(queries) > 1 else set()))


def _edges(pattern: q.Pattern) -> set[str]:
    if isinstance(pattern, q.And) and any(isinstance(p, q.Element) and p.negated for p in pattern.parts):
        return {"negation_in_and"}
    if not isinstance(pattern, q.Seq):
        return set()
    kinds = [
        "negation"
        if isinstance(p, q.Element) and p.negated
        else "group"
        if isinstance(p, q.Element) and isinstance(p.quantity, q.Group)
        else ""
        for p in pattern.parts
    ]
    found = {f"leading_{kinds[0]}", f"trailing_{kinds[-1]}"} - {"leading_", "trailing_"}
    return found | {f"middle_{kind}" for kind in kinds[1:-1] if kind}
