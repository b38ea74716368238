"""`hindsight demo`: small worlds with known matches, mined from raw tables to SQL."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 10
SMALL = 500_000  # rows that are written and mined before a compiling JVM would pay


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "demo",
        run,
        "write example tables, mine them, and show what was found",
        "Writes raw tables as a shop, a ward, a network and others have them, with matches that the generator knows;\n"
        "mines the queries of conf/queries over them; shows for each query its matches, two of them in full, and that\n"
        "all that were planted were found (exit code 1 otherwise). Running it again changes nothing.",
        "  hindsight demo\n  hindsight demo --events 1000000 --days 60\n  hindsight demo --lake /tmp/lake",
    )
    parser.add_argument("--events", type=_count, default=60_000, metavar="N", help="rows in all (default 60000)")
    parser.add_argument("--days", type=_count, default=14, metavar="N", help="over so many days (14 or more)")
    parser.add_argument("--seed", type=int, default=7, help="another seed gives other tables (default 7)")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.demo.demo import run_demo

    with running_spark(settings, "demo", short=arguments.events <= SMALL) as spark:
        return run_demo(spark, settings, arguments.events, arguments.days, arguments.seed)


def _count(text: str) -> int:
    value = int(text.replace("_", "").replace(",", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
