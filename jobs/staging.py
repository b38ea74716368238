"""What a run has found and not published: its files of matches, listed under staging/<run_id>.

Enters: files that workers have written (match_files.py), or rows. Leaves: the list of a run's files, and a DataFrame of
what they hold.
Always holds: the list is the staging: a file that it does not name is no part of the run, whoever wrote it. The files
lie in the folder of composite_events from the start, where only a commit makes them visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cep_core.errors import PublishError
from jobs import hadoop, tables
from jobs.commit import write_frame
from jobs.match_files import MatchFile
from jobs.runs import staging_path
from schemas import COMPOSITE_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings


def stage_files(spark: SparkSession, settings: Settings, run_id: str, files: Sequence[MatchFile]) -> None:
    """Makes these the run's files."""
    hadoop.write_text(spark, staging_path(settings, run_id, "matches"), "".join(f"{f.to_json()}\n" for f in files))


def stage_rows(spark: SparkSession, settings: Settings, run_id: str, matches: DataFrame) -> None:
    """Makes these rows of composite_events what the run has found."""
    stage_files(spark, settings, run_id, write_frame(spark, settings, matches))


def staged_files(spark: SparkSession, settings: Settings, run_id: str) -> list[MatchFile]:
    text = hadoop.read_text(spark, staging_path(settings, run_id, "matches"))
    if text is None:
        raise PublishError(f"run {run_id} has no staging; mine it first (hindsight mine --stage --run-id {run_id})")
    return [MatchFile.from_json(line) for line in text.splitlines()]


def staged_matches(spark: SparkSession, settings: Settings, run_id: str) -> DataFrame:
    """The staged matches in the columns of composite_events; the partition stands last."""
    return _read(spark, settings, run_id, COMPOSITE_EVENTS.ddl)


def stored_matches(spark: SparkSession, settings: Settings, run_id: str) -> DataFrame:
    """The staged matches with the columns and types that the files have."""
    return _read(spark, settings, run_id, None)


def _read(spark: SparkSession, settings: Settings, run_id: str, schema: str | None) -> DataFrame:
    files = staged_files(spark, settings, run_id)
    if not files:
        return spark.createDataFrame([], COMPOSITE_EVENTS.ddl)
    folder = tables.folder(spark, settings, COMPOSITE_EVENTS.name)
    reader = spark.read.option("basePath", folder)
    reader = reader if schema is None else reader.schema(schema)
    return reader.parquet(*(f"{folder}/{file.path}" for file in files))
