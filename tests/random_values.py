"""Random values over the elements of a random pattern: what stands on the sides of a comparison, and in RETURN.

Enters: a random source and the elements (`Named`) with the attributes they may be asked for. Leaves: algebra nodes.
Always holds: every value has the type that was asked for; domains are small and floats are multiples of a half, so that
conditions often hold and sums are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from cep_core.language import algebra as q
from tests.naive_values import moment_text

Function = Literal["count", "sum", "avg", "min", "max", "first", "last"]
NUMERIC: tuple[Function, ...] = ("sum", "avg", "min", "max", "first", "last")
ORDERED: tuple[Function, ...] = ("min", "max", "first", "last")
NUMBERS = ("int", "float")
TIMES = ("ts", "start_ts", "end_ts")
# n, m and d are names that only RETURN gives
KINDS = dict.fromkeys("xyn", "int") | dict.fromkeys("fmd", "float") | {"s": "string", "source": "string"}
KINDS |= {"k": "bool", "t": "timestamp"}
RETURNED = ("x", "n", "m", "s", "f", "d", "t", "k")


@dataclass(frozen=True)
class Named:
    """An element with a variable. kind: one, window, group, negated or timer; attributes: those that one of its
    classes declares; size: how many events a window has, or how many a group is asked for."""

    variable: str
    kind: str
    attributes: tuple[str, ...]
    size: int = 1

    def of(self, kind: str) -> list[str]:
        """Its attributes of a type; every event and timer has its times."""
        own = [name for name in self.attributes if KINDS[name] == kind]
        return own + (list(TIMES[:1]) if kind == "timestamp" and self.variable else [])


def constant(rng: Random, kind: str) -> q.Constant:
    match kind:
        case "int":
            return q.Constant(rng.choice((0, 1, 1, 2, 2, -1)))
        case "float":
            return q.Constant(rng.choice((0.0, 0.5, 1.0, 1.5, 2.0)))
        case "bool":
            return q.Constant(rng.random() < 0.5)
        case "timestamp":
            return q.Constant(moment_text(rng.randint(0, 10) * 1_000_000))
    return q.Constant(rng.choice(("p", "q", "r", "s1", "pq")))


def attribute(rng: Random, one: Named, kind: str) -> q.Expression | None:
    """A value of one element: bare, or by index where it stands for several."""
    names = one.of(kind)
    if not names:
        return None
    index = None
    if one.kind in ("window", "group"):
        index = q.Index(None, rng.randint(1, one.size + (rng.random() < 0.1)))
    return q.Attribute(one.variable, rng.choice(names), index)


def aggregate(rng: Random, one: Named, kind: str) -> q.Expression | None:
    """An aggregate of a window or a group, of the wanted type."""
    if kind == "int" and rng.random() < 0.3:
        return q.Aggregate("count", one.variable, None)
    if kind == "float" and rng.random() < 0.3:
        numbers = [name for name in one.attributes if KINDS[name] in NUMBERS]
        return q.Aggregate("avg", one.variable, rng.choice(numbers)) if numbers else None
    names = one.of(kind)
    if not names:
        return None
    functions = NUMERIC if kind == "float" else ("sum", *ORDERED) if kind == "int" else ORDERED
    return q.Aggregate(rng.choice(functions), one.variable, rng.choice(names))


def wrapped(rng: Random, mine: q.Expression, kind: str, others: list[q.Expression]) -> q.Expression:
    """A function of the value and, at times, of values of the same type of other elements; of the same type again."""
    if rng.random() < 0.25:
        mine = wrapped(rng, mine, kind, others)
    other = rng.choice(others) if others and rng.random() < 0.7 else constant(rng, kind)
    both: list[q.Expression] = [q.Call("coalesce", (mine, other)), q.Call("coalesce", (other, mine))]
    if kind == "timestamp":  # a function takes no text for a moment
        both += [q.Call("least", (mine, other)), q.Call("greatest", (other, mine, mine))]
        return mine if isinstance(other, q.Constant) else rng.choice(both)
    if kind == "bool":
        return rng.choice(both)
    both += [q.Call("least", (mine, other)), q.Call("greatest", (other, mine))]
    both += [q.Call("least", (mine, other, constant(rng, kind)))]
    if kind == "string":
        lower, upper = (q.Call(name, (mine,)) for name in ("lower", "upper"))
        both += [q.Call("concat", (mine, other)), q.Call("concat", (other, q.Constant("-"), mine)), lower, upper]
        return rng.choice(both)
    sums: list[q.Expression] = [
        q.Arithmetic("+", mine, other),
        q.Arithmetic("-", other, mine),
        q.Arithmetic("*", mine, other),
        q.Arithmetic("%", mine, other),
        q.Minus(mine),
        q.Arithmetic("+", mine, q.Constant(-2 if kind == "int" else -0.5)),
        q.Call("abs", (q.Arithmetic("-", mine, other),)),
        q.Call("round", (mine,)),
    ]
    if kind == "int":
        sums += [q.Call(rng.choice(("floor", "ceil")), (q.Arithmetic("/", mine, other),))]
        sums += [q.Call("round", (mine, q.Constant(-1))), q.Call("floor", (q.Arithmetic("*", mine, q.Constant(1.5)),))]
        sums += [q.Arithmetic("*", mine, other), q.Arithmetic("+", mine, other), q.Arithmetic("%", other, mine)]
    else:
        sums += [q.Arithmetic("/", mine, other), q.Call("sqrt", (mine,)), q.Call("round", (mine, q.Constant(1)))]
        sums += [q.Call("distance", (mine, q.Constant(0), other, q.Constant(1)))]
    return rng.choice(both + sums + sums)


def made(rng: Random, one: Named, kind: str) -> q.Expression | None:
    """A value of one element of a type that its attributes need not have: length(a.s), hour(a.ts), event_id, class."""
    text, time = one.of("string"), one.of("timestamp")
    if kind == "int" and text and rng.random() < 0.6:
        return q.Call("length", (q.Attribute(one.variable, rng.choice(text)),))
    if kind == "int" and time:
        return q.Call(rng.choice(("hour", "dayofweek")), (q.Attribute(one.variable, rng.choice(time)),))
    if kind == "string" and one.variable and one.kind != "timer":
        return q.Attribute(one.variable, rng.choice(("event_id", "event_class", "source")))
    return None


# ---------------------------------------------------------------- RETURN


def random_returns(rng: Random, named: list[Named], merged: bool) -> tuple[tuple[q.Expression, str], ...]:
    """RETURN: each name has always the same type, so that queries over queries can ask for it."""
    found: list[tuple[q.Expression, str]] = []
    positive = [one for one in named if one.kind not in ("negated", "timer")]
    timers = [one for one in named if one.kind == "timer" and not merged]
    for name in rng.sample(RETURNED, rng.randint(1, 4)) if positive else ():
        expression = _returned(rng, positive + (timers if KINDS[name] == "timestamp" else []), KINDS[name], merged)
        if expression is not None:
            found.append((expression, name))
    return tuple(found)


def _returned(rng: Random, positive: list[Named], kind: str, merged: bool) -> q.Expression | None:
    values = [found for one in positive if (found := _of_one(rng, one, kind, merged)) is not None]
    if not values:
        return None
    mine = values.pop(rng.randrange(len(values)))
    found = wrapped(rng, mine, kind, values) if rng.random() < 0.3 else mine
    return found


def _of_one(rng: Random, one: Named, kind: str, merged: bool) -> q.Expression | None:
    if merged or (one.kind in ("window", "group") and rng.random() < 0.7):
        return aggregate(rng, one, kind)
    if kind == "float" and one.kind == "one" and rng.random() < 0.2:
        return q.Duration(one.variable, None, one.variable, None)
    if one.kind == "one" and rng.random() < 0.15:
        return made(rng, one, kind)
    return attribute(rng, one, kind)
