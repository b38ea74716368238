"""Suites as Great Expectations runs them.

Enters: a `Suite` of schemas/expectations.py and the Spark DataFrames that it is about.
Leaves: one `Outcome` per check, and a page of Data Docs per suite and run.
Always holds: one Spark job per suite. The expectations are about the tally of the rows (jobs/quality_tally.py), a
DataFrame with a column per check; each is an aggregate, and Great Expectations evaluates those together. Nothing is
cached or sent over the network, and no context is left on disk except the Data Docs folder. Importing this module
costs six seconds: import it where it is used.
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
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cep_core.errors import QualityError
from jobs.quality_tally import tally
from jobs.runs import moment
from schemas.expectations import (
    ROWS,
    Check,
    ColumnCheck,
    Level,
    LookupCheck,
    MatchCheck,
    RangeCheck,
    RepeatCheck,
    RowCheck,
    Suite,
)  # fmt: skip

SITE = "hindsight"


class _OnePass(ColumnAggregateMetricProvider):
    """An aggregate that needs no other figure first: Great Expectations would count the rows before, in a pass of its
    own. The columns are `rows, breaches, greatest` of a check, NULL in the rows of other checks."""

    @classmethod
    def _get_evaluation_dependencies(cls, *given: Any, **named: Any) -> dict[str, Any]:
        needed = super()._get_evaluation_dependencies(*given, **named)
        return {name: metric for name, metric in needed.items() if name != "table.row_count"}


class ColumnBreaches(_OnePass):
    """The number of rows in breach; 0, not NULL, where there are no rows."""

    metric_name = "column.breaches"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.coalesce(F.sum(column["breaches"]), F.lit(0))


class ColumnRows(_OnePass):
    """The number of rows that were looked at."""

    metric_name = "column.rows"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.coalesce(F.sum(column["rows"]), F.lit(0))


class ColumnGreatest(_OnePass):
    """The greatest value; NULL where there is none."""

    metric_name = "column.greatest"

    @column_aggregate_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Any, **kwargs: Any) -> Any:
        return F.max(column["greatest"])


class ExpectFewBreaches(ColumnAggregateExpectation):
    """At most a share of the rows is in breach."""

    share: float = 0.0
    metric_dependencies = ("column.breaches", "column.rows")
    success_keys = ("share",)
    args_keys = ("column", "share")

    def _validate(self, metrics: dict, runtime_configuration: Any = None, execution_engine: Any = None) -> dict:
        breaches, rows = int(metrics["column.breaches"]), int(metrics["column.rows"])
        details = {"rows": rows}
        return {"success": breaches <= self.share * rows, "result": {"observed_value": breaches, "details": details}}


class ExpectRowsBetween(ColumnAggregateExpectation):
    """The number of rows lies in [low, high]; None is no bound."""

    low: float | None = None
    high: float | None = None
    metric_dependencies: ClassVar[tuple[str, ...]] = ("column.rows",)
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
        details = {"rows": int(metrics["column.rows"])}
        return {"success": success, "result": {"observed_value": observed, "details": details}}


class ExpectGreatestBetween(ExpectRowsBetween):
    """The greatest value lies in [low, high]; without rows there is none, and it lies nowhere."""

    metric_dependencies: ClassVar[tuple[str, ...]] = ("column.greatest", "column.rows")
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
    rows; `sampled` says which part of the rows was looked at, where it was not all."""

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
    sampled: str = ""

    @property
    def blocks(self) -> bool:
        return self.level == "error" and not self.success

    @property
    def sentence(self) -> str:
        place = self.check if self.column is None else f"{self.check} of {self.column}"
        found = "nothing" if self.observed is None else self.observed
        rows = f"{self.rows:,} rows" + (f", a sample ({self.sampled})" if self.sampled else "")
        return f"{self.table}: {place}: {self.about}; expected {self.expected}, found {found} in {rows}"


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
    context: AbstractDataContext, suite: Suite, frames: Mapping[str, DataFrame], run_id: str,
    known: Mapping[str, Any] | None = None, sampled: Mapping[str, str] | None = None,
    tallied: DataFrame | None = None,
) -> tuple[Outcome, ...]:  # fmt: skip
    """Evaluate the suite on the frames that its checks name, or on their tally, and keep the result for the Data Docs.
    `known` goes into each outcome: what is to be remembered of how it was looked at. `sampled`: check -> what its
    frames hold of all."""
    if not suite.checks:
        return ()
    counted = [check for check in suite.checks if not isinstance(check, ColumnCheck)]
    if counted:
        frame = _by_check(tally(counted, frames) if tallied is None else tallied, counted)
    else:
        frame = frames[ROWS]
    parts = {check.name: text for check in suite.checks if (text := (sampled or {}).get(check.name))}
    validation: Any = _define(context, suite, parts)
    result = validation.run(
        batch_parameters={"dataframe": frame}, result_format="BASIC", run_id=gx.RunIdentifier(run_name=run_id)
    )
    if (error := _exception(result)) is not None:
        raise QualityError(f"the checks of {suite.name} could not be made: {error}")
    by_name = {found.expectation_config.meta["check"]: found for found in result.results}
    found = (_outcome(suite, check, by_name[_key(check)]) for check in suite.checks)
    return tuple(replace(o, known=dict(known or {}), sampled=parts.get(o.check, "")) for o in found)


