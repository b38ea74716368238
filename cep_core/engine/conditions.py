"""Conditions over single events, for all events at once: filters, pushed-down atoms, and the columns that kernels read.

Enters: `Events` and the schema. Leaves: vectors of attributes and expressions, and masks of conditions.
Always holds: a mask says, for each event, whether the condition holds for it: a comparison with NULL is false, one that
names an attribute which the event's class does not declare is true (language contract, Conditions).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa

from cep_core.engine.load import Events
from cep_core.engine.values import Vector, compare, compute, constant, from_arrow, likes, null
from cep_core.engine.whole import narrow
from cep_core.language.algebra import (
    All,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Either,
    Expression,
    In,
    IsNull,
    Like,
    Minus,
)

_TIMES = {"ts": "end", "end_ts": "end", "start_ts": "start"}
LARGE = "__large_"  # before an attribute's name: a column with its values as text, where one left 64 bits


class EventColumns:
    """The attributes of events as vectors, each computed once. `declares`: class -> attributes (None: all have all)."""

    def __init__(self, events: Events, declares: Mapping[str, frozenset[str]] | None) -> None:
        self.events = events
        self._declares = declares
        self._vectors: dict[str, Vector] = {}
        self._declared: dict[str, np.ndarray | None] = {}
        self._values: dict[Expression, Vector] = {}
        self._masks: dict[Condition, np.ndarray] = {}
        self.names = set(
            events.table.column_names if isinstance(events.table, pa.Table) else map(str, events.table.columns)
        )

    def attribute(self, name: str) -> Vector:
        if name not in self._vectors:
            self._vectors[name] = self._read(name)
        return self._vectors[name]

    def _read(self, name: str) -> Vector:
        events = self.events
        if name in _TIMES:
            return Vector("timestamp", getattr(events, _TIMES[name]), np.ones(events.count, bool))
        if name == "event_class":
            words = tuple(sorted(events.classes))
            rank = np.asarray([words.index(c) for c in events.classes] or [0], np.int64)
            codes = rank[events.cls] if events.count else np.zeros(0, np.int64)
            return Vector("string", codes, np.ones(events.count, bool), words or ("",))
        if name == "event_id":
            return from_arrow(events.event_id, name)
        if name not in self.names:
            return null("string", events.count)
        own = from_arrow(events.attribute(name), name)
        return own if LARGE + name not in self.names else _with_large(own, events.attribute(LARGE + name))

    def declared(self, name: str) -> np.ndarray | None:
        """bool[n]: whether each event's class declares the attribute; None where all do."""
        if self._declares is None or name in _TIMES or name in ("event_class", "event_id"):
            return None
        if name not in self._declared:
            known = self._declares
            has = np.asarray([c not in known or name in known[c] for c in self.events.classes], bool)
            self._declared[name] = None if has.all() else has[self.events.cls]
        return self._declared[name]

    def value(self, expression: Expression) -> Vector:
        """An expression whose attributes all belong to the one event (their variables do not matter)."""
        plain = anonymous(expression)
        if plain not in self._values:
            self._values[plain] = compute(plain, self.events.count, lambda leaf: self.attribute(leaf.name))  # type: ignore[union-attr]
        return self._values[plain]

    def mask(self, condition: Condition) -> np.ndarray:
        """bool[n]: for which events the condition holds."""
        plain = anonymous_condition(condition)
        if plain not in self._masks:
            self._masks[plain] = self._holds(plain)
        return self._masks[plain]

    def _holds(self, condition: Condition) -> np.ndarray:
        match condition:
            case All(conditions=parts):
                return reduce(np.logical_and, map(self._holds, parts))
            case Either(conditions=parts):
                return reduce(np.logical_or, map(self._holds, parts))
        holds = self._atom(condition)
        for leaf in attributes(condition):
            declared = self.declared(leaf.name)
            if declared is not None:
                holds = holds | ~declared
        return holds

    def _atom(self, atom: Condition) -> np.ndarray:
        count = self.events.count
        match atom:
            case Compare(operator=operator, left=left, right=right):
                holds, valid = compare(operator, self.value(left), self.value(right))
                return holds & valid
            case In(operand=operand, values=values, negated=negated):
                value = self.value(operand)
                found = np.zeros(count, bool)
                for item in values:
                    holds, valid = compare("=", value, constant(item, count))
                    found |= holds & valid
                if not negated:
                    return found
                return ~found & value.valid if all(item.value is not None for item in values) else np.zeros(count, bool)
            case Between(operand=operand, low=low, high=high, negated=negated):
                value = self.value(operand)
                below, low_valid = compare("<", value, self.value(low))
                above, high_valid = compare(">", value, self.value(high))
                if negated:
                    return (below & low_valid) | (above & high_valid)
                return ~below & low_valid & ~above & high_valid
            case Like(operand=operand, pattern=pattern, negated=negated):
                value = self.value(operand)
                return (likes(value, pattern) != negated) & value.valid
            case IsNull(operand=operand, negated=negated):
                return self.value(operand).valid == negated
        raise AssertionError(f"not a condition over one event: {atom}")


def _with_large(own: Vector, texts: pa.Array) -> Vector:
    """The values of matches with a field that left 64 bits."""
    data, valid = own.data.astype(object), own.valid.copy()
    for row in np.flatnonzero(np.asarray(texts.is_valid())).tolist():
        data[row], valid[row] = int(texts[row].as_py()), True
    return Vector("int", narrow(data), valid)


def attributes(node: Expression | Condition) -> list[Attribute]:
    """Every attribute below a node, in reading order."""
    match node:
        case Attribute():
            return [node]
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            return attributes(left) + attributes(right)
        case Minus(operand=operand) | In(operand=operand) | Like(operand=operand) | IsNull(operand=operand):
            return attributes(operand)
        case Between(operand=operand, low=low, high=high):
            return attributes(operand) + attributes(low) + attributes(high)
        case Call(arguments=parts) | All(conditions=parts) | Either(conditions=parts):
            return [leaf for part in parts for leaf in attributes(part)]
        case _:
            return []


def anonymous(node: Expression) -> Expression:
    """The expression without variables, so that equal work of different queries is recognised."""
    match node:
        case Attribute(name=name):
            return Attribute(None, name)
        case Arithmetic(operator=operator, left=left, right=right):
            return Arithmetic(operator, anonymous(left), anonymous(right))
        case Minus(operand=operand):
            return Minus(anonymous(operand))
        case Call(name=name, arguments=arguments):
            return Call(name, tuple(map(anonymous, arguments)))
        case _:
            return node


def anonymous_condition(node: Condition) -> Condition:
    match node:
        case Compare(operator=operator, left=left, right=right):
            return Compare(operator, anonymous(left), anonymous(right))
        case In(operand=operand, values=values, negated=negated):
            return In(anonymous(operand), values, negated)
        case Between(operand=operand, low=low, high=high, negated=negated):
            return Between(anonymous(operand), anonymous(low), anonymous(high), negated)
        case Like(operand=operand, pattern=pattern, negated=negated):
            return Like(anonymous(operand), pattern, negated)
        case IsNull(operand=operand, negated=negated):
            return IsNull(anonymous(operand), negated)
        case All(conditions=parts):
            return All(tuple(map(anonymous_condition, parts)))
        case Either(conditions=parts):
            return Either(tuple(map(anonymous_condition, parts)))
        case _:
            return node
