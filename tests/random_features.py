"""Which features of the contract a random case has, so that a fuzz can ask for them and count them.

Enters: the queries of a case, its events, what the classes declare, its range. Leaves: names of features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from cep_core.language import algebra as q
from tests.random_queries import is_late
from tests.random_values import KINDS

Schema = dict[str, dict[str, str]]


def walk(node: Any) -> Iterator[Any]:
    """Every node under a query, a pattern or a condition."""
    yield node
    if is_dataclass(node):
        for one in fields(node):
            yield from walk(getattr(node, one.name))
    elif isinstance(node, tuple):
        for one in node:
            yield from walk(one)


def features_of(
    queries: dict[str, q.Query], events: tuple[dict[str, Any], ...], schema: Schema, start: int | None, end: int | None
) -> frozenset[str]:
    found: set[str] = set()
    most = max(len(attributes) for attributes in schema.values())
    late = {name for name, query in queries.items() if is_late(query.pattern)}
    for query in queries.values():
        found |= {f"select_{query.select}", f"consume_{query.consume}", f"ties_{query.ties}"}
        found |= {f"{query.select}_{query.consume}"} | _meetings(query, queries, schema)
        found |= {"return"} if query.returns else set()
        found |= {"outermost_" + type(query.pattern).__name__.lower()}
        for node in walk(query):
            match node:
                case q.Element():
                    found |= {"late_reference"} if set(node.classes) & late else set()
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
    values = [value for event in events for value in event["attributes"].values()]
    found |= {"large"} if any(type(value) is int and abs(value) >= 2**62 for value in values) else set()
    floats = [value for value in values if isinstance(value, float)]
    found |= {"infinite"} if any(map(math.isinf, floats)) else set()
    found |= {"signed_zero"} if any(value == 0 and math.copysign(1, value) < 0 for value in floats) else set()
    found |= {"interval"} if any(e["start_ts"] != e["end_ts"] for e in events) else set()
    found |= {"undeclared"} if any(len(attributes) < most for attributes in schema.values()) else set()
    found |= {"range"} if start is not None or end is not None else set()
    return frozenset(found | ({"several"} if len(queries) > 1 else set()))


def _meetings(query: q.Query, queries: dict[str, q.Query], schema: Schema) -> set[str]:
    """What a condition or a RETURN meets: a variable that an OR leaves unbound, an attribute that a class of ANY does
    not declare, a field of a referred query, functions of several elements, aggregates."""
    found: set[str] = set()
    elements = {node.variable: node for node in walk(query.pattern) if isinstance(node, q.Element)}
    optional = {
        node.variable
        for part in walk(query.pattern)
        if isinstance(part, q.Or)
        for node in walk(part.parts)
        if isinstance(node, q.Element)
    }
    for place, part in (("where", query.where), ("return", query.returns)):
        for node in walk(part):
            variable = getattr(node, "variable", None)
            if isinstance(node, q.Aggregate):
                found.add(f"aggregate_in_{place}")
            if isinstance(node, q.Call | q.Arithmetic):
                named = {getattr(each, "variable", None) for each in walk(node)} - {None}
                found |= {f"function_of_several_in_{place}"} if len(named) > 1 else set()
                found |= {f"call_{node.name}"} if isinstance(node, q.Call) else set()
            if not isinstance(node, q.Attribute | q.Aggregate) or variable not in elements:
                continue
            found |= {f"unbound_in_{place}"} if variable in optional else set()
            name = node.name if isinstance(node, q.Attribute) else node.attribute
            if name is not None and name in KINDS and name != "source":
                classes = elements[variable].classes
                found |= {f"field_in_{place}"} if set(classes) & set(queries) else set()
                declared = [name in schema[each] for each in classes if each in schema]
                found |= {f"undeclared_in_{place}"} if not all(declared) else set()
    for node in walk(query.where):
        match node:
            case q.In() | q.Between() | q.Like() | q.IsNull():
                found |= {f"not_{type(node).__name__.lower()}"} if node.negated else set()
            case q.Not(q.Forall()):
                found.add("not_forall")
            case q.Index(str(), offset) if offset:
                found.add("shifted_index")
            case q.Forall(high=q.Aggregate()):
                found.add("forall_to_count")
    for node in walk(query.pattern):
        if isinstance(node, q.TimerAfter) and isinstance(node.part, q.Seq | q.And | q.Or):
            found.add("after_nested")
    return found


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
