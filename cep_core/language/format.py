"""The canonical text of a query.

Enters: a `Query`. Leaves: its text, one clause a line, defaults left out.
Always holds: `parse(format_query(q), q.id) == q`, so two queries are equal exactly when their texts are; versions are
taken over this text. No `--` ever comes out, since it would start a comment.
"""

from __future__ import annotations

from typing import assert_never

from cep_core.language.algebra import (
    Aggregate,
    All,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Constant,
    Duration,
    Either,
    Element,
    Equivalence,
    Expression,
    Forall,
    Group,
    In,
    Index,
    IsNull,
    Like,
    Minus,
    Not,
    One,
    Or,
    Pattern,
    Quantity,
    Query,
    Seq,
    TimerAfter,
    TimerAt,
    TimerEvery,
    Window,
)
from cep_core.language.times import format_duration, format_moment
from cep_core.language.tokens import quote_name

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def format_query(query: Query) -> str:
    """The query's canonical text, without its id."""
    lines = [f"PATTERN {format_pattern(query.pattern)}"]
    if query.where is not None:
        lines.append(f"WHERE {format_condition(query.where)}")
    if query.within_us is not None:
        lines.append(f"WITHIN {format_duration(query.within_us)}")
    if query.select != "all":
        lines.append(f"SELECT {query.select}")
    if query.consume != "none":
        lines.append(f"CONSUME {query.consume}")
    if query.ties != "apart":
        lines.append(f"TIES {query.ties}")
    if query.returns:
        lines.append(
            "RETURN " + ", ".join(f"{format_value(value)} AS {quote_name(name)}" for value, name in query.returns)
        )
    return "\n".join(lines)


def format_pattern(pattern: Pattern) -> str:
    match pattern:
        case Element():
            return _element(pattern)
        case TimerAt():
            return f"AT({_text(format_moment(pattern.moment_us))})" + _variable(pattern.variable)
        case TimerEvery():
            return f"EVERY({format_duration(pattern.period_us)})" + _variable(pattern.variable)
        case TimerAfter():
            inner = format_pattern(pattern.part)
            return f"AFTER({inner}, {format_duration(pattern.delay_us)})" + _variable(pattern.variable)
        case Seq() | And() | Or():
            parts = ", ".join(format_pattern(part) for part in pattern.parts)
            within = "" if pattern.within_us is None else f" WITHIN {format_duration(pattern.within_us)}"
            return f"{type(pattern).__name__.upper()}({parts}){within}"
        case _:
            assert_never(pattern)


def _element(element: Element) -> str:
    names = ", ".join(quote_name(name) for name in element.classes)
    text = names if len(element.classes) == 1 else f"ANY({names})"
    if element.filter is not None:
        text += f"({format_condition(element.filter)})"
    sign = "!" if element.negated else ""
    quantity = element.quantity
    if isinstance(quantity, Window) and (quantity.same is not None or quantity.different is not None):
        word, attribute = ("TIMES_EQ", quantity.same) if quantity.same is not None else ("TIMES_DF", quantity.different)
        return f"{sign}{word}({quantity.size}, {text}{_variable(element.variable)}, {quote_name(str(attribute))})"
    return sign + text + _quantity(quantity) + _variable(element.variable)


def _quantity(quantity: Quantity) -> str:
    match quantity:
        case One():
            return ""
        case Window(size=size):
            return f"[{size}]"
        case Group(low=1, high=None):
            return "+"
        case Group(low=0, high=None):
            return "*"
        case Group(low=low, high=high):
            return f"{{{low},{'' if high is None else high}}}"
        case _:
            assert_never(quantity)


def _variable(variable: str | None) -> str:
    return "" if variable is None else " " + quote_name(variable)


def format_condition(condition: Condition) -> str:
    match condition:
        case All():
            return " AND ".join(_inside(part, (Either,)) for part in condition.conditions)
        case Either():
            return " OR ".join(format_condition(part) for part in condition.conditions)
        case Not():
            return "NOT " + _inside(condition.condition, (All, Either))
        case Equivalence():
            terms = (
                quote_name(name) + ("" if value is None else f" = {_constant(value)}")
                for name, value in condition.terms
            )
            return f"[{', '.join(terms)}]"
        case Compare():
            return f"{format_value(condition.left)} {condition.operator} {format_value(condition.right)}"
        case In():
            values = ", ".join(_constant(value) for value in condition.values)
            return f"{format_value(condition.operand)} {_not(condition.negated)}IN ({values})"
        case Between():
            bounds = f"{format_value(condition.low)} AND {format_value(condition.high)}"
            return f"{format_value(condition.operand)} {_not(condition.negated)}BETWEEN {bounds}"
        case Like():
            return f"{format_value(condition.operand)} {_not(condition.negated)}LIKE {_text(condition.pattern)}"
        case IsNull():
            return f"{format_value(condition.operand)} IS {_not(condition.negated)}NULL"
        case Forall():
            high = condition.high if isinstance(condition.high, int) else format_value(condition.high)
            head = f"FORALL {quote_name(condition.name)} IN {condition.low}..{high}"
            return f"{_not(condition.negated)}{head} ({format_condition(condition.body)})"
        case _:
            assert_never(condition)


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _inside(condition: Condition, wrapped: tuple[type, ...]) -> str:
    text = format_condition(condition)
    return f"({text})" if isinstance(condition, wrapped) else text


def format_value(value: Expression, outer: int = 0) -> str:
    """`outer` is the precedence that the text must keep within: a weaker operator gets parentheses."""
    match value:
        case Constant():
            return _constant(value)
        case Attribute():
            if value.variable is None:
                return quote_name(value.name)
            return f"{quote_name(value.variable)}{_index(value.index)}.{quote_name(value.name, reserved_too=True)}"
        case Aggregate():
            variable = quote_name(value.variable)
            if value.attribute is None:
                return f"{value.function}({variable})"
            if value.function in ("first", "last"):
                return f"{value.function}({variable}).{quote_name(value.attribute, reserved_too=True)}"
            return f"{value.function}({variable}.{quote_name(value.attribute, reserved_too=True)})"
        case Call():
            return f"{value.name}({', '.join(format_value(argument) for argument in value.arguments)})"
        case Duration():
            first = quote_name(value.first) + _index(value.first_index)
            return f"duration({first}, {quote_name(value.second)}{_index(value.second_index)})"
        case Arithmetic():
            own = _PRECEDENCE[value.operator]
            text = f"{format_value(value.left, own)} {value.operator} {format_value(value.right, own + 1)}"
            return f"({text})" if own < outer else text
        case Minus():
            text = format_value(value.operand, 3)
            # A number or a second sign right behind this one would read as another node, or as a comment.
            return f"-({text})" if isinstance(value.operand, Constant | Minus) else f"-{text}"
        case _:
            assert_never(value)


def _index(index: Index | None) -> str:
    if index is None:
        return ""
    if index.name is None:
        return f"[{index.offset}]"
    return f"[{quote_name(index.name)}{'' if index.offset == 0 else format(index.offset, '+d')}]"


def _constant(constant: Constant) -> str:
    value = constant.value
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).lower()
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
