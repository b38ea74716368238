"""References between queries: who reads whom, in which order, and cycles.

Enters: the queries of a set by id. Leaves: an order in which every query stands behind those it refers to, and the
cycles. Always holds: the order is the given one wherever references leave a choice. Nothing recurses, so a chain of
thousands of references is no danger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from cep_core.language.algebra import Element, Query
from cep_core.language.scope import leaves


def references(query: Query, ids: Mapping[str, object]) -> dict[str, Element]:
    """The ids that a query refers to, in reading order, each with the first element that does."""
    found: dict[str, Element] = {}
    for node, _ in leaves(query.pattern):
        if isinstance(node, Element):
            for name in node.classes:
                if name in ids:
                    found.setdefault(name, node)
    return found


def ordered(graph: Mapping[str, Mapping[str, Element]]) -> list[str]:
    """All ids, each behind those it refers to; inside a cycle the order means nothing."""
    result: list[str] = []
    seen: set[str] = set()
    for start in graph:
        stack = [(start, iter(graph[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            name, rest = stack[-1]
            following = next((each for each in rest if each in graph and each not in seen), None)
            if following is None:
                result.append(name)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(graph[following])))
    return result


def cycles(graph: Mapping[str, Mapping[str, Element]]) -> dict[str, tuple[str, ...]]:
    """Each id that stands on a cycle, in order, with one: from itself through its references back to itself."""
    found: dict[str, tuple[str, ...]] = {}
    for id in sorted(_left(graph)):
        cycle = None if id in found else _cycle_through(id, graph)
        for place, name in enumerate(cycle[:-1] if cycle else ()):
            found.setdefault(name, (*cycle[place:-1], *cycle[: place + 1]))  # type: ignore[index]
    return dict(sorted(found.items()))


def _cycle_through(start: str, graph: Mapping[str, Mapping[str, Element]]) -> list[str] | None:
    """A shortest way from a query through its references back to itself, or None."""
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for following in graph.get(name, {}):
            if following == start:
                back = [start]
                while name != start:
                    back.append(name)
                    name = before[name]
                return [start, *reversed(back)]
            if following not in before:
                before[following] = name
                queue.append(following)
    return None


def _left(graph: Mapping[str, Mapping[str, Element]]) -> set[str]:
    """The ids that stand on some cycle, or behind or before one: what is left when free ends are taken away."""
    waiting = {name: sum(1 for each in refers if each in graph) for name, refers in graph.items()}
    readers: dict[str, list[str]] = {}
    for name, refers in graph.items():
        for each in refers:
            readers.setdefault(each, []).append(name)
    free = deque(name for name, count in waiting.items() if count == 0)
    left = set(graph)
    while free:
        name = free.popleft()
        left.discard(name)
        for reader in readers.get(name, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                free.append(reader)
    return left
