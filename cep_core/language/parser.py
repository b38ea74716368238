"""The parser of queries and patterns, by recursive descent.

Enters: a query's text and its id. Leaves: a `Query`, or a QueryError that shows the place.
Always holds: elements and timers are numbered from 1 in reading order (the elements of AFTER's part before its timer).
Only the grammar is judged here; what a well-formed query may not say is in check.py.
"""

from __future__ import annotations

from typing import cast

from cep_core.language.algebra import (
    And,
    At,
    Condition,
    Consume,
    Element,
    Expression,
    Group,
    One,
    Or,
    Pattern,
    Quantity,
    Query,
    Select,
    Seq,
    Ties,
    TimerAfter,
    TimerAt,
    TimerEvery,
    Window,
)
from cep_core.language.conditions import parse_condition, parse_value
from cep_core.language.problems import Refusal, Report, did_you_mean, refuse
from cep_core.language.times import moment_us
from cep_core.language.tokens import CLAUSES, Cursor

# Snoop's contexts are names for pairs of SELECT and CONSUME.
_CONTEXTS: dict[str, tuple[Select, Consume]] = {
    "chronicle": ("earliest", "used"),
    "continuous": ("all", "used"),
    "cumulative": ("merged", "used"),
}
_SELECTS = ("all", "recent", "earliest", "merged", *_CONTEXTS)
_COMPOSITES: dict[str, type[Seq | And | Or]] = {"SEQ": Seq, "AND": And, "OR": Or}


def parse(text: str, id: str) -> Query:
    """The query that a text says; a QueryError with line, column and caret where it says none."""
    try:
        return parse_query(text, id)
    except Refusal as refusal:
        raise refuse([Report(id, text, (refusal.problem,))], 1) from None


def parse_query(text: str, id: str) -> Query:
    """As `parse`, but raises the Refusal itself."""
    cursor = Cursor(text)
    at = cursor.at()
    cursor.expect_word("PATTERN", "at the start of a query")
    pattern = _Patterns(cursor).parse(outermost=True)
    seen: set[str] = set()
    where: Condition | None = None
    within: int | None = None
    select: Select | None = None
    consume: Consume | None = None
    ties: Ties = "apart"
    returns: tuple[tuple[Expression, str], ...] = ()
    while cursor.token.kind != "end":
        word = cursor.token.word
        if word not in CLAUSES or word == "PATTERN":
            cursor.refuse(
                f"expected a clause ({', '.join(CLAUSES[1:])}) or the end of the query, found {cursor.found()}"
                + did_you_mean(cursor.token.text, CLAUSES[1:])
            )
        if word in seen:
            cursor.refuse(f"{word} stands twice; a query has each clause once")
        seen.add(word)
        clause_at = cursor.at()
        cursor.advance()
        if word == "WHERE":
            where = parse_condition(cursor, own=False)
        elif word == "WITHIN":
            within = cursor.expect_duration("the duration of WITHIN")
        elif word == "SELECT":
            name = cursor.expect_one_of(_SELECTS, "what to select")
            select, implied = _CONTEXTS.get(name, (name, None))  # type: ignore[assignment]
            if implied is not None:
                if "CONSUME" in seen:
                    raise Refusal(f"SELECT {name} already says CONSUME {implied}; leave CONSUME out", clause_at)
                seen.add("CONSUME")
                consume = implied
        elif word == "CONSUME":
            consume = cast(Consume, cursor.expect_one_of(("none", "used", "older"), "what to consume"))
        elif word == "TIES":
            ties = cast(Ties, cursor.expect_one_of(("apart", "ordered"), "how ties count"))
        else:
            returns = _returns(cursor)
    return Query(id, pattern, where, within, select or "all", consume or "none", ties, returns, at)


def _returns(cursor: Cursor) -> tuple[tuple[Expression, str], ...]:
    fields: list[tuple[Expression, str]] = []
    while True:
        value = parse_value(cursor, own=False)
        cursor.expect_word("AS", "and a name after each value of RETURN")
        fields.append((value, cursor.expect_name("the name of a RETURN field")))
        if not cursor.take_op(","):
            return tuple(fields)


