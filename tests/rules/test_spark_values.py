"""Functions and arithmetic against Spark itself: the same text over the same values, in the engine and in Spark SQL.

NaN is left out: it is NULL by the contract, and the greatest of all numbers in Spark.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import cep_core

INF = float("inf")
FRACTIONS = (0.0, -0.0, 0.4, -0.4, 0.5, -0.5, 1.5, 2.5, -2.5, 2.675, 1e17, -1e300, INF, -INF, None)
WHOLES = (0, 1, -1, 7, -7, 25, -25, 2**53 + 1, None)
TEXTS = ("", "Pear", "stra\u00dfe", "\u0130x", "\U0001f600\u00e9", "a_c", "a%c", None)
MOMENTS_US = (-1, 0, 1_767_225_599_999_999, 86_400_000_000 * 3 + 5)

NUMBERS = (
    "-a.f", "-a.x", "- -a.f", "a.f + a.g", "a.f - a.g", "a.f * a.g", "a.f * a.x", "a.x + a.f", "a.x - a.y", "abs(a.f)",
    "abs(a.x - 3)", "round(a.f)", "round(a.f, 1)", "round(a.f, 2)", "round(a.f, -1)", "round(a.x)", "round(a.x, -1)",
    "round(-a.f)", "sqrt(a.f)", "sqrt(a.x)", "least(a.f, a.g)", "greatest(a.f, a.g)", "least(a.x, a.y)",
    "least(a.x, a.f)", "greatest(a.x, a.f)", "coalesce(a.f, a.g)", "coalesce(a.f, a.x)", "coalesce(a.x, a.y)",
    "least(a.g, a.f, a.x)",
)  # fmt: skip
DIVIDED = ("a.f / a.g", "a.x / a.y", "a.x / a.g", "a.f % a.g", "a.x % a.y", "a.x % a.g")  # by zero Spark refuses
SMALL = ("floor(a.f)", "ceil(a.f)", "floor(a.f * a.g)", "floor(a.x)", "ceil(-a.f)")  # beyond 64 bits Spark saturates
STRINGS = (
    "lower(a.s)", "upper(a.s)", "length(a.s)", "concat(a.s, '-', lower(a.s))", "coalesce(a.s, 'none')",
    "least(a.s, 'b')", "greatest(a.s, 'b')", "hour(a.t)", "dayofweek(a.t)",
)  # fmt: skip
TRUTHS = (
    "a.f = a.g", "a.f < a.g", "a.f <= a.g", "a.f != a.g", "a.x = a.f", "a.x > a.f", "a.x IN (1, 7)",
    "a.x NOT IN (1, 7)", "a.f BETWEEN a.g AND a.x", "a.f NOT BETWEEN a.g AND a.x", "a.f IS NULL", "a.x IS NOT NULL",
    "a.s LIKE 'a\\\\_%'", "a.s LIKE '_e%'", "a.s NOT LIKE '%c'", "a.s < 'b'", "a.s IN ('', 'Pear')",
)  # fmt: skip


def _rows() -> list[dict[str, Any]]:
    pairs = list(product(FRACTIONS, FRACTIONS))
    return [
        {
            "i": number,
            "f": f,
            "g": g,
            "x": WHOLES[number % len(WHOLES)],
            "y": WHOLES[number // len(WHOLES) % len(WHOLES)],
            "s": TEXTS[number % len(TEXTS)],
            "t": MOMENTS_US[number % len(MOMENTS_US)],
        }
        for number, (f, g) in enumerate(pairs)
    ]


def _view(spark: Any, rows: list[dict[str, Any]]) -> None:
    kinds = "i long, f double, g double, x long, y long, s string, t long"
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], kinds)
    frame.selectExpr("i", "f", "g", "x", "y", "s", "timestamp_micros(t) AS t").createOrReplaceTempView("value_rows")


def _engine(rows: list[dict[str, Any]], query: str) -> list[dict[str, str | None]]:
    events = pa.table({
        "event_id": [str(row["i"]) for row in rows],
        "source": ["s"] * len(rows),
        "event_class": ["A"] * len(rows),
        "ts": [row["i"] for row in rows],
        "f": pa.array([row["f"] for row in rows], pa.float64(), from_pandas=False),
        "g": pa.array([row["g"] for row in rows], pa.float64(), from_pandas=False),
        "x": pa.array([row["x"] for row in rows], pa.int64()),
        "y": pa.array([row["y"] for row in rows], pa.int64()),
        "s": pa.array([row["s"] for row in rows], pa.string()),
        "t": pa.array([row["t"] for row in rows], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    found = cep_core.mine(events, {"q": query}).to_pylist()
    return [{"i": match["members"][0]["event_id"], **dict(match["fields"] or ())} for match in found]


def _text(value: Any) -> str | None:
    """A value of Spark as RETURN writes it; NaN is NULL by the contract."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return repr(value) if isinstance(value, float) else str(value)


