"""Checks counted: the rows that they look at, brought down to a few figures per check.

Enters: checks of schemas/expectations.py, and the DataFrames that they name. Leaves: a DataFrame of TALLY with some
rows per check; what counts is the sum of its rows and breaches, and the greatest of its values.
Always holds: every row is looked at, except by a repeat check that says otherwise (`one_in`); conditions, ranges and
sampled repeats of a DataFrame are one pass, each other repeat or lookup is one more over its columns. Nothing runs
before the result is evaluated, and then all of it is one Spark job.

Values are compared by a 64-bit hash (xxhash64). What must meet in one place, to see which hashes repeat or are missing,
travels as blocks of sorted hashes, some thousands in a row: Spark's own exchange moves one row at a time. Two different
values have the same hash once in 2**64 pairs; then a repeat is counted that is none, or a missing value is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from schemas.expectations import Check, ColumnCheck, LookupCheck, RangeCheck, RepeatCheck, RowCheck

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TALLY = "check string, rows bigint, breaches bigint, greatest bigint"
_TALLY_ARROW = pa.schema(
    [("check", pa.string()), ("rows", pa.int64()), ("breaches", pa.int64()), ("greatest", pa.int64())]
)
# On the way a row is one block of the hashes that a check compares, with what they are for; or figures of the check.
PACKED = f"block int, purpose string, hashes binary, {TALLY}"
_PACKED_ARROW = pa.schema(
    [("block", pa.int32()), ("purpose", pa.string()), ("hashes", pa.binary()), *_TALLY_ARROW]
)  # fmt: skip
REPEATS, ASKED, KNOWN = "repeats", "asked", "known"
_BITS = 8
_BLOCKS = 1 << _BITS
_EDGES = (np.arange(1, _BLOCKS, dtype=np.int64) << (64 - _BITS)) ^ np.iinfo(np.int64).min  # int64[255], ascending
_FIGURES = -1  # the block of figures
_HELD = 1 << 20  # hashes that a task holds before it sorts them into blocks

Batches = Iterator[pa.RecordBatch]
Figures = tuple[str, int, int, int | None]  # check, rows, breaches, greatest


def tally(checks: Iterable[Check], frames: Mapping[str, DataFrame], on_the_way: Iterable[DataFrame] = ()) -> DataFrame:
    """The figures of these checks over the frames that they name; checks of a schema have none. `on_the_way`: rows of
    PACKED that others have brought this far, for checks of rows that are in none of the frames."""
    wanted = [check for check in checks if not isinstance(check, ColumnCheck)]
    counted, parts = [], [*on_the_way]
    for name, frame in frames.items():
        here = [check for check in wanted if check.of == name]
        whole = [check for check in here if isinstance(check, RepeatCheck) and check.one_in == 1]
        parts += [_hashed(frame, check, REPEATS) for check in whole]
        parts += [_hashed(frame, check, ASKED) for check in here if isinstance(check, LookupCheck)]
        parts += [_hashed(frame, c, KNOWN) for c in wanted if isinstance(c, LookupCheck) and c.among == name]
        in_place = [check for check in here if not isinstance(check, LookupCheck) and check not in whole]
        counted += [_counted(frame, in_place)] if in_place else []
    if parts:
        together = reduce(lambda a, b: a.unionAll(b), parts)
        counted.append(together.groupBy("block").applyInArrow(_settle, TALLY))
    return reduce(lambda a, b: a.unionAll(b), counted)


def given(spark: SparkSession, figures: Iterable[Figures]) -> DataFrame:
    """Figures that are known already, as a tally."""
    return spark.createDataFrame(list(figures), TALLY)


def _counted(frame: DataFrame, checks: Sequence[Check]) -> DataFrame:
    """One pass of aggregates, compiled by Spark. A sampled repeat is among them: its values are few."""
    none = F.lit(None).cast("bigint")
    figures = []
    for check in checks:
        rows, breaches, greatest = F.count(F.lit(1)), F.lit(0).cast("bigint"), none
        match check:
            case RowCheck():
                breaches = F.count_if(F.expr(check.breach))
            case RangeCheck(column=str(column)):
                greatest = F.max(F.col(column).cast("bigint"))
            case RepeatCheck():
                key = _hash(check.columns)
                sampled = F.when(F.pmod(key, F.lit(check.one_in)) == 0, key)
                rows, breaches = F.count(sampled), F.count(sampled) - F.count_distinct(sampled)
            case _:
                pass
        figures.append(F.struct(
            F.lit(check.name).alias("check"), rows.alias("rows"), breaches.alias("breaches"), greatest.alias("greatest")
        ))  # fmt: skip
    return frame.agg(F.array(*figures).alias("figures")).selectExpr("inline(figures)")


def _hashed(frame: DataFrame, check: RepeatCheck | LookupCheck, purpose: str) -> DataFrame:
    return frame.select(_hash(check.columns).alias("c0")).mapInArrow(_pack(check.name, purpose), PACKED)


def _hash(columns: Sequence[str]) -> Column:
    """Of values that are all there; NULL where one is not."""
    present = reduce(lambda a, b: a & b, (F.col(name).isNotNull() for name in columns))
    return F.when(present, F.xxhash64(*columns))


def _pack(check: str, purpose: str) -> Callable[[Batches], Batches]:
    """Over batches of (hash). What is asked for and is NULL cannot be found."""

    def pack(batches: Batches) -> Batches:
        blocks, absent = Blocks(check, purpose), 0
        for batch in batches:
            absent += batch.column(0).null_count
            yield from blocks.add(batch.column(0).drop_null().to_numpy())
        yield from blocks.rest()
        if purpose == ASKED:
            yield packed([(check, absent, absent, None)])

    return pack


class Blocks:
    """Hashes of one check, held until there are enough to be sorted into blocks."""

    def __init__(self, check: str, purpose: str) -> None:
        self.check, self.purpose = check, purpose
        self.held: list[np.ndarray] = []  # int64[*] each
        self.size = 0

    def add(self, hashes: np.ndarray) -> Batches:
        """int64[*]."""
        self.held.append(hashes)
        self.size += len(hashes)
        if self.size >= _HELD:
            yield from self.rest()

    def rest(self) -> Batches:
        if not self.size:
            return
        values = np.sort(np.concatenate(self.held))
        self.held, self.size = [], 0
        parts = np.split(values, np.searchsorted(values, _EDGES))
        filled = [n for n, part in enumerate(parts) if len(part)]
        yield _batch(_PACKED_ARROW, len(filled), {
            "block": filled, "purpose": [self.purpose] * len(filled), "check": [self.check] * len(filled),
            "hashes": [parts[n].tobytes() for n in filled],
        })  # fmt: skip


def _settle(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The figures of one block: those that came as such, and what its hashes say."""
    figures: list[Figures] = []
    found: dict[str, dict[str, list[np.ndarray]]] = {}  # check -> purpose -> int64[*] each
    for batch in batches:
        for row in batch.to_pylist():
            if row["hashes"] is None:
                figures.append((row["check"], row["rows"], row["breaches"], row["greatest"]))
            else:
                hashes = np.frombuffer(row["hashes"], np.int64)
                found.setdefault(row["check"], {}).setdefault(row["purpose"], []).append(hashes)
    for check, parts in found.items():
        repeats, asked, known = (_joined(parts.get(purpose, [])) for purpose in (REPEATS, ASKED, KNOWN))
        if len(repeats):
            figures.append((check, len(repeats), int(np.count_nonzero(repeats[1:] == repeats[:-1])), None))
        if len(asked):
            figures.append((check, len(asked), len(asked) - _present(asked, known), None))
    yield _batch(_TALLY_ARROW, len(figures), _columns(figures))


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)


def _present(asked: np.ndarray, known: np.ndarray) -> int:
    """How many of int64[*] asked are in int64[*] known, which is sorted."""
    if not len(known):
        return 0
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return int(np.count_nonzero(known[places] == asked))


def packed(figures: list[Figures]) -> pa.RecordBatch:
    return _batch(_PACKED_ARROW, len(figures), {"block": [_FIGURES] * len(figures), **_columns(figures)})


def _columns(figures: list[Figures]) -> dict[str, list[Any]]:
    return {name: [row[n] for row in figures] for n, name in enumerate(_TALLY_ARROW.names)}


def _batch(schema: pa.Schema, rows: int, columns: Mapping[str, list[Any]]) -> pa.RecordBatch:
    """Columns that are not given are NULL."""
    arrays = [pa.array(columns.get(field.name, [None] * rows), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
