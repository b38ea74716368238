"""`hindsight check`: declarations and queries, against the real tables' columns and the time that they span."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 20


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "check",
        run,
        "validate declarations and queries against the real tables",
        "Reads conf/events and conf/queries, and holds them against the tables' columns and types. Every problem is\n"
        "shown at once, with its file, key (or line and column) and the nearest valid name. Of the rows only the\n"
        "times are read, to warn of a WITHIN that is longer than its table's history.",
        "  hindsight check\n  hindsight check --no-tables      # files only: no Spark, in about a second",
    )
    parser.add_argument("--no-tables", action="store_true", help="only the files; do not open the tables")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from cep_core.errors import HindsightError, QueryError
    from cep_core.language import check
    from jobs.catalogue import load_workload
    from jobs.check import check_declarations
    from jobs.console import counted, progress
    from jobs.declarations import load_declarations
    from jobs.ranges import histories

    declarations = load_declarations(settings.path(settings.events))
    problems: list[HindsightError] = []
    history_us: dict[str, int] = {}
    if not arguments.no_tables:
        with running_spark(settings, "check", short=True) as spark:
            try:
                with progress("looking at the tables", after_s=settings.progress_after_s, spark=spark):
                    checked = check_declarations(spark, settings, declarations)
                for table in checked:
                    print(f"ok  {table.title}: {', '.join(table.classes)}")
                history_us = histories(spark, settings, declarations)
            except HindsightError as error:
                problems.append(error)
    try:
        workload = load_workload(settings)
        for query_id, query in check(workload.texts, workload.schema, history_us).items():
            for warning in query.warnings:
                print(f"warning  {query_id}: {warning}")
        print(
            f"ok  {counted(len(declarations.class_names()), 'event class', 'event classes')} in "
            f"{counted(len(declarations.tables), 'table')}, {counted(len(workload.checked), 'query', 'queries')}"
        )
    except QueryError as error:
        problems.append(error)
    if len(problems) == 2:
        raise type(problems[1])(f"{problems[0]}\n{problems[1]}")
    if problems:
        raise problems[0]
    return 0
