"""`hindsight maintain`: compact our tables, and remove what nothing needs any more."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 70


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "maintain", run,
        "compact our tables and remove old files and stagings",
        "OPTIMIZE on every table of ours, VACUUM of files that no version of the last --retain needs, and removal of\n"
        "stagings and Data Docs older than that. Declared input tables are never touched. Time travel (--as-of of our\n"
        "own tables) goes back as far as --retain.",
        "  hindsight maintain\n  hindsight maintain --retain '60 days' --dry-run",
    )  # fmt: skip
    parser.add_argument("--retain", default="30 days", metavar="DURATION", help="keep this long (default: 30 days)")
    parser.add_argument("--dry-run", action="store_true", help="say what would go, and change nothing")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import log, progress
    from jobs.maintain import maintain
    from jobs.ranges import parse_duration

    retain_us = parse_duration(arguments.retain)
    with running_spark(settings, "maintain") as spark, progress(
        "maintaining", after_s=settings.progress_after_s, spark=spark
    ):
        done = maintain(spark, settings, retain_us, dry_run=arguments.dry_run, say=log.info)
    for line in done:
        print(line)
    return 0
