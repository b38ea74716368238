"""RETURN: values of many matches at once.

Enters: the members of matches, flat, and the expressions. Leaves: one `Vector` per field.
Always holds: what is not bound, not declared or out of range is NULL; sums go in event order, so that every plan and
every machine gives the same digits. A whole number is exact here; where it leaves the engine it must fit 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cep_core.engine.conditions import EventColumns
from cep_core.engine.output import timer_id
from cep_core.engine.values import Vector, align, compute, null
from cep_core.engine.whole import as_floats, is_large, narrow
from cep_core.errors import EvaluationError
from cep_core.language.algebra import Aggregate, Attribute, Duration, Expression, Index
from cep_core.language.checked import CheckedQuery, Type
from cep_core.language.format import format_value

_TIMES = ("ts", "start_ts", "end_ts")


@dataclass(frozen=True)
class Flat:
    """Members of n matches: offsets int64[n+1]; element int32[k]: position - 1; member int32[k]: a row of the events,
    or from their count on a timer; timers int64[]: their moments; empty: position of a group -> bool[n]: bound, even if
    it has no member."""

    offsets: np.ndarray
    element: np.ndarray
    member: np.ndarray
    timers: np.ndarray
    empty: Mapping[int, np.ndarray]

    @property
    def count(self) -> int:
        return len(self.offsets) - 1


def returned(checked: CheckedQuery, positions: dict[str, int], flat: Flat, columns: EventColumns) -> dict[str, Vector]:
    """field -> its values. positions: variable -> its element's position."""
    reader = _Reader(positions, flat, columns)
    fields = {}
    for (expression, name), (_, kind) in zip(checked.query.returns, checked.fields, strict=True):
        fields[name] = _as(compute(expression, flat.count, reader.leaf), kind)
    return fields


def field_texts(checked: CheckedQuery, fields: Mapping[str, Vector]) -> dict[str, pa.Array]:
    """field -> its values as `composite_events` keeps them."""
    for expression, name in checked.query.returns:
        own = fields[name]
        if own.type == "int" and is_large(own.data):
            large = [x for x in own.data[own.valid].tolist() if not -(2**63) <= x < 2**63]
            if large:
                raise EvaluationError(
                    f"query {checked.query.id}: RETURN {format_value(expression)} AS {name} is {large[0]} in a "
                    f"match, which does not fit 64 bits; return a float instead, such as one with * 1.0 inside"
                )
    return {name: pa.array(vector.texts(), pa.string()) for name, vector in fields.items()}


def _as(vector: Vector, kind: Type) -> Vector:
    if vector.type == "null":
        return null("string" if kind == "null" else kind, len(vector.data))
    if kind == "float" and vector.type == "int":
        return Vector("float", as_floats(vector.data), vector.valid)
    if kind == "timestamp" and vector.type == "string":
        return align([vector, null("timestamp", len(vector.data))])[0]
    return vector


