"""The types of values and conditions.

Enters: a condition or a value, and the scope of its names. Leaves: its type; every clash is a problem in the scope.
Always holds: "null" is the type of NULL and of whatever is not known or already refused, and goes with every type, so
one mistake is reported once. int and float mix; timestamps compare with timestamps and with texts that are moments.
"""

from __future__ import annotations

import re
from typing import assert_never

from cep_core.language.algebra import (
    Aggregate,
    All,
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
    In,
    IsNull,
    Like,
    Minus,
    Not,
)
from cep_core.language.checked import Type
from cep_core.language.scope import Scope, join
from cep_core.language.times import moment_us

NUMBERS = ("int", "float")
_BAD_ESCAPE = re.compile(r"\\(?![%_\\])")

# name -> (least arguments, most arguments, type of each argument or None for any one type, type of the result or None
# for the arguments' own)
_SIGNATURES: dict[str, tuple[int, int | None, str | None, Type | None]] = {
    "abs": (1, 1, "number", None),
    "round": (1, 2, "number", None),
    "floor": (1, 1, "number", "int"),
    "ceil": (1, 1, "number", "int"),
    "sqrt": (1, 1, "number", "float"),
    "least": (2, None, None, None),
    "greatest": (2, None, None, None),
    "coalesce": (1, None, None, None),
    "lower": (1, 1, "string", "string"),
    "upper": (1, 1, "string", "string"),
    "length": (1, 1, "string", "int"),
    "concat": (1, None, "string", "string"),
    "hour": (1, 1, "timestamp", "int"),
    "dayofweek": (1, 1, "timestamp", "int"),
    "distance": (4, 4, "number", "float"),
    "haversine": (4, 4, "number", "float"),
}


def check_condition(condition: Condition, scope: Scope, own: Element | None = None) -> None:
    """`own` is the element whose filter this is."""
    match condition:
        case All() | Either():
            for part in condition.conditions:
                check_condition(part, scope, own)
        case Not():
            check_condition(condition.condition, scope, own)
        case Compare():
            _comparable(condition.left, condition.right, scope, own)
        case In():
            for value in condition.values:
                _comparable(condition.operand, value, scope, own)
        case Between():
            _comparable(condition.operand, condition.low, scope, own)
            _comparable(condition.operand, condition.high, scope, own)
        case Like():
            found = value_type(condition.operand, scope, own)
            if found not in ("string", "null"):
                scope.refuse(f"LIKE compares texts, but this is {_called(found)}", condition.operand.at)
            if _BAD_ESCAPE.search(condition.pattern.replace("\\\\", "")):
                scope.refuse("in the pattern of LIKE a backslash stands before %, _ or another backslash", condition.at)
        case IsNull():
            value_type(condition.operand, scope, own)
        case Forall():
            check_condition(condition.body, scope, own)
        case Equivalence():
            pass
        case _:
            assert_never(condition)


def value_type(value: Expression, scope: Scope, own: Element | None = None) -> Type:
    match value:
        case Constant():
            return constant_type(value)
        case Attribute():
            if value.variable is None:
                return "null" if own is None else scope.attribute(own, value.name, value.at)
            binding = scope.binding(value.variable, value.at)
            return "null" if binding is None else scope.attribute(binding.node, value.name, value.at)
        case Aggregate():
            return _aggregate(value, scope)
        case Call():
            return _call(value, scope, own)
        case Duration():
            scope.binding(value.first, value.at)
            scope.binding(value.second, value.at)
            return "float"
        case Arithmetic():
            left = _number(value.left, value.operator, scope, own)
            right = _number(value.right, value.operator, scope, own)
            return "float" if value.operator == "/" else join(left, right) or "null"
        case Minus():
            return _number(value.operand, "-", scope, own)
        case _:
            assert_never(value)


def constant_type(constant: Constant) -> Type:
    match constant.value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "string"
        case _:
            assert_never(constant.value)


def fits(constant: Constant, wanted: Type) -> str | None:
    """Why a constant cannot be compared with values of a type; None where it can."""
    found = constant_type(constant)
    if wanted == "timestamp" and isinstance(constant.value, str):
        if moment_us(constant.value) is None:
            return f"'{constant.value}' is no moment; write it as '2026-01-01T00:00:00Z'"
        return None
    return None if join(found, wanted) is not None else f"{_called(found)} does not compare with {_called(wanted)}"


def _comparable(left: Expression, right: Expression, scope: Scope, own: Element | None) -> None:
    left_type, right_type = value_type(left, scope, own), value_type(right, scope, own)
    if left_type == right_type:
        return
    for constant, wanted in ((left, right_type), (right, left_type)):
        if isinstance(constant, Constant) and wanted == "timestamp":
            why = fits(constant, wanted)
            if why is not None:
                scope.refuse(why, constant.at)
            return
    if join(left_type, right_type) is None:
        scope.refuse(f"type clash: {_called(left_type)} does not compare with {_called(right_type)}", left.at)


def _number(value: Expression, operator: str, scope: Scope, own: Element | None) -> Type:
    found = value_type(value, scope, own)
    if found in NUMBERS or found == "null":
        return found
    hint = "; duration(a, b) gives the seconds between two events" if found == "timestamp" else ""
    scope.refuse(f'type clash: "{operator}" takes numbers, but this is {_called(found)}{hint}', value.at)
    return "null"


def _aggregate(value: Aggregate, scope: Scope) -> Type:
    binding = scope.binding(value.variable, value.at)
    if value.attribute is None:
        return "int"
    found: Type = "null" if binding is None else scope.attribute(binding.node, value.attribute, value.at)
    if value.function not in ("sum", "avg"):
        return found
    if found not in NUMBERS and found != "null":
        scope.refuse(f"type clash: {value.function} takes numbers, but this is {_called(found)}", value.at)
        return "null"
    return "float" if value.function == "avg" else found


def _call(call: Call, scope: Scope, own: Element | None) -> Type:
    least, most, wanted, result = _SIGNATURES[call.name]
    count = len(call.arguments)
    if count < least or (most is not None and count > most):
        number = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} or {most}"
        scope.refuse(f"{call.name} takes {number} argument{'' if number == '1' else 's'}, not {count}", call.at)
        return result or "null"
    joined: Type = "null"
    for argument in call.arguments[: 1 if call.name == "round" else count]:
        found = value_type(argument, scope, own)
        if not _accepted(found, wanted):
            scope.refuse(f"type clash: {call.name} takes a {wanted}, but this is {_called(found)}", argument.at)
            found = "null"
        both = join(joined, found)
        if wanted is None and both is None:
            scope.refuse(f"type clash: {call.name} mixes {_called(joined)} with {_called(found)}", argument.at)
        joined = both or "null"
    if call.name == "round" and count == 2:
        digits = call.arguments[1]
        if not isinstance(digits, Constant) or type(digits.value) is not int:
            scope.refuse("round takes a whole number as its second argument, the number of decimals", digits.at)
    return joined if result is None else result


def _accepted(found: Type, wanted: str | None) -> bool:
    return found == "null" or wanted is None or (found in NUMBERS if wanted == "number" else found == wanted)


def _called(found: Type) -> str:
    return {
        "int": "a whole number",
        "float": "a number",
        "string": "a text",
        "bool": "a truth value",
        "timestamp": "a timestamp",
        "null": "NULL",
    }[found]
