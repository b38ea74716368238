"""`hindsight show`: a match with its events as they were."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 50


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "show", run,
        "show a match with its events, from the input tables as they were",
        "Reads the members of a match at the table versions that the match carries.",
        "  hindsight show 4290f637956aa653a44dbff97872496b\n  hindsight show 4290f6",
    )  # fmt: skip
    parser.add_argument("match_id", metavar="MATCH_ID", help="its id, or the first digits of it")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import progress
    from jobs.show import show_match

    with running_spark(settings, "show", short=True) as spark, progress(
        "looking for the match", after_s=settings.progress_after_s, spark=spark
    ):
        text = show_match(spark, settings, arguments.match_id)
    print(text)
    return 0
