"""`hindsight explain`: how the queries of the catalogue are evaluated together."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command
from jobs.settings import Settings

ORDER = 25


def register(commands: Commands) -> None:
    parser = add_command(
        commands,
        "explain",
        run,
        "show the shared network of the queries: who shares what, in which order it is evaluated, and why",
        examples="  hindsight explain\n  hindsight explain shoplifting overdose",
    )
    parser.add_argument(
        "queries", nargs="*", metavar="QUERY", help="only these (default: all that are enabled)"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    import cep_core
    from jobs.catalogue import load_workload
    from jobs.reach import closure

    workload = load_workload(settings, arguments.queries or None)
    chosen = closure(workload.versions, workload.checked)
    print(cep_core.explain({name: workload.texts[name] for name in sorted(chosen)}))
    return 0
