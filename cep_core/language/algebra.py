"""What a query is: a small algebra of frozen values.

Enters: nothing; the parser builds these values and everything behind it reads them.
Leaves: `Query` and the nodes of its pattern and its conditions.
Always holds: positions (`at`) never take part in equality, so `parse(format(q)) == q`. Times are whole microseconds.
A union of dataclasses and `match` stand where a class tree would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class At:
    """A place in the query's text; both count from 1."""

    line: int = 0
    column: int = 0


NOWHERE = At()


def _at() -> At:
    return field(default=NOWHERE, compare=False, repr=False)


# ---------------------------------------------------------------- values and conditions

Value = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. None is NULL."""

    value: Value
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Index:
    """The subscript of `r[3]` (name None, offset 3), `r[i]` (name 'i', offset 0) or `r[i+1]` (name 'i', offset 1)."""

    name: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """`a.x`, `r[i].x`; in an element's own filter, where variable is None, plain `x`.

    Besides the declared attributes every event has `source`, `event_id`, `event_class`, `start_ts`, `end_ts` and
    `ts` (the same as `end_ts`).
    """

    variable: str | None
    name: str
    index: Index | None = None
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count(b)` (attribute None), `sum(b.x)`, `avg`, `min`, `max`, `first(b).x`, `last(b).x`."""

    function: OneOf["count", "sum", "avg", "min", "max", "first", "last"]
    variable: str
    attribute: str | None
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of values; `name` in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Duration:
    """`duration(a, b)`: seconds from a's end to b's end. Each side is a variable, with an index where it is several."""

    first: str
    first_index: Index | None
    second: str
    second_index: Index | None
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: OneOf["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Minus:
    """A sign in front of a value: `-a.x`. (A signed number literal is a Constant.)"""

    operand: Expression
    at: At = _at()


Expression = Constant | Attribute | Aggregate | Call | Duration | Arithmetic | Minus


@dataclass(frozen=True, slots=True)
class Compare:
    operator: OneOf["=", "!=", "<", "<=", ">", ">="]
    left: Expression
    right: Expression
    at: At = _at()


@dataclass(frozen=True, slots=True)
class In:
    operand: Expression
    values: tuple[Constant, ...]
    negated: bool = False
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Between:
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE: `%` any run, `_` one character, backslash escapes."""

    operand: Expression
    pattern: str
    negated: bool = False
    at: At = _at()


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression
    negated: bool = False
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Forall:
    """`FORALL i IN low..high (body)`; `high` is a number or `count(r)`."""

    name: str
    low: int
    high: int | Aggregate
    body: Condition
    negated: bool = False
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Equivalence:
    """`[attr]`, `[attr1, attr2]`, `[attr = 'v']`: pairs of attribute and required value (None where any will do)."""

    terms: tuple[tuple[str, Constant | None], ...]
    at: At = _at()


@dataclass(frozen=True, slots=True)
class All:
    """c1 AND c2 AND ...: two or more, none of them an All."""

    conditions: tuple[Condition, ...]
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Either:
    """c1 OR c2 OR ...: two or more, none of them an Either."""

    conditions: tuple[Condition, ...]
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition
    at: At = _at()


Atom = Compare | In | Between | Like | IsNull | Forall
Condition = Atom | Equivalence | All | Either | Not

# ---------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True)
class One:
    """Exactly one event."""


@dataclass(frozen=True, slots=True)
class Group:
    """`+` is Group(1, None), `*` is Group(0, None), `{n,m}` is Group(n, m)."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """`A[k]`: k different events, in event order. `same`/`different` name the attribute of TIMES_EQ/TIMES_DF."""

    size: int
    same: str | None = None
    different: str | None = None


Quantity = One | Group | Window


@dataclass(frozen=True, slots=True)
class Element:
    """One class (or ANY of several) in a pattern. `position` counts the pattern's elements from 1 in reading order,
    timers and negated ones too; `name` is how members, explain and errors call it."""

    classes: tuple[str, ...]
    variable: str | None
    filter: Condition | None
    quantity: Quantity
    negated: bool
    position: int
    at: At = _at()

    @property
    def name(self) -> str:
        return self.variable if self.variable is not None else str(self.position)


@dataclass(frozen=True, slots=True)
class TimerAt:
    """`AT('...')`."""

    moment_us: int
    variable: str | None
    position: int
    at: At = _at()

    @property
    def name(self) -> str:
        return self.variable if self.variable is not None else str(self.position)


@dataclass(frozen=True, slots=True)
class TimerEvery:
    """`EVERY(period)`."""

    period_us: int
    variable: str | None
    position: int
    at: At = _at()

    @property
    def name(self) -> str:
        return self.variable if self.variable is not None else str(self.position)


@dataclass(frozen=True, slots=True)
class TimerAfter:
    """`AFTER(p, delay)`: p's elements come before the timer in reading order."""

    part: Pattern
    delay_us: int
    variable: str | None
    position: int
    at: At = _at()

    @property
    def name(self) -> str:
        return self.variable if self.variable is not None else str(self.position)


@dataclass(frozen=True, slots=True)
class Seq:
    parts: tuple[Pattern, ...]
    within_us: int | None = None
    at: At = _at()


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Pattern, ...]
    within_us: int | None = None
    at: At = _at()


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Pattern, ...]
    within_us: int | None = None
    at: At = _at()


Timer = TimerAt | TimerEvery | TimerAfter
Pattern = Element | TimerAt | TimerEvery | TimerAfter | Seq | And | Or

Select = OneOf["all", "recent", "earliest", "merged"]
Consume = OneOf["none", "used", "older"]
Ties = OneOf["apart", "ordered"]


@dataclass(frozen=True, slots=True)
class Query:
    """One query as written. `within_us` of the outermost pattern stands here, not on the pattern."""

    id: str
    pattern: Pattern
    where: Condition | None = None
    within_us: int | None = None
    select: Select = "all"
    consume: Consume = "none"
    ties: Ties = "apart"
    returns: tuple[tuple[Expression, str], ...] = ()
    at: At = _at()
