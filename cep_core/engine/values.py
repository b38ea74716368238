"""Values of many rows at once, with the meaning that Spark SQL gives them (language contract, Conditions).

Enters: Arrow columns and expressions over them. Leaves: `Vector`: values with a validity.
Always holds: NULL, NaN and a division by zero are all "not valid". Whole numbers are exact, however large (whole.py).
Strings are codes into a sorted list of words, so that codes compare as their strings do, by UTF-8 bytes. No
host-language evaluation: every operation below is a function of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.engine.scalars import day_of_week, hour_of_day, like, moment_us, round_half_up
from cep_core.engine.whole import as_floats, exactly, is_large, narrow, truncated
from cep_core.errors import EventError
from cep_core.language.algebra import Arithmetic, Call, Constant, Expression, Minus
from cep_core.language.checked import Type

_DTYPE = {"int": np.int64, "timestamp": np.int64, "float": np.float64, "bool": np.bool_, "string": np.int64}


@dataclass(frozen=True)
class Vector:
    """n values of one type. valid bool[n]. data: int64 for int, timestamp (us) and string (codes into words, which are
    sorted and distinct), float64 for float, bool for bool; for int objects, where one has left 64 bits."""

    type: Type
    data: np.ndarray
    valid: np.ndarray
    words: tuple[str, ...] = ()

    @cached_property
    def is_full(self) -> bool:
        """No value is NULL. Many queries ask it of one column."""
        return bool(self.valid.all())

    def take(self, rows: np.ndarray) -> Vector:
        """The values at these rows; a negative row gives NULL."""
        if len(self.data) == 0:
            return null(self.type if self.type != "null" else "int", len(rows))
        safe = np.where(rows < 0, 0, rows)
        return Vector(self.type, self.data[safe], self.valid[safe] & (rows >= 0), self.words)

    def texts(self) -> list[str | None]:
        """How RETURN writes them (None: NULL)."""
        match self.type:
            case "string":
                pairs = zip(self.data.tolist(), self.valid.tolist(), strict=True)
                return [self.words[code] if ok else None for code, ok in pairs]
            case "bool":
                out = ["true" if value else "false" for value in self.data.tolist()]
            case "timestamp":
                out = pc.strftime(pa.array(self.data, pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%SZ").to_pylist()
            case "float":
                out = [repr(value) for value in self.data.tolist()]
            case _:
                out = [str(value) for value in self.data.tolist()]
        return [text if ok else None for text, ok in zip(out, self.valid.tolist(), strict=True)]


def type_of(kind: pa.DataType) -> Type | None:
    """The language's type of an Arrow type; None where the language has none."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind):
        return "int"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "timestamp"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    return "string" if pa.types.is_null(kind) else None


def from_arrow(column: pa.Array, name: str = "") -> Vector:
    kind = type_of(column.type)
    if kind is None:
        raise EventError(
            f"attribute {name!r} is of type {column.type}, which a condition cannot read; cast it in its declaration"
        )
    if pa.types.is_null(column.type):
        return null("string", len(column))
    valid = np.asarray(column.is_valid())
    if kind == "string":
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        words = coded.dictionary.to_pylist()
        known = [word for word in words if word is not None]
        if len(known) != len(words):
            valid = valid & np.asarray([word is not None for word in words])[coded.indices.fill_null(0).to_numpy()]
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return _string(codes, valid, ["" if word is None else word for word in words])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kind == "timestamp":
        column = column.cast(pa.timestamp("us"), safe=False).view(pa.int64())
    elif pa.types.is_uint64(column.type):
        return Vector("int", narrow(column.fill_null(0).to_numpy(zero_copy_only=False).astype(object)), valid)
    elif kind == "int":
        column = column.cast(pa.int64())
    elif kind == "float":
        column = column.cast(pa.float64())
    filled = column.fill_null(False if kind == "bool" else 0).to_numpy(zero_copy_only=False)
    data = filled.astype(_DTYPE[kind], copy=False)
    if kind == "float":
        valid = valid & ~np.isnan(data)
    return Vector(kind, data, valid)


def constant(value: Constant, count: int) -> Vector:
    match value.value:
        case None:
            return null("null", count)
        case bool():
            return Vector("bool", np.full(count, value.value), np.ones(count, bool))
        case int():
            return Vector("int", narrow(np.full(count, value.value, object)), np.ones(count, bool))
        case float():
            return Vector("float", np.full(count, value.value), np.ones(count, bool))
        case str():
            return Vector("string", np.zeros(count, np.int64), np.ones(count, bool), (value.value,))


