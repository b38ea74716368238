"""The words and large numbers behind the machine's codes, and the values that it asks for.

Enters: misses of the memo: functions without a kernel (new strings, rounding by decimal digits), and operations on
whole numbers that left 64 bits. Leaves: the memo with their results.
Always holds: a code stands for one word, or for one number, as long as the search runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cep_core.engine import machine as m
from cep_core.engine.output import timer_id
from cep_core.engine.tables import Context
from cep_core.engine.values import Vector, function, likes
from cep_core.engine.whole import as_float, truncated
from cep_core.language.checked import Type

_OPERATIONS: dict[int, Callable[[int, int], int]] = {
    m.ADD_I: lambda x, y: x + y,
    m.SUB_I: lambda x, y: x - y,
    m.MUL_I: lambda x, y: x * y,
    m.MOD_I: truncated,
    m.ABS_I: lambda x, _: abs(x),
}


@dataclass(frozen=True)
class External:
    """A function that the machine looks up. kinds: of its arguments; kind: of its result."""

    name: str
    kinds: tuple[Type, ...]
    kind: Type
    pattern: str = ""


@dataclass
class Vocabulary:
    """The words behind the codes, and the values of external functions as they are asked for."""

    externals: tuple[External, ...]
    words: list[str]
    codes: dict[str, int]
    alive: list[Any]  # the arrays whose addresses the program holds
    leaves: bool = False  # whether a whole number may leave 64 bits
    numbers: list[int] = field(default_factory=list)  # code -> the large number
    number_codes: dict[int, int] = field(default_factory=dict)

    @property
    def asks(self) -> bool:
        """Whether the machine may ask for something, so that events may have to be begun again."""
        return self.leaves or bool(self.externals)

    def large(self) -> dict[str, np.ndarray]:
        """The large numbers as the machine compares them."""
        known = sorted(set(self.numbers))
        below = sum(number < 0 for number in known)
        rank = {number: place - below + (number > 0) for place, number in enumerate(known)}
        return {
            "large_rank": np.asarray([rank[number] for number in self.numbers], np.int64),
            "large_float": np.asarray([as_float(number) for number in self.numbers], np.float64),
        }

    def answer(self, ctx: Context) -> None:
        """Computes the misses of the memo, and ranks all words anew."""
        count = min(int(ctx["memo_missed"][0]), len(ctx["memo_misses"]))
        asked = np.unique(ctx["memo_misses"][:count], axis=0)
        held = np.flatnonzero(ctx["memo_keys"][:, 0])
        entries = list(zip(*(ctx[f"memo_{name}"][held] for name in ("keys", "known", "ints", "floats")), strict=True))
        for number in np.unique(asked[:, 0]).tolist():
            rows = asked[asked[:, 0] == number]
            found = self._numbers(-1 - number, rows) if number < 0 else self._results(self.externals[number - 1], rows)
            entries += [(row, *result) for row, result in zip(rows, found, strict=True)]
        larger = new_memo(4 * len(entries) + 64)
        keys = larger["memo_keys"]
        mask = len(keys) - 1
        for key, known, whole, broken in entries:
            place = m.place_of(key[0], key[1], key[2], key[3]) & mask
            while keys[place, 0]:
                place = (place + 1) & mask
            keys[place], larger["memo_known"][place] = key, known
            larger["memo_ints"][place], larger["memo_floats"][place] = whole, broken
        order = sorted(range(len(self.words)), key=self.words.__getitem__)
        rank = np.empty(len(self.words), np.int64)
        rank[order] = np.arange(len(order))
        ctx.put(**larger, program_rank=rank, **self.large())

    def _numbers(self, op: int, rows: np.ndarray) -> list[tuple[int, int, float]]:
        """Results of the machine's own operations that left 64 bits."""
        results = []
        for _, first, second, large in rows.tolist():
            if op in (m.FLOOR, m.CEIL):
                number = np.asarray(first, np.int64).view(np.float64).item()
                results.append(self._number(math.floor(number) if op == m.FLOOR else math.ceil(number)))
                continue
            x = self.numbers[first] if large & 1 else first
            y = self.numbers[second] if large & 2 else second
            results.append(self._number(_OPERATIONS[op](x, y)))
        return results

    def _number(self, number: int) -> tuple[int, int, float]:
        if -(2**63) <= number < 2**63:
            return int(m.KNOWN), number, 0.0
        if number not in self.number_codes:
            self.number_codes[number] = len(self.numbers)
            self.numbers.append(number)
        return int(m.LARGE), self.number_codes[number], 0.0

    def _results(self, external: External, rows: np.ndarray) -> list[tuple[int, int, float]]:
        given = [
            self._vector(kind, rows[:, place + 1], (rows[:, 3] >> place) & 1)
            for place, kind in enumerate(external.kinds)
        ]
        match external.name:
            case "timer_id":
                return [(1, self._code(timer_id(int(moment))), 0.0) for moment in rows[:, 1]]
            case "like":
                return [(1, int(fits), 0.0) for fits in likes(given[0], external.pattern)]
        found = function(external.name, given, len(rows))
        values, known = found.data.tolist(), found.valid.tolist()
        results = []
        for value, ok in zip(values, known, strict=True):
            if found.type == "string":
                results.append((int(ok), self._code(found.words[value]), 0.0))
            elif found.type == "float":
                results.append((int(ok), 0, value))
            else:
                results.append(self._number(value) if ok else (0, 0, 0.0))
        return results

    def _vector(self, kind: Type, values: np.ndarray, large: np.ndarray) -> Vector:
        known = np.ones(len(values), bool)
        if large.any():
            pairs = zip(values.tolist(), large.tolist(), strict=True)
            numbers = [self.numbers[value] if is_code else value for value, is_code in pairs]
            return Vector(kind, np.asarray(numbers, object), known)
        if kind == "float":
            return Vector(kind, np.ascontiguousarray(values).view(np.float64), known)
        if kind == "string":
            words = sorted({self.words[code] for code in values.tolist()})
            place = {word: number for number, word in enumerate(words)}
            codes = np.asarray([place[self.words[code]] for code in values.tolist()], np.int64)
            return Vector(kind, codes, known, tuple(words))
        return Vector(kind, values.astype(np.int64), known)

    def _code(self, word: str) -> int:
        if word not in self.codes:
            self.codes[word] = len(self.words)
            self.words.append(word)
        return self.codes[word]


def new_memo(size: int = 64, misses: int = 4096) -> dict[str, np.ndarray]:
    room = 1 << max(6, (size - 1).bit_length())
    return {
        "memo_keys": np.zeros((room, 4), np.int64),
        "memo_known": np.zeros(room, np.int8),
        "memo_ints": np.zeros(room, np.int64),
        "memo_floats": np.zeros(room),
        "memo_misses": np.zeros((misses, 4), np.int64),
        "memo_missed": np.zeros(1, np.int64),
    }
