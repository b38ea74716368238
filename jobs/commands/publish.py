"""`hindsight publish`: a staged run into composite_events."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 32


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "publish", run,
        "publish a run that was staged with `mine --stage`",
        "Replaces the matches of the run's range and queries in one commit. Publishing a run twice changes nothing.",
        "  hindsight publish day1",
    )  # fmt: skip
    parser.add_argument("run_id", metavar="RUN_ID")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import log, progress
    from jobs.publish import publish_run

    with running_spark(settings, "publish") as spark, progress(
        "publishing", after_s=settings.progress_after_s, spark=spark
    ):
        manifest = publish_run(spark, settings, arguments.run_id, log.info)
    print(f"run {manifest.run_id}: published {manifest.found} matches, {manifest.range_text}")
    return 0
