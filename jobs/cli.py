"""The command line: `hindsight <command>`.

Enters: arguments. Leaves: what the command prints, and an exit code that a scheduler can use.
Always holds: results go to stdout, everything else to stderr. What Hindsight refuses on purpose is told in one message,
without a Python trace. Commands are the modules of jobs/commands; what one needs is imported when it runs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

import jobs.commands
from cep_core.errors import HindsightError
from jobs.command import settings_of
from jobs.console import configure_logging
from jobs.exit_codes import FAILED, INTERRUPTED, MEANING, exit_code

_DESCRIPTION = """\
Finds composite events in the history that a lakehouse already holds.

A first look:     hindsight demo
Your own tables:  declare them in conf/events, write queries in conf/queries, then
                  hindsight check && hindsight mine && hindsight sql
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    arguments = build_parser().parse_args(argv)
    verbose = arguments.verbose
    try:
        settings = settings_of(arguments)
        configure_logging(settings.log_level)
        return int(arguments.run(arguments, settings))
    except HindsightError as error:
        print(f"hindsight {arguments.command}: {error}", file=sys.stderr)
        if verbose and error.__cause__ is not None:
            _trace(error)
        return exit_code(error)
    except KeyboardInterrupt:
        print(f"hindsight {arguments.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output (head, less) has gone; that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        print(f"hindsight {arguments.command}: failed: {_reason(error)}", file=sys.stderr)
        if verbose:
            _trace(error)
        else:
            print("  run it again with --verbose to see where", file=sys.stderr)
        return FAILED


def build_parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANING.items())
    parser = argparse.ArgumentParser(
        prog="hindsight",
        description=_DESCRIPTION,
        epilog=f"exit codes:\n{codes}\n\n`hindsight <command> --help` says more about a command, with examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="<command>", required=True)
    modules = [importlib.import_module(f"jobs.commands.{m.name}") for m in pkgutil.iter_modules(jobs.commands.__path__)]
    for module in sorted(modules, key=lambda m: (m.ORDER, m.__name__)):
        module.register(commands)
    return parser


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return str(error)
    if "pyspark" in sys.modules:  # otherwise it cannot be Spark's, and importing Spark would take seconds
        from jobs.spark_errors import SPARK_ERRORS, reason

        if isinstance(error, SPARK_ERRORS):
            return reason(error)
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}"


def _trace(error: BaseException) -> None:
    import traceback

    traceback.print_exception(error, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
