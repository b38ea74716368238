"""Which variables a condition names.

Enters: conditions and expressions. Leaves: sets of names.
"""

from __future__ import annotations

from typing import Any

from cep_core.language.algebra import (
    Aggregate,
    All,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Duration,
    Either,
    Expression,
    Forall,
    In,
    IsNull,
    Like,
    Minus,
)


def bare_variables(node: Condition | Expression) -> frozenset[str]:
    """Variables whose attributes stand without an index or an aggregate."""
    match node:
        case Attribute(variable=variable, index=None):
            return frozenset() if variable is None else frozenset((variable,))
        case Duration():
            sides = ((node.first, node.first_index), (node.second, node.second_index))
            return frozenset(name for name, index in sides if index is None)
        case Forall(body=body):
            return bare_variables(body)
        case _:
            return frozenset().union(*map(bare_variables, children(node)))


def variables(node: Condition | Expression) -> frozenset[str]:
    """Every variable that is named."""
    match node:
        case Attribute(variable=variable):
            return frozenset() if variable is None else frozenset((variable,))
        case Aggregate(variable=variable):
            return frozenset((variable,))
        case Duration(first=first, second=second):
            return frozenset((first, second))
        case Forall(body=body, high=high):
            return variables(body) | (variables(high) if isinstance(high, Aggregate) else frozenset())
        case _:
            return frozenset().union(*map(variables, children(node)))


def is_plain(node: Condition | Expression) -> bool:
    """Whether it has only bare attributes: no index, aggregate, duration or FORALL."""
    match node:
        case Attribute(index=index):
            return index is None
        case Aggregate() | Duration() | Forall():
            return False
        case _:
            return all(map(is_plain, children(node)))


def children(node: Condition | Expression) -> tuple[Any, ...]:
    match node:
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            return (left, right)
        case In(operand=operand) | Like(operand=operand) | IsNull(operand=operand) | Minus(operand=operand):
            return (operand,)
        case Between(operand=operand, low=low, high=high):
            return (operand, low, high)
        case Call(arguments=parts) | All(conditions=parts) | Either(conditions=parts):
            return parts
        case _:
            return ()


def is_flat(node: Condition | Expression) -> bool:
    """Whether it has attributes and constants only: no aggregate, no duration, no FORALL."""
    return not isinstance(node, Aggregate | Duration | Forall) and all(map(is_flat, children(node)))
