"""`hindsight mine`: one run over a range of detection times."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.runs import Manifest, Request

ORDER = 30
MOST_LINES = 20


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "mine", run,
        "mine a range of time and publish the matches",
        "Finds the matches that are detected in [--from, --to) and replaces those that composite_events has of the "
        "same queries there, in one commit. Running it again changes nothing. Without --from and --to: all history.",
        "  hindsight mine --from 2026-01-01 --to 2026-01-02\n"
        "  hindsight mine --queries shoplifting,overdose --as-of 2026-03-01T00:00:00Z\n"
        "  hindsight mine --from 2026-01-01 --to 2026-01-02 --stage --run-id day1\n"
        "  hindsight validate day1 && hindsight publish day1",
    )  # fmt: skip
    range_flags(parser)
    parser.add_argument(
        "--stage", action="store_true", help="leave the matches in staging; `hindsight validate` and `publish` follow"
    )
    parser.add_argument("--run-id", default="", metavar="ID", help="name of the run (default: made from the range)")


def range_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say what to mine, shared with backfill."""
    parser.add_argument("--from", dest="start", metavar="TIME", help="start of the detection times, such as 2026-01-31")
    parser.add_argument("--to", dest="end", metavar="TIME", help="their end, exclusive")
    parser.add_argument("--queries", metavar="IDS", help="ids with commas between (default: all enabled ones)")
    parser.add_argument("--as-of", metavar="TIME", help="read the input tables as they were at this time")
    parser.add_argument("--no-recompute", action="store_true",
                        help="refuse a CONSUME query without its state, instead of going back in history")  # fmt: skip


def request_of(arguments: argparse.Namespace, spark: SparkSession, settings: Settings) -> Request:
    """The flags as a request; an open end of the range is that of the history."""
    from jobs.catalogue import load_workload
    from jobs.check import check_declarations
    from jobs.inputs import input_versions
    from jobs.ranges import history_range, parse_moment, parse_us
    from jobs.runs import Request

    queries = tuple(name.strip() for name in arguments.queries.split(",")) if arguments.queries else None
    as_of = parse_moment(arguments.as_of) if arguments.as_of else None
    start = parse_us(arguments.start) if arguments.start else None
    end = parse_us(arguments.end) if arguments.end else None
    workload = load_workload(settings, queries)
    check_declarations(spark, settings, workload.declarations, workload.classes)
    if start is None or end is None:
        versions = input_versions(spark, settings, workload.declarations, workload.classes, as_of)
        first, last = history_range(spark, settings, workload, versions)
        start, end = (first if start is None else start), (last if end is None else end)
    return Request(start, end, queries, as_of, run_id=getattr(arguments, "run_id", ""),
                   recompute_state=not arguments.no_recompute)  # fmt: skip


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.console import log, progress
    from jobs.mine import mine, stage_run
    from jobs.quality import check_inputs, check_outputs, warm

    checked = settings.checks and not arguments.stage  # staged runs are checked by `prepare` and `validate`
    if checked:
        warm()
    with running_spark(settings, "mine") as spark, progress("mining", after_s=settings.progress_after_s, spark=spark):
        request = request_of(arguments, spark, settings)
        if arguments.stage:
            manifest = stage_run(spark, settings, request, say=log.info)
        elif checked:
            request = check_inputs(spark, settings, request, log.info)
            manifest = mine(spark, settings, request, say=log.info,
                            validate=lambda staged: check_outputs(spark, settings, staged, log.info))  # fmt: skip
        else:
            manifest = mine(spark, settings, request, say=log.info)
    print(f"run {manifest.run_id}: {'staged' if arguments.stage else 'published'} {manifest.found} matches, "
          f"{manifest.range_text}")  # fmt: skip
    print("\n".join(found_lines(manifest)))
    return 0


def found_lines(manifest: Manifest) -> list[str]:
    """How often each query matched, the most frequent first; of a large catalogue the first of them, and how to see
    all."""
    ordered = sorted(manifest.matches.items(), key=lambda item: (-item[1], item[0]))
    shown = ordered if len(ordered) <= 2 * MOST_LINES else ordered[:MOST_LINES]
    lines = [f"  {count:>10,}  {name}" for name, count in shown]
    if len(shown) < len(ordered):
        without = sum(not count for _, count in ordered)
        statement = f"SELECT explode(matches) FROM runs WHERE run_id = '{manifest.run_id}'"
        lines.append(f"  and {len(ordered) - len(shown):,} more queries; {without:,} of all found nothing. When "
                     f'published: hindsight sql "{statement}"')  # fmt: skip
    return lines
