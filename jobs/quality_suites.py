"""Suites as Great Expectations runs them.

Enters: a `Suite` of schemas/expectations.py and the Spark DataFrame that it is about.
Leaves: one `Outcome` per check, and a page of Data Docs per suite and run.
Always holds: one Spark pass per suite, because every expectation used here is an aggregate and Great Expectations
evaluates those together. The DataFrame is never cached, nothing is sent over the network, and no context is left on
disk except the Data Docs folder. Importing this module costs about ten seconds: import it where it is used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read when the package is imported

import great_expectations as gx
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation, ColumnAggregateExpectation
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cep_core.errors import QualityError
from jobs.runs import moment
from schemas.expectations import Check, ColumnCheck, Level, RangeCheck, RepeatCheck, RowCheck, Suite

SITE = "hindsight"
_PREFIX, _ROW, _ROWS = "breach_", "row", "rows"


class _OnePass(ColumnAggregateMetricProvider):
    """An aggregate that needs no other figure first. Great Expectations counts all rows before any aggregate of a
    column, in a pass of its own; here the rows are counted in the same pass."""

    @classmethod
    def _get_evaluation_dependencies(cls, *given: Any, **named: Any) -> dict[str, Any]:
        needed = super()._get_evaluation_dependencies(*given, **named)
        return {name: metric for name, metric in needed.items() if name != "table.row_count"}


class ColumnBreaches(_OnePass):
    """The number of rows whose column is true; 0, not NULL, where there are no rows."""

    metric_name = "column.breaches"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.count_if(column)


class ColumnRows(_OnePass):
    """The number of rows."""

    metric_name = "column.rows"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.count(F.lit(1))


class ColumnGreatest(_OnePass):
    """The greatest value; NULL where there is none."""

    metric_name = "column.greatest"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.max(column)


class ColumnValues(_OnePass):
    """The number of values that are not NULL."""

    metric_name = "column.values_present"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.count(column)


class ColumnDifferentValues(_OnePass):
    """The number of different values, exactly."""

    metric_name = "column.values_different"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.count_distinct(column)


class ExpectFewRepeats(ColumnAggregateExpectation):
    """At most a share of the rows that have a value repeat that of another row."""

    share: float = 0.0
    metric_dependencies = ("column.values_present", "column.values_different")
    success_keys = ("share",)
    args_keys = ("column", "share")

    def _validate(self, metrics: dict, runtime_configuration: Any = None, execution_engine: Any = None) -> dict:
        rows = int(metrics["column.values_present"])
        repeats = rows - int(metrics["column.values_different"])
        details = {"repeats": repeats, "rows": rows}
        return {"success": repeats <= self.share * rows, "result": {"observed_value": repeats, "details": details}}


class ExpectFewBreaches(ColumnAggregateExpectation):
    """At most a share of the rows is in breach: the column is true there."""

    share: float = 0.0
    metric_dependencies = ("column.breaches", "column.rows")
    success_keys = ("share",)
    args_keys = ("column", "share")

    def _validate(self, metrics: dict, runtime_configuration: Any = None, execution_engine: Any = None) -> dict:
        breaches, rows = int(metrics["column.breaches"]), int(metrics["column.rows"])
        details = {"breaches": breaches, "rows": rows}
        return {"success": breaches <= self.share * rows, "result": {"observed_value": breaches, "details": details}}


class ExpectRowsBetween(ColumnAggregateExpectation):
    """The number of rows lies in [low, high]; None is no bound."""

    low: float | None = None
    high: float | None = None
    metric_dependencies = ("column.rows",)
    success_keys = ("low", "high")
    args_keys = ("column", "low", "high")
    _metric: ClassVar[str] = "column.rows"

    def _validate(self, metrics: dict, runtime_configuration: Any = None, execution_engine: Any = None) -> dict:
        observed = metrics[self._metric]
        if self.low is None and self.high is None:
            success = True
        else:
            success = observed is not None and (
                (self.low is None or observed >= self.low) and (self.high is None or observed <= self.high)
            )
        return {"success": success, "result": {"observed_value": observed}}


class ExpectGreatestBetween(ExpectRowsBetween):
    """The column's greatest value lies in [low, high]; without rows there is none, and it lies nowhere."""

    metric_dependencies = ("column.greatest",)
    _metric: ClassVar[str] = "column.greatest"


