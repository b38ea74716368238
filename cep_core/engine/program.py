"""Conditions over several events, compiled to the machine's instructions.

Enters: conditions of the language with what each variable stands for (`Place`), and the columns of the events.
Leaves: the arrays program_* (tables.py), and the table of external functions that the machine asks for by number.
Always holds: whatever speaks of one event alone is a column computed once for all events, so the machine only compares
and computes what joins several. What is known from the pattern (an unbound variable, an index beyond a window) is
decided here. FORALL over a window is unrolled; over a group it is a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cep_core.engine import machine as m
from cep_core.engine.conditions import EventColumns, anonymous, anonymous_condition, attributes
from cep_core.engine.scalars import moment_us
from cep_core.engine.values import Vector, compute, constant
from cep_core.engine.vocabulary import External, Vocabulary
from cep_core.engine.whole import as_float, is_large
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
    Expression,
    Forall,
    In,
    Index,
    IsNull,
    Like,
    Minus,
)
from cep_core.language.checked import Type
from cep_core.language.normal import push_down
from cep_core.language.variables import bare_variables, is_flat

_COMPARE = {"=": m.EQ, "!=": m.NE, "<": m.LT, "<=": m.LE, ">": m.GT, ">=": m.GE}
_MIRROR = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_AGGREGATE = {
    "count": m.COUNT, "sum": m.SUM, "avg": m.AVG, "min": m.MIN, "max": m.MAX, "first": m.FIRST, "last": m.LAST
}  # fmt: skip
_ARITHMETIC = {
    "+": (m.ADD_I, m.ADD_F), "-": (m.SUB_I, m.SUB_F), "*": (m.MUL_I, m.MUL_F), "%": (m.MOD_I, m.MOD_F)
}  # fmt: skip
_TIMES = {"start_ts": 0, "end_ts": 1, "ts": 1}
_UP = 1 + 2.0**-40  # more than what rounding may have lost


@dataclass(frozen=True)
class Place:
    """What a variable stands for: slots (several: a window), the number of a group, or the event that is tried."""

    slots: tuple[int, ...] = ()
    group: int = -1
    timer: bool = False
    tried: bool = False
    many: bool = False


@dataclass(frozen=True)
class Instance:
    """A condition with some windows narrowed to one slot (`at`), and FORALL names to numbers (`numbers`)."""

    condition: Condition
    at: tuple[tuple[str, int], ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()


class Absent(Exception):
    """The atom names what is not there: it is true."""


@dataclass
class Assembler:
    """Compiles conditions one after another into one program."""

    columns: EventColumns
    externals: list[External] = field(default_factory=list)
    loops: int = 0
    leaves: bool = False  # whether a whole number may leave 64 bits
    _code: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    _ints: list[int] = field(default_factory=list)
    _floats: list[float] = field(default_factory=list)
    _columns: dict[Any, int] = field(default_factory=dict)
    _vectors: list[tuple[np.ndarray, np.ndarray | None, np.ndarray | None]] = field(default_factory=list)
    _strings: dict[int, Vector] = field(default_factory=dict)  # column -> its vector
    _words: dict[int, str] = field(default_factory=dict)  # place in ints -> the constant
    _large: list[int] = field(default_factory=list)  # code -> the large number
    _names: Mapping[str, Place] = field(default_factory=dict)
    _at: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, tuple[bool, int]] = field(default_factory=dict)  # FORALL name -> (is a loop, loop or number)

    def compile(self, instance: Instance, names: Mapping[str, Place]) -> tuple[int, int]:
        """(low, high): where the condition's instructions stand."""
        low = len(self._code)
        self._names, self._at = names, dict(instance.at)
        self._numbers = {name: (False, number) for name, number in instance.numbers}
        self._condition(instance.condition)
        return low, len(self._code)

    def finish(self) -> tuple[dict[str, np.ndarray], Vocabulary]:
        """The program, with all strings coded by one list of words."""
        words = sorted({w for v in self._strings.values() for w in v.words} | set(self._words.values()))
        code_of = {word: number for number, word in enumerate(words)}
        for place, word in self._words.items():
            self._ints[place] = code_of[word]
        for column, vector in self._strings.items():
            if len(vector.words) != len(words):
                moved = np.asarray([code_of[word] for word in vector.words] or [0], np.int64)
                _, valid, declared = self._vectors[column]
                self._vectors[column] = (moved[vector.data], valid, declared)
        code = np.asarray(self._code, np.int32).reshape(-1, 6)
        program: dict[str, np.ndarray] = {
            "program_code": code,
            "program_ints": np.asarray(self._ints, np.int64),
            "program_floats": np.asarray(self._floats, np.float64),
            "program_data": _addresses([data for data, _, _ in self._vectors]),
            "program_valid": _addresses([valid for _, valid, _ in self._vectors]),
            "program_declared": _addresses([declared for _, _, declared in self._vectors]),
            "program_rank": np.arange(len(words), dtype=np.int64),
        }
        vocabulary = Vocabulary(tuple(self.externals), words, code_of, list(self._vectors), self.leaves, self._large)
        return {**program, **vocabulary.large()}, vocabulary

    # ------------------------------------------------------------ conditions

    def _emit(self, op: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        self._code.append((op, a, b, c, d, e))
        return len(self._code) - 1

    def _land(self, jumps: list[int]) -> None:
        """Lets the jumps go to the next instruction."""
        for jump in jumps:
            op, _, *rest = self._code[jump]
            self._code[jump] = (op, len(self._code), *rest)  # type: ignore[assignment]

    def _condition(self, condition: Condition) -> None:
        match condition:
            case All(conditions=parts) | Either(conditions=parts):
                jump = m.JUMP_FALSE if isinstance(condition, All) else m.JUMP_TRUE
                jumps = []
                for part in parts:
                    self._condition(part)
                    jumps.append(self._emit(jump))
                self._land(jumps)
            case Forall():
                self._forall(condition)
            case _:
                self._each(condition)

    def _each(self, atom: Condition) -> None:
        """An atom, once for every choice of an event of the windows that it names bare."""
        spread = [name for name in sorted(bare_variables(atom)) if name not in self._at and self._many(name)]
        if not spread:
            self._atom(atom)
            return
        name, kept = spread[0], dict(self._at)
        jumps = []
        for slot in self._names[name].slots:
            self._at = {**kept, name: slot}
            self._each(atom)
            jumps.append(self._emit(m.JUMP_FALSE))
        self._at = kept
        self._land(jumps)

    def _many(self, name: str) -> bool:
        place = self._names.get(name)
        return place is not None and place.many

    def _forall(self, node: Forall) -> None:
        """Over windows, or a short range, the body once for each number; beyond the windows' sizes, a loop."""
        high, group = node.high, -1
        if isinstance(high, Aggregate):
            place = self._names.get(high.variable)
            if place is None:
                self._emit(m.TRUTH, 1)
                return
            group, high = place.group, len(place.slots)
        widest = max((len(place.slots) for place in self._names.values()), default=0)
        last = max(widest, node.low - 1) if group >= 0 else min(high, max(widest, node.low + 7))
        body = push_down(node.body, node.negated)
        kept, jumps = dict(self._numbers), []
        for number in range(node.low, last + 1):
            if group >= 0:
                self._emit(m.ATOM, len(self._code) + 6)
                self._emit(m.AGGREGATE_I, m.COUNT, 0, group, 0, 0)
                self._emit(m.CONST_I, self._int(number))
                self._emit(m.CMP_I, m.LT)
                self._emit(m.JUMP_FALSE, len(self._code) + 3)
                self._emit(m.TRUTH, 0 if node.negated else 1)
                jumps.append(self._emit(m.JUMP))
            self._numbers = {**kept, node.name: (False, number)}
            self._condition(body)
            jumps.append(self._emit(m.JUMP_TRUE if node.negated else m.JUMP_FALSE))
        self._numbers = kept
        if group >= 0 or last < high:
            self._loop(node, body, last + 1, high, group)
        elif not jumps:
            self._emit(m.TRUTH, 0 if node.negated else 1)
        self._land(jumps)
        self._numbers = kept

    def _loop(self, node: Forall, body: Condition, low: int, high: int, group: int) -> None:
        """The numbers from `low` on: no window has that many events."""
        loop, self.loops = self.loops, self.loops + 1
        self._numbers = {**self._numbers, node.name: (True, loop)}
        self._emit(m.LOOP_SET, loop, self._int(low))
        again = len(self._code)
        self._emit(m.TRUTH, 0 if node.negated else 1)
        test = self._emit(m.LOOP_TEST, loop, group, -1 if group >= 0 else self._int(high))
        self._condition(body)
        out = self._emit(m.JUMP_TRUE if node.negated else m.JUMP_FALSE)
        self._emit(m.LOOP_NEXT, loop, again)
        op, a, b, c, _, e = self._code[test]
        self._code[test] = (op, a, b, c, len(self._code), e)
        self._land([out])

    def _atom(self, atom: Condition) -> None:
        begin = self._emit(m.ATOM)
        try:
            self._test(atom)
        except Absent:
            del self._code[begin + 1 :]
            self._emit(m.TRUTH, 1)
        self._code[begin] = (m.ATOM, len(self._code), 0, 0, 0, 0)

    def _test(self, atom: Condition) -> None:
        only = self._only(atom)
        if only is not None:
            mask = self._column(
                ("mask", anonymous_condition(atom)), lambda: self.columns.mask(atom).astype(np.uint8), None
            )
            self._read(only, mask, m.LOAD_MASK, m.PICK_MASK)
            return
        match atom:
            case Compare(operator=operator, left=left, right=right):
                self._compare(operator, left, right)
            case Between(operand=operand, low=low, high=high, negated=negated):
                self._value(high)  # read before the first test, which else might skip a name that is not there
                self._compare("<" if negated else ">=", operand, low)
                jump = self._emit(m.JUMP_TRUE if negated else m.JUMP_FALSE)
                self._compare(">" if negated else "<=", operand, high)
                self._land([jump])
            case IsNull(operand=operand, negated=negated):
                self._value(operand)
                self._emit(m.IS_NULL, int(negated))
            case Like(operand=operand, pattern=pattern, negated=negated):
                kind = self._value(operand)
                self._external(External("like", (kind,), "bool", pattern))
                self._emit(m.CONST_I, self._int(0 if negated else 1))
                self._emit(m.CMP_I, m.EQ)
            case In():
                self._in(atom)
            case _:
                raise AssertionError(f"not an atom: {atom}")

    def _in(self, atom: In) -> None:
        kind = self._value(atom.operand)
        held = [item.value for item in atom.values if item.value is not None]
        if kind == "timestamp":
            held = [moment_us(value) if isinstance(value, str) else value for value in held]
        whole = [v for v in held if not isinstance(v, float)] if kind != "float" else []
        broken = [float(v) for v in held if isinstance(v, float) or kind == "float"]
        low = len(self._ints)
        for value in whole:
            self._word(value) if isinstance(value, str) else self._int(int(value))
        first = len(self._floats)
        self._floats.extend(broken)
        self._emit(m.IN_F if kind == "float" else m.IN_I, low, len(self._ints), first, len(self._floats))
        self._emit(m.TEST, int(atom.negated), int(len(held) < len(atom.values)))

    def _compare(self, operator: str, left: Expression, right: Expression) -> None:
        if isinstance(left, Constant) and isinstance(left.value, str) and self._kind(right) == "timestamp":
            left, right, operator = right, left, _MIRROR[operator]
        ordered = operator not in ("=", "!=")
        one = self._value(left)
        if one == "string" and ordered:
            self._emit(m.RANK)
        if one == "timestamp" and isinstance(right, Constant) and isinstance(right.value, str):
            right = Constant(moment_us(right.value))
        other = self._value(right)
        if other == "string" and ordered:
            self._emit(m.RANK)
        kind = self._alike(one, other)
        self._emit(m.CMP_F if kind == "float" else m.CMP_I, _COMPARE[operator])

    def _alike(self, one: Type, other: Type) -> Type:
        """Turns an int beside a float into a float; both are on the stack."""
        if {one, other} == {"int", "float"}:
            self._emit(m.TO_FLOAT, 1 if one == "int" else 0)
        return "float" if "float" in (one, other) else other if one == "null" else one

    # ------------------------------------------------------------ values

    def _kind(self, node: Expression) -> Type:
        """The type of a value, without its instructions."""
        match node:
            case Constant(value=value):
                known: dict[type, Type] = {bool: "bool", int: "int", float: "float", str: "string"}
                return known.get(type(value), "null")
            case Attribute(variable=variable, name=name) if self._is_timer(variable):
                return "timestamp" if name in _TIMES else "string"
            case Attribute(name=name):
                return self.columns.attribute(name).type
            case Aggregate(function="count") | Call(name="floor" | "ceil" | "length" | "hour" | "dayofweek"):
                return "int"
            case Duration() | Aggregate(function="avg") | Arithmetic(operator="/"):
                return "float"
            case Aggregate(attribute=attribute):
                return self.columns.attribute(attribute or "").type
            case Minus(operand=operand):
                return self._kind(operand)
            case Arithmetic(left=left, right=right):
                return "float" if "float" in (self._kind(left), self._kind(right)) else "int"
            case Call(name="coalesce" | "least" | "greatest", arguments=arguments):
                return _widest([self._kind(argument) for argument in arguments])
            case Call(name="abs" | "round", arguments=arguments):
                return self._kind(arguments[0])
            case Call(name=name):
                return "string" if name in ("lower", "upper", "concat") else "float"
        raise AssertionError(f"not an expression: {node}")

    def _value(self, node: Expression) -> Type:
        if not isinstance(node, Constant) and _is_constant(node):
            node = _folded(node)
        only = self._only(node)
        if only is not None:
            return self._column_value(only, node)
        match node:
            case Constant(value=value):
                return self._constant(value)
            case Attribute(variable=variable, name=name, index=index):  # of a timer; others are columns
                slot, *_ = self._reference(variable, index)
                return self._timer(slot, name)
            case Duration():
                self._end(node.second, node.second_index)
                self._end(node.first, node.first_index)
                self._emit(m.SUB_I)
                self._emit(m.TO_FLOAT)
                self._emit(m.CONST_F, self._float(1e6))
                self._emit(m.DIV)
                return "float"
            case Aggregate():
                return self._aggregate(node)
            case Minus(operand=operand):  # times -1: of 0.0 it is -0.0, which 0 - 0.0 is not
                return self._value(Arithmetic("*", operand, Constant(-1)))
            case Arithmetic(operator=operator, left=left, right=right):
                self.leaves = self.leaves or self._most(node) >= 2.0**63
                kind = self._alike(self._value(left), self._value(right))
                if operator == "/":
                    if kind != "float":
                        self._emit(m.TO_FLOAT, 0)
                        self._emit(m.TO_FLOAT, 1)
                    self._emit(m.DIV)
                    return "float"
                self._emit(_ARITHMETIC[operator][kind == "float"])
                return kind
            case Call(name=name, arguments=arguments):
                return self._call(name, arguments)
        raise AssertionError(f"not an expression: {node}")

    def _constant(self, value: Any) -> Type:
        match value:
            case None:
                self._emit(m.NULL)
                return "null"
            case bool():
                self._emit(m.CONST_I, self._int(int(value)))
                return "bool"
            case int():
                large = not -(2**63) <= value < 2**63
                self._emit(m.CONST_I, self._int(self._large_code(value) if large else value), int(large))
                return "int"
            case float():
                self._emit(m.CONST_F, self._float(value))
                return "float"
        self._emit(m.CONST_I, self._word(value))
        return "string"

    def _timer(self, slot: int, name: str) -> Type:
        if name in _TIMES:
            self._emit(m.TIME, slot, _TIMES[name])
            return "timestamp"
        if name != "event_id":
            raise Absent
        self._emit(m.TIME, slot, 1)
        self._external(External("timer_id", ("timestamp",), "string"))
        return "string"

    def _end(self, variable: str, index: Index | None) -> None:
        kind, *where = self._reference_kind(variable, index)
        if kind == "slot":
            self._emit(m.TIME, where[0], 1)
        else:
            self._column_value((kind, where[0], where[1], where[2]), Attribute(None, "end_ts"))

    def _aggregate(self, node: Aggregate) -> Type:
        place = self._names.get(node.variable)
        if place is None:
            raise Absent
        first = place.slots[0] if place.slots else 0
        if node.function == "count":
            self._emit(m.AGGREGATE_I, m.COUNT, 0, place.group, first, len(place.slots))
            return "int"
        self.leaves = self.leaves or self._most(node) >= 2.0**63
        vector = self.columns.attribute(node.attribute or "")
        column = self._attribute_column(Attribute(None, node.attribute or ""), vector)
        op = m.AGGREGATE_F if vector.type == "float" else m.AGGREGATE_I
        self._emit(op, _AGGREGATE[node.function], column, place.group, first, len(place.slots))
        return "float" if node.function == "avg" else vector.type

    def _call(self, name: str, arguments: tuple[Expression, ...]) -> Type:
        match name:
            case "coalesce" | "least" | "greatest":
                return self._choose(name, arguments)
            case "concat":
                kinds = [self._value(arguments[0])]
                for argument in arguments[1:]:
                    kinds.append(self._value(argument))
                    self._external(External("concat", ("string", "string"), "string"))
                return "string"
            case "abs":
                self.leaves = self.leaves or self._most(arguments[0]) >= 2.0**63
                kind = self._value(arguments[0])
                self._emit(m.ABS_F if kind == "float" else m.ABS_I)
                return kind
            case "sqrt" | "distance" | "haversine":
                for argument in arguments:
                    if self._value(argument) != "float":
                        self._emit(m.TO_FLOAT)
                self._emit({"sqrt": m.SQRT, "distance": m.DISTANCE, "haversine": m.HAVERSINE}[name])
                return "float"
            case "floor" | "ceil":
                self.leaves = self.leaves or self._most(arguments[0]) >= 9.2e18
                if self._value(arguments[0]) == "float":
                    self._emit(m.FLOOR if name == "floor" else m.CEIL)
                return "int"
            case "hour" | "dayofweek":
                self._value(arguments[0])
                self._emit(m.HOUR if name == "hour" else m.DAY)
                return "int"
        given = tuple(self._value(argument) for argument in arguments)
        results: dict[str, Type] = {"length": "int", "lower": "string", "upper": "string", "round": given[0]}
        self._external(External(name, given, results[name]))
        return results[name]

    def _choose(self, name: str, arguments: tuple[Expression, ...]) -> Type:
        kind = _widest([self._kind(argument) for argument in arguments])
        for number, argument in enumerate(arguments):
            if kind == "timestamp" and isinstance(argument, Constant) and isinstance(argument.value, str):
                argument = Constant(moment_us(argument.value))
            if self._value(argument) == "int" and kind == "float":
                self._emit(m.TO_FLOAT)
            if number:
                if name == "coalesce":
                    self._emit(m.COALESCE)
                elif kind == "float":
                    self._emit(m.LEAST_F if name == "least" else m.GREATEST_F)
                else:
                    self._emit(m.LEAST_I if name == "least" else m.GREATEST_I, int(kind == "string"))
        return kind

    def _external(self, external: External) -> None:
        if external not in self.externals:
            self.externals.append(external)
        floats = sum(1 << place for place, kind in enumerate(external.kinds) if kind == "float")
        self._emit(m.EXTERNAL, self.externals.index(external), len(external.kinds), floats)

    def _most(self, node: Expression) -> float:
        """A bound of the number's size over all events that there are, rounded up; infinite where none is known."""
        match node:
            case Constant(value=int() | float() as value):
                return abs(as_float(value)) * _UP if isinstance(value, int) else abs(value)
            case Attribute(name=name):
                return _largest(self.columns.attribute(name))
            case Aggregate(function=name, attribute=attribute):
                count = float(self.columns.events.count)
                most = 1.0 if attribute is None else _largest(self.columns.attribute(attribute))
                return most * count * _UP if name in ("count", "sum", "avg") else most
            case Arithmetic(operator=operator, left=left, right=right):
                one, other = self._most(left), self._most(right)
                if operator == "/":  # a whole number makes no quotient larger
                    return one * _UP if self._kind(right) == "int" else float("inf")
                return one if operator == "%" else (one * other if operator == "*" else one + other) * _UP
            case Minus(operand=operand):
                return self._most(operand)
            case Call(name="abs" | "least" | "greatest" | "coalesce" | "sqrt", arguments=arguments):
                return max(1.0, *map(self._most, arguments))
            case Call(name="length" | "hour" | "dayofweek") | Constant():
                return 2.0**31
            case Duration():
                return 2.0**45
            case Call(name="floor" | "ceil" | "round", arguments=arguments):
                return (self._most(arguments[0]) + 1) * 10
        return float("inf")

    def _large_code(self, value: int) -> int:
        self._large.append(value)
        return len(self._large) - 1

    def _int(self, value: int) -> int:
        self._ints.append(value)
        return len(self._ints) - 1

    def _float(self, value: float) -> int:
        self._floats.append(value)
        return len(self._floats) - 1

    def _word(self, value: str) -> int:
        self._words[len(self._ints)] = value
        return self._int(0)

    # ------------------------------------------------------------ events and columns

    def _reference(self, variable: str | None, index: Index | None) -> tuple[int, int, int, int]:
        """(slot, group, offset, loop): a slot, or -1 and the event of a group."""
        place = self._names.get(variable or "")
        if place is None:
            raise Absent
        if index is None:
            if variable in self._at:
                return self._at[variable], -1, 0, -1
            return place.slots[0], -1, 0, -1
        if place.tried:
            raise Absent
        looped, number = (False, 0) if index.name is None else self._numbers[index.name]
        offset = index.offset + (0 if looped else number)
        if place.group >= 0:
            return -1, place.group, offset, number if looped else -1
        if looped or not 1 <= offset <= len(place.slots):
            raise Absent
        return place.slots[offset - 1], -1, 0, -1

    def _reference_kind(self, variable: str, index: Index | None) -> tuple[str, int, int, int]:
        slot, group, offset, loop = self._reference(variable, index)
        return ("slot", slot, 0, 0) if slot >= 0 else ("group", group, offset, loop)

    def _only(self, node: Condition | Expression) -> tuple[str, int, int, int] | None:
        """The one event that a node speaks of, if it speaks of attributes of one event alone."""
        if not is_flat(node):
            return None
        own = attributes(node)
        if not own or any(self._is_timer(leaf.variable) for leaf in own):
            return None
        found = {self._reference_kind(leaf.variable or "", leaf.index) for leaf in own}
        return next(iter(found)) if len(found) == 1 else None

    def _is_timer(self, variable: str | None) -> bool:
        place = self._names.get(variable or "")
        return place is not None and place.timer

    def _column_value(self, where: tuple[str, int, int, int], node: Expression) -> Type:
        vector = self.columns.value(node)
        if vector.type == "null":
            self._emit(m.NULL)
            return "null"
        column = self._attribute_column(anonymous(node), vector)
        if vector.type == "float":
            self._read(where, column, m.LOAD_F, m.PICK_F)
        else:
            self._read(where, column, m.LOAD_I, m.PICK_I)
        return vector.type

    def _attribute_column(self, node: Expression, vector: Vector) -> int:
        declared: np.ndarray | None = None
        for leaf in attributes(node):
            own = self.columns.declared(leaf.name)
            if own is not None:
                declared = own if declared is None else declared & own
        known = len(self._columns)
        column = self._column(("value", node), lambda: vector.data, vector, declared)
        if len(self._columns) > known and vector.type == "string":
            self._strings[column] = vector
        return column

    def _column(self, key: Any, data: Any, vector: Vector | None, declared: np.ndarray | None = None) -> int:
        if key not in self._columns:
            values = data()
            valid = None if vector is None or vector.is_full else np.ascontiguousarray(vector.valid)
            if is_large(values) and vector is not None:
                values, valid = self._coded(vector)
            values = values.astype(np.int64) if values.dtype == np.bool_ else np.ascontiguousarray(values)
            self._columns[key] = len(self._vectors)
            self._vectors.append((values, valid, None if declared is None else np.ascontiguousarray(declared)))
        return self._columns[key]

    def _coded(self, vector: Vector) -> tuple[np.ndarray, np.ndarray]:
        """A column of whole numbers with the codes of the large ones, and the machine's validity (uint8)."""
        values, valid = np.zeros(len(vector.data), np.int64), vector.valid.astype(np.uint8)
        for row in np.flatnonzero(vector.valid).tolist():
            value = int(vector.data[row])
            if -(2**63) <= value < 2**63:
                values[row] = value
            else:
                values[row], valid[row] = self._large_code(value), m.LARGE
        return values, valid

    def _read(self, where: tuple[str, int, int, int], column: int, from_slot: int, from_group: int) -> None:
        kind, number, offset, loop = where
        if kind == "slot":
            self._emit(from_slot, number, column)
        else:
            self._emit(from_group, number, column, offset, loop)


def _addresses(arrays: list[Any]) -> np.ndarray:
    return np.asarray([0 if array is None else array.ctypes.data for array in arrays], np.int64)


def _is_constant(node: Expression) -> bool:
    match node:
        case Constant():
            return True
        case Minus(operand=operand):
            return _is_constant(operand)
        case Arithmetic(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case Call(arguments=arguments):
            return all(map(_is_constant, arguments))
        case _:
            return False


def _widest(kinds: list[Type]) -> Type:
    """The one type of values that stand side by side."""
    known = set(kinds) - {"null"}
    if len(known) == 1:
        return next(iter(known))
    return "float" if known == {"int", "float"} else "timestamp" if "timestamp" in known else kinds[0]


def _largest(vector: Vector) -> float:
    """The size of the largest value, rounded up."""
    if vector.type not in ("int", "float", "timestamp"):
        return 0.0
    if is_large(vector.data):
        return float("inf")
    return float(np.max(np.abs(vector.data.astype(np.float64)), where=vector.valid, initial=0.0)) * _UP


def _folded(node: Expression) -> Constant:
    vector = compute(node, 1, lambda leaf: constant(Constant(None), 1))
    if not vector.valid[0]:
        return Constant(None)
    value = vector.data.tolist()[0]
    return Constant(vector.words[value] if vector.type == "string" else value)
