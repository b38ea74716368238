"""Random conditions and RETURN expressions over the elements of a random pattern.

Enters: a random source and the elements (`Named`) with the attributes they may be asked for. Leaves: algebra nodes.
Always holds: what the contract allows about groups, negated variables and types is kept to by construction, so that the
checker refuses few; value domains are small, so that conditions often hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from cep_core.language import algebra as q

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Function = Literal["count", "sum", "avg", "min", "max", "first", "last"]
COMPARISONS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=")
NUMERIC: tuple[Function, ...] = ("sum", "avg", "min", "max", "first", "last")
ORDERED: tuple[Function, ...] = ("min", "max", "first", "last")
WHOLE: tuple[Function, ...] = ("sum", *ORDERED)
HALVES: tuple[Function, ...] = ("avg", "sum", "min")
RANGES: tuple[Operator, ...] = ("<", "<=", ">", ">=")
MORE_EQUAL: tuple[Operator, ...] = ("=", *COMPARISONS)
KINDS = {"x": "int", "y": "int", "f": "float", "s": "string", "n": "int", "m": "float", "k": "bool", "source": "string"}


@dataclass(frozen=True)
class Named:
    """An element with a variable. kind: one, window, group, negated or timer; attributes: those that one of its
    classes declares.
    """

    variable: str
    kind: str
    attributes: tuple[str, ...]
    size: int = 1


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


def random_returns(rng: Random, named: list[Named], merged: bool) -> tuple[tuple[q.Expression, str], ...]:
    """RETURN: each name has always the same type, so that queries over queries can ask for it."""
    found: list[tuple[q.Expression, str]] = []
    positive = [one for one in named if one.kind != "negated"]
    for name in rng.sample(("x", "n", "m", "s", "f"), rng.randint(0, 3)):
        expression = _returned(rng, [o for o in positive if o.kind != "timer"], name, merged)
        if expression is not None:
            found.append((expression, name))
    return tuple(found)


def _returned(rng: Random, positive: list[Named], name: str, merged: bool) -> q.Expression | None:
    asked = {"x": "x", "n": None, "m": "f", "s": "s", "f": "f"}[name]
    able = [one for one in positive if asked is None or asked in one.attributes]
    if not able:
        return None
    one = rng.choice(able)
    if name == "n":
        several = [o for o in positive if merged or o.kind in ("window", "group")]
        if several:
            return q.Aggregate("count", rng.choice(several).variable, None)
        return q.Call("length", (q.Attribute(one.variable, "s"),)) if "s" in one.attributes else None
    assert asked is not None
    if merged or one.kind in ("window", "group"):
        if one.kind == "window" and not merged and rng.random() < 0.3:
            return q.Attribute(one.variable, asked, q.Index(None, rng.randint(1, one.size)))
        if name == "m":
            return q.Aggregate(rng.choice(HALVES), one.variable, asked)
        return q.Aggregate(rng.choice(WHOLE if name != "s" else ORDERED), one.variable, asked)
    plain = q.Attribute(one.variable, asked)
    if name == "x":
        return rng.choice(
            (plain, plain, q.Arithmetic("+", plain, q.Constant(1)), q.Call("coalesce", (plain, q.Constant(-1))))
        )
    if name == "m":
        return rng.choice((q.Arithmetic("/", plain, q.Constant(2)), q.Call("coalesce", (plain, q.Constant(0)))))
    return plain


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
        return _atom(rng, named)
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
    if one.kind == "timer":
        singles = [o for o in named if o.kind == "one"]
        other = rng.choice(singles) if singles else one
        return q.Compare(rng.choice(COMPARISONS), q.Attribute(one.variable, "ts"), q.Attribute(other.variable, "ts"))
    singles = [o for o in named if o.kind == "one"]
    beside = singles
    if one.kind in ("one", "window"):
        beside = singles + [o for o in named if o.kind == "window"]
    aggregated = [o for o in named if o.kind == "window" or (o.kind == "group" and one.kind != "group")]
    if one.kind in ("window", "group") and rng.random() < 0.45:
        return _forall(rng, one, singles) if rng.random() < 0.5 else _about_aggregate(rng, one, singles)
    if one.kind != "window" and one.variable and rng.random() < 0.08:
        return _about_time(rng, one, named)
    if not one.attributes:
        return None
    attribute = rng.choice(one.attributes)
    kind = KINDS[attribute]
    mine: q.Expression = q.Attribute(one.variable, attribute)
    if kind in ("int", "float") and rng.random() < 0.2:
        mine = _wrapped(rng, mine, kind)
    choice = rng.random()
    if choice < 0.10:
        return q.IsNull(mine, rng.random() < 0.6)
    if choice < 0.18:
        return q.In(mine, tuple(q.Constant(_constant(rng, kind)) for _ in range(rng.randint(1, 3))), rng.random() < 0.4)
    if choice < 0.26 and kind in ("int", "float"):
        return q.Between(mine, q.Constant(rng.randint(0, 1)), q.Constant(rng.randint(1, 3)), rng.random() < 0.4)
    if choice < 0.34 and kind == "string":
        return q.Like(mine, rng.choice(("p%", "%q", "_", "%", "r_")), rng.random() < 0.4)
    if choice < 0.42 and kind == "string":
        return q.Compare("=", q.Call("concat", (q.Call("upper", (mine,)), q.Constant("!"))), q.Constant("P!"))
    return q.Compare(_operator(rng, kind), mine, _other_side(rng, one, attribute, beside, aggregated))


def _about_time(rng: Random, one: Named, named: list[Named]) -> q.Condition:
    """Times, durations and classes; a window or a group beside it by index."""
    others = [o for o in named if o.kind == "one" or (o.kind in ("window", "group") and one.kind == "one")]
    other = rng.choice(others) if others else one
    index = None if other.kind not in ("window", "group") else q.Index(None, rng.randint(1, other.size + 1))
    choice = rng.random()
    if choice < 0.2:
        return q.Compare("=", q.Attribute(one.variable, "event_class"), q.Constant(rng.choice(("A", "B"))))
    if choice < 0.5 or one.kind == "group":
        names = ("ts", "start_ts", "end_ts")
        right = q.Attribute(other.variable, rng.choice(names), index)
        return q.Compare(rng.choice(COMPARISONS), q.Attribute(one.variable, rng.choice(names)), right)
    between = q.Duration(other.variable, index, one.variable, None)
    return q.Compare(rng.choice(RANGES), between, q.Constant(rng.choice((1, 2, 3.5, -2))))


def _other_side(rng: Random, one: Named, attribute: str, beside: list[Named], aggregated: list[Named]) -> q.Expression:
    choice, kind = rng.random(), KINDS[attribute]
    alike = [(o, a) for o in beside if o is not one for a in o.attributes if KINDS[a] == kind]
    if choice < 0.5 and alike:
        other, name = rng.choice([(o, a) for o, a in alike if a == attribute] or alike)
        plain: q.Expression = q.Attribute(other.variable, name)
        return (
            q.Arithmetic("+", plain, q.Constant(rng.choice((-2, 1)))) if kind == "int" and rng.random() < 0.2 else plain
        )
    several = [(o, a) for o in aggregated for a in o.attributes if KINDS[a] == kind]
    if choice < 0.62 and several and kind != "bool":
        other, name = rng.choice(several)
        return q.Aggregate(rng.choice(ORDERED if kind == "string" else NUMERIC), other.variable, name)
    return q.Constant(_constant(rng, kind))


def _about_aggregate(rng: Random, one: Named, singles: list[Named]) -> q.Condition:
    able = [a for a in one.attributes if KINDS[a] in ("int", "float")]
    if not able or rng.random() < 0.35:
        return q.Compare(
            rng.choice(COMPARISONS), q.Aggregate("count", one.variable, None), q.Constant(rng.randint(1, 3))
        )
    attribute = rng.choice(able)
    function = rng.choice(NUMERIC)
    right = _other_side(rng, one, attribute, singles, [])
    return q.Compare(rng.choice(COMPARISONS), q.Aggregate(function, one.variable, attribute), right)


def _forall(rng: Random, one: Named, singles: list[Named]) -> q.Condition:
    able = one.attributes or ("",)
    attribute = rng.choice(able)
    if not attribute:
        return q.Compare(">", q.Aggregate("count", one.variable, None), q.Constant(0))
    kind = KINDS[attribute]
    here: q.Expression = q.Attribute(one.variable, attribute, q.Index("i", 0))
    there: q.Expression = q.Attribute(one.variable, attribute, q.Index("i", 1))
    if rng.random() < 0.5:
        there = _other_side(rng, one, attribute, singles, [])
    body: q.Condition = q.Compare(_operator(rng, kind), here, there)
    if rng.random() < 0.25:
        extra = q.IsNull(q.Attribute(one.variable, rng.choice(able), q.Index("i", 0)), True)
        body = rng.choice((q.All, q.Either))((body, extra))
    high: int | q.Aggregate = one.size if one.kind == "window" else rng.randint(1, 3)
    if rng.random() < 0.5:
        high = q.Aggregate("count", one.variable, None)
    return q.Forall("i", rng.choice((1, 1, 1, 2)), high, body)


def _wrapped(rng: Random, mine: q.Expression, kind: str) -> q.Expression:
    choices: list[q.Expression] = [
        q.Arithmetic("+", mine, q.Constant(1)),
        q.Arithmetic("*", q.Constant(2), mine),
        q.Arithmetic("%", mine, q.Constant(2)),
        q.Arithmetic("/", q.Constant(3), mine),
        q.Arithmetic("-", q.Constant(3), mine),
        q.Minus(mine),
        q.Call("abs", (mine,)),
        q.Call("round", (mine,)),
        q.Call("floor", (mine,)),
        q.Call("ceil", (mine,)),
        q.Call("sqrt", (mine,)),
        q.Call("least", (mine, q.Constant(2))),
        q.Call("greatest", (mine, q.Constant(1.5))),
        q.Call("coalesce", (mine, q.Constant(1))),
    ]
    return rng.choice(choices)


def _operator(rng: Random, kind: str) -> Operator:
    if kind == "bool":
        return "=" if rng.random() < 0.6 else "!="
    return rng.choice(MORE_EQUAL)


def _constant(rng: Random, kind: str) -> q.Value:
    match kind:
        case "int":
            return rng.randint(0, 2)
        case "float":
            return rng.choice((0.0, 0.5, 1.0, 1.5, 2.0))
        case "bool":
            return rng.random() < 0.5
    return rng.choice(("p", "q", "r", "s1"))


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