def null(kind: Type, count: int) -> Vector:
    words = ("",) if kind == "string" else ()
    return Vector(kind, np.zeros(count, _DTYPE.get(kind, np.int64)), np.zeros(count, bool), words)


def compute(expression: Expression, count: int, leaf: Callable[[Expression], Vector]) -> Vector:
    """The value of an expression over `count` rows; `leaf` gives attributes, aggregates and durations."""

    def value(node: Expression) -> Vector:
        match node:
            case Constant():
                return constant(node, count)
            case Minus(operand=operand):
                own = value(operand)
                if own.type == "float":  # of 0.0 it is -0.0, which 0 - 0.0 is not
                    return Vector("float", -own.data, own.valid)
                return _arithmetic("-", constant(Constant(0), count), own)
            case Arithmetic(operator=operator, left=left, right=right):
                return _arithmetic(operator, value(left), value(right))
            case Call(name=name, arguments=arguments):
                return function(name, [value(argument) for argument in arguments], count)
            case _:
                return leaf(node)

    return value(expression)


def compare(operator: str, left: Vector, right: Vector) -> tuple[np.ndarray, np.ndarray]:
    """(holds bool[n], valid bool[n]) of a comparison."""
    left, right = align([left, right])
    a, b = left.data, right.data
    match operator:
        case "=":
            holds = a == b
        case "!=":
            holds = a != b
        case "<":
            holds = a < b
        case "<=":
            holds = a <= b
        case ">":
            holds = a > b
        case _:
            holds = a >= b
    return holds, left.valid & right.valid


def likes(vector: Vector, pattern: str) -> np.ndarray:
    """bool[n]: which strings the pattern fits; says nothing where not valid."""
    if vector.type != "string" or not vector.words:
        return np.zeros(len(vector.data), bool)
    return np.asarray([like(word, pattern) for word in vector.words])[vector.data]


def align(vectors: Sequence[Vector]) -> list[Vector]:
    """The same vectors in one type: int with float becomes float, strings share their words."""
    kinds = {vector.type for vector in vectors} - {"null"}
    if not kinds:
        return list(vectors)
    kind: Type = "float" if kinds == {"int", "float"} else "timestamp" if "timestamp" in kinds else next(iter(kinds))
    vectors = [null(kind, len(v.data)) if v.type == "null" else v for v in vectors]
    if kind == "string":
        words = sorted({word for vector in vectors for word in vector.words})
        place = {word: code for code, word in enumerate(words)}
        return [_recode(vector, tuple(words), place) for vector in vectors]
    if kind == "float":
        return [Vector("float", as_floats(v.data), v.valid) for v in vectors]
    if kind == "timestamp":  # a constant in ISO form beside a timestamp; the checker has read it before
        return [_moments(v) if v.type == "string" else v for v in vectors]
    return vectors


def _moments(vector: Vector) -> Vector:
    moments = np.asarray([moment_us(word) for word in vector.words], np.int64)
    return Vector("timestamp", moments[vector.data], vector.valid)


def _recode(vector: Vector, words: tuple[str, ...], place: dict[str, int]) -> Vector:
    if vector.words == words:
        return vector
    codes = np.asarray([place[word] for word in vector.words] or [0], np.int64)
    return Vector("string", codes[vector.data], vector.valid, words)


def _string(codes: np.ndarray, valid: np.ndarray, words: Sequence[str]) -> Vector:
    """A string vector from codes into words that may be unsorted or repeated."""
    ordered = tuple(sorted(set(words))) or ("",)
    place = {word: code for code, word in enumerate(ordered)}
    moved = np.asarray([place[word] for word in words] or [0], np.int64)
    return Vector("string", moved[codes], valid, ordered)


def _float(data: np.ndarray, valid: np.ndarray) -> Vector:
    return Vector("float", data, valid & ~np.isnan(data))


def _arithmetic(operator: str, left: Vector, right: Vector) -> Vector:
    left, right = align([left, right])
    valid = left.valid & right.valid
    if left.type == "null":
        return left
    a, b = left.data, right.data
    with np.errstate(all="ignore"):
        if operator == "/":
            x, y = as_floats(a), as_floats(b)
            return _float(np.divide(x, y), valid & (y != 0))
        if operator == "%":
            valid = valid & (b != 0)
            safe = np.where(b == 0, 1, b)
            if left.type == "float":
                return _float(np.fmod(a, safe), valid)
            large = is_large(a) or is_large(b)
            return Vector("int", exactly(truncated, valid, a, safe) if large else np.fmod(a, safe), valid)
        if left.type == "float":
            return _float(_plainly(operator, a, b), valid)
        if is_large(a) or is_large(b):
            return Vector("int", narrow(np.where(valid, _plainly(operator, a, b), 0)), valid)
        out = _plainly(operator, a, b)
        if np.all(_fits(operator, a, b, out) | ~valid):
            return Vector("int", out, valid)
        return Vector("int", _plainly(operator, np.where(valid, a, 0).astype(object), b), valid)