class _Reader:
    """Leaves of expressions over matches."""

    def __init__(self, positions: dict[str, int], flat: Flat, columns: EventColumns) -> None:
        self.positions = positions
        self.flat = flat
        self.columns = columns
        self._owner = np.repeat(np.arange(flat.count), np.diff(flat.offsets))
        self._held: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def leaf(self, node: Expression) -> Vector:
        match node:
            case Attribute(variable=variable, name=name, index=index):
                return self._attribute(self._member(variable or "", index), name)
            case Duration():
                first = self._attribute(self._member(node.first, node.first_index), "end_ts")
                second = self._attribute(self._member(node.second, node.second_index), "end_ts")
                valid = first.valid & second.valid
                return Vector("float", np.where(valid, second.data - first.data, 0) / 1e6, valid)
            case Aggregate():
                return self._aggregate(node)
        raise AssertionError(f"not a leaf: {node}")

    def _members(self, variable: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(member, match of each, first of each match int64[n+1]) of a variable."""
        if variable not in self._held:
            own = np.flatnonzero(self.flat.element == self.positions[variable] - 1)
            owner = self._owner[own]
            first = np.searchsorted(owner, np.arange(self.flat.count + 1)).astype(np.int64)
            self._held[variable] = self.flat.member[own], owner, first
        return self._held[variable]

    def _member(self, variable: str, index: Index | None) -> np.ndarray:
        """int64[n]: the member that a name stands for, -1 where there is none."""
        member, _, first = self._members(variable)
        at = first[:-1] + (0 if index is None else index.offset - 1)
        known = (at >= first[:-1]) & (at < first[1:])
        if not len(member):
            return np.full(self.flat.count, -1, np.int64)
        return np.where(known, member[np.clip(at, 0, len(member) - 1)], -1).astype(np.int64)

    def _attribute(self, member: np.ndarray, name: str) -> Vector:
        count = self.columns.events.count
        is_timer = member >= count
        vector = self._events(np.where(is_timer, -1, member), name)
        if not is_timer.any() or (name not in _TIMES and name != "event_id"):
            return vector
        moments = self.flat.timers[np.where(is_timer, member - count, 0)]
        if name in _TIMES:
            return Vector("timestamp", np.where(is_timer, moments, vector.data), vector.valid | is_timer)
        texts = [timer_id(int(moment)) for moment in moments[is_timer]]
        words = tuple(sorted(set(texts)))
        place = {word: code for code, word in enumerate(words)}
        codes = np.zeros(len(member), np.int64)
        codes[is_timer] = [place[text] for text in texts]
        one, other = align([vector, Vector("string", codes, is_timer, words)])
        return Vector("string", np.where(is_timer, other.data, one.data), one.valid | is_timer, one.words)

    def _events(self, rows: np.ndarray, name: str) -> Vector:
        vector = self.columns.attribute(name).take(rows)
        declared = self.columns.declared(name)
        if declared is None or not len(declared):
            return vector
        return Vector(vector.type, vector.data, vector.valid & declared[np.maximum(rows, 0)], vector.words)

    def _aggregate(self, node: Aggregate) -> Vector:
        member, owner, first = self._members(node.variable)
        count = self.flat.count
        if node.function == "count":
            sizes = np.diff(first)
            bound = self.flat.empty.get(self.positions[node.variable], sizes > 0)  # an empty group counts 0
            return Vector("int", sizes, bound)
        vector = self._attribute(member.astype(np.int64), node.attribute or "")
        kept = np.flatnonzero(vector.valid)
        data, owner = vector.data[kept], owner[kept]
        first = np.searchsorted(owner, np.arange(count + 1))
        some = np.diff(first) > 0
        if not len(data):
            return null("float" if node.function == "avg" else vector.type, count)
        at = np.where(some, first[:-1], 0)
        match node.function:
            case "first":
                return Vector(vector.type, data[at], some, vector.words)
            case "last":
                return Vector(vector.type, data[np.maximum(first[1:] - 1, 0)], some, vector.words)
            case "min" | "max":
                pick = np.minimum if node.function == "min" else np.maximum
                out = np.zeros(count, data.dtype)
                out[some] = pick.reduceat(data, first[:-1][some])
                if vector.type == "float" and np.any(np.signbit(data) & (data == 0)):  # of equal zeros the first
                    for row in np.flatnonzero(some & (out == 0)).tolist():
                        own = data[first[row] : first[row + 1]]
                        out[row] = own[np.argmax(own == 0)]
                return Vector(vector.type, out, some, vector.words)
        if vector.type == "float":
            total = np.bincount(owner, weights=data, minlength=count).astype(np.float64)  # adds in order
            total = total / np.maximum(np.diff(first), 1) if node.function == "avg" else total
            return Vector("float", total, some & ~np.isnan(total))
        whole = np.zeros(count, data.dtype)
        whole[some] = np.add.reduceat(data, first[:-1][some])
        if not is_large(data):
            rough = np.bincount(owner, weights=data.astype(np.float64), minlength=count)
            if (np.abs(rough - whole.astype(np.float64)) >= 4.6e18).any():  # a sum that left 64 bits is far from it
                whole = np.zeros(count, object)
                whole[some] = np.add.reduceat(data.astype(object), first[:-1][some])
        if node.function == "avg":
            return Vector("float", as_floats(whole) / np.maximum(np.diff(first), 1), some)
        return Vector("int", narrow(whole), some)
