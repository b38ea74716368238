"""`hindsight backfill`: a long range in chunks; what has results already is left alone."""

from __future__ import annotations

import argparse
from dataclasses import replace

from jobs.command import Commands, add_command, running_spark
from jobs.commands.mine import range_flags, request_of
from jobs.settings import Settings

ORDER = 34


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "backfill", run,
        "mine a long range in chunks, only what has no results yet",
        "Each chunk is one run. Stopped anywhere, it goes on where it was: a chunk is mined for those queries whose "
        "version has no published results there, so new and changed queries alone are mined.",
        "  hindsight backfill --from 2024-01-01 --to 2026-01-01 --chunk '1 week'\n"
        "  hindsight backfill --queries overdose --again",
    )  # fmt: skip
    range_flags(parser)
    parser.add_argument("--chunk", default="1 day", metavar="DURATION", help="length of a chunk (default: 1 day)")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="chunks at once (default: 1)")
    parser.add_argument("--again", action="store_true", help="mine also what has results")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.backfill import backfill
    from jobs.console import log, progress
    from jobs.quality import check_inputs, check_outputs, warm
    from jobs.ranges import parse_duration
    from jobs.runs import Request

    if settings.checks:
        warm()
    chunk_us = parse_duration(arguments.chunk)
    with running_spark(settings, "backfill") as spark, progress(
        "mining chunks", after_s=settings.progress_after_s, spark=spark
    ):
        request = request_of(arguments, spark, settings)

        def prepare(todo: Request) -> Request:
            if not settings.checks:
                return todo
            checked = check_inputs(spark, settings, todo, log.info)
            return replace(todo, prepared=checked.run_id)  # each chunk, a run of its own, mines what was checked

        summary = backfill(
            spark, settings, request, chunk_us, parallel=arguments.parallel, again=arguments.again, say=log.debug,
            prepare=prepare,
            validate=lambda staged: check_outputs(spark, settings, staged, log.info) if settings.checks else None,
        )  # fmt: skip
    print(summary.text())
    return 0