def _compared(spark: Any, rows: list[dict[str, Any]], expressions: tuple[str, ...]) -> None:
    _view(spark, rows)
    listed = ", ".join(f"{expression} AS r{number}" for number, expression in enumerate(expressions))
    wanted = {str(row["i"]): row for row in spark.sql(f"SELECT a.i, {listed} FROM value_rows a").collect()}
    for found in _engine(rows, f"PATTERN A a RETURN {listed}"):
        expected = wanted[str(found["i"])]
        for number, expression in enumerate(expressions):
            own = rows[int(str(found["i"]))]
            assert found[f"r{number}"] == _text(expected[f"r{number}"]), f"{expression} of {own}"


def test_numbers(spark: Any) -> None:
    _compared(spark, _rows(), NUMBERS)


def test_division_and_remainder(spark: Any) -> None:
    """Rows where a divisor is zero are left out: Spark refuses them, the contract says NULL."""
    rows = [row for row in _rows() if row["g"] != 0 and row["y"] != 0]
    _compared(spark, [{**row, "i": number} for number, row in enumerate(rows)], DIVIDED)


def test_floor_and_ceil(spark: Any) -> None:
    """Numbers beyond 64 bits are left out: Spark saturates there, here they are exact or refused."""
    rows = [row for row in _rows() if all(v is None or not abs(v) > 1e5 for v in (row["f"], row["g"]))]
    _compared(spark, [{**row, "i": number} for number, row in enumerate(rows)], SMALL)


def test_texts_and_times(spark: Any) -> None:
    _compared(spark, _rows(), STRINGS)


def test_truth(spark: Any) -> None:
    """Which rows a condition keeps."""
    rows = _rows()
    _view(spark, rows)
    listed = ", ".join(f"({condition}) AS r{number}" for number, condition in enumerate(TRUTHS))
    wanted = spark.sql(f"SELECT i, {listed} FROM value_rows a").collect()
    for number, condition in enumerate(TRUTHS):
        kept = {str(row["i"]) for row in wanted if row[f"r{number}"]}
        ours = condition.replace("\\\\", "\\")
        assert {row["i"] for row in _engine(rows, f"PATTERN A a WHERE {ours}")} == kept, condition
        assert kept, condition


@pytest.mark.parametrize("values", [(-0.0,), (0.0, -0.0), (-0.0, 0.0), (0.5, -0.0, None), (INF, 1.0), (None, None)])
def test_aggregates(spark: Any, values: tuple[float | None, ...]) -> None:
    rows = [{**row, "f": f} for row, f in zip(_rows(), values, strict=False)]
    _view(spark, rows)
    names = ("sum", "avg", "min", "max")
    wanted = spark.sql("SELECT " + ", ".join(f"{name}(f)" for name in names) + " FROM value_rows").collect()[0]
    listed = ", ".join(f"{name}(w.f) AS r{number}" for number, name in enumerate(names))
    found = _engine(rows, f"PATTERN A[{len(rows)}] w WITHIN 1 min RETURN {listed}")
    assert [found[0][f"r{number}"] for number in range(len(names))] == [_text(value) for value in wanted]
