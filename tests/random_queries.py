"""Random queries: patterns of every form of the contract, with conditions, SELECT, CONSUME, TIES and RETURN.

Enters: a random source, the classes with what they declare, and the queries that may be referred to. Leaves: algebra
values.
Always holds: shapes that the contract refuses are not built (two negatives in a row, group beside group, and so on),
but the
checker has the last word; elements are few and windows near the span of the data, so that many queries match something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from cep_core.language import algebra as q
from tests.random_conditions import random_filter, random_where
from tests.random_values import KINDS, Named, constant, random_returns

SECOND = 1_000_000


@dataclass
class Makes:
    """What the generator may use, and the names that it has given so far."""

    rng: Random
    declared: dict[str, tuple[str, ...]]  # class -> attributes, referred queries too
    span_us: int
    plain: tuple[str, ...]  # classes that may be negated and grouped: all but postponed references
    base_us: int = 0  # where the data starts
    timers: float = 0.1  # how many parts are timers
    left: int = 4  # elements that may still be made
    named: list[Named] = field(default_factory=list)
    count: int = 0

    def variable(self, kind: str, classes: tuple[str, ...], size: int = 1) -> str | None:
        self.count += 1
        if self.rng.random() < 0.12:
            return None
        name = f"{'abcdefghijklmnop'[self.count % 16]}{self.count if self.count > 9 else ''}"
        attributes = tuple(dict.fromkeys(a for c in classes for a in self.declared[c] if a in KINDS))
        self.named.append(Named(name, kind, () if kind == "timer" else attributes, size))
        return name


def random_query(
    rng: Random,
    id_: str,
    declared: dict[str, tuple[str, ...]],
    span_us: int,
    sources: frozenset[str],
    late: frozenset[str] = frozenset(),
    base_us: int = 0,
) -> q.Query:
    """One query. sources: the classes with a source; late: referred queries whose detection is postponed."""
    plain = tuple(c for c in declared if c not in late)
    timers = rng.choice((0.05, 0.05, 0.1, 0.5))
    makes = Makes(rng, declared, span_us, plain, base_us, timers, left=rng.choice((1, 2, 2, 3, 3, 4, 5)))
    pattern = _numbered(_outermost(makes))
    elements = list(_elements(pattern))
    classes = sorted({c for e in elements if isinstance(e, q.Element) for c in e.classes})
    key = _key(rng, classes, declared, sources)
    single = isinstance(pattern, q.Element) and isinstance(pattern.quantity, q.One)
    within = None if single and rng.random() < 0.7 else _span(rng, span_us)
    select = rng.choice(("all", "all", "recent", "earliest", "merged"))
    consume = rng.choice(("none", "none", "used", "older") if timers < 0.5 else ("none", "used", "older"))
    if is_late(pattern) or any(c in late for c in classes):
        consume = "none"
    if any(c in late for c in classes):
        select = "all"
    return q.Query(
        id=id_,
        pattern=pattern,
        where=random_where(rng, makes.named, key, 0.65),
        within_us=within,
        select=select,  # type: ignore[arg-type]
        consume=consume,  # type: ignore[arg-type]
        ties="ordered" if rng.random() < 0.35 else "apart",
        returns=random_returns(rng, makes.named, select == "merged") if rng.random() < 0.6 else (),
    )


def is_late(pattern: q.Pattern) -> bool:
    """Whether detection is postponed: trailing negation or group of a SEQ, a negation in an AND."""
    if isinstance(pattern, q.Seq):
        last = pattern.parts[-1]
        return isinstance(last, q.Element) and (last.negated or isinstance(last.quantity, q.Group))
    return isinstance(pattern, q.And) and any(isinstance(p, q.Element) and p.negated for p in pattern.parts)


def _span(rng: Random, span_us: int) -> int:
    return max(SECOND, round(span_us * rng.choice((0.3, 0.5, 0.8, 1.2, 2.0)) / SECOND) * SECOND)


def _key(
    rng: Random, classes: list[str], declared: dict[str, tuple[str, ...]], sources: frozenset[str]
) -> q.Equivalence | None:
    shared = [a for a in ("x", "y", "s", "f", "k", "t") if all(a in declared[c] for c in classes)]
    if all(c in sources for c in classes):
        shared += ["source"] * 3
    if not shared or rng.random() < 0.55:
        return None
    names = list(dict.fromkeys(rng.choice(shared) for _ in range(rng.choice((1, 1, 1, 2)))))
    constants = {name: constant(rng, KINDS[name]) for name in names} | {"source": q.Constant("s1")}
    return q.Equivalence(tuple((n, constants[n] if rng.random() < 0.15 else None) for n in names))


# ---------------------------------------------------------------- patterns


def _outermost(makes: Makes) -> q.Pattern:
    choice = makes.rng.random()
    if choice < 0.55:
        return _seq(makes, outer=True)
    if choice < 0.72:
        return _and(makes, outer=True)
    if choice < 0.82:
        return _or(makes)
    if choice < 0.90:
        return _window(makes, most=4)  # beside others the naive meaning would try too many
    if choice < 0.95:
        return _after(makes)
    return _one(makes)


def _part(makes: Makes) -> q.Pattern:
    """A positive part that is no group."""
    rng = makes.rng
    choice = rng.random()
    if makes.left > 1 and choice < 0.20:
        made = _seq(makes, outer=False) if choice < 0.07 else _and(makes, outer=False) if choice < 0.14 else _or(makes)
        return _nested(makes, made)
    if choice < 0.28:
        return _window(makes)
    if choice < 0.28 + makes.timers / 2:
        return _after(makes)
    if choice < 0.28 + makes.timers:
        return _timer(makes)
    return _one(makes)


def _nested(makes: Makes, pattern: q.Seq | q.And | q.Or) -> q.Pattern:
    return replace(pattern, within_us=_span(makes.rng, makes.span_us)) if makes.rng.random() < 0.4 else pattern


def _parts(makes: Makes) -> list[q.Pattern]:
    """Two or more positive parts, one of them no timer."""
    found = [_part(makes)]
    while len(found) < 2 or (makes.left > 0 and makes.rng.random() < 0.5):
        found.append(_part(makes))
    if all(isinstance(part, q.TimerAt | q.TimerEvery) for part in found):
        found[makes.rng.randrange(len(found))] = _one(makes)
    return found


def _seq(makes: Makes, outer: bool) -> q.Seq:
    rng = makes.rng
    parts = _parts(makes) if rng.random() < 0.8 or not outer else [_one(makes)]
    gaps: list[list[q.Pattern]] = [[] for _ in range(len(parts) + 1)]
    allowed = range(len(parts) + 1) if outer else range(1, len(parts))
    edges = 0
    for gap in allowed:
        at_edge = gap in (0, len(parts))
        draw = rng.random()
        if draw < 0.2 and not (at_edge and edges):
            gaps[gap] = [_group(makes)]
            edges += at_edge
            if rng.random() < 0.25:
                gaps[gap].insert(rng.randint(0, 1), _negation(makes))
        elif draw < 0.38:
            gaps[gap] = [_negation(makes)]
    if len(parts) == 1 and not any(gaps):
        gaps[1] = [_negation(makes)]
    found = list(gaps[0])
    for part, gap_parts in zip(parts, gaps[1:], strict=True):
        found += [part, *gap_parts]
    return q.Seq(tuple(found))


def _and(makes: Makes, outer: bool) -> q.And:
    parts = _parts(makes)
    if outer and makes.rng.random() < 0.3:
        parts.insert(makes.rng.randint(0, len(parts)), _negation(makes))
    return q.And(tuple(parts))


def _or(makes: Makes) -> q.Or:
    found: list[q.Pattern] = []
    for _ in range(makes.rng.choice((2, 2, 3))):
        choice = makes.rng.random()
        if choice < 0.6 or makes.left <= 1:
            found.append(_one(makes))
        elif choice < 0.72:
            found.append(_window(makes))
        elif choice < 0.80:
            found.append(_after(makes))
        else:
            made = _seq(makes, outer=False) if choice < 0.93 else _and(makes, outer=False)
            found.append(_nested(makes, made))
    return q.Or(tuple(found))


def _classes(makes: Makes, plain: bool = False) -> tuple[str, ...]:
    pool = sorted(makes.plain if plain else makes.declared)
    referred = [name for name in pool if name.startswith("q")]
    if makes.rng.random() < 0.22 and len(pool) > 1:
        return tuple(makes.rng.sample(pool, makes.rng.choice((2, 2, 2, len(pool)))))
    return (makes.rng.choice(referred if referred and makes.rng.random() < 0.3 else pool),)


def _element(makes: Makes, kind: str, quantity: q.Quantity, size: int = 1) -> q.Element:
    makes.left -= 1
    classes = _classes(makes, plain=kind in ("negated", "group"))
    attributes = tuple(dict.fromkeys(a for c in classes for a in makes.declared[c] if a in KINDS))
    chosen = random_filter(makes.rng, attributes) if attributes and makes.rng.random() < 0.12 else None
    return q.Element(classes, makes.variable(kind, classes, size), chosen, quantity, kind == "negated", 0)


def _one(makes: Makes) -> q.Element:
    return _element(makes, "one", q.One())


def _negation(makes: Makes) -> q.Element:
    return _element(makes, "negated", q.One())


def _group(makes: Makes) -> q.Element:
    bounds = makes.rng.choice(
        (q.Group(1, None), q.Group(0, None), q.Group(0, None), q.Group(1, 2), q.Group(0, 1), q.Group(2, 4))
    )
    return _element(makes, "group", bounds)


def _window(makes: Makes, most: int = 3) -> q.Element:
    size = min(most, makes.rng.choice((1, *(2,) * 10, *(3,) * 5, 4)))
    made = _element(makes, "window", q.Window(size), size)
    shared = [a for a in ("x", "y", "s") if all(a in makes.declared[c] for c in made.classes)]
    if shared and makes.rng.random() < 0.3:
        name = makes.rng.choice(shared)
        times = q.Window(size, same=name) if makes.rng.random() < 0.5 else q.Window(size, different=name)
        made = replace(made, quantity=times)
    return made


def _timer(makes: Makes) -> q.Pattern:
    rng = makes.rng
    makes.timers /= 2.5  # many EVERYs in one pattern bind each other in too many ways
    moment = makes.base_us + rng.randint(0, makes.span_us // SECOND) * SECOND
    variable = makes.variable("timer", ())
    if rng.random() < 0.4:
        return q.TimerAt(moment, variable, 0)
    return q.TimerEvery(rng.choice((3, 4, 5)) * SECOND, variable, 0)


def _after(makes: Makes) -> q.TimerAfter:
    choice, inner = makes.rng.random(), None
    if choice < 0.1:
        inner = q.TimerAfter(_one(makes), SECOND, makes.variable("timer", ()), 0)
    elif choice < 0.2:
        inner = _window(makes)
    elif choice < 0.5 and makes.left > 1:
        form = makes.rng.random()
        nested = _seq(makes, outer=False) if form < 0.5 else _and(makes, outer=False) if form < 0.75 else _or(makes)
        inner = _nested(makes, nested)
    delay = makes.rng.choice((0, 1, 1, 2, 3)) * SECOND
    return q.TimerAfter(inner or _one(makes), delay, makes.variable("timer", ()), 0)


# ---------------------------------------------------------------- order of reading


def _nodes(pattern: q.Pattern) -> list[q.Pattern]:
    inner = pattern.parts if isinstance(pattern, q.Seq | q.And | q.Or) else ()
    if isinstance(pattern, q.TimerAfter):
        inner = (pattern.part,)
    return [pattern, *(node for part in inner for node in _nodes(part))]


def _elements(pattern: q.Pattern) -> list[q.Pattern]:
    return [node for node in _nodes(pattern) if not isinstance(node, q.Seq | q.And | q.Or)]


def _numbered(pattern: q.Pattern) -> q.Pattern:
    place = 0

    def visit(node: q.Pattern) -> q.Pattern:
        nonlocal place
        if isinstance(node, q.Seq | q.And | q.Or):
            return replace(node, parts=tuple(visit(part) for part in node.parts))
        if isinstance(node, q.TimerAfter):
            node = replace(node, part=visit(node.part))
        place += 1
        return replace(node, position=place)

    return visit(pattern)
