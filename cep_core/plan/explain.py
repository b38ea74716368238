"""How a query set will be evaluated, as text.

Enters: query texts. Leaves: the shared network: which queries are walked together and by what key, which go through the
general matcher, and what each reads. Always holds: the same text for the same queries, on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cep_core.language import check, format_query
from cep_core.plan.branches import branches
from cep_core.plan.simple import simple_query


def explain(queries: Mapping[str, str], stats: Any = None) -> str:
    """The plan of a query set. stats: class -> events, shown beside each class where given."""
    checked = check(queries, None)
    shared: dict[tuple[str, ...], list[str]] = {}
    readers: dict[str, list[str]] = {}
    lines = []
    for name, query in checked.items():
        for branch in branches(query):
            for slot in branch.slots:
                for read in getattr(slot.element, "classes", ()):
                    if name not in readers.setdefault(read, []):
                        readers[read].append(name)
        if simple_query(query) and not query.refers_to:
            shared.setdefault(query.key, []).append(name)
    lines.append("classes:")
    for read in sorted(readers):
        count = f" ({stats[read]} events)" if stats and read in stats else ""
        lines.append(f"  {read}{count}: read by {', '.join(sorted(readers[read]))}")
    for key in sorted(shared):
        lines.append(f"shared walk by {_key(key)}: {', '.join(sorted(shared[key]))}")
    walked = {name for names in shared.values() for name in names}
    for name, query in checked.items():
        if name in walked:
            continue
        own = len(branches(query))
        lines.append(f"matcher {name} by {_key(query.key)}, {own} branch{'es' if own > 1 else ''}:")
        lines.extend(f"  {line}" for line in format_query(query.query).splitlines())
        if query.refers_to:
            lines.append(f"  after {', '.join(query.refers_to)}")
    return "\n".join(lines) + "\n"


def _key(key: tuple[str, ...]) -> str:
    return f"[{', '.join(key)}]" if key else "no key"
