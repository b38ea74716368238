"""`hindsight sql`: SQL over the results: one view per query, and our tables under their names."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = 50


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "sql",
        run,
        "query the results with SQL",
        "Every query of the catalogue is a view with its RETURN fields as typed columns; composite_events, runs and\n"
        "the other tables are there under their names. Without a statement it reads statements, each ended by `;`,\n"
        "from the terminal or a pipe.",
        '  hindsight sql "SHOW VIEWS"\n'
        '  hindsight sql "SELECT query_id, count(*) FROM composite_events GROUP BY ALL ORDER BY 1"\n'
        '  hindsight sql --format csv "SELECT * FROM shoplifting" > shoplifting.csv\n'
        "  hindsight sql < report.sql\n"
        '  hindsight sql --staged day1 "SELECT * FROM staged"',
    )
    parser.add_argument("statement", nargs="?", help="one SQL statement, or several separated by `;`")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table", help="how results are printed")
    parser.add_argument("--staged", metavar="RUN_ID", help="a view `staged` of what this run found")
    parser.add_argument("--limit", type=int, default=1000, help="most rows that `table` prints (default 1000)")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.catalogue import load_workload
    from jobs.console import log, progress
    from jobs.staging import staged_matches
    from jobs.views import make_views

    with running_spark(settings, "sql") as spark:
        with progress("making the views", after_s=settings.progress_after_s, spark=spark):
            views = make_views(spark, settings, load_workload(settings).checked)
            if arguments.staged:
                staged_matches(spark, settings, arguments.staged).createOrReplaceTempView("staged")
        log.info("%d views, one per query; SHOW VIEWS lists them", len(views))
        if arguments.statement is None and sys.stdin.isatty():
            return _converse(spark, arguments)
        text = arguments.statement if arguments.statement is not None else sys.stdin.read()
        for statement in statements(text):
            execute(spark, statement, arguments.format, arguments.limit)
    return 0


def statements(text: str) -> list[str]:
    """The statements of a text: separated by `;` outside quotes and comments.

    >>> statements("SELECT ';'; -- one; comment\\nSELECT 2;")
    ["SELECT ';'", '-- one; comment\\nSELECT 2']
    """
    found, start, quote, at = [], 0, "", 0
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\" and quote in "'\"":
                at += 1
            elif text.startswith(quote, at):
                at += len(quote) - 1
                quote = ""
        elif character in "'\"`":
            quote = character
        elif text.startswith("--", at):
            quote = "\n"
        elif text.startswith("/*", at):
            quote = "*/"
        elif character == ";":
            found.append(text[start:at])
            start = at + 1
        at += 1
    return [part.strip() for part in [*found, text[start:]] if part.strip()]


def execute(spark: SparkSession, statement: str, form: str, limit: int) -> None:
    """One statement, its result on stdout. What Spark refuses is a HindsightError."""
    from cep_core.errors import QueryError
    from jobs.console import counted, log, progress
    from jobs.spark_errors import SPARK_ERRORS

    try:
        with progress("running the statement", spark=spark):
            frame = spark.sql(statement)
            if not frame.columns:
                return
            rows = frame.limit(limit + 1).collect() if form == "table" else []
        if form == "table":
            shown = rows[:limit]
            print(as_table(frame.columns, [[_shown(value) for value in row] for row in shown]))
            cut = f"; more were left out, see --limit (now {limit})" if len(rows) > limit else ""
            log.info("%s%s", counted(len(shown), "row"), cut)
        elif form == "csv":
            import csv

            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(frame.columns)
            writer.writerows(["" if v is None else _shown(v) for v in row] for row in frame.toLocalIterator())
        else:
            for row in frame.toJSON().toLocalIterator():
                print(row)
    except SPARK_ERRORS as error:
        raise QueryError(f"Spark refuses the statement: {str(error).split('SQLSTATE')[0].strip()}") from error


def as_table(columns: list[str], rows: list[list[str]]) -> str:
    """Aligned columns under their names."""
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    lines = [columns, ["-" * width for width in widths], *rows]
    padded = ([value.ljust(width) for value, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _shown(value: object) -> str:
    from pyspark.sql import Row

    if value is None:
        return "NULL"
    if isinstance(value, Row):
        return "(" + ", ".join(_shown(part) for part in value) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(part) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(k)}: {_shown(v)}" for k, v in sorted(value.items())) + "}"
    return str(value)


def _converse(spark: SparkSession, arguments: argparse.Namespace) -> int:
    """Statements typed at a prompt, until `exit` or the end of input."""
    from cep_core.errors import HindsightError

    pending = ""
    while True:
        try:
            line = input("sql> " if not pending else "...> ")
        except EOFError:
            return 0
        if not pending and line.strip().rstrip(";").lower() in ("exit", "quit"):
            return 0
        pending += line + "\n"
        if pending.rstrip().endswith(";"):
            for statement in statements(pending):
                try:
                    execute(spark, statement, arguments.format, arguments.limit)
                except HindsightError as error:
                    print(error, file=sys.stderr)
            pending = ""
