"""Classes and keys of a few bytes are compared as one word; the codes must be those of their texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cep_core.engine.classes import class_codes
from cep_core.engine.keys import key_codes

pytestmark = pytest.mark.core


def _texts(count: int) -> list[str]:
    """Many more than the words that are remembered, of 0 to 9 bytes; some differ in length or in NUL bytes alone."""
    random = np.random.default_rng(3)
    made = ["", "a", "a\0", "a\0\0", "\0", "\0a", "abcdefg", "abcdefg\0", "abcdefgh", "ü", "üü", "üüü", "üüüü"]
    made += [str(number)[: int(size)] for number, size in enumerate(random.integers(1, 10, 9000))]
    return [made[int(place)] for place in random.integers(0, len(made), count)]


def _first_appearance(values: list[str]) -> list[int]:
    number: dict[str, int] = {}
    return [number.setdefault(value, len(number)) for value in values]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_codes_of_keys_are_those_of_the_texts(kind: pa.DataType) -> None:
    values = _texts(40_000)
    assert key_codes([pa.array(values, kind)]).tolist() == _first_appearance(values)


def test_codes_at_the_very_end_of_a_buffer() -> None:
    for last in ("x", "xyz", "1234567", "12345678"):
        values = ["long enough to be hashed", "x", last]
        assert key_codes([pa.array(values)]).tolist() == _first_appearance(values)


def test_only_wanted_classes_are_kept_and_coded() -> None:
    values = _texts(40_000)
    wanted = sorted(set(values))[::3]
    classes, codes, rows = class_codes(pa.array(values), wanted)
    assert rows is not None
    assert rows.tolist() == [row for row, value in enumerate(values) if value in set(wanted)]
    assert [classes[code] for code in codes] == [values[row] for row in rows]
