"""Which queries the shared walk can answer, and the networks that it walks.

Enters: checked queries. Leaves: `Simple` for those that are SEQ, AND or OR of single-event elements with no condition
between elements, SELECT all (SEQ: or recent), no CONSUME and no RETURN; and one network for each key and kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from cep_core.engine.conditions import EventColumns
from cep_core.engine.evaluate import Evaluation
from cep_core.engine.network import Network, SimpleQuery, networks
from cep_core.engine.walk import Items, Symbol, items
from cep_core.language.algebra import And, Element, One, Or, Seq
from cep_core.language.checked import CheckedQuery
from cep_core.language.normal import push_down


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
    if query.returns or query.consume != "none" or checked.disjuncts != ((),) or checked.postponed:
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


def simple_networks(
    queries: Sequence[tuple[CheckedQuery, Simple]], evaluation: Evaluation, columns: EventColumns
) -> Iterator[tuple[CheckedQuery, Items, Network]]:
    """Per key: its store as items, and each network over it. A query's number is its place in `queries`."""
    groups: dict[object, list[int]] = {}
    for number, (checked, _) in enumerate(queries):
        groups.setdefault((checked.key, checked.key_values), []).append(number)
    for numbers in groups.values():
        store, _ = evaluation.store(queries[numbers[0]][0])
        symbols: dict[tuple[tuple[str, ...], object], int] = {}
        wanted = []
        for number in numbers:
            checked, simple = queries[number]
            own = tuple(symbols.setdefault((tuple(sorted(e.classes)), e.filter), len(symbols)) for e in simple.elements)
            query = checked.query
            wanted.append(
                SimpleQuery(
                    number, simple.kind, own, query.within_us, query.select == "recent", query.ties == "ordered"
                )
            )
        code = {name: number for number, name in enumerate(columns.events.classes)}
        drawn = []
        for classes, condition in symbols:
            mask = None if condition is None else columns.mask(push_down(condition))[store.row].astype("uint8")  # type: ignore[arg-type]
            drawn.append(Symbol(tuple(code[name] for name in classes), mask))
        walked = items(store, drawn)
        for network in networks(wanted, len(drawn)):
            yield queries[numbers[0]][0], walked, network
