"""`hindsight validate`: check a staged run before it is published."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 31


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "validate", run,
        "check a run that was staged with `mine --stage`",
        "Checks the staged matches with Great Expectations: their schema, ids, times, order, members, versions and\n"
        "numbers; records the results in quality_results. Exit code 3: a check of error level failed; the staging is\n"
        "kept for a look, and the run should not be published.",
        "  hindsight validate day1 && hindsight publish day1",
    )  # fmt: skip
    parser.add_argument("run_id", metavar="RUN_ID")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import log, progress
    from jobs.quality import check_outputs, warm
    from jobs.runs import read_manifest

    warm()
    with running_spark(settings, "validate") as spark, progress(
        "checking the staged matches", after_s=settings.progress_after_s, spark=spark
    ):
        manifest = read_manifest(spark, settings, arguments.run_id)
        check_outputs(spark, settings, manifest, log.info)
    print(f"run {manifest.run_id}: its {manifest.found} staged matches are in order")
    return 0
