"""Whole numbers of any size: int64 as long as all of a column fit, Python's own where one does not.

Enters: arrays of int64, or of objects (Python ints). Leaves: the same.
Always holds: nothing is lost: a sum, a product or a rounded fraction that leaves 64 bits goes on exactly, so that no
condition depends on the order in which its parts were computed. Only what RETURN gives must fit 64 bits (returns.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def is_large(data: np.ndarray) -> bool:
    """Whether the column holds numbers that left 64 bits."""
    return data.dtype == object


def narrow(data: np.ndarray) -> np.ndarray:
    """int64 again, where all fit."""
    try:
        return data.astype(np.int64)
    except OverflowError:
        return data


def exactly(of: Callable[..., Any], valid: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """of(..) of each valid row; 0 in the others."""
    out = np.zeros(len(valid), object)
    for row in np.flatnonzero(valid).tolist():
        out[row] = of(*(column[row].item() if hasattr(column[row], "item") else column[row] for column in columns))
    return narrow(out)


def as_floats(data: np.ndarray) -> np.ndarray:
    """The nearest float64 of each; beyond all of them an infinity."""
    if not is_large(data):
        return data.astype(np.float64)
    return np.asarray([as_float(value) for value in data.tolist()], np.float64)


def as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def truncated(dividend: int, divisor: int) -> int:
    """The remainder with the dividend's sign.

    >>> truncated(-7, 3), truncated(7, -3)
    (-1, 1)
    """
    rest = abs(dividend) % abs(divisor)
    return -rest if dividend < 0 else rest
