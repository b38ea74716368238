"""The engine against its peers: seconds, events a second, peak memory and ratios, from one run on one machine.

`python -m bench.engine [--events 2000000] [--case NAME ...] [--repeat 3] [--json FILE]`

Enters: sizes by option. Leaves: a table on standard output, and JSON where asked for.
Always holds: each measurement is a process of its own with one thread, from an in-memory Arrow table to a
materialised table of matches, after one run on a small table to load code. Seconds are CPU seconds of that process, so
that other work on the machine counts for nobody; wall seconds stand in the JSON. The best of the repeats counts. All
engines of a case must find the same matches, or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

THREADS = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
PEERS = ("duckdb", "polars")


@dataclass(frozen=True)
class Case:
    """name -> how to make its workload, and who runs it. `share` of the events is used (answers grow faster than
    events)."""

    workload: str
    options: dict[str, object]
    engines: tuple[str, ...]
    share: float = 1.0


def _w1(
    queries: int,
    select: str,
    ordered: bool = False,
    sources: int = 1000,
    engines: tuple[str, ...] = ("walk", *PEERS),
    kind: str = "seq",
    size: int = 3,
    share: float = 1.0,
) -> Case:
    options = {"queries": queries, "select": select, "ordered": ordered, "sources": sources, "kind": kind, "size": size}
    return Case("w1", options, engines, share)


CASES: dict[str, Case] = {
    "w1-all-1": _w1(1, "all"),
    "w1-all-10": _w1(10, "all"),
    "w1-all-100": _w1(100, "all"),
    "w1-all-1000": _w1(1000, "all"),
    "w1-recent-1": _w1(1, "recent"),
    "w1-recent-10": _w1(10, "recent"),
    "w1-recent-100": _w1(100, "recent"),
    "w1-recent-1000": _w1(1000, "recent"),
    "w1-all-1000-sorted": _w1(1000, "all", ordered=True),
    "w1-recent-1000-sorted": _w1(1000, "recent", ordered=True),
    "w1-all-5000": _w1(5000, "all", engines=("walk",)),
    "w1-recent-5000": _w1(5000, "recent", engines=("walk",)),
    "w1-recent-1000-100k-sources": _w1(1000, "recent", sources=100_000, engines=("walk",)),
    "w1-all-1000-100k-sources": _w1(1000, "all", sources=100_000, engines=("walk",)),
    "w1-recent-5000-sharing": _w1(5000, "recent", engines=("walk", "one-by-one"), share=0.1),
    "w1c-and-1000": _w1(1000, "all", kind="and", engines=("walk",)),
    "w1c-or-1000": _w1(1000, "all", kind="or", size=5, engines=("walk",), share=0.01),
    **{f"w2-length-{n}": Case("w2", {"length": n, "window_ms": 10_000}, ("walk", *PEERS)) for n in (2, 3, 4, 5, 6)},
    **{f"w2-window-{s}s": Case("w2", {"length": 3, "window_ms": 1000 * s}, ("walk", *PEERS)) for s in (20, 50, 100)},
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.engine", description="The engine against DuckDB and Polars.")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--case", action="append", choices=CASES, help="only these (default: all)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="write the figures to this file too")
    parser.add_argument("--measure", nargs=2, metavar=("CASE", "ENGINE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], options.measure[1], options.events, options.repeat)))
        return 0
    rows, failed = [], False
    print(f"{'case':30}{'engine':12}{'seconds':>9}{'events/s':>12}{'matches':>10}{'peak MB':>9}{'vs best peer':>14}")
    for name in options.case or CASES:
        results = [_in_process(name, engine, options) for engine in CASES[name].engines]
        best = min((r["seconds"] for r in results if r["engine"] in PEERS), default=None)
        for result in results:
            ours = best is not None and result["engine"] not in PEERS
            result["ratio_to_best_peer"] = round(best / result["seconds"], 2) if ours and best is not None else None
            shown = f"{result['ratio_to_best_peer']:.1f} x" if ours else ""
            print(
                f"{name:30}{result['engine']:12}{result['seconds']:9.3f}{result['events_per_second']:12,.0f}"
                f"{result['matches']:10}{result['peak_mb']:9.0f}{shown:>14}",
                flush=True,
            )
        if len({(r["matches"], r["digest"]) for r in results}) > 1:
            print(f"{name}: the engines disagree on the matches")
            failed = True
        rows += results
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(
                {"cases": {name: asdict(CASES[name]) for name in options.case or CASES}, "results": rows},
                file,
                indent=1,
            )
    return 1 if failed else 0


def _in_process(name: str, engine: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "bench.engine",
        "--measure",
        name,
        engine,
        "--events",
        str(options.events),
        "--repeat",
        str(options.repeat),
    ]
    done = subprocess.run(command, env=os.environ | THREADS, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {engine} failed, see above")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(name: str, engine: str, events: int, repeat: int) -> dict[str, Any]:
    """One engine on one case, in this process."""
    import pyarrow as pa

    from bench import ours, peers, workloads

    pa.set_cpu_count(1)
    run: Callable = {
        "walk": ours.shared_walk,
        "mine": ours.mine,
        "one-by-one": ours.one_by_one,
        "duckdb": peers.duckdb,
        "polars": peers.polars,
    }[engine]
    case = CASES[name]
    make = getattr(workloads, case.workload)
    run(make(events=2000, **(case.options | ({"queries": 10} if "queries" in case.options else {}))))
    workload = make(events=int(events * case.share), **case.options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds: list[float] = []
    elapsed: list[float] = []
    for _ in range(1 if engine == "one-by-one" else repeat):
        wall, began = time.perf_counter(), time.process_time()
        found = run(workload)
        seconds.append(time.process_time() - began)
        elapsed.append(time.perf_counter() - wall)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if engine not in PEERS:
        found = ours.event_ids(found, len(workload.patterns[0].classes))
    count = len(workload.events)
    return {
        "case": name,
        "engine": engine,
        "seconds": round(min(seconds), 4),
        "wall_seconds": round(min(elapsed), 4),
        "events_per_second": round(count / min(seconds)),
        "events": count,
        "matches": len(found),
        "peak_mb": round(peak / 1024),
        "input_mb": round(before / 1024),
        "digest": digest(found),
    }


def digest(found: Any) -> str:
    """The same for the same rows in any order: sum and xor of a 64-bit hash of each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from cep_core.engine.text import hashes

    columns = [found.column(name).cast(pa.large_string()) for name in sorted(found.column_names)]
    rows = pc.binary_join_element_wise(*columns, pa.scalar("|", pa.large_string())).combine_chunks()
    values = (
        hashes(rows.chunk(0) if isinstance(rows, pa.ChunkedArray) and rows.num_chunks else rows)
        if len(rows)
        else np.zeros(0, np.uint64)
    )
    return f"{int(np.add.reduce(values, dtype=np.uint64)):016x}{int(np.bitwise_xor.reduce(values)):016x}"


if __name__ == "__main__":
    raise SystemExit(main())