def _plainly(operator: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out: np.ndarray = a + b if operator == "+" else a - b if operator == "-" else a * b
    return out


def _fits(operator: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Where an operation on int64 did not leave 64 bits."""
    fits: np.ndarray
    if operator == "+":
        fits = ((a ^ out) & (b ^ out)) >= 0
    elif operator == "-":
        fits = ((a ^ b) & (a ^ out)) >= 0
    else:  # a product that left 64 bits is far from what it should be
        fits = np.abs(a.astype(np.float64) * b.astype(np.float64) - out.astype(np.float64)) < 4.6e18
    return fits


def function(name: str, given: list[Vector], count: int) -> Vector:
    """A function of the language over `count` rows."""
    first = given[0]
    valid = reduce(np.logical_and, (vector.valid for vector in given))
    with np.errstate(all="ignore"):
        match name:
            case "coalesce" | "least" | "greatest":
                return _choose(name, align(given))
            case "abs":
                data = np.abs(first.data)
                if first.type == "int" and not np.all((data >= 0) | ~valid):  # of the lowest of 64 bits
                    data = np.abs(first.data.astype(object))
                return Vector("int", data, valid) if first.type == "int" else _float(data, valid)
            case "sqrt":
                return _float(np.sqrt(as_floats(first.data)), valid)
            case "floor" | "ceil":
                if first.type == "int":
                    return first
                data = (np.floor if name == "floor" else np.ceil)(first.data)
                valid = valid & ~np.isinf(data)
                kept = np.where(valid, data, 0.0)
                large = bool((np.abs(kept) >= 2.0**63).any())
                return Vector("int", exactly(int, valid, kept) if large else kept.astype(np.int64), valid)
            case "round":
                digits = given[1].data if len(given) > 1 else np.zeros(count, np.int64)
                if first.type == "int":
                    return Vector("int", exactly(round_half_up, valid, first.data, digits), valid)
                rows = zip(first.data.tolist(), digits.tolist(), valid.tolist(), strict=True)
                return Vector("float", np.asarray([round_half_up(x, d) if ok else 0.0 for x, d, ok in rows]), valid)
            case "hour":
                return Vector("int", hour_of_day(first.data), valid)
            case "dayofweek":
                return Vector("int", day_of_week(first.data), valid)
            case "distance" | "haversine":
                measure = _distance if name == "distance" else _haversine
                return _float(measure(*(as_floats(v.data) for v in given)), valid)
            case "length":
                sizes = np.asarray([len(word) for word in first.words] or [0], np.int64)
                return Vector("int", sizes[first.data], valid)
            case "lower" | "upper":
                words = [word.lower() if name == "lower" else word.upper() for word in first.words] or [""]
                return _string(first.data, valid, words)
            case _:  # concat
                return reduce(_concat, given)


def _choose(name: str, given: list[Vector]) -> Vector:
    data, valid = given[0].data, given[0].valid
    for vector in given[1:]:
        if name == "coalesce":
            better = ~valid & vector.valid
        else:
            ahead = vector.data < data if name == "least" else vector.data > data
            better = vector.valid & (~valid | ahead)
        data, valid = np.where(better, vector.data, data), valid | vector.valid
    return Vector(given[0].type, data, valid, given[0].words)


def _concat(left: Vector, right: Vector) -> Vector:
    valid = left.valid & right.valid
    if left.type == "null" or right.type == "null":
        return null("string", len(valid))
    wide = max(1, len(right.words))
    pairs, codes = np.unique(left.data * wide + right.data, return_inverse=True)
    return _string(codes, valid, [left.words[pair // wide] + right.words[pair % wide] for pair in pairs.tolist()])


def _distance(x1: np.ndarray, y1: np.ndarray, x2: np.ndarray, y2: np.ndarray) -> np.ndarray:
    return np.sqrt((x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1))


EARTH_METRES = 6371008.8


def _haversine(lat1: np.ndarray, lon1: np.ndarray, lat2: np.ndarray, lon2: np.ndarray) -> np.ndarray:
    """Metres on the mean sphere."""
    p1, p2 = np.radians(lat1), np.radians(lat2)
    a = np.sin((p2 - p1) / 2) ** 2 + np.cos(p1) * np.cos(p2) * np.sin(np.radians(lon2 - lon1) / 2) ** 2
    return 2 * EARTH_METRES * np.arcsin(np.sqrt(np.minimum(1.0, a)))
