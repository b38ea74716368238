"""Which queries the shared walk can answer.

Enters: checked queries. Leaves: `Simple` for those that are SEQ, AND or OR of single-event elements with no condition
between elements, SELECT all (SEQ: or recent) and no CONSUME.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from cep_core.language.algebra import And, Element, One, Or, Seq
from cep_core.language.checked import CheckedQuery


@dataclass(frozen=True)
class Simple:
    kind: OneOf["seq", "and", "or"]
    elements: tuple[Element, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(element.name for element in self.elements)


def simple_query(checked: CheckedQuery) -> Simple | None:
    """The query as the walk takes it, or None."""
    query, pattern = checked.query, checked.query.pattern
    if query.consume != "none" or checked.disjuncts != ((),) or checked.postponed:
        return None
    parts = (pattern,) if isinstance(pattern, Element) else getattr(pattern, "parts", ())
    if not parts or not all(isinstance(p, Element) and isinstance(p.quantity, One) and not p.negated for p in parts):
        return None
    kind: OneOf["seq", "and", "or"]
    match pattern:
        case And():
            kind = "and"
        case Or(within_us=None):
            kind = "or"
        case Seq() | Element():
            kind = "seq"
        case _:
            return None
    if query.select != "all" and not (query.select == "recent" and kind == "seq"):
        return None
    return Simple(kind, tuple(parts))
