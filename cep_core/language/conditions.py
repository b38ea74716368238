"""The parser of conditions and of the values in them, by recursive descent.

Enters: a cursor at the first token of a condition or a value. Leaves: the node; the cursor stands behind it.
Always holds: a parenthesis may open a value or a condition, so one descent reads both and each operator then asks for
the kind it needs. `own` says that an element's own filter is read: names there are plain attributes (`x`), elsewhere
they belong to a variable (`a.x`). No All stands directly in an All, no Either in an Either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast, get_args

from cep_core.language.algebra import (
    Aggregate,
    All,
    Arithmetic,
    At,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Constant,
    Duration,
    Either,
    Equivalence,
    Expression,
    Forall,
    In,
    Index,
    IsNull,
    Like,
    Minus,
    Not,
)
from cep_core.language.problems import Refusal, did_you_mean
from cep_core.language.tokens import RESERVED, Cursor

Node = Expression | Condition
FUNCTIONS = (
    "abs", "round", "floor", "ceil", "sqrt", "least", "greatest", "coalesce", "lower", "upper", "length", "concat",
    "hour", "dayofweek", "distance", "haversine",
)  # fmt: skip
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last")
_ALL_FUNCTIONS = (*FUNCTIONS, *AGGREGATES, "duration")
_EXPRESSIONS = get_args(Expression)
_COMPARISONS = frozenset(("=", "!=", "<>", "<", "<=", ">", ">="))
_LONGEST_CHAIN = 200  # operators in one sum or product: the tree leans that deep


def parse_condition(cursor: Cursor, own: bool) -> Condition:
    at = cursor.at()
    return _condition(_either(cursor, own), at)


def parse_value(cursor: Cursor, own: bool) -> Expression:
    at = cursor.at()
    return _value(_sum(cursor, own), at)


def _condition(node: Node, at: At) -> Condition:
    if isinstance(node, _EXPRESSIONS):
        hint = "; write = true behind it" if isinstance(node, Attribute) else ""
        raise Refusal(f"expected a condition here, but this is a value{hint}", at)
    return cast(Condition, node)


def _value(node: Node, at: At) -> Expression:
    if not isinstance(node, _EXPRESSIONS):
        raise Refusal("expected a value here, but this is a condition", at)
    return cast(Expression, node)


def _either(cursor: Cursor, own: bool) -> Node:
    at = cursor.at()
    first = _all(cursor, own)
    if cursor.token.word != "OR":
        return first
    conditions = [_condition(first, at)]
    while cursor.take_word("OR"):
        here = cursor.at()
        conditions.append(_condition(_all(cursor, own), here))
    flat: list[Condition] = []
    for condition in conditions:
        flat.extend(condition.conditions if isinstance(condition, Either) else (condition,))
    return Either(tuple(flat), at)


def _all(cursor: Cursor, own: bool) -> Node:
    at = cursor.at()
    first = _not(cursor, own)
    if cursor.token.word != "AND":
        return first
    conditions = [_condition(first, at)]
    while cursor.take_word("AND"):
        here = cursor.at()
        conditions.append(_condition(_not(cursor, own), here))
    flat: list[Condition] = []
    for condition in conditions:
        flat.extend(condition.conditions if isinstance(condition, All) else (condition,))
    return All(tuple(flat), at)


def _not(cursor: Cursor, own: bool) -> Node:
    if cursor.token.word != "NOT":
        return _predicate(cursor, own)
    at = cursor.at()
    cursor.advance()
    cursor.deeper()
    here = cursor.at()
    condition = _condition(_not(cursor, own), here)
    cursor.depth -= 1
    return Not(condition, at)


def _predicate(cursor: Cursor, own: bool) -> Node:
    at = cursor.at()
    if cursor.is_op("["):
        return _equivalence(cursor)
    if cursor.token.word == "FORALL":
        return _forall(cursor, own)
    left = _sum(cursor, own)
    token = cursor.token
    if token.kind == "op":
        if token.text in _COMPARISONS:
            return _compare(cursor, _value(left, at), own, at)
        if token.text == "==":
            cursor.refuse('unknown operator "=="; did you mean "="?')
        return left
    if token.word == "IS":
        cursor.advance()
        negated = cursor.take_word("NOT")
        cursor.expect_word("NULL", "after IS")
        return IsNull(_value(left, at), negated, at)
    negated = token.word == "NOT" and cursor.peek().word in ("IN", "BETWEEN", "LIKE")
    if negated:
        cursor.advance()
    if cursor.take_word("IN"):
        return In(_value(left, at), _constants(cursor), negated, at)
    if cursor.take_word("BETWEEN"):
        low = parse_value(cursor, own)
        cursor.expect_word("AND", "between the bounds of BETWEEN")
        return Between(_value(left, at), low, parse_value(cursor, own), negated, at)
    if cursor.take_word("LIKE"):
        if cursor.token.kind != "string":
            cursor.refuse(f"expected the pattern of LIKE, a text in single quotes, found {cursor.found()}")
        return Like(_value(left, at), cursor.advance().text, negated, at)
    return left


def _compare(cursor: Cursor, left: Expression, own: bool, at: At) -> Compare:
    operator = cursor.advance().text
    right = parse_value(cursor, own)
    if cursor.token.kind == "op" and cursor.token.text in _COMPARISONS:
        cursor.refuse("comparisons do not chain; join two of them with AND, or use BETWEEN")
    return Compare("!=" if operator == "<>" else operator, left, right, at)  # type: ignore[arg-type]


def _constants(cursor: Cursor) -> tuple[Constant, ...]:
    cursor.expect_op("(", "after IN")
    values = [_constant(cursor)]
    while cursor.take_op(","):
        values.append(_constant(cursor))
    cursor.expect_op(")", "after the values of IN")
    return tuple(values)


def _constant(cursor: Cursor) -> Constant:
    at = cursor.at()
    signed = cursor.take_op("-")
    token = cursor.token
    if token.kind == "number":
        return _number(cursor, signed, at)
    if not signed and token.kind == "string":
        return Constant(cursor.advance().text, at)
    if not signed and token.word in ("TRUE", "FALSE", "NULL"):
        word = cursor.advance().word
        return Constant(None if word == "NULL" else word == "TRUE", at)
    raise cursor.refusal(
        f"expected a constant (a number, a text in single quotes, true, false), found {cursor.found()}"
    )


def _number(cursor: Cursor, signed: bool, at: At) -> Constant:
    text = cursor.advance().text
    if text.isdigit():
        if len(text) > 20 or not -(2**63) <= (whole := -int(text) if signed else int(text)) < 2**63:
            raise Refusal("this whole number does not fit 64 bits; write it with a decimal point", at)
        return Constant(whole, at)
    number = -float(text) if signed else float(text)
    if not math.isfinite(number):
        raise Refusal("this number is too large", at)
    return Constant(number, at)


def _equivalence(cursor: Cursor) -> Equivalence:
    at = cursor.at()
    cursor.advance()
    terms: list[tuple[str, Constant | None]] = []
    while True:
        name = cursor.expect_name("an attribute that all elements share", reserved_too=True)
        terms.append((name, _constant(cursor) if cursor.take_op("=") else None))
        if not cursor.take_op(","):
            break
    cursor.expect_op("]", "after the attributes of an equivalence test")
    return Equivalence(tuple(terms), at)


def _forall(cursor: Cursor, own: bool) -> Forall:
    at = cursor.at()
    if own:
        cursor.refuse("FORALL has no place in an element's own filter; put it in WHERE")
    cursor.advance()
    name = cursor.expect_name("the name of the index after FORALL")
    cursor.expect_word("IN", "after the index of FORALL")
    low = cursor.expect_count("the lower end of the range")
    cursor.expect_op("..", "between the ends of the range")
    high: int | Aggregate
    if cursor.token.word == "COUNT":
        here = cursor.at()
        cursor.advance()
        cursor.expect_op("(", "after count")
        high = Aggregate("count", cursor.expect_name("a variable"), None, here)
        cursor.expect_op(")", "after the variable")
    else:
        high = cursor.expect_count("the upper end of the range or count(variable)")
    cursor.expect_op("(", "before the condition of FORALL")
    cursor.deeper()
    body = parse_condition(cursor, own)
    cursor.depth -= 1
    cursor.expect_op(")", "after the condition of FORALL")
    return Forall(name, low, high, body, False, at)


def _sum(cursor: Cursor, own: bool) -> Node:
    at = cursor.at()
    node = _product(cursor, own)
    count = 0
    while cursor.token.kind == "op" and cursor.token.text in ("+", "-"):
        node = _operation(cursor, node, _product, own, at, count)
        count += 1
    return node


def _product(cursor: Cursor, own: bool) -> Node:
    at = cursor.at()
    node = _signed(cursor, own)
    count = 0
    while cursor.token.kind == "op" and cursor.token.text in ("*", "/", "%"):
        node = _operation(cursor, node, _signed, own, at, count)
        count += 1
    return node


def _operation(
    cursor: Cursor, left: Node, operand: Callable[[Cursor, bool], Node], own: bool, at: At, count: int
) -> Arithmetic:
    if count >= _LONGEST_CHAIN:
        cursor.refuse(f"more than {_LONGEST_CHAIN} operators in one value")
    operator = cursor.advance().text
    here = cursor.at()
    right = _value(operand(cursor, own), here)
    return Arithmetic(operator, _value(left, at), right, at)  # type: ignore[arg-type]


def _signed(cursor: Cursor, own: bool) -> Node:
    if not cursor.is_op("-"):
        return _primary(cursor, own)
    at = cursor.at()
    cursor.advance()
    if cursor.token.kind == "number":
        return _number(cursor, True, at)
    cursor.deeper()
    here = cursor.at()
    operand = _value(_signed(cursor, own), here)
    cursor.depth -= 1
    return Minus(operand, at)


def _primary(cursor: Cursor, own: bool) -> Node:
    token = cursor.token
    if token.kind in ("number", "string") or token.word in ("TRUE", "FALSE", "NULL"):
        return _constant(cursor)
    if token.kind == "quoted" or (token.kind == "name" and token.word not in RESERVED):
        return _named(cursor, own)
    if token.kind == "op" and token.text == "(":
        cursor.advance()
        cursor.deeper()
        node = _either(cursor, own)
        cursor.depth -= 1
        cursor.expect_op(")", "to close the parenthesis")
        return node
    hint = "; a reserved word needs backquotes to be a name" if token.word in RESERVED else ""
    raise cursor.refusal(f"expected a value or a condition, found {cursor.found()}{hint}")


def _named(cursor: Cursor, own: bool) -> Expression:
    at = cursor.at()
    token = cursor.advance()
    if token.kind == "name" and cursor.is_op("("):
        return _call(cursor, token.text, own, at)
    if own:
        if cursor.is_op(".") or cursor.is_op("["):
            raise Refusal("a filter names the attributes of its own element plainly, such as (x = 1)", at)
        return Attribute(None, token.text, None, at)
    index = _index(cursor)
    if not cursor.take_op("."):
        raise Refusal(f'"{token.text}" alone is no value; write variable.attribute, such as a.{token.text}', at)
    return Attribute(token.text, cursor.expect_name("an attribute after the point", reserved_too=True), index, at)


def _index(cursor: Cursor) -> Index | None:
    if not cursor.take_op("["):
        return None
    if cursor.token.kind == "number":
        index = Index(None, cursor.expect_count("an index"))
    else:
        name = cursor.expect_name("an index: a number, or the index of a FORALL")
        offset = 0
        if cursor.is_op("+") or cursor.is_op("-"):
            sign = 1 if cursor.advance().text == "+" else -1
            offset = sign * cursor.expect_count("how far from the index")
        index = Index(name, offset)
    cursor.expect_op("]", "after the index")
    return index


def _call(cursor: Cursor, written: str, own: bool, at: At) -> Expression:
    name = written.lower()
    if own and (name in AGGREGATES or name == "duration"):
        raise Refusal(f"{name} has no place in an element's own filter; put it in WHERE", at)
    if name in AGGREGATES:
        return _aggregate(cursor, name, at)
    if name == "duration":
        return _duration(cursor, at)
    if name not in FUNCTIONS:
        raise Refusal(f'unknown function "{written}"' + did_you_mean(name, _ALL_FUNCTIONS), at)
    cursor.advance()
    cursor.deeper()
    arguments: list[Expression] = []
    if not cursor.is_op(")"):
        arguments.append(parse_value(cursor, own))
        while cursor.take_op(","):
            arguments.append(parse_value(cursor, own))
    cursor.depth -= 1
    cursor.expect_op(")", f"after the arguments of {name}")
    return Call(name, tuple(arguments), at)


def _aggregate(cursor: Cursor, name: str, at: At) -> Aggregate:
    cursor.advance()
    variable = cursor.expect_name(f"a variable in {name}(...)")
    attribute: str | None = None
    if name in ("sum", "avg", "min", "max"):
        if not cursor.take_op("."):
            cursor.refuse(f"{name} needs an attribute: {name}({variable}.attribute)")
        attribute = cursor.expect_name("an attribute after the point", reserved_too=True)
    elif cursor.is_op("."):
        right = f"count({variable})" if name == "count" else f"{name}({variable}).attribute"
        cursor.refuse(f"{name} takes the variable alone; write {right}")
    cursor.expect_op(")", f"after the argument of {name}")
    if name in ("first", "last"):
        if not cursor.take_op("."):
            cursor.refuse(f"{name}({variable}) is an event; write {name}({variable}).attribute for a value of it")
        attribute = cursor.expect_name("an attribute after the point", reserved_too=True)
    return Aggregate(name, variable, attribute, at)  # type: ignore[arg-type]


def _duration(cursor: Cursor, at: At) -> Duration:
    cursor.advance()
    first = cursor.expect_name("a variable in duration(a, b)")
    first_index = _index(cursor)
    cursor.expect_op(",", "between the variables of duration(a, b)")
    second = cursor.expect_name("a variable in duration(a, b)")
    second_index = _index(cursor)
    cursor.expect_op(")", "after the variables of duration(a, b)")
    return Duration(first, first_index, second, second_index, at)
