"""Backfill: a long range mined in chunks.

Enters: a range, a chunk length, and which queries. Leaves: the range published, chunk by chunk, and a `Summary`.
Always holds: each chunk is one run, so a backfill that was stopped goes on where it was: a chunk is mined only for
those queries whose version has no published results for it. Chunks run side by side where no query consumes, in the
order of time where one does (each then starts from the state of the chunk before).
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from cep_core.errors import DeclarationError
from jobs.calls import Engine, shared_engine
from jobs.catalogue import Workload, load_workload
from jobs.coverage import coverage
from jobs.inputs import input_versions
from jobs.mine import stage_run
from jobs.publish import publish_run
from jobs.reach import consumes
from jobs.runs import Manifest, Request, moment, reconcile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

MOST_CHUNKS = 100_000
_BAR = 24


@dataclass(frozen=True)
class Summary:
    """What a backfill did: runs published, chunks that needed nothing, and what was found."""

    chunks: int
    skipped: int
    published: tuple[Manifest, ...]
    seconds: float

    @property
    def matches(self) -> int:
        return sum(manifest.found for manifest in self.published)

    def text(self) -> str:
        done = len({(manifest.from_us, manifest.to_us) for manifest in self.published})
        sent = sum(manifest.rows_sent for manifest in self.published)
        return (
            f"{self.chunks} chunks: {done} mined, {self.skipped} had their results already; {sent} events sent to the "
            f"engine, {self.matches} matches published, {self.seconds:.0f} s"
        )


def cut_range(from_us: int, to_us: int, chunk_us: int) -> list[tuple[int, int]]:
    """[from, to) in chunks that start at multiples of the chunk's length since the epoch, so that every backfill of the
    same chunk length cuts alike.

    >>> cut_range(5, 25, 10)
    [(5, 10), (10, 20), (20, 25)]
    """
    if chunk_us <= 0 or from_us >= to_us:
        raise DeclarationError("a backfill needs from before to, and a chunk longer than nothing")
    if (to_us - from_us) // chunk_us > MOST_CHUNKS:
        raise DeclarationError(f"more than {MOST_CHUNKS} chunks; take a longer chunk")
    first = (from_us // chunk_us + 1) * chunk_us
    edges = [from_us, *range(first, to_us, chunk_us), to_us]
    return list(pairwise(edges))


def backfill(
    spark: SparkSession,
    settings: Settings,
    request: Request,
    chunk_us: int,
    *,
    parallel: int = 1,
    again: bool = False,
    say: Callable[[str], None] = lambda _: None,
    screen: TextIO | None = None,
    prepare: Callable[[Request], Request] = lambda request: request,
    validate: Callable[[Manifest], None] = lambda _: None,
    engine: Engine = shared_engine,
) -> Summary:
    """Every chunk of the request's range. `again` mines also what has results. `parallel` chunks at once. `prepare`
    sees the range from the first chunk to be mined to the last, once; `validate` each run before it is published."""
    began = time.monotonic()
    chunks = cut_range(request.from_us, request.to_us, chunk_us)
    workload = load_workload(settings, request.queries)
    for run_id in reconcile(spark, settings):
        say(f"run {run_id} was killed after it had published; its row in runs is written now")
    known = coverage(spark, settings, request.from_us, request.to_us, _pins(spark, settings, request, workload))
    everything = tuple(workload.versions)
    plan = [(chunk, everything if again else known.lacking(workload.versions, *chunk)) for chunk in chunks]
    todo = [part for part in plan if part[1]]
    say(f"{len(chunks)} chunks from {moment(request.from_us)} to {moment(request.to_us)}: {len(todo)} to mine, "
        f"{len(chunks) - len(todo)} have their results")  # fmt: skip
    if todo:
        request = prepare(replace(request, from_us=todo[0][0][0], to_us=todo[-1][0][1]))
    bar = Progress(len(todo), screen if screen is not None else sys.stderr)
    lock = threading.Lock()

    def one(chunk: tuple[int, int], queries: tuple[str, ...]) -> Manifest:
        part = replace(request, from_us=chunk[0], to_us=chunk[1], queries=queries, run_id="")
        manifest = stage_run(spark, settings, part, say=say, engine=engine)
        validate(manifest)
        with lock:  # commits of one process need not race each other
            manifest = publish_run(spark, settings, manifest.run_id, say)
            runs_left[chunk] -= 1
            bar.done(manifest, runs_left[chunk] == 0)
        return manifest

    apart = []
    for chunk, names in todo:
        in_order = tuple(name for name in names if consumes(name, workload.checked))
        apart.append((chunk, in_order, tuple(name for name in names if name not in in_order)))
    jobs = [(chunk, free) for chunk, _, free in apart if free]
    ordered = [(chunk, names) for chunk, names, _ in apart if names]
    if parallel <= 1:
        # one run for both kinds of queries reads the tables once
        runs_left = Counter(chunk for chunk, _ in todo)
        published = [one(chunk, names) for chunk, names in todo]
    else:
        runs_left = Counter(chunk for chunk, _ in [*jobs, *ordered])
        published = _side_by_side(one, jobs, ordered, parallel)
    bar.end()
    return Summary(len(chunks), len(chunks) - len(todo), tuple(published), time.monotonic() - began)


def _pins(spark: SparkSession, settings: Settings, request: Request, workload: Workload) -> dict[str, int] | None:
    """The versions that a pinned request reads; None: it reads the tables as they are."""
    if not request.pinned:
        return None
    return dict(request.versions) or input_versions(
        spark, settings, workload.declarations, workload.classes, request.as_of
    )


_Job = tuple[tuple[int, int], tuple[str, ...]]


def _side_by_side(
    one: Callable[[tuple[int, int], tuple[str, ...]], Manifest], jobs: list[_Job], ordered: list[_Job], parallel: int
) -> list[Manifest]:
    """`jobs` in any order, `ordered` one after the other beside them. The first failure stops what has not begun."""
    stop = threading.Event()

    def guarded(chunk: tuple[int, int], names: tuple[str, ...]) -> list[Manifest]:
        return [] if stop.is_set() else [one(chunk, names)]

    def in_turn() -> list[Manifest]:
        return [manifest for chunk, names in ordered for manifest in guarded(chunk, names)]

    with ThreadPoolExecutor(parallel) as pool:
        waiting: list[Future[list[Manifest]]] = [pool.submit(in_turn)] if ordered else []
        waiting += [pool.submit(guarded, chunk, names) for chunk, names in jobs]
        finished, _ = wait(waiting, return_when=FIRST_EXCEPTION)
        failed = [future for future in finished if future.exception() is not None]
        if failed:
            stop.set()
    for future in waiting:
        if (error := future.exception()) is not None:
            raise error
    return [manifest for future in waiting for manifest in future.result()]


class Progress:
    """A bar with the time left: one line that redraws itself on a terminal, a line per chunk elsewhere."""

    def __init__(self, total: int, screen: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._screen, self._clock = total, screen, clock
        self._began, self._count, self._matches = clock(), 0, 0
        self._lock = threading.Lock()

    def done(self, manifest: Manifest, whole: bool = True) -> None:
        """A run has landed; `whole`: it was the last one of its chunk."""
        with self._lock:
            self._count += whole
            self._matches += manifest.found
            end = "\r" if self._screen.isatty() else "\n"
            self._screen.write(self.line() + end)
            self._screen.flush()

    def line(self) -> str:
        share = self._count / self._total if self._total else 1.0
        filled = round(share * _BAR)
        spent = self._clock() - self._began
        left = spent / self._count * (max(self._total - self._count, 0)) if self._count else 0.0
        bar = "#" * filled + "." * (_BAR - filled)
        return f"[{bar}] {self._count}/{self._total} chunks, {self._matches} matches, {_clock(left)} left"

    def end(self) -> None:
        if self._total and self._screen.isatty():
            self._screen.write("\n")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
