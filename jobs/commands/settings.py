"""`hindsight settings`: every setting, its value and where the value came from."""

from __future__ import annotations

import argparse

from jobs.command import Commands, add_command
from jobs.settings import Settings, setting_fields

ORDER = 90


def register(commands: Commands) -> None:
    add_command(
        commands,
        "settings",
        run,
        "show every setting, its value, its origin and its meaning",
        "Settings come from conf/settings.yaml, then from environment variables HINDSIGHT_<KEY>, then from flags; "
        "the later one wins.",
        "  hindsight settings\n  HINDSIGHT_LAKE=/data/lake hindsight settings --set rows_per_call=500000",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    for line in shown(settings):
        print(line)
    return 0


def shown(settings: Settings) -> list[str]:
    """One line for each key, in aligned columns."""
    rows = [("key", "value", "from", "meaning")]
    for field in setting_fields():
        value = str(getattr(settings, field.name)) or "-"
        rows.append((field.name, value, settings.origin(field.name), str(field.metadata["doc"])))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [f"project: {settings.project}"]
    return lines + ["  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]) for row in rows]
