"""What a run is, and what is kept of it.

Enters: a request (range, queries, pins). Leaves: `Manifest`, the record of a run, kept beside its staging, in the
commit that publishes it, and as one row of `runs`.
Always holds: the commit of composite_events is the truth about what was published; `runs` follows it. A run that was
killed between the two gets its row from the commit's metadata at the next run (`reconcile`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cep_core.errors import TableError
from jobs import hadoop, tables
from schemas import RUNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Request:
    """What to mine: detection times in [from_us, to_us); `queries` None means all enabled ones of the catalogue.

    as_of pins the input tables to a moment, `versions` to given versions; both empty: as they are now. `prepared` is
    the run id under which the inputs were checked, where it is not `run_id`: their versions then are the checked ones.
    """

    from_us: int
    to_us: int
    queries: tuple[str, ...] | None = None
    as_of: datetime | None = None
    versions: tuple[tuple[str, int], ...] = ()
    run_id: str = ""
    recompute_state: bool = True
    prepared: str = ""

    @property
    def pinned(self) -> bool:
        return self.as_of is not None or bool(self.versions)


@dataclass(frozen=True)
class Manifest:
    """The record of one run. base_version: of composite_events when the run started. refused: why its staged matches
    may not be published; empty where no check says so."""

    run_id: str
    from_us: int
    to_us: int
    query_versions: dict[str, str]
    input_versions: dict[str, int]
    base_version: int
    started_us: int
    rows_read: int = 0
    rows_sent: int = 0
    engine_calls: int = 0
    matches: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    pinned: bool = False
    refused: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Manifest:
        return Manifest(**json.loads(text))

    def took(self, stage: str, seconds: float) -> Manifest:
        return replace(self, seconds={**self.seconds, stage: round(self.seconds.get(stage, 0.0) + seconds, 3)})

    @property
    def attempt(self) -> tuple[str, int]:
        """What tells this run from another one under the same id: a scheduler mines a cleared run under its old id."""
        return self.run_id, self.started_us

    @property
    def found(self) -> int:
        return sum(self.matches.values())

    def overlaps(self, other: Manifest) -> bool:
        return (
            self.from_us < other.to_us and other.from_us < self.to_us
            and not self.query_versions.keys().isdisjoint(other.query_versions)
        )  # fmt: skip

    @property
    def range_text(self) -> str:
        return f"{moment(self.from_us)} to {moment(self.to_us)}"


def moment(us: int) -> str:
    """Microseconds as a person and SQL read them.

    >>> moment(0)
    '1970-01-01T00:00:00Z'
    """
    days, rest = divmod(us, 86_400_000_000)
    try:
        day = datetime.fromordinal(_EPOCH.toordinal() + days)
    except (ValueError, OverflowError):
        return f"{us} us"
    seconds, micros = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day:%Y-%m-%d}T{clock}" + (f".{micros:06}Z" if micros else "Z")


def now_us() -> int:
    return (datetime.now(UTC) - _EPOCH) // _MICROSECOND


_MICROSECOND = datetime.resolution


def new_run_id(from_us: int, to_us: int) -> str:
    compact = "".join(c for c in f"{moment(from_us)}_{moment(to_us)}" if c not in "-:")
    return f"{compact}_{secrets.token_hex(4)}"


def staging_path(settings: Settings, run_id: str, part: str) -> str:
    return f"{settings.lake_path.rstrip('/')}/staging/{run_id}/{part}"


def write_manifest(spark: SparkSession, settings: Settings, manifest: Manifest) -> None:
    hadoop.write_text(spark, staging_path(settings, manifest.run_id, "manifest"), manifest.to_json())


def read_manifest(spark: SparkSession, settings: Settings, run_id: str) -> Manifest:
    text = hadoop.read_text(spark, staging_path(settings, run_id, "manifest"))
    if text is None:
        raise TableError(f"run {run_id} has no staging; mine it first (hindsight mine --stage --run-id {run_id})")
    return Manifest.from_json(text)


@dataclass(frozen=True)
class Prepared:
    """What the check of a run's inputs left for its mining: the versions of the tables that were checked, and how many
    rows of each table were set aside."""

    versions: dict[str, int]
    aside: dict[str, int]


def write_prepared(spark: SparkSession, settings: Settings, run_id: str, prepared: Prepared) -> None:
    hadoop.write_text(spark, staging_path(settings, run_id, "prepared"), json.dumps(asdict(prepared), sort_keys=True))


def read_prepared(spark: SparkSession, settings: Settings, run_id: str) -> Prepared | None:
    """None where the inputs were not checked under this id."""
    text = hadoop.read_text(spark, staging_path(settings, run_id, "prepared")) if run_id else None
    return None if text is None else Prepared(**json.loads(text))


def record(
    spark: SparkSession, settings: Settings, manifest: Manifest, outcome: str, message: str | None = None
) -> None:
    """One row of `runs`, appended: appends never conflict."""
    row = (
        manifest.run_id, manifest.from_us, manifest.to_us, outcome, message, manifest.started_us, now_us(),
        manifest.query_versions, manifest.input_versions, manifest.rows_read, manifest.rows_sent, manifest.engine_calls,
        manifest.matches, manifest.pinned, manifest.seconds,
    )  # fmt: skip
    plain = ("run_id string, from_us bigint, to_us bigint, outcome string, message string, started_us bigint, "
             "finished_us bigint, query_versions map<string,string>, input_versions map<string,bigint>, "
             "rows_read bigint, rows_sent bigint, engine_calls bigint, matches map<string,bigint>, "
             "pinned boolean, seconds map<string,double>")  # fmt: skip
    seconds = {name: float(value) for name, value in manifest.seconds.items()}
    frame = spark.createDataFrame([(*row[:-1], seconds)], plain).selectExpr(
        "run_id", "timestamp_micros(from_us) AS from_ts", "timestamp_micros(to_us) AS to_ts", "outcome", "message",
        "timestamp_micros(started_us) AS started_at", "timestamp_micros(finished_us) AS finished_at", "query_versions",
        "input_versions", "rows_read", "rows_sent", "engine_calls", "matches", "seconds", "pinned",
    )  # fmt: skip
    tables.append(spark, settings, RUNS, frame.coalesce(1))


def published_since(spark: SparkSession, settings: Settings, version: int) -> list[tuple[int, Manifest]]:
    """(version, manifest) of the commits of composite_events after `version` that published a run, oldest first."""
    newest = tables.version(spark, settings, "composite_events")
    if newest <= version:
        return []
    rows = tables.open_table(spark, settings, "composite_events").history(newest - version).collect()
    found = []
    for row in sorted(rows, key=lambda r: int(r["version"])):
        manifest = _of_commit(row["userMetadata"])
        if manifest is not None and row["version"] > version:
            found.append((int(row["version"]), manifest))
    return found


def _of_commit(metadata: str | None) -> Manifest | None:
    if not metadata or not metadata.startswith('{"base_version"'):
        return None
    return Manifest.from_json(metadata)


def reconcile(spark: SparkSession, settings: Settings, last: int = 50) -> list[str]:
    """Rows of `runs` for published runs that were killed before they could write theirs; the ids of those runs."""
    if not tables.table_exists(spark, settings, "composite_events"):
        return []
    newest = tables.version(spark, settings, "composite_events")
    recent = [manifest for _, manifest in published_since(spark, settings, max(newest - last, -1))]
    if not recent:
        return []
    have = recorded(spark, settings, [manifest.run_id for manifest in recent])
    missing = [manifest for manifest in recent if manifest.attempt not in have]
    for manifest in missing:
        record(
            spark, settings, manifest, "published" if manifest.found else "empty", "recorded after the run was killed"
        )
    return [manifest.run_id for manifest in missing]


def recorded(spark: SparkSession, settings: Settings, run_ids: Iterable[str]) -> set[tuple[str, int]]:
    """The attempts at these runs that `runs` has as published."""
    from pyspark.sql import functions as F

    known = tables.read(spark, settings, "runs").where("outcome IN ('published', 'empty')")
    rows = known.where(F.col("run_id").isin(sorted(set(run_ids)))).select("run_id", F.unix_micros("started_at"))
    return {(row[0], row[1]) for row in rows.collect()}


def published_as(
    spark: SparkSession, settings: Settings, run_id: str
) -> list[tuple[int, int, dict[str, str], dict[str, int]]]:
    """(from, to, query versions, input versions) of every time that this run was published."""
    from pyspark.sql import functions as F

    known = tables.read(spark, settings, "runs").where(F.col("run_id") == run_id)
    rows = known.where("outcome IN ('published', 'empty')").select(
        F.unix_micros("from_ts"), F.unix_micros("to_ts"), "query_versions", "input_versions"
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows.collect()]
