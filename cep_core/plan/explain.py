"""How a query set will be evaluated, as text.

Enters: query texts, and events per class where they are known. Leaves: the shared network: the families of queries
that are alike, the stores, the candidates with who shares them, the neighbours that are probed once for many queries,
and for every query of the general matcher the order of its evaluation and why.
Always holds: the same text for the same queries and counts, on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cep_core.language import CheckedQuery, check
from cep_core.language.algebra import Atom, Attribute, Compare, Condition, Element, Group, TimerAfter
from cep_core.language.alike import Families
from cep_core.language.format import format_condition
from cep_core.language.variables import is_plain, variables
from cep_core.plan.branches import Branch, branches
from cep_core.plan.simple import Simple, simple_query

_SHOWN = 12  # names in a list before it is cut


def explain(queries: Mapping[str, str], stats: Mapping[str, int] | None = None) -> str:
    """The plan of a query set. stats: class -> events."""
    checked = check(queries, None)
    referred = {name for query in checked.values() for name in query.refers_to}
    simple = {
        name: found
        for name, query in checked.items()
        if not query.refers_to and name not in referred and (found := simple_query(query))
    }
    lines = [*_families(queries, checked), *_stores(checked), *_candidates(checked, stats or {})]
    by_kind: dict[tuple[Any, ...], list[str]] = {}
    for name, found in simple.items():
        query = checked[name]
        mark = (query.key, found.kind, query.query.select, query.query.ties)
        by_kind.setdefault(mark, []).append(name)
    for mark in sorted(by_kind):
        lines += _network(mark, {name: simple[name] for name in sorted(by_kind[mark])})
    for name in sorted(set(checked) - set(simple)):
        lines += _matched(checked[name], name in referred, stats or {})
    return "\n".join(lines) + "\n"


def _families(queries: Mapping[str, str], checked: Mapping[str, CheckedQuery]) -> list[str]:
    """Queries that differ only in their classes and WITHIN are checked once, and a search makes their tables once."""
    known = Families(None, queries)
    members: dict[str, list[str]] = {}
    for name in sorted(checked):
        like = known.like(queries[name])
        if like is None:
            known.add(queries[name], checked[name].query)
        members.setdefault(name if like is None else like.first, []).append(name)
    shown = [f"  {_some(names)}" for names in members.values() if len(names) > 1]
    return ["families, alike but for their classes and WITHIN:", *shown] if shown else []


def _stores(checked: Mapping[str, CheckedQuery]) -> list[str]:
    """A store is all events in partition and event order, once for every query with the same key."""
    users: dict[str, list[str]] = {}
    for name, query in checked.items():
        users.setdefault(_key(query), []).append(name)
    return ["stores:", *(f"  {key}: {_some(sorted(users[key]))}" for key in sorted(users))]


def _candidates(checked: Mapping[str, CheckedQuery], stats: Mapping[str, int]) -> list[str]:
    """A list of candidates is made once for all elements with the same classes and the same conditions of their own."""
    users: dict[str, list[str]] = {}
    for name, query in checked.items():
        for branch in branches(query):
            for element, own in _elements(branch):
                text = _drawn(element, own, stats)
                if name not in users.setdefault(text, []):
                    users[text].append(name)
    return ["candidates:", *(f"  {text}: {_some(sorted(users[text]))}" for text in sorted(users))]


def _network(mark: tuple[Any, ...], queries: Mapping[str, Simple]) -> list[str]:
    key, kind, select, ties = mark
    head = f"shared walk [{', '.join(key)}]" if key else "shared walk without a key"
    lines = [
        f"{head}, {kind.upper()} SELECT {select}{' TIES ordered' if ties == 'ordered' else ''}: {len(queries)} queries"
    ]
    if kind == "or":
        return [*lines, f"  each event is an answer where it comes: {_some(list(queries))}"]
    steps: Counter[tuple[str, ...]] = Counter()
    for found in queries.values():
        own = [_symbol(element) for element in found.elements]
        for size in range(2, len(own) + 1):
            steps[tuple(own[-size:] if kind == "seq" else sorted(own)[-size:])] += 1
    shared = {step: count for step, count in steps.items() if count > 1}
    lines.append(
        f"  {len(steps)} probes of a neighbour, {len(shared)} of them shared; the largest window of the sharers counts"
    )
    most = sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN]
    arrow = " <- " if kind == "seq" else " & "
    lines += [f"  {arrow.join(reversed(step))}: once for {count} queries" for step, count in most]
    return [*lines, f"  queries: {_some(list(queries))}"]


def _matched(checked: CheckedQuery, referred: bool, stats: Mapping[str, int]) -> list[str]:
    query = checked.query
    own = branches(checked)
    head = f"search {query.id} by {_key(checked)}"
    if checked.refers_to:
        head += f", after {', '.join(sorted(checked.refers_to))}"
    lines = [head + (", its matches are events for others" if referred else "")]
    for number, branch in enumerate(own):
        lines.append(f"  branch {number + 1} of {len(own)}:" if len(own) > 1 else "  one branch:")
        lines += [f"    {line}" for line in _steps(branch, query.select, stats)]
    ways = {
        "all": "every answer, in chunks",
        "recent": "the last candidate first; the first answer of a completing event ends its search",
        "earliest": "the first candidate first; the first answer of a completing event ends its search",
        "merged": "all answers of a completing event become one",
    }
    lines.append(f"  SELECT {query.select}: {ways[query.select]}")
    if query.consume != "none":
        lines.append(f"  CONSUME {query.consume}: what a match has taken is no candidate any more")
    return lines


def _steps(branch: Branch, select: str, stats: Mapping[str, int]) -> list[str]:
    names = [slot.element.name for slot in branch.slots]
    events = [n for n, slot in enumerate(branch.slots) if isinstance(slot.element, Element)]
    behind = {i for i, j in branch.before | branch.chain if j in events}
    lasts = [names[n] for n in events if n not in behind]
    lines = [f"last event: {' or '.join(dict.fromkeys(lasts)) or 'none: from each timer near a group'}"]
    rest = [n for n in events if len(lasts) != 1 or names[n] not in lasts]
    equal = {_named(atom) for atom in branch.atoms if _is_link(atom)}
    linked = {name for pair in equal for name in pair}
    if select in ("recent", "earliest"):
        order = sorted(rest, reverse=select == "recent")
        why = "in the order of preference"
    else:
        order = sorted(rest, key=lambda n: (names[n] not in linked, _count(branch.slots[n].element, stats), -n))
        why = (
            "through an index first, then the rarest"
            if stats
            else "through an index first, then the rarest at run time"
        )
    shown = list(dict.fromkeys(names[n] for n in order))
    if shown:
        lines.append(f"then: {', '.join(shown)} ({why})")
    timers = [slot.element.name for slot in branch.slots if not isinstance(slot.element, Element)]
    if timers:
        follow = {slot.element.name for slot in branch.slots if isinstance(slot.element, TimerAfter)}
        lines.append(f"then timers: {', '.join(f'{t} (follows from its part)' if t in follow else t for t in timers)}")
    own = {id(atom) for _, held in _elements(branch) for atom in held}
    for atom in branch.atoms:
        if id(atom) not in own:
            how = "index" if _is_link(atom) else "as soon as all are bound"
            lines.append(f"test {format_condition(atom)} ({how})")
    for place in branch.groups:
        group = place.element.quantity
        assert isinstance(group, Group)
        lines.append(
            f"then group {place.element.name}: all between its neighbours, {group.low} to {group.high or 'any'}"
        )
    for negation in branch.negations:
        where = "in the whole window" if negation.anywhere else "between its neighbours"
        lines.append(f"last, no {negation.element.name}: {where}, the first one found ends it")
    return lines


def _elements(branch: Branch) -> list[tuple[Element, list[Atom]]]:
    """Every element of a branch with the conditions that speak of it alone."""
    slots = [slot.element for slot in branch.slots if isinstance(slot.element, Element) and slot.index == 0]
    found = [*slots, *(g.element for g in branch.groups), *(n.element for n in branch.negations)]
    return [
        (element, [atom for atom in branch.atoms if element.variable and _speaks_of(atom) == {element.variable}])
        for element in found
    ]


def _speaks_of(atom: Atom) -> frozenset[str]:
    return variables(atom) if is_plain(atom) else frozenset()


def _is_link(atom: Condition) -> bool:
    """An equality of attributes of two elements: the one is looked up by the other's value."""
    return isinstance(atom, Compare) and atom.operator == "=" and len(_named(atom)) == 2


