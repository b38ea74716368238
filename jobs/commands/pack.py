"""`hindsight pack`: the declared events packed by source and time, for mining them again and again."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command, running_spark
from jobs.settings import Settings

ORDER = 36


def register(commands: Commands) -> None:
    add_command(
        commands, "pack", run,
        "pack the declared events, which makes mining them again cheaper",
        "Keeps the events sorted and encoded by source and time in the table packs. Runs use it wherever it holds "
        "exactly what they would read, and read the declared tables otherwise. Packing again only takes what has "
        "changed; with the setting packs=true every run does so first.",
        "  hindsight pack\n  hindsight backfill --set packs=true --from 2024-01-01 --to 2026-01-01",
    )  # fmt: skip


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    from jobs.catalogue import load_workload
    from jobs.console import log, progress
    from jobs.packs import refresh_packs

    with running_spark(settings, "pack") as spark, progress("packing", after_s=settings.progress_after_s, spark=spark):
        packing = refresh_packs(spark, settings, load_workload(settings), log.info)
    if packing is None:
        print("nothing was packed; runs read the declared tables")
    else:
        versions = ", ".join(f"{name} version {v}" for name, v in sorted(packing.input_versions.items()))
        print(f"the packs hold {len(packing.classes)} classes: {versions}")
    return 0
