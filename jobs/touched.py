"""Which files of a Delta table have changed between two versions, from its log.

Enters: a declared table and two versions. Leaves: `Touched`: names of the files whose rows came or went.
Always holds: a row that is in one version and not in the other is in a touched file: a removed one as it was before, or
an added one as it is after. Commits that only move rows (OPTIMIZE) touch nothing. Where the log cannot say (a catalog
table, a cleaned-up log, another schema, rows that were both moved and changed), the answer is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jobs.declarations import DeclaredTable

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from jobs.settings import Settings

MOST_COMMITS = 200
MOST_FILES = 2_000
_FILE = "struct<path:string,dataChange:boolean>"
_ACTIONS = f"add {_FILE}, remove {_FILE}, metaData struct<id:string>"


@dataclass(frozen=True)
class Touched:
    """removed: to be read at the earlier version; added: at the later one. A file whose deleted rows changed is in
    both."""

    removed: frozenset[str]
    added: frozenset[str]


def touched_files(
    spark: SparkSession, settings: Settings, table: DeclaredTable, before: int, after: int
) -> Touched | None:
    """The files that commits before + 1 to after added or removed."""
    from jobs.spark_errors import SPARK_ERRORS

    if table.kind != "delta" or not before < after <= before + MOST_COMMITS:
        return None
    log = f"{settings.in_lake(table.location).rstrip('/')}/_delta_log"
    commits = [f"{log}/{version:020d}.json" for version in range(before + 1, after + 1)]
    try:
        actions = spark.read.schema(_ACTIONS).json(commits).collect()
    except SPARK_ERRORS:
        return None  # a commit's file is gone: the table's log has been cleaned up
    if any(action["metaData"] is not None for action in actions):
        return None
    added, removed = _names(actions, "add", True), _names(actions, "remove", True)
    # Rows that were moved to another file, and changed there or before, can be found in neither version by its name.
    moved = removed & _names(actions, "add", False) or added & _names(actions, "remove", False)
    if moved or len(added) + len(removed) > MOST_FILES:
        return None
    return Touched(frozenset(removed), frozenset(added))


def _names(actions: list[Row], kind: str, changes: bool) -> set[str]:
    """Files that actions of a kind name, which change rows or do not."""
    found = [action[kind] for action in actions if action[kind] is not None]
    return {unquote(f["path"]).rsplit("/", 1)[-1] for f in found if (f["dataChange"] is not False) is changes}
