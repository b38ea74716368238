"""What the checks add to a job: one run over W1, its steps measured apart.

`python -m bench.quality [--events 2000000] [--queries 1000] [--repeat 1] [--folder DIR]`

Enters: sizes by option. Leaves: a table on standard output, and whether the target is met: the checks of inputs and
matches take at most 15% of the time of the job that they are made for (mining and publishing).
Always holds: one local Spark with all cores; before the clock starts a small table has gone through all steps, and
Great Expectations is loaded. `cpu` is CPU seconds of the JVM and all Python processes, which other work on the machine
disturbs less than the clock; the target is judged by it.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil

from bench.history import project_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

T = TypeVar("T")
TARGET = 0.15
STEPS = ("check inputs", "mine", "check matches", "publish")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.quality", description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keeps the tables for the next time")
    options = parser.parse_args()
    import jobs.quality_suites  # noqa: F401 - loaded before the clock starts
    from jobs.session import spark_session
    from jobs.settings import Settings

    meter = Meter()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="hindsight-quality-"))
    spark = spark_session(Settings(driver_memory="4g", project=folder), "bench quality")
    try:
        one_run(spark, project_settings(folder, min(50_000, options.events), options.queries), meter)
        settings = project_settings(folder, options.events, options.queries)
        runs = [one_run(spark, settings, meter) for _ in range(options.repeat)]
    finally:
        spark.stop()
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    best = min(runs, key=lambda run: sum(cpu for _, cpu in run.values()))
    print(f"{options.events:,} events, {options.queries:,} queries")
    for step, (seconds, cpu) in best.items():
        print(f"  {step:16}{seconds:9.1f} s{cpu:9.1f} cpu s")
    by_wall, by_cpu = (sum(best[s][n] for s in STEPS[::2]) / sum(best[s][n] for s in STEPS[1::2]) for n in (0, 1))
    verdict = "met" if by_cpu <= TARGET else "MISSED"
    ratios = f"{by_cpu:.1%} by CPU seconds, {by_wall:.1%} by the clock"
    checks, job = (sum(best[s][1] for s in steps) for steps in (STEPS[::2], STEPS[1::2]))
    print(f"  checks {checks:.1f} cpu s, the job without them {job:.1f} cpu s")
    print(f"  checks to the job: {ratios}; wanted <= {TARGET:.0%}: {verdict}")
    return 0 if by_cpu <= TARGET else 1


def one_run(spark: SparkSession, settings: Settings, meter: Meter) -> dict[str, tuple[float, float]]:
    """Step -> seconds by the clock and CPU seconds, of a run over the whole history without results before."""
    from jobs.mine import stage_run
    from jobs.publish import publish_run
    from jobs.quality import check_inputs, check_outputs
    from jobs.runs import Request

    for name in ("composite_events", "runs", "quality_results", "staging"):
        shutil.rmtree(Path(settings.lake_path) / name, ignore_errors=True)
    events = spark.read.format("delta").load(settings.in_lake("events"))
    first, last = events.selectExpr("unix_micros(min(ts)) AS a", "unix_micros(max(ts)) AS b").collect()[0]
    taken: dict[str, tuple[float, float]] = {}

    def timed(step: str, run: Callable[[], T]) -> T:
        began, cpu = time.monotonic(), meter.seconds()
        result = run()
        taken[step] = (time.monotonic() - began, meter.seconds() - cpu)
        print(f"    {step}: {taken[step][0]:.1f} s, {taken[step][1]:.1f} cpu s", file=sys.stderr, flush=True)
        return result

    request = timed(STEPS[0], lambda: check_inputs(spark, settings, Request(first, last + 86_400_000_000)))
    manifest = timed(STEPS[1], lambda: stage_run(spark, settings, request))
    timed(STEPS[2], lambda: check_outputs(spark, settings, manifest))
    timed(STEPS[3], lambda: publish_run(spark, settings, manifest.run_id))
    print(f"    {manifest.found:,} matches", file=sys.stderr, flush=True)
    return taken


class Meter:
    """CPU seconds of this process and all that it has started. Spark's Python workers are reaped by nobody, so what
    they took is gone with them: each process is looked at several times a second, and its last figure stays."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], float] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        with self._lock:
            own = psutil.Process()
            for process in (own, *own.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    self._seen[process.pid, process.create_time()] = times.user + times.system
            return sum(self._seen.values())

    def _watch(self) -> None:
        while True:
            time.sleep(0.2)
            self.seconds()


if __name__ == "__main__":
    sys.exit(main())