class ExpectColumnSqlType(BatchExpectation):
    """The column is there and has exactly this type, nested fields too."""

    column: str
    sql_type: str
    metric_dependencies = ("table.column_types",)
    success_keys = ("column", "sql_type")
    args_keys = ("column", "sql_type")

    def _validate(self, metrics: dict, runtime_configuration: Any = None, execution_engine: Any = None) -> dict:
        types = {entry["name"]: entry["type"] for entry in metrics["table.column_types"]}
        found = types[self.column].simpleString() if self.column in types else "no such column"
        return {"success": found == self.sql_type, "result": {"observed_value": found}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check of one suite found, and what it expected, as text. `breaches` is 0 for checks that do not count
    rows."""

    suite: str
    table: str
    check: str
    about: str
    level: Level
    success: bool
    observed: str | None
    expected: str
    rows: int
    breaches: int
    column: str | None = None
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def blocks(self) -> bool:
        return self.level == "error" and not self.success

    @property
    def sentence(self) -> str:
        place = self.check if self.column is None else f"{self.check} of {self.column}"
        found = "nothing" if self.observed is None else self.observed
        return f"{self.table}: {place}: {self.about}; expected {self.expected}, found {found} in {self.rows:,} rows"


def open_context(docs: Path | None) -> AbstractDataContext:
    """A context in memory; with `docs`, its pages are built into that folder."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    for site in list(context.variables.data_docs_sites or {}):
        context.delete_data_docs_site(site)
    if docs is not None:
        docs.mkdir(parents=True, exist_ok=True)
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        site_config = {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}
        context.add_data_docs_site(site_name=SITE, site_config=site_config)
    return context


def run_suite(
    context: AbstractDataContext, suite: Suite, frame: DataFrame, run_id: str, known: Mapping[str, Any] | None = None
) -> tuple[Outcome, ...]:
    """Evaluate the suite on the frame in one pass, and keep the result for the Data Docs. `known` goes into each
    outcome: what is to be remembered of how it was looked at."""
    if not suite.checks:
        return ()
    plain = {c.column for c in suite.checks if not isinstance(c, RowCheck)} & set(frame.columns)
    rows_in_breach = [_breach(check) for check in suite.checks if isinstance(check, RowCheck)]
    kept = frame.select(*[F.col(str(name)) for name in sorted(plain, key=str)], *rows_in_breach, F.lit(1).alias(_ROW))
    validation: Any = _define(context, suite)
    result = validation.run(
        batch_parameters={"dataframe": kept}, result_format="BASIC", run_id=gx.RunIdentifier(run_name=run_id)
    )
    if (error := _exception(result)) is not None:
        raise QualityError(f"the checks of {suite.name} could not be made: {error}")
    by_name = {found.expectation_config.meta["check"]: found for found in result.results}
    rows = int(by_name[_ROWS].result["observed_value"])
    found = (_outcome(suite, check, by_name[_key(check)], rows) for check in suite.checks)
    return tuple(replace(outcome, known=dict(known or {})) for outcome in found)


def build_docs(context: AbstractDataContext) -> str | None:
    """Write the pages of every suite run in this context; the index page's address."""
    if SITE not in (context.variables.data_docs_sites or {}):
        return None
    context.build_data_docs(site_names=[SITE])
    return str(context.get_docs_sites_urls(site_names=[SITE])[0]["site_url"])


def _exception(result: Any) -> str | None:
    """What stopped an expectation, if one could not be evaluated: Great Expectations puts it into the result."""
    for found in result.results:
        raised = found.exception_info or {}
        for info in [raised, *(entry for entry in raised.values() if isinstance(entry, dict))]:
            if info.get("raised_exception"):
                return str(info.get("exception_message")).splitlines()[0]
    return None


def _breach(check: RowCheck) -> Column:
    return F.coalesce(F.expr(check.breach), F.lit(False)).alias(_PREFIX + check.name)


def _key(check: Check) -> str:
    return f"{check.name}.{check.column}" if isinstance(check, ColumnCheck) else check.name


def _define(context: AbstractDataContext, suite: Suite) -> gx.ValidationDefinition:
    source = context.data_sources.add_or_update_spark(suite.name, persist=False)
    batch = source.add_dataframe_asset(suite.table).add_batch_definition_whole_dataframe("rows")
    expectations = [_expectation(check) for check in suite.checks]
    # Always there: every outcome says how many rows it was about.
    expectations.append(ExpectRowsBetween(column=_ROW, meta={"check": _ROWS}, description="how many rows there are"))
    stored = context.suites.add_or_update(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    return context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=stored)
    )


def _expectation(check: Check) -> Any:
    meta = {"check": _key(check), "level": check.level, "about": check.about}
    common: dict[str, Any] = {"meta": meta, "description": f"{check.name}: {check.about}"}
    match check:
        case RowCheck():
            return ExpectFewBreaches(column=_PREFIX + check.name, share=check.share, **common)
        case RepeatCheck():
            return ExpectFewRepeats(column=check.column, share=check.share, **common)
        case ColumnCheck():
            return ExpectColumnSqlType(column=check.column, sql_type=check.type, **common)
        case RangeCheck(column=None):
            return ExpectRowsBetween(column=_ROW, low=check.low, high=check.high, **common)
        case RangeCheck(column=str(column)):
            return ExpectGreatestBetween(column=column, low=check.low, high=check.high, **common)


def _outcome(suite: Suite, check: Check, found: Any, rows: int) -> Outcome:
    observed = found.result.get("observed_value")
    breaches, success, column = 0, bool(found.success), None
    text = None if observed is None else str(observed)
    match check:
        case RowCheck():
            breaches, text = int(observed), _count(observed)
            expected = "no such row" if check.share == 0 else f"at most {check.share:.2%} of the rows"
        case RepeatCheck():
            breaches, rows = int(observed), int(found.result["details"]["rows"])
            text, expected = _count(observed), f"at most {check.share:.2%} of the rows"
        case ColumnCheck():
            column, expected = check.column, f"type {check.type}"
        case RangeCheck():
            show = _count if check.column is None else _moment
            text = None if observed is None else show(observed)
            ends = [f"at least {show(check.low)}"] if check.low is not None else []
            ends += [f"at most {show(check.high)}"] if check.high is not None else []
            expected = " and ".join(ends) or "anything (there is nothing to compare with yet)"
    return Outcome(
        suite.name, suite.table, check.name, check.about, check.level, success, text, expected, rows, breaches, column
    )


def _count(number: float) -> str:
    return f"{round(number):,}"


def _moment(us: float) -> str:
    return moment(round(us))


def failures(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    return tuple(outcome for outcome in outcomes if not outcome.success)
