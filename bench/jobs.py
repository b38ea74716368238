"""The Spark jobs: against the same job without its engine, against Spark SQL, and against themselves at other sizes.

`python -m bench.jobs [--events 2000000] [--case NAME ...] [--repeat 2] [--json FILE] [--folder DIR]`

Enters: sizes by option. Leaves: a table on standard output with each target and whether it is met, and JSON, written
after each case, from which bench/report.py makes the page.
Always holds: one local Spark with all cores for the whole run; every figure is the best of its repeats, after runs on a
small table, with the engine and without, that load and compile the code; what others are judged against is never
measured first. `seconds` is wall time, `cpu` the CPU seconds of the JVM and all Python workers, which other work on the
machine disturbs less. What is compared found the same matches, or the run fails.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.engine import machine
from bench.history import FIRST_US, SPAN_US, project_settings
from bench.workloads import w1

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.settings import Settings

DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Figure:
    """One thing measured. worker_mb: the most that one Python worker held."""

    what: str
    events: int
    seconds: float
    cpu: float
    matches: int
    digest: str
    worker_mb: int


@dataclass(frozen=True)
class Target:
    """A promise of the jobs: a ratio and its bound. CPU seconds decide, wall seconds are shown."""

    what: str
    ratio: float
    by_wall: float
    bound: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound

    def text(self) -> str:
        verdict, sign = "met" if self.met else "MISSED", ">=" if self.at_least else "<="
        figures = f"{self.ratio:.2f} by CPU seconds, {self.by_wall:.2f} by the clock"
        return f"{self.what}: {figures}; wanted {sign} {self.bound:g}: {verdict}"


class Bench:
    """The session, the projects made so far, and what was measured."""

    def __init__(self, spark: SparkSession, folder: Path, events: int, queries: int, repeat: int) -> None:
        self.spark, self.folder, self.events, self.queries, self.repeat = spark, folder, events, queries, repeat
        self.figures: list[Figure] = []
        self.targets: list[Target] = []

    def settings(self, events: int, hot: float = 0.0, **flags: object) -> Settings:
        """A project with so many events, made once."""
        return project_settings(self.folder, events, self.queries, hot, **flags)

    def job(self, what: str, settings: Settings, events: int, engine: Any = None, repeat: int = 0) -> Figure:
        """`hindsight mine` over the whole history, tables of results fresh each time."""
        from jobs.calls import shared_engine
        from jobs.mine import mine
        from jobs.runs import Request

        def run() -> tuple[int, str]:
            manifest = mine(self.spark, settings, Request(FIRST_US, FIRST_US + SPAN_US + DAY_US),
                            engine=engine or shared_engine)  # fmt: skip
            print(f"    {what}: {manifest.seconds}, {manifest.engine_calls} calls", file=sys.stderr, flush=True)
            return manifest.found, ""

        def clean() -> None:
            for name in ("composite_events", "runs", "staging"):
                shutil.rmtree(Path(settings.lake_path) / name, ignore_errors=True)

        figure = self.measured(what, events, run, clean, repeat)
        return self.kept(replace(figure, digest=digest(published(self.spark, settings))))

    def measured(
        self, what: str, events: int, run: Callable[[], tuple[int, str]], clean: Callable[[], None], repeat: int = 0
    ) -> Figure:
        best: Figure | None = None
        for _ in range(repeat or self.repeat):
            clean()
            with Watch() as watch:
                matches, found = run()
            figure = Figure(what, events, watch.seconds, watch.cpu, matches, found, watch.worker_mb)
            if best is None or figure.cpu < best.cpu:
                best = figure
        assert best is not None
        return best

    def kept(self, figure: Figure) -> Figure:
        self.figures.append(figure)
        print(f"  {figure.what:44}{figure.events:>11,}{figure.seconds:9.1f} s{figure.cpu:9.1f} cpu s"
              f"{figure.matches:>11,} matches{figure.worker_mb:6} MB a worker", flush=True)  # fmt: skip
        return figure

    def target(self, what: str, above: Figure, below: Figure, bound: float, at_least: bool = False) -> None:
        """The ratio of two figures, per event."""
        per_event = below.events / above.events
        self.targets.append(Target(what, round(above.cpu / below.cpu * per_event, 3),
                                   round(above.seconds / below.seconds * per_event, 3), bound, at_least))  # fmt: skip
        print(f"  {self.targets[-1].text()}", flush=True)

    def same(self, one: Figure, other: Figure) -> None:
        if (one.matches, one.digest) != (other.matches, other.digest):
            raise SystemExit(f"{one.what} and {other.what} found different matches: {one} {other}")


def floor(bench: Bench) -> None:
    """What the engine and its matches add to a job."""
    from jobs.calls import no_engine

    settings = bench.settings(bench.events)
    whole = bench.job("job", settings, bench.events)
    without = bench.job("job without its engine", settings, bench.events, no_engine)
    bench.target("job to the same job without its engine", whole, without, 1.5)


def sql(bench: Bench) -> None:
    """The same patterns in Spark SQL, the matches written to a Delta table as well."""
    from bench.spark_sql import bucket_join

    settings = bench.settings(bench.events)
    patterns = w1(1, bench.queries, sources=1).patterns
    target = f"{settings.lake_path}/by_sql"
    ours = bench.job("job", settings, bench.events)

    def run() -> tuple[int, str]:
        events = bench.spark.read.format("delta").load(f"{settings.lake_path}/events")
        bucket_join(bench.spark, events, patterns).write.format("delta").save(target)
        written = bench.spark.read.format("delta").load(target)
        return written.count(), ""

    figure = bench.measured(
        "Spark SQL, bucket join", bench.events, run, lambda: shutil.rmtree(target, ignore_errors=True), 1
    )
    theirs = bench.kept(replace(figure, digest=digest(bench.spark.read.format("delta").load(target))))
    bench.same(ours, theirs)
    bench.target("Spark SQL to the job", theirs, ours, 10, at_least=True)


def flat(bench: Bench) -> None:
    """Time per event at eight times the events."""
    small, large = bench.events // 4, bench.events * 2
    one = bench.job("job", bench.settings(small), small)
    other = bench.job("job", bench.settings(large), large, repeat=1)
    bench.target(f"time per event, {large:,} to {small:,} events", other, one, 1.2)


def memory(bench: Bench) -> None:
    """What a worker holds follows the setting, not the table."""
    rows = bench.events // 16
    few = bench.job(f"job, rows_per_call={rows}", bench.settings(bench.events // 4, rows_per_call=rows),
                    bench.events // 4, repeat=1)  # fmt: skip
    many = bench.job(f"job, rows_per_call={rows}", bench.settings(bench.events, rows_per_call=rows),
                     bench.events, repeat=1)  # fmt: skip
    ratio = round(many.worker_mb / max(few.worker_mb, 1), 3)
    bench.targets.append(Target("worker memory at four times the table", ratio, ratio, 1.2, False))
    print(f"  {bench.targets[-1].text()}", flush=True)


def skew(bench: Bench) -> None:
    """One source with 30% of all events."""
    uniform = bench.job("job", bench.settings(bench.events), bench.events)
    hot = bench.job("job, one source with 30%", bench.settings(bench.events, 0.3), bench.events)
    bench.target("skewed to uniform", hot, uniform, 2)


def packs(bench: Bench) -> None:
    """The same history mined again, from packs."""
    from jobs.calls import no_engine
    from jobs.catalogue import load_workload
    from jobs.packs import refresh_packs

    settings = bench.settings(bench.events)
    shutil.rmtree(Path(settings.lake_path) / "packs", ignore_errors=True)
    first = bench.job("job, from the declared table", settings, bench.events)

    def run() -> tuple[int, str]:
        refresh_packs(bench.spark, settings, load_workload(settings))
        return 0, ""

    bench.kept(bench.measured("packing", bench.events, run, lambda: None, 1))
    again = bench.job("job, from packs", settings, bench.events)
    bench.job("job without its engine, from packs", settings, bench.events, no_engine)
    shutil.rmtree(Path(settings.lake_path) / "packs")
    bench.same(first, again)
    bench.target("mining from the table to mining from packs", first, again, 1.5, at_least=True)


CASES: dict[str, Callable[[Bench], None]] = {
    "floor": floor, "sql": sql, "flat": flat, "memory": memory, "skew": skew, "packs": packs
}  # fmt: skip


def published(spark: SparkSession, settings: Settings) -> DataFrame:
    from jobs import tables

    return tables.read(spark, settings, "composite_events").selectExpr(
        "query_id AS q", "transform(members, m -> m.event_id) AS ids"
    )


def digest(matches: DataFrame) -> str:
    """The same for the same rows (q, ids) in any order: their number, and sum and xor of a 64-bit hash of each."""
    row = matches.selectExpr("xxhash64(q, ids) AS h").selectExpr(
        "count(*)", "sum(cast(h AS decimal(38,0)))", "bit_xor(h)"
    ).collect()[0]  # fmt: skip
    return "/".join(str(value) for value in row)


class Watch:
    """Wall and CPU seconds of this process and all below it, and the largest Python worker."""

    def __enter__(self) -> Watch:
        self._stop = threading.Event()
        self.worker_mb = 0
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._before, self._began = _cpu(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, after = time.monotonic() - self._began, _cpu()
        self.cpu = sum(used - self._before.get(pid, 0.0) for pid, used in after.items())
        self._stop.set()
        self._sampler.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.1):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "pyspark.daemon" in " ".join(process.cmdline()):
                        self.worker_mb = max(self.worker_mb, process.memory_info().rss >> 20)
                except psutil.Error:
                    continue


def _cpu() -> dict[int, float]:
    used: dict[int, float] = {}
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        used[process.pid] = times.user + times.system
    return used


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.jobs", description="The Spark jobs on W1.")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--case", action="append", choices=CASES, help="only these (default: all)")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", help="where the projects are made and kept (default: a folder that is removed)")
    parser.add_argument("--json", help="write the figures to this file too")
    parser.add_argument("--note", default="", help="how the run was made, for the page")
    options = parser.parse_args(arguments)
    from jobs.calls import no_engine
    from jobs.session import spark_session
    from jobs.settings import Settings

    where = machine() | {"pyspark": version("pyspark"), "delta-spark": version("delta-spark")}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        spark = spark_session(Settings(lake=str(folder / "session"), project=folder), "bench")
        bench = Bench(spark, folder, options.events, options.queries, options.repeat)
        warm = min(options.events, 200_000)
        bench.job("warming up", bench.settings(warm), warm, repeat=2)
        bench.job("warming up without the engine", bench.settings(warm), warm, no_engine, repeat=1)
        bench.figures.clear()
        for name in options.case or CASES:
            print(f"{name}: {(CASES[name].__doc__ or '').splitlines()[0]}", flush=True)
            CASES[name](bench)
            if options.json:  # after each case: a run that is cut off has still measured what it measured
                content = {"machine": where, "events": options.events, "queries": options.queries,
                           "figures": [asdict(figure) for figure in bench.figures],
                           "targets": [asdict(target) | {"met": target.met} for target in bench.targets]}  # fmt: skip
                content |= {"note": options.note} if options.note else {}
                Path(options.json).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
