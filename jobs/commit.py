"""One commit that takes files of matches into composite_events, in place of the rows that they replace.

Enters: files that workers have written below the table's folder (match_files.py), and the rows that they replace.
Leaves: a new version of the table.
Always holds: the commit is Delta's own transaction, on a snapshot that the caller has looked at: whatever another
writer commits in between makes it fail with a conflict, and nothing has changed. Rows of a replaced file that stay are
written anew with it. What a writer of Delta owes the table is held: breaches of our contract were counted for every
file when it was written, those of any other constraint that someone gave the table are counted here.

Why not replaceWhere: it would read the staged rows and write them again, which takes longer than finding them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from cep_core.errors import PublishError, TableError
from jobs import hadoop, tables
from jobs.match_files import CONSTRAINTS, FILE_SCHEMA, MATCH_ARROW, MatchFile, write_batches
from schemas import COMPOSITE_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

_NAME = COMPOSITE_EVENTS.name
_APP = "hindsight-publish"  # a commit of ours conflicts with every other of ours, one without rows too


class Snapshot:
    """composite_events as it was at one moment; what `swap` builds on."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings
        none = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
        self._log: Any = tables.open_table(spark, settings, _NAME)._jdt.deltaLog()
        self._seen: Any = self._log.update(False, none, none)
        self.version = int(self._seen.version())

    def swap(self, files: Sequence[MatchFile], replaced: str, days: tuple[str, str], metadata: str) -> None:
        """Commits these files in place of the rows for which the condition `replaced` holds; all of them are detected
        between the two days. Raises Delta's errors of conflicts, see `concurrent`."""
        jvm: Any = self.spark._jvm
        none = jvm.scala.Option.empty()
        old = self._files_between(*days)
        touched, rest = self._replaced(replaced, days) if old else (set(), [])
        now = int(time.time() * 1000)
        actions = [file.removeWithTimestamp(now, True) for file in old if _base_name(file) in touched]
        if len(actions) != len(touched):  # rows would stand twice
            raise TableError(f"{tables.table_name(self.settings, _NAME)} has files that its log calls otherwise "
                             f"than they are called; rewrite the table (OPTIMIZE), then publish again")  # fmt: skip
        from_json = getattr(jvm.org.apache.spark.sql.delta.actions, "Action$").__getattr__("MODULE$").fromJson
        actions += [from_json(_added(file, now)) for file in (*files, *rest)]
        transaction = self._log.startTransaction(none, jvm.scala.Some(self._seen))
        transaction.readWholeTable()
        version = transaction.txnVersion(_APP)
        actions.append(from_json(json.dumps({"txn": {"appId": _APP, "version": version + 1, "lastUpdated": now}})))
        some = jvm.scala.Some
        operation = getattr(jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")(
            jvm.org.apache.spark.sql.SaveMode.Overwrite, some(_seq(jvm, list(COMPOSITE_EVENTS.partition_by))),
            some(replaced), some(metadata), none, none, none, none, none,
        )  # fmt: skip
        transaction.commit(_seq(jvm, actions), operation)

    def unheld(self, staged: DataFrame) -> dict[str, int]:
        """Constraint -> rows that break it, of the constraints that the table has beyond those of its contract."""
        own = {constraint.name.lower() for constraint in COMPOSITE_EVENTS.constraints}
        configured = self._configuration()
        if (mapping := configured.get("delta.columnMapping.mode", "none")) != "none":
            raise TableError(
                f"{tables.table_name(self.settings, _NAME)} maps its columns (delta.columnMapping.mode = {mapping}), "
                f"and runs write files with plain names; make the table anew without it"
            )
        others = {
            key.removeprefix("delta.constraints."): condition for key, condition in configured.items()
            if key.startswith("delta.constraints.") and key.removeprefix("delta.constraints.").lower() not in own
        }  # fmt: skip
        if not others:
            return {}
        counts = [F.count_if(F.expr(f"NOT ({condition})")).alias(name) for name, condition in sorted(others.items())]
        row = staged.agg(*counts).collect()[0]
        return {name: row[name] for name in sorted(others) if row[name]}

    def _configuration(self) -> dict[str, str]:
        entries = self._seen.metadata().configuration().iterator()
        found = {}
        while entries.hasNext():
            entry = entries.next()
            found[str(entry._1())] = str(entry._2())
        return found

    def _files_between(self, first: str, last: str) -> list[Any]:
        """The table's files whose rows are detected between these days."""
        day = f"partitionValues['{COMPOSITE_EVENTS.partition_by[0]}']"
        return list(self._seen.allFiles().filter(f"{day} >= '{first}' AND {day} <= '{last}'").collectAsList())

    def _replaced(self, replaced: str, days: tuple[str, str]) -> tuple[set[str], list[MatchFile]]:
        """The names of the files with a row that is replaced, and new files with their other rows."""
        rows = tables.read(self.spark, self.settings, _NAME, self.version)
        rows = rows.where(F.col(COMPOSITE_EVENTS.partition_by[0]).between(*days))  # other days are not even opened
        rows = rows.withColumn("_file", F.col("_metadata.file_name"))
        found = rows.where(replaced).select("_file").distinct().collect()
        touched = {row["_file"] for row in found}
        if not touched:
            return set(), []
        kept = rows.where(F.col("_file").isin(sorted(touched)) & ~F.coalesce(F.expr(replaced), F.lit(False)))
        return touched, write_frame(self.spark, self.settings, kept)


def write_frame(spark: SparkSession, settings: Settings, matches: DataFrame) -> list[MatchFile]:
    """Files of these rows of composite_events; no part of the table yet."""
    folder = tables.folder(spark, settings, _NAME)
    written = matches.select(*MATCH_ARROW.names).mapInArrow(write_batches(folder), FILE_SCHEMA)
    return [MatchFile.from_json(row["file"]) for row in written.collect()]


def concurrent(error: Exception) -> bool:
    """Whether Delta refused a commit because of another one."""
    text = f"{type(error).__name__} {error}"
    return "Concurrent" in text or "DELTA_CONCURRENT" in text or "ProtocolChanged" in text


def breaches(files: Sequence[MatchFile]) -> dict[str, int]:
    """Constraint -> rows of these files that break it."""
    found = {name: sum(file.breaches.get(name, 0) for file in files) for name in CONSTRAINTS}
    return {name: count for name, count in found.items() if count}


def check_there(spark: SparkSession, settings: Settings, files: Sequence[MatchFile], run_id: str) -> None:
    """Refuses files that are gone or changed."""
    folder = tables.folder(spark, settings, _NAME)
    for file in files:
        path, system = hadoop.at(spark, f"{folder}/{file.path}")
        if not system.exists(path) or system.getFileStatus(path).getLen() != file.size:
            raise PublishError(
                f"the staging of run {run_id} is not sound: its file {file.path} is gone or has changed (staged files "
                f"are kept for a week). Nothing was published; mine the range again"
            )


def _base_name(file: Any) -> str:
    return str(file.path()).rpartition("/")[2]


def _added(file: MatchFile, now_ms: int) -> str:
    return json.dumps({"add": {
        "path": file.path, "partitionValues": {COMPOSITE_EVENTS.partition_by[0]: file.day}, "size": file.size,
        "modificationTime": now_ms, "dataChange": True, "stats": json.dumps(file.stats),
    }})  # fmt: skip


def _seq(jvm: Any, values: list[Any]) -> Any:
    held = jvm.java.util.ArrayList()
    for value in values:
        held.add(value)
    return jvm.PythonUtils.toSeq(held)
