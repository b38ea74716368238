"""Random conditions over the elements of a random pattern.

Enters: a random source and the elements (`Named`) with the attributes they may be asked for. Leaves: algebra nodes.
Always holds: what the contract allows about groups, negated variables and types is kept to by construction, so that the
checker refuses few.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from cep_core.language import algebra as q
from tests.random_values import NUMBERS, TIMES, Named, aggregate, attribute, constant, made, wrapped

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
COMPARISONS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
RANGES: tuple[Operator, ...] = ("<", "<=", ">", ">=")
MORE_EQUAL: tuple[Operator, ...] = ("=", *COMPARISONS)
TYPES = ("int", "int", "int", "float", "string", "string", "bool", "timestamp")


def random_where(rng: Random, named: list[Named], key: q.Equivalence | None, many: float) -> q.Condition | None:
    """AND of the key and of a random condition, or neither."""
    terms: list[q.Condition] = [] if key is None else [key]
    chain = _chain(rng, named) if rng.random() < 0.15 else ()
    terms += chain
    if named and rng.random() < (many / 2 if chain else many):
        found = _boolean(rng, named, 0 if rng.random() < 0.6 else 2)
        if found is not None:
            terms += found.conditions if isinstance(found, q.All) else (found,)
    return None if not terms else terms[0] if len(terms) == 1 else q.All(tuple(terms))


def random_filter(rng: Random, attributes: tuple[str, ...]) -> q.Condition | None:
    """A filter on an element's own attributes."""
    own = [Named("", "one", attributes)]
    found = _boolean(rng, own, rng.choice((0, 0, 1)))
    return None if found is None else _without_variable(found)


# ---------------------------------------------------------------- booleans


def _chain(rng: Random, named: list[Named]) -> tuple[q.Condition, ...]:
    """Equalities of one attribute over all elements that have it: a.x = b.x AND b.x = c.x."""
    attribute = rng.choice(("x", "y", "s", "source"))
    singles = [one for one in named if one.kind == "one" and attribute in one.attributes]
    if not singles:
        return ()
    found: list[q.Condition] = []
    last = singles[0]
    for one in named:
        if one is last or one.kind == "timer" or attribute not in one.attributes:
            continue
        found.append(q.Compare("=", q.Attribute(last.variable, attribute), q.Attribute(one.variable, attribute)))
        last = one if one.kind == "one" else last
    return tuple(found)


def _boolean(rng: Random, named: list[Named], depth: int) -> q.Condition | None:
    if depth == 0 or rng.random() < 0.3:
        found = _atom(rng, named)
        return q.Not(found) if found is not None and rng.random() < 0.1 else found
    parts = [part for part in (_boolean(rng, named, depth - 1) for _ in range(2)) if part is not None]
    if len(parts) < 2:
        return parts[0] if parts else None
    choice = rng.random()
    if choice < 0.2:
        return q.Not(parts[0])
    node: type[q.All | q.Either] = q.Either if choice < 0.75 else q.All
    flat = [inner for part in parts for inner in (part.conditions if isinstance(part, node) else (part,))]
    return q.Not(node(tuple(flat))) if rng.random() < 0.15 else node(tuple(flat))


def _atom(rng: Random, named: list[Named]) -> q.Condition | None:
    """One atom about one main element; the others in it are those that may stand beside it."""
    one = rng.choice(named)
    others = [o for o in named if o is not one]
    if one.kind == "timer":
        return _about_time(rng, one, others)
    if one.kind in ("window", "group") and rng.random() < 0.65:
        return _forall(rng, one, others) if rng.random() < 0.55 else _about_aggregate(rng, one, others)
    if one.kind != "window" and one.variable and rng.random() < 0.08:
        return _about_time(rng, one, others)
    kind = rng.choice(TYPES)
    names = one.of(kind)
    mine: q.Expression | None = q.Attribute(one.variable, rng.choice(names)) if names else None
    if one.kind in ("one", "negated") and (mine is None or rng.random() < 0.06):
        mine = made(rng, one, kind) or mine
    if mine is None:
        return None
    beside = _beside(rng, one, others, kind)
    if kind == "float" and rng.random() < 0.12:
        place = (mine, q.Constant(9.5), rng.choice(beside) if beside else q.Constant(48.0), q.Constant(9.5))
        return q.Compare(rng.choice(RANGES), q.Call("haversine", place), q.Constant(rng.choice((0.1, 60_000, 2e5))))
    if rng.random() < 0.4:
        mine = wrapped(rng, mine, kind, beside)
    return _compared(rng, mine, kind, beside)


def _beside(rng: Random, one: Named, others: list[Named], kind: str) -> list[q.Expression]:
    """Values of other elements that may stand in a condition that names `one` bare.

    A bare group goes with no other group; a negated variable with no event of a window or a group, only aggregates.
    """
    found: list[q.Expression | None] = []
    for other in others:
        if other.kind == "one" or (other.kind == "timer" and kind == "timestamp"):
            found.append(attribute(rng, other, kind))
        elif other.kind == "window" or (other.kind == "group" and one.kind != "group"):
            found.append(aggregate(rng, other, kind))
            if one.kind != "negated":
                found.append(attribute(rng, other, kind))
            names = other.of(kind)
            if names and other.kind == "window" and one.kind != "negated":
                found.append(q.Attribute(other.variable, rng.choice(names)))
    return [value for value in found if value is not None]


