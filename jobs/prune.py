"""Which rows a group of queries needs, as a Spark condition that is evaluated before the exchange.

Enters: the checked queries of a group. Leaves: a Column; a row for which it is not true cannot take part in any match.
Always holds: the condition never drops a row that the engine would use. It only knows comparisons of one attribute with
constants; whatever else a filter says counts as true here, and the engine evaluates the whole of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from cep_core.language.algebra import (
    All,
    Attribute,
    Between,
    Compare,
    Condition,
    Constant,
    Either,
    Element,
    Equivalence,
    Expression,
    In,
    IsNull,
    Like,
    Value,
)  # fmt: skip
from cep_core.language.checked import CheckedQuery
from jobs.distribute import Group
from jobs.keys import elements
from jobs.route import key_column

MOST_FILTERS = 64  # more different filters on one class would cost Spark more than they save
_ORDERED = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


def needed_rows(group: Group, queries: Mapping[str, CheckedQuery], declared: Mapping[str, Iterable[str]]) -> Column:
    """The rows of the group's classes, with a key, that some element's own filter lets through."""
    filters: dict[str, set[Condition | None]] = {name: set() for name in group.classes}
    for name in group.queries:
        for element in elements(queries[name].query.pattern):
            for event_class in element.classes:
                if event_class in filters:
                    filters[event_class].add(_filter(element, queries[name], set(declared.get(event_class, ()))))
    free = sorted(name for name, found in filters.items() if None in found or len(found) > MOST_FILTERS)
    parts = [F.col("event_class").isin(free)] if free else []
    for name in sorted(set(filters) - set(free)):
        columns = [
            column for f in sorted(filters[name], key=repr) if f is not None and (column := to_column(f)) is not None
        ]
        known = reduce(lambda a, b: a | b, columns) if len(columns) == len(filters[name]) else F.lit(True)
        parts.append((F.col("event_class") == name) & known)
    needed = reduce(lambda a, b: a | b, parts)
    return needed & key_column(group).isNotNull() if group.key_of else needed


def _filter(element: Element, checked: CheckedQuery, declared: set[str]) -> Condition | None:
    """The element's filter and the required values of its query's key, with one form for equal ones; None: no filter.

    An attribute that the class does not declare makes its comparison true (under ANY), so such a filter says nothing.
    """
    terms: list[Condition] = []
    for attribute, value in zip(checked.key, checked.key_values, strict=True):
        if value is not None:
            terms.append(Compare("=", Attribute(None, attribute), value))
    if element.filter is not None:
        terms += element.filter.conditions if isinstance(element.filter, All) else (element.filter,)
    kept = tuple(term for term in terms if to_column(term) is not None and _attributes(term) <= declared | {"source"})
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else All(kept)


def to_column(condition: Condition) -> Column | None:
    """The condition over a row's columns, or None where this module does not know how to say it."""
    match condition:
        case All(conditions):
            known = [column for c in conditions if (column := to_column(c)) is not None]
            return reduce(lambda a, b: a & b, known) if known else None
        case Either(conditions):
            columns = [to_column(c) for c in conditions]
            if any(column is None for column in columns):
                return None
            return reduce(lambda a, b: a | b, (column for column in columns if column is not None))
        case Compare(operator, left, right):
            flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            if isinstance(left, Constant):
                left, right, operator = right, left, flipped.get(operator, operator)  # type: ignore[assignment]
            name, value = _name(left), _constant(right)
            if name is None or value is None:
                return None
            column = F.col(name)
            if operator in ("=", "!="):
                return column == F.lit(value) if operator == "=" else column != F.lit(value)
            result: Column = getattr(column, _ORDERED[operator])(F.lit(value))
            return result
        case In(operand, values, negated):
            name, constants = _name(operand), [_constant(value) for value in values]
            if name is None or None in constants or negated:
                return None
            return F.col(name).isin(constants)
        case Between(operand, low, high, negated):
            name, least, most = _name(operand), _constant(low), _constant(high)
            if name is None or least is None or most is None or negated:
                return None
            return F.col(name).between(least, most)
        case IsNull(operand, negated):
            name = _name(operand)
            if name is None or not negated:
                return None
            return F.col(name).isNotNull()
        case _:
            return None


def _name(expression: Expression) -> str | None:
    """The column of a plain attribute. Times and classes are not columns of the same type as in the language."""
    if isinstance(expression, Attribute) and expression.index is None:
        return expression.name if expression.name not in ("ts", "start_ts", "end_ts", "event_class") else None
    return None


def _constant(expression: Expression) -> Value:
    """A constant that Spark and the engine compare alike with a column of its type; booleans and NULL are left out."""
    if isinstance(expression, Constant) and not isinstance(expression.value, bool):
        return expression.value
    return None


def _attributes(condition: Condition) -> set[str]:
    match condition:
        case All(conditions) | Either(conditions):
            return {name for c in conditions for name in _attributes(c)}
        case Compare(_, left, right):
            return {e.name for e in (left, right) if isinstance(e, Attribute)}
        case In(operand) | Between(operand) | IsNull(operand) | Like(operand):
            return {operand.name} if isinstance(operand, Attribute) else set()
        case Equivalence(terms):
            return {name for name, _ in terms}
        case _:
            return set()
