"""By what a query may be distributed: attributes whose equal values bring together all events of a match.

Enters: a checked query and what the classes declare. Leaves: `KeyOf`: for each class the attribute that decides where
its events go.
Always holds: every event that the query can bind, negate or group for one partition has the same value of the key, so
it goes to the same bucket; events whose key is null cannot take part and may be left out. Every event has one value:
answers that compete for one completing member (SELECT) or one event (CONSUME used) meet in one bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cep_core.language.algebra import (
    And,
    Attribute,
    Compare,
    Element,
    Group,
    Or,
    Pattern,
    Seq,
    TimerAfter,
    TimerAt,
    TimerEvery,
)  # fmt: skip
from cep_core.language.checked import BUILTIN, CheckedQuery, Schema

KeyOf = Mapping[str, str]  # class -> attribute
Queries = Mapping[str, CheckedQuery]


def elements(pattern: Pattern) -> Iterator[Element]:
    """The elements of a pattern that bind or negate events, in reading order; timers are left out."""
    match pattern:
        case Element():
            yield pattern
        case TimerAfter():
            yield from elements(pattern.part)
        case Seq() | And() | Or():
            for part in pattern.parts:
                yield from elements(part)


def classes(checked: CheckedQuery) -> tuple[str, ...]:
    """The classes that a query reads, other queries among them, sorted."""
    return tuple(sorted({name for element in elements(checked.query.pattern) for name in element.classes}))


def shared_keys(ids: tuple[str, ...], queries: Queries) -> tuple[str, ...]:
    """Attributes by which the queries `ids` (a closure of references) can all be distributed together, `source` first.

    A reference must carry the attribute on: a match has a source if its query tests [source]; any other attribute only
    if RETURN hands it on unchanged under its own name.
    """
    common = set(queries[ids[0]].key)
    for name in ids[1:]:
        common &= set(queries[name].key)
    referred = {other for name in ids for other in queries[name].refers_to}
    kept = [key for key in common if all(_carries(queries[name], key) for name in referred)]
    return tuple(sorted(kept, key=lambda key: (key != "source", key)))


def _carries(checked: CheckedQuery, key: str) -> bool:
    returned = [expression for expression, name in checked.query.returns if name == key]
    if key == "source":
        return not returned
    return len(returned) == 1 and isinstance(returned[0], Attribute) and returned[0].name == key


def chain_key(checked: CheckedQuery, schema: Schema) -> KeyOf | None:
    """The key of a query without equivalence tests whose equalities chain over all its elements, or None.

    Two terms count as linked only by an equality that stands in every disjunct. A negated element, or a group that may
    be empty, links nothing: it must itself be equal to one of the linked ones.
    """
    pattern = checked.query.pattern
    if checked.key or checked.refers_to or checked.query.consume == "older" or _has_choice_or_timer(pattern):
        return None
    everything = list(elements(pattern))
    if any(element.variable is None for element in everything):
        return None
    firm = {
        e.variable for e in everything if not e.negated and not (isinstance(e.quantity, Group) and not e.quantity.low)
    }
    equal = _common_equalities(checked)
    first = next(element.variable for element in everything if element.variable in firm)
    for start in sorted({term for pair in equal for term in pair if term[0] == first}):
        linked = {start}
        grown = True
        while grown:
            more = {b for pair in equal for a, b in (pair, pair[::-1]) if a in linked and a[0] in firm} - linked
            grown = bool(more)
            linked |= more
        if key := _one_attribute_each(linked, everything, schema):
            return key
    return None


def _common_equalities(checked: CheckedQuery) -> set[tuple[tuple[str, str], tuple[str, str]]]:
    per_disjunct = []
    for atoms in checked.disjuncts:
        found = set()
        for atom in atoms:
            if isinstance(atom, Compare) and atom.operator == "=":
                left, right = atom.left, atom.right
                if isinstance(left, Attribute) and isinstance(right, Attribute) and not (left.index or right.index):
                    terms = ((left.variable or "", left.name), (right.variable or "", right.name))
                    found.add((min(terms), max(terms)))
        per_disjunct.append(found)
    return set.intersection(*per_disjunct) if per_disjunct else set()


def _one_attribute_each(linked: set[tuple[str, str]], everything: list[Element], schema: Schema) -> KeyOf | None:
    attribute_of: dict[str, str] = {}
    for variable, term in sorted(linked):
        attribute_of.setdefault(variable, term)
    key: dict[str, str] = {}
    kinds = set()
    for element in everything:
        attribute: str | None = attribute_of.get(element.variable or "")
        if attribute is None:
            return None
        for name in element.classes:
            kind = schema.get(name, {}).get(attribute, "string" if attribute == "source" else None)
            if (
                kind is None
                or (attribute in BUILTIN and attribute != "source")
                or key.setdefault(name, attribute) != attribute
            ):
                return None
            kinds.add(kind)
    return key if len(kinds) == 1 else None


def _has_choice_or_timer(pattern: Pattern) -> bool:
    """Under OR a variable may be unbound, which makes its equalities true; a timer is in every partition."""
    match pattern:
        case Element():
            return False
        case Or() | TimerAt() | TimerEvery() | TimerAfter():
            return True
        case Seq() | And():
            return any(_has_choice_or_timer(part) for part in pattern.parts)


__all__ = ["KeyOf", "chain_key", "classes", "elements", "shared_keys"]