def _compared(rng: Random, mine: q.Expression, kind: str, beside: list[q.Expression]) -> q.Condition:
    choice, negated = rng.random(), rng.random() < 0.4
    if choice < 0.09:
        return q.IsNull(mine, rng.random() < 0.6)
    if choice < 0.18:
        return q.In(mine, tuple(constant(rng, kind) for _ in range(rng.randint(1, 3))), negated)
    if choice < 0.27 and kind != "bool":
        bounds = [rng.choice(beside) if beside and rng.random() < 0.4 else constant(rng, kind) for _ in range(2)]
        if all(isinstance(bound, q.Constant) for bound in bounds):
            bounds.sort(key=lambda bound: bound.value)  # type: ignore[union-attr, return-value, arg-type]
        return q.Between(mine, bounds[0], bounds[1], negated)
    if choice < 0.42 and kind == "string":
        return q.Like(mine, rng.choice(("p%", "%q", "_", "%", "r_", "%p%", "__", "s1", "P%")), negated)
    operator = rng.choice(("=", "!=")) if kind == "bool" else rng.choice(MORE_EQUAL)
    other = rng.choice(beside) if beside and rng.random() < 0.6 else constant(rng, kind)
    return q.Compare(operator, *((mine, other) if rng.random() < 0.85 else (other, mine)))


def _about_time(rng: Random, one: Named, others: list[Named]) -> q.Condition:
    """Times and durations; a window or a group beside it by index."""
    able = [o for o in others if o.kind in ("one", "timer") or (o.kind in ("window", "group") and one.kind == "one")]
    other = rng.choice(able) if able else one
    index = None if other.kind not in ("window", "group") else q.Index(None, rng.randint(1, other.size + 1))
    if rng.random() < 0.5 or one.kind == "group":
        right = q.Attribute(other.variable, rng.choice(TIMES), index)
        return q.Compare(rng.choice(COMPARISONS), q.Attribute(one.variable, rng.choice(TIMES)), right)
    between = q.Duration(other.variable, index, one.variable, None)
    return q.Compare(rng.choice(RANGES), between, q.Constant(rng.choice((1, 2, 3.5, -2))))


def _about_aggregate(rng: Random, one: Named, others: list[Named]) -> q.Condition:
    """An aggregate of a window or a group against values of single elements and other aggregates."""
    kind = rng.choice(("int", "int", "float", "string", "bool", "timestamp"))
    mine = aggregate(rng, one, kind)
    if mine is None:
        kind, mine = "int", q.Aggregate("count", one.variable, None)
    singles = [attribute(rng, o, kind) for o in others if o.kind == "one"]
    several = [aggregate(rng, o, kind) for o in (one, *others) if o.kind in ("window", "group")]
    beside = [value for value in (*singles, *several) if value is not None]
    if kind in NUMBERS and rng.random() < 0.25:
        mine = wrapped(rng, mine, kind, beside)
    return _compared(rng, mine, kind, beside)


def _forall(rng: Random, one: Named, others: list[Named]) -> q.Condition:
    kind = rng.choice(("int", "int", "float", "string", "timestamp"))
    names = one.of(kind)
    if not names:
        return q.Compare(">", q.Aggregate("count", one.variable, None), q.Constant(0))
    name = rng.choice(names)
    here: q.Expression = q.Attribute(one.variable, name, q.Index("i", 0))
    singles = [attribute(rng, o, kind) for o in others if o.kind == "one"]
    several = [o for o in others if o.kind in ("window", "group") and o.of(kind)]
    beside = [value for value in (*singles, aggregate(rng, one, kind)) if value is not None]
    beside += [q.Attribute(o.variable, rng.choice(o.of(kind)), q.Index("i", 0)) for o in several]
    there = q.Attribute(one.variable, name, q.Index("i", rng.choice((1, 1, 1, -1, 2))))
    if rng.random() < 0.35:
        here = wrapped(rng, here, kind, beside)
    body: q.Condition = q.Compare(rng.choice(MORE_EQUAL), here, there)
    if rng.random() < 0.5:
        body = _compared(rng, here, kind, beside)
    if rng.random() < 0.25:
        extra = q.IsNull(q.Attribute(one.variable, rng.choice(one.attributes or ("ts",)), q.Index("i", 0)), True)
        body = rng.choice((q.All, q.Either))((body, extra))
    high: int | q.Aggregate = one.size if one.kind == "window" else rng.randint(1, 3)
    if rng.random() < 0.5:
        high = q.Aggregate("count", one.variable, None)
    low = 1 if high == 1 or rng.random() < 0.75 else 2
    return q.Forall("i", low, high, body)


def _without_variable(condition: q.Condition) -> q.Condition:
    """The same condition with plain attributes, as an element's own filter has them."""

    def value(expression: q.Expression) -> q.Expression:
        match expression:
            case q.Attribute(_, name):
                return q.Attribute(None, name)
            case q.Arithmetic(operator, left, right):
                return q.Arithmetic(operator, value(left), value(right))
            case q.Minus(operand):
                return q.Minus(value(operand))
            case q.Call(name, arguments):
                return q.Call(name, tuple(value(argument) for argument in arguments))
        return expression

    match condition:
        case q.Compare(operator, left, right):
            return q.Compare(operator, value(left), value(right))
        case q.In(operand, values, negated):
            return q.In(value(operand), values, negated)
        case q.Between(operand, low, high, negated):
            return q.Between(value(operand), value(low), value(high), negated)
        case q.Like(operand, pattern, negated):
            return q.Like(value(operand), pattern, negated)
        case q.IsNull(operand, negated):
            return q.IsNull(value(operand), negated)
        case q.Not(inner):
            return q.Not(_without_variable(inner))
        case q.All(parts):
            return q.All(tuple(_without_variable(part) for part in parts))
        case q.Either(parts):
            return q.Either(tuple(_without_variable(part) for part in parts))
    raise AssertionError(condition)
