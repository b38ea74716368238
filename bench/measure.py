"""One measurement: one engine on one case, in a process of its own.

Enters: a case, an engine and a file with the case's events. Leaves: a result: CPU and wall seconds (the best of the
repeats), events a second, answers, peak memory, and a digest of the matches that is the same for the same matches in
any order.
Always holds: one thread; before the clock starts the engine has run once on the case's tiny workload and the events are
in memory. Seconds are CPU seconds, so that other work on the machine counts for nobody. Peak memory is what the
process held above its input and its code.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench import ours
from bench.cases import CASES
from bench.cold import cold
from bench.peers import PEERS
from bench.workloads import Workload

ONCE = ("alone", "python")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.measure")
    parser.add_argument("case", choices=CASES)
    parser.add_argument("engine")
    parser.add_argument("input", type=Path)
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--memory-gb", type=float, required=True)
    options = parser.parse_args()
    limit = int(options.memory_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    repeat = 1 if options.engine in ONCE else options.repeat
    print(json.dumps(measure(options.case, options.engine, read(options.input), repeat)))
    return 0


def write(workload: Workload, path: Path) -> None:
    """The workload as a file: the events in Arrow's format, the rest beside it."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, workload.events.schema) as writer:
        writer.write_table(workload.events)
    path.with_suffix(".rest").write_bytes(pickle.dumps(replace(workload, events=None)))  # type: ignore[arg-type]


def read(path: Path) -> Workload:
    with pa.OSFile(str(path), "rb") as file:
        events = pa.ipc.open_file(file).read_all()
    return replace(pickle.loads(path.with_suffix(".rest").read_bytes()), events=events)


def measure(name: str, engine: str, workload: Workload, repeat: int) -> dict[str, Any]:
    case = CASES[name]
    run = runner(engine, workload.shape)
    tiny = case.tiny_workload()
    run(replace(tiny, patterns=tiny.patterns[:20]))
    prepared = ours.prepared(workload) if engine == "prepared" else None
    seconds: list[float] = []
    elapsed: list[float] = []
    found: pa.Table = None
    started_mb = _reset_peak()
    for _ in range(repeat):
        del found
        wall, began = time.perf_counter(), _cpu_seconds()
        found = run(workload) if prepared is None else prepared()
        seconds.append(_cpu_seconds() - began)
        elapsed.append(time.perf_counter() - wall)
    peak_mb = _peak_mb()
    count = len(workload.events)
    result: dict[str, Any] = {
        "case": name,
        "engine": engine,
        "seconds": round(min(seconds), 4),
        "wall_seconds": round(min(elapsed), 4),
        "events_per_second": round(count / min(seconds)),
        "events": count,
        "queries": len(workload.patterns),
        "answers": ours.answers(found),
        "peak_mb": round(peak_mb - started_mb),
        "input_mb": round(workload.events.nbytes / 2**20),
        "digest": digest(found),
    }
    if engine == "prepared":
        result["store_bytes_per_event"] = round((peak_mb - started_mb) * 2**20 / count, 1)
    return result


def runner(engine: str, shape: str) -> Callable[[Workload], pa.Table]:
    own = {**ours.ENGINES, "cold": cold, "prepared": lambda workload: ours.prepared(workload)()}
    return own.get(engine) or PEERS[shape][engine]


def digest(found: pa.Table) -> str:
    """The same for the same matches in any order: sum and xor of a 64-bit hash of each."""
    import duckdb

    rows = pa.table({"r": ours.rows(found)})
    opened = duckdb.connect(config={"threads": 1})
    opened.register("rows", rows)
    sums = opened.sql("select count(*), coalesce(sum(hash(r)), 0), coalesce(bit_xor(hash(r)), 0) from rows")
    ((count, total, mixed),) = sums.fetchall()
    return f"{count}-{int(total) % 2**64:016x}{int(mixed):016x}"


def _cpu_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _reset_peak() -> float:
    """Forgets the peak so far, where the system can, and says what is held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0.0
    return _status_mb("VmRSS")


def _peak_mb() -> float:
    if Path("/proc/self/status").exists():
        return _status_mb("VmHWM")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _status_mb(name: str) -> float:
    for entry in Path("/proc/self/status").read_text().splitlines():
        if entry.startswith(name + ":"):
            return int(entry.split()[1]) / 1024
    return 0.0


def temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="hindsight-bench-")


if __name__ == "__main__":
    raise SystemExit(main())