class _Patterns:
    """The parser of one query's pattern; it counts the elements as it reads them."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.count = 0

    def parse(self, outermost: bool = False) -> Pattern:
        cursor = self.cursor
        word = cursor.token.word
        if word in _COMPOSITES:
            return self._composite(word, outermost)
        if word in ("AT", "EVERY", "AFTER"):
            return self._timer(word)
        return self._element()

    def _composite(self, word: str, outermost: bool) -> Pattern:
        cursor = self.cursor
        at = cursor.at()
        cursor.advance()
        cursor.expect_op("(", f"after {word}")
        cursor.deeper()
        parts = [self.parse()]
        while cursor.take_op(","):
            parts.append(self.parse())
        cursor.depth -= 1
        if not cursor.take_op(")"):
            cursor.refuse(f'expected "," or ")" in {word}(...), found {cursor.found()}')
        within: int | None = None
        if not outermost and cursor.take_word("WITHIN"):
            within = cursor.expect_duration("the duration of WITHIN")
        return _COMPOSITES[word](tuple(parts), within, at)

    def _timer(self, word: str) -> Pattern:
        cursor = self.cursor
        at = cursor.at()
        cursor.advance()
        cursor.expect_op("(", f"after {word}")
        if word == "AT":
            if cursor.token.kind != "string":
                cursor.refuse(
                    f"expected a moment in single quotes, such as '2026-01-01T00:00:00Z', found {cursor.found()}"
                )
            moment = moment_us(cursor.token.text)
            if moment is None:
                cursor.refuse(f"'{cursor.token.text}' is no moment; write it as '2026-01-01T00:00:00Z'")
            cursor.advance()
            cursor.expect_op(")", "after the moment")
            return TimerAt(moment, *self._variable_and_position(), at)
        if word == "EVERY":
            here = cursor.at()
            period = cursor.expect_duration("the period of EVERY")
            if period == 0:
                raise Refusal("a period must be longer than 0", here)
            cursor.expect_op(")", "after the period")
            return TimerEvery(period, *self._variable_and_position(), at)
        cursor.deeper()
        part = self.parse()
        cursor.depth -= 1
        cursor.expect_op(",", "and a duration after the pattern of AFTER")
        delay = cursor.expect_duration("the duration of AFTER")
        cursor.expect_op(")", "after the duration")
        return TimerAfter(part, delay, *self._variable_and_position(), at)

    def _element(self) -> Element:
        cursor = self.cursor
        at = cursor.at()
        negated = cursor.take_op("!")
        if cursor.token.word in ("TIMES_EQ", "TIMES_DF"):
            return self._times(negated, at)
        if cursor.token.word in ("SEQ", "AND", "OR", "AT", "EVERY", "AFTER"):
            cursor.refuse(f"only a class can be negated, not {cursor.token.word}; make it a query and negate its id")
        classes = self._classes()
        condition, quantity = self._filter_and_quantity()
        return Element(classes, self._variable(), condition, quantity, negated, self._next(), at)

    def _times(self, negated: bool, at: At) -> Element:
        cursor = self.cursor
        word = cursor.advance().word
        cursor.expect_op("(", f"after {word}")
        here = cursor.at()
        size = cursor.expect_count("how many events")
        if size < 1:
            raise Refusal("a window has at least one event", here)
        cursor.expect_op(",", "after the number of events")
        classes = self._classes()
        quantity_at = cursor.at()
        condition, quantity = self._filter_and_quantity()
        if quantity != One():
            raise Refusal(f"{word} already says how many events; leave this out", quantity_at)
        variable = self._variable()
        cursor.expect_op(",", f"and an attribute after the element of {word}")
        attribute = cursor.expect_name("an attribute", reserved_too=True)
        cursor.expect_op(")", "after the attribute")
        window = Window(size, same=attribute) if word == "TIMES_EQ" else Window(size, different=attribute)
        return Element(classes, variable, condition, window, negated, self._next(), at)

    def _classes(self) -> tuple[str, ...]:
        cursor = self.cursor
        if not cursor.take_word("ANY"):
            return (cursor.expect_name("an event class or a pattern"),)
        cursor.expect_op("(", "after ANY")
        classes = [cursor.expect_name("an event class")]
        while cursor.take_op(","):
            classes.append(cursor.expect_name("an event class"))
        cursor.expect_op(")", "after the classes of ANY")
        return tuple(classes)

    def _filter_and_quantity(self) -> tuple[Condition | None, Quantity]:
        """`A(cond)+` as well as `A+(cond)`."""
        cursor = self.cursor
        condition: Condition | None = None
        quantity: Quantity = One()
        while cursor.token.kind == "op" and cursor.token.text in "([{+*":
            if cursor.is_op("("):
                if condition is not None:
                    cursor.refuse("a second filter; join the two with AND")
                cursor.advance()
                cursor.deeper()
                condition = parse_condition(cursor, own=True)
                cursor.depth -= 1
                cursor.expect_op(")", "after the filter")
            elif quantity != One():
                cursor.refuse("a second quantity; an element has one of + * {n,m} [k]")
            else:
                quantity = self._quantity()
        return condition, quantity

    def _quantity(self) -> Quantity:
        cursor = self.cursor
        at = cursor.at()
        op = cursor.advance().text
        if op in "+*":
            return Group(1 if op == "+" else 0, None)
        if op == "[":
            size = cursor.expect_count("the size of the window")
            if size < 1:
                raise Refusal("a window has at least one event", at)
            cursor.expect_op("]", "after the size of the window")
            return Window(size)
        low = cursor.expect_count("the least number of events")
        high: int | None = low
        if cursor.take_op(","):
            high = None if cursor.is_op("}") else cursor.expect_count("the greatest number of events")
        cursor.expect_op("}", "after the bounds of the group")
        if high is not None and (high < low or high == 0):
            raise Refusal("the bounds of a group are {n,m} with n <= m and m at least 1", at)
        return Group(low, high)

    def _variable(self) -> str | None:
        token = self.cursor.token
        if token.kind == "quoted" or (token.kind == "name" and token.word not in CLAUSES):
            return self.cursor.expect_name("a variable")
        return None

    def _next(self) -> int:
        self.count += 1
        return self.count

    def _variable_and_position(self) -> tuple[str | None, int]:
        variable = self._variable()
        return variable, self._next()
