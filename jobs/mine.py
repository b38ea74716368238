"""The mining job: declared tables in, staged matches out; and the whole run, with publishing.

Enters: a request. Leaves: staging/<run_id>: the list of the files of matches, states of CONSUME queries, and the
manifest. `mine` also checks and publishes it.
Always holds: input tables are read at versions taken once; the matches are those of one engine run over the history,
however the work was cut. No table has changed before publishing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cep_core.errors import EventError, HindsightError, StateError, TableError
from jobs import hadoop, tables
from jobs.calls import CALL_SCHEMA, Engine, Origin, Work, make_call, shared_engine
from jobs.catalogue import Workload, load_workload
from jobs.check import check_declarations
from jobs.distribute import Group, Layout, cut_times, group_queries, lay_out
from jobs.encode import CUT_ROWS, NUMBER
from jobs.inputs import input_versions
from jobs.match_files import MatchFile
from jobs.packed import count_packs, open_shelf, packable, route_packs
from jobs.packs import Packing, refresh_packs, usable_packing
from jobs.primitives import Keep, read_primitives
from jobs.prune import needed_rows
from jobs.publish import publish_run
from jobs.quality import quarantined
from jobs.route import Counts, Frame, count_events, route
from jobs.runs import (
    Manifest,
    Request,
    moment,
    new_run_id,
    now_us,
    read_prepared,
    reconcile,
    record,
    staging_path,
    write_manifest,
)  # fmt: skip
from jobs.spark_errors import SPARK_ERRORS, engine_errors
from jobs.staging import stage_files
from jobs.state import BEGINNING_US, join_states, nearest_state, split_state, stage_state
from schemas import COMPOSITE_EVENTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from jobs.settings import Settings

Say = Callable[[str], None]
Validate = Callable[[Manifest], None]


def mine(
    spark: SparkSession, settings: Settings, request: Request, *, say: Say = lambda _: None,
    validate: Validate = lambda _: None, engine: Engine = shared_engine,
) -> Manifest:  # fmt: skip
    """One run: stage, validate, publish. A failure is a row of `runs` too."""
    manifest = stage_run(spark, settings, request, say=say, engine=engine)
    validate(manifest)
    with engine_errors():
        return publish_run(spark, settings, manifest.run_id, say)


def stage_run(
    spark: SparkSession, settings: Settings, request: Request, *, say: Say = lambda _: None,
    engine: Engine = shared_engine,
) -> Manifest:  # fmt: skip
    """Mines into staging. The same run id again replaces what it left before."""
    workload = load_workload(settings, request.queries)
    check_declarations(spark, settings, workload.declarations, workload.classes)
    for run_id in reconcile(spark, settings):
        say(f"run {run_id} was killed after it had published; its row in runs is written now")
    tables.ensure_table(spark, settings, COMPOSITE_EVENTS)
    prepared = read_prepared(spark, settings, request.prepared or request.run_id)
    if settings.packs and not request.pinned:
        refresh_packs(spark, settings, workload, say)
    versions = dict(request.versions) or input_versions(
        spark, settings, workload.declarations, workload.classes, request.as_of
    ) | (prepared.versions if prepared else {})
    manifest = Manifest(
        request.run_id or new_run_id(request.from_us, request.to_us), request.from_us, request.to_us,
        workload.versions, versions, tables.version(spark, settings, "composite_events"), now_us(),
        pinned=request.pinned,
    )  # fmt: skip
    try:
        with engine_errors():
            # Only what was counted by a check of the inputs may be left out.
            keep = quarantined(settings, workload) if prepared else None
            manifest = _Run(spark, settings, request, workload, manifest, engine, say, keep).stage()
    except HindsightError as error:
        with suppress(*SPARK_ERRORS, TableError):  # where nothing can be written, the reason is what matters
            record(spark, settings, manifest, "failed", str(error)[:2000])
        raise
    with engine_errors():
        write_manifest(spark, settings, manifest)
    return manifest


@dataclass
class _Run:
    """One run under way: the steps share what was loaded, and the manifest grows with each."""

    spark: SparkSession
    settings: Settings
    request: Request
    workload: Workload
    manifest: Manifest
    engine: Engine
    say: Say
    keep: Keep | None
    files: list[MatchFile] = field(default_factory=list)

    def stage(self) -> Manifest:
        for part in ("matches", "state"):
            hadoop.remove(self.spark, staging_path(self.settings, self.manifest.run_id, part))
        groups = group_queries(self.workload.versions, self.workload.checked, self.workload.schema)
        stateless = [group for group in groups if not group.stateful]
        for group in groups:
            self.say(f"group {group.number}: {group.describe()}, lookback {group.lookback_us / 1e6:g} s")
        packing = usable_packing(self.spark, self.settings, self.workload, self.manifest.input_versions)
        if packing is not None and (packed := [group for group in stateless if packable(group)]):
            self.say(f"groups {', '.join(str(group.number) for group in packed)} are mined from packs")
            stateless = [group for group in stateless if not packable(group)]
            self._packed(packed, packing)
        if stateless:
            self._stateless(stateless)
        for group in groups:
            if group.stateful:
                self._stateful(group)
        stage_files(self.spark, self.settings, self.manifest.run_id, self.files)
        found = dict.fromkeys(self.workload.versions, 0)
        for file in self.files:
            for name, count in file.matches.items():
                found[name] += count
        self.manifest = replace(self.manifest, matches=found)
        done = self.manifest
        self.say(f"read {done.rows_read} events, sent {done.rows_sent} to {done.engine_calls} engine calls, "
                 f"found {done.found} matches")  # fmt: skip
        return self.manifest

    def _packed(self, groups: list[Group], packing: Packing) -> None:
        """The same as `_stateless`, from the packs."""
        start, end = self.request.from_us, self.request.to_us
        began = time.monotonic()
        shelf = open_shelf(
            self.spark, self.settings, packing, start - max(group.lookback_us for group in groups), end
        )  # fmt: skip
        layouts: list[Layout] = []
        for group in groups:
            numbered = sum(len(layout.tasks) for layout in layouts)
            counts = count_packs(shelf, group, start, end)
            self.manifest = replace(self.manifest, rows_read=self.manifest.rows_read + counts.total)
            layouts.append(self._lay_out(group, counts, start, end, numbered))
        self.manifest = self.manifest.took("count", time.monotonic() - began)
        if any(layout.tasks for layout in layouts):
            self._call(route_packs(self.spark, shelf, layouts), layouts)

    def _stateless(self, groups: list[Group]) -> None:
        start, end = self.request.from_us, self.request.to_us
        events, needs = self._events(groups, start, end)
        counts = self._count(events, groups, needs, start, end)
        layouts: list[Layout] = []
        for group in groups:
            numbered = sum(len(layout.tasks) for layout in layouts)
            layouts.append(self._lay_out(group, counts[group.number], start, end, numbered))
        if any(layout.tasks for layout in layouts):
            self._call(self._route(events, layouts, needs, start, end), layouts)

    def _stateful(self, group: Group) -> None:
        """From the nearest known state on, in rounds that follow one another where the rows per call demand it."""
        consuming = {
            name: self.workload.checked[name].version
            for name in group.queries if self.workload.checked[name].query.consume != "none"
        }  # fmt: skip
        end = self.request.to_us
        start, state = self._state_before(group, consuming)
        events, needs = self._events([group], start, end)
        counts = self._count(events, [group], needs, start, end)[group.number]
        largest = counts.rows[int(counts.rows.sum(axis=1).argmax())]
        limit = self.settings.rows_per_call
        edges = cut_times(largest, counts.low_us, counts.cell_us, start, end, group.lookback_us, limit)
        for low, high in pairwise(edges):
            part = counts if len(edges) == 2 else self._count(events, [group], needs, low, high)[group.number]
            layout = self._lay_out(group, part, low, high, 0)
            if layout.tasks:
                routed = self._route(events, [layout], needs, low, high)
                state = self._call(routed, [layout], state) or state
        if not self.request.pinned:
            targets = set(self.workload.versions)
            parts = split_state(state, [name for name in consuming if name in targets])
            if parts:
                stage_state(self.spark, self.settings, self.manifest.run_id, parts, BEGINNING_US)

    def _state_before(self, group: Group, consuming: dict[str, str]) -> tuple[int, bytes]:
        """Where to begin, and the state there."""
        latest = self.request.from_us - group.settle_us
        none = join_states([])
        found = None if self.request.pinned else nearest_state(self.spark, self.settings, consuming, latest)
        if found is not None and found[0] == self.request.from_us:
            return found
        events, needs = self._events([group], found[0] if found else BEGINNING_US, self.request.from_us)
        condition = needs[group.number] & (F.col("end_ts") >= (found[0] if found else BEGINNING_US))
        first = events.where(condition).agg(F.min("end_ts")).collect()[0][0]
        if first is None:  # nothing happened in between, so nothing was consumed
            return (self.request.from_us, found[1] if found else none)
        begin = found[0] if found else first
        if not self.request.recompute_state:
            raise StateError(
                f"{', '.join(sorted(consuming))}: CONSUME needs the state at {moment(latest)}, which no run left; run "
                f"{moment(begin)} to {moment(self.request.from_us)} first (hindsight backfill), or let it be recomputed"
            )
        self.say(f"group {group.number}: no state at {moment(latest)}; going back to {moment(begin)}")
        return begin, found[1] if found else none

    def _events(self, groups: Sequence[Group], start: int, end: int) -> tuple[DataFrame, dict[int, Column]]:
        classes = sorted({name for group in groups for name in group.classes})
        pairs = {
            pair for group in groups for name in group.queries for pair in self.workload.checked[name].attributes
        } | {(c, a) for group in groups for c, a in group.key_of.items() if a != "source"}
        low = start - max(group.lookback_us for group in groups)
        events = read_primitives(
            self.spark, self.settings, self.workload.declarations, classes, pairs, max(low, BEGINNING_US), end,
            self.manifest.input_versions, self.keep,
        )  # fmt: skip
        schema = self.workload.schema
        return events, {group.number: needed_rows(group, self.workload.checked, schema) for group in groups}

    def _count(
        self, events: DataFrame, groups: Sequence[Group], needs: dict[int, Column], start: int, end: int
    ) -> dict[int, Counts]:
        began = time.monotonic()
        counts, unusable = count_events(events, groups, needs, start, end)
        if unusable:
            raise EventError(f"{unusable} events have no event_id, no time, or end before they start; correct "
                             f"the table, filter them out in the declaration (where:), or set them aside "
                             f"(`quarantine: true` in conf/quality.yaml, and hindsight prepare)")  # fmt: skip
        read = sum(part.total for part in counts.values())
        self.manifest = replace(self.manifest, rows_read=self.manifest.rows_read + read)
        self.manifest = self.manifest.took("count", time.monotonic() - began)
        return counts

    def _lay_out(self, group: Group, counts: Counts, start: int, end: int, numbered: int) -> Layout:
        return lay_out(
            group, counts.rows, counts.low_us, counts.cell_us, start, end, self.settings.rows_per_call,
            self.spark.sparkContext.defaultParallelism, numbered,
        )  # fmt: skip

    def _route(
        self, events: DataFrame, layouts: Sequence[Layout], needs: dict[int, Column], start: int, end: int
    ) -> DataFrame:
        frame = self._frame(layouts)
        return route(events, layouts, needs, frame, start, end, min(self.settings.rows_per_call, CUT_ROWS))

    def _work(self, group: Group, columns: tuple[str, ...]) -> Work:
        import cep_core

        checked = self.workload.checked
        texts = {name: self.workload.texts[name] for name in group.queries}
        prepared = cep_core.prepare(texts, self.workload.schema)
        versions = {name: checked[name].version for name in group.targets}
        origin = Origin(
            self.manifest.run_id, self.manifest.input_versions, self.manifest.from_us, self.manifest.to_us,
            tables.folder(self.spark, self.settings, COMPOSITE_EVENTS.name),
        )  # fmt: skip
        return Work(origin, prepared, columns, group.classes, group.lookback_us, versions, self._limit(group))

    def _limit(self, group: Group) -> int | dict[str, int]:
        """Most answers per partition: the setting, or of each query where some have a limit of their own."""
        limits = {
            name: self.workload.limits.get(name, self.settings.answers_per_partition) for name in group.queries
        }  # fmt: skip
        return limits if len(set(limits.values())) > 1 else next(iter(limits.values()))

    def _frame(self, layouts: Sequence[Layout]) -> Frame:
        """What rows must hold for these groups: their classes, and the attributes that their queries read."""
        workload = self.workload
        classes = tuple(sorted({name for layout in layouts for name in layout.group.classes}))
        queries = {name for layout in layouts for name in layout.group.queries}
        read = {a for name in queries for c, a in workload.checked[name].attributes if c in classes}
        read |= {a for layout in layouts for c, a in layout.group.key_of.items()}
        types = workload.declarations.attribute_types()
        return Frame(tuple((name, types[name]) for name in sorted(read - {"source"})), *workload.shape(classes))

    def _call(self, routed: DataFrame, layouts: Sequence[Layout], state: bytes | None = None) -> bytes | None:
        """One applyInPandas over the packs of each task; its files of matches are the run's. With a state before the
        calls also the state after them."""
        tasks = tuple(task for layout in layouts for task in layout.tasks)
        columns = ("start_ts", *self._frame(layouts).columns)
        began = time.monotonic()
        work = {layout.group.number: replace(self._work(layout.group, columns), state=state) for layout in layouts}
        sent = self.spark.sparkContext.broadcast(work)
        calls = routed.groupBy(NUMBER).applyInPandas(make_call(tasks, sent, self.engine), CALL_SCHEMA).collect()
        sent.unpersist()
        self.files += [MatchFile.from_json(call["file"]) for call in calls if call["file"] is not None]
        rows = [call["rows"] for call in calls if call["rows"] is not None]
        self.manifest = replace(
            self.manifest, rows_sent=self.manifest.rows_sent + sum(rows),
            engine_calls=self.manifest.engine_calls + len(rows),
        ).took("mine", time.monotonic() - began)  # fmt: skip
        left = [bytes(call["state"]) for call in calls if call["state"] is not None]
        return join_states(left) if state is not None else None