def _by_check(figures: DataFrame, checks: Iterable[Check]) -> DataFrame:
    """A tally with a column per check."""
    return figures.select(*(
        F.when(F.col("check") == check.name, F.struct("rows", "breaches", "greatest")).alias(check.name)
        for check in checks
    ))  # fmt: skip


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


def _key(check: Check) -> str:
    return f"{check.name}.{check.column}" if isinstance(check, ColumnCheck) else check.name


def _define(context: AbstractDataContext, suite: Suite, sampled: Mapping[str, str]) -> gx.ValidationDefinition:
    source = context.data_sources.add_or_update_spark(suite.name, persist=False)
    batch = source.add_dataframe_asset(suite.table).add_batch_definition_whole_dataframe("rows")
    expectations = [_expectation(check, sampled.get(check.name, "")) for check in suite.checks]
    stored = context.suites.add_or_update(gx.ExpectationSuite(name=suite.name, expectations=expectations))
    return context.validation_definitions.add_or_update(
        gx.ValidationDefinition(name=suite.name, data=batch, suite=stored)
    )


def _expectation(check: Check, sampled: str) -> Any:
    meta = {"check": _key(check), "level": check.level, "about": check.about}
    about = f"{check.about} (a sample: {sampled})" if sampled else check.about
    common: dict[str, Any] = {"meta": meta, "description": f"{check.name}: {about}"}
    match check:
        case RowCheck() | RepeatCheck():
            return ExpectFewBreaches(column=check.name, share=check.share, **common)
        case LookupCheck() | MatchCheck():
            return ExpectFewBreaches(column=check.name, **common)
        case ColumnCheck():
            return ExpectColumnSqlType(column=check.column, sql_type=check.type, **common)
        case RangeCheck(column=None):
            return ExpectRowsBetween(column=check.name, low=check.low, high=check.high, **common)
        case RangeCheck():
            return ExpectGreatestBetween(column=check.name, low=check.low, high=check.high, **common)


def _outcome(suite: Suite, check: Check, found: Any) -> Outcome:
    observed = found.result.get("observed_value")
    rows = int((found.result.get("details") or {}).get("rows", 0))
    breaches, success, column = 0, bool(found.success), None
    text = None if observed is None else str(observed)
    match check:
        case RowCheck() | RepeatCheck():
            breaches, text = int(observed), _count(observed)
            expected = "no such row" if check.share == 0 else f"at most {check.share:.2%} of the rows"
        case LookupCheck() | MatchCheck():
            breaches, text, expected = int(observed), _count(observed), "no such row"
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
