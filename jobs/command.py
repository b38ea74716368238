"""What all subcommands share: their flags, their settings, and the Spark session they run in.

Enters: an argparse subparser. Leaves: a parser with the common flags, and the settings that they make.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cep_core.errors import DeclarationError
from jobs.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[argparse.Namespace, Settings], int]
Commands = Any  # argparse's type of add_subparsers() is private


def add_command(
    commands: Commands, name: str, run: Run, summary: str, description: str = "", examples: str = ""
) -> argparse.ArgumentParser:
    """A subcommand. `run(arguments, settings)` returns the exit code; its errors are told and coded by the caller."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description or summary,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    common = parser.add_argument_group("settings (see `hindsight settings`)")
    common.add_argument("--project", metavar="FOLDER", help="the folder that holds conf/ (default: the current one)")
    common.add_argument("--lake", metavar="FOLDER", help="where the tables are")
    common.add_argument("--master", metavar="MASTER", help="Spark master, such as local[4] or spark://host:7077")
    common.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="any setting; repeatable")
    common.add_argument("-v", "--verbose", action="store_true", help="log more, and show Python's trace of a failure")
    return parser


def settings_of(arguments: argparse.Namespace) -> Settings:
    """File, environment and flags, in that order."""
    flags: dict[str, Any] = {}
    for item in arguments.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise DeclarationError(f"--set {item}: write --set KEY=VALUE")
        flags[key.strip().replace("-", "_")] = value
    flags |= {key: getattr(arguments, key) for key in ("lake", "master") if getattr(arguments, key) is not None}
    if arguments.verbose:
        flags.setdefault("log_level", "DEBUG")
    return load_settings(flags, project=arguments.project)


@contextmanager
def running_spark(settings: Settings, app: str, *, short: bool = False) -> Iterator[SparkSession]:
    """A Spark session for one command, stopped at its end; its start shows as progress. `short`: for a command that
    reads little, however large the tables are."""
    from jobs.console import log, progress
    from jobs.session import SHORT_LIVED, spark_session

    with progress("starting Spark", after_s=settings.progress_after_s):
        java_options = SHORT_LIVED if short else ""
        spark = spark_session(settings, f"hindsight {app}", java_options=java_options, say=log.info)
    try:
        yield spark
    finally:
        spark.stop()
