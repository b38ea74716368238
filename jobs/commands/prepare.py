"""`hindsight prepare`: check the inputs of a run before it is mined."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.commands.mine import range_flags, request_of
from jobs.settings import Settings

ORDER = 28


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "prepare", run,
        "check the input tables of a range before it is mined",
        "Checks the declared tables with Great Expectations as conf/quality.yaml says, records the results in\n"
        "quality_results, sets bad rows aside where `quarantine: true` is set, and pins the tables' versions: mining\n"
        "under the same --run-id reads what was checked. Exit code 3: a check of error level failed.",
        "  hindsight prepare --from 2026-01-01 --to 2026-01-02 --run-id day1",
    )  # fmt: skip
    range_flags(parser)
    parser.add_argument("--run-id", default="", metavar="ID", help="name of the run (default: made from the range)")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import log, progress
    from jobs.quality import check_inputs, warm

    warm()
    with running_spark(settings, "prepare") as spark, progress(
        "checking the inputs", after_s=settings.progress_after_s, spark=spark
    ):
        request = check_inputs(spark, settings, request_of(arguments, spark, settings), log.info)
    print(f"run {request.run_id}: its inputs are in order")
    return 0