def _named(atom: Condition) -> tuple[str, ...]:
    sides = (atom.left, atom.right) if isinstance(atom, Compare) else ()
    return tuple(sorted({s.variable for s in sides if isinstance(s, Attribute) and s.variable and s.index is None}))


def _drawn(element: Element, own: Sequence[Atom], stats: Mapping[str, int]) -> str:
    text = _symbol(element)
    if own:
        bare = sorted(format_condition(atom).replace(f"{element.variable}.", "") for atom in own)
        text += f" where {' AND '.join(bare)}"
    known = [stats[name] for name in element.classes if name in stats]
    return text + (f" ({sum(known)} events before its conditions)" if known else "")


def _symbol(element: Element) -> str:
    classes = sorted(set(element.classes))
    text = classes[0] if len(classes) == 1 else f"ANY({', '.join(classes)})"
    return text if element.filter is None else f"{text}({format_condition(element.filter)})"


def _count(element: Any, stats: Mapping[str, int]) -> int:
    return sum(stats.get(name, 0) for name in getattr(element, "classes", ()))


def _key(checked: CheckedQuery) -> str:
    if not checked.key:
        return "no key"
    pairs = zip(checked.key, checked.key_values, strict=True)
    return f"[{', '.join(name if value is None else f'{name} = {value.value!r}' for name, value in pairs)}]"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
