"""The engine against its peers: seconds, events a second, peak memory, ratios and targets, from one run on one machine.

`python -m bench.engine [--events 2000000] [--case NAME ...] [--repeat 3] [--json FILE]`

Enters: sizes by option. Leaves: a table and a line per target on standard output, and JSON where asked for.
Always holds: each measurement is a process of its own (measure.py) with one thread, from an in-memory Arrow table to a
materialised table of matches. All engines of a case must find the same matches, or the run fails. Ratios are between
figures of this one run.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import measure, targets
from bench.cases import CASES, Case

THREADS = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.engine", description="The engine against DuckDB and Polars.")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--case", action="append", help="only these; * stands for anything (default: all)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one measurement")
    parser.add_argument("--memory-gb", type=float, default=12, help="what one measurement may hold")
    parser.add_argument("--json", help="write the figures to this file too")
    parser.add_argument("--tiny", action="store_true", help="the few thousand events that the tests use")
    options = parser.parse_args(arguments)
    chosen = [name for name in CASES if not options.case or any(fnmatch.fnmatch(name, g) for g in options.case)]
    if not chosen:
        parser.error(f"no such case; there are {', '.join(CASES)}")
    print(_HEADING, flush=True)
    results: list[dict[str, Any]] = []
    failed = False
    for name in chosen:
        found = _case(name, CASES[name], options)
        failed |= not agree(name, found)
        results += found
        if options.json:  # after each case: a run that is cut off has still measured what it measured
            run = {
                "machine": machine(),
                "events": options.events,
                "results": results,
                "targets": targets.judge(results),
            }
            Path(options.json).write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    for target in targets.judge(results):
        print(targets.line(target))
    return 1 if failed else 0


def _case(name: str, case: Case, options: argparse.Namespace) -> list[dict[str, Any]]:
    with measure.temporary() as folder:
        path = Path(folder) / "events.arrow"
        workload = case.tiny_workload() if options.tiny else case.workload(options.events)
        measure.write(workload, path)
        engines = case.runners(workload.shape)
        del workload
        found = [_in_process(name, engine, path, case.repeat or options.repeat, options) for engine in engines]
    best = targets.Figures({(name, r["engine"]): r for r in found}).best_peer(name)
    for result in found:
        ours = result["engine"] in targets.OURS
        ratio = best / result["seconds"] if ours and best is not None and result["seconds"] else None
        result["ratio_to_best_peer"] = None if ratio is None else round(ratio, 2)
        print(row(result), flush=True)
    return found


def _in_process(name: str, engine: str, path: Path, repeat: int, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.measure", name, engine, str(path)]
    command += ["--repeat", str(repeat), "--memory-gb", str(options.memory_gb)]
    try:
        done = subprocess.run(
            command, env=os.environ | THREADS, check=False, stdout=subprocess.PIPE, text=True, timeout=options.timeout
        )
    except subprocess.TimeoutExpired:
        return {"case": name, "engine": engine, "seconds": None, "failed": f"more than {options.timeout:g} s"}
    if done.returncode:
        return {"case": name, "engine": engine, "seconds": None, "failed": "see the error above"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def agree(name: str, results: list[dict[str, Any]]) -> bool:
    """Whether all engines that finished found the same matches, and all finished."""
    digests = {r["digest"] for r in results if r["seconds"] is not None}
    if len(digests) > 1:
        counts = ", ".join(f"{r['engine']} {r['answers']}" for r in results if r["seconds"] is not None)
        print(f"{name}: the engines disagree on the matches ({counts})")
    return len(digests) == 1 and all(r["seconds"] is not None for r in results)


_HEADING = (
    f"{'case':28}{'engine':15}{'seconds':>9}{'wall':>9}{'events/s':>12}{'answers':>10}{'peak MB':>9}"
    f"{'vs best peer':>14}"
)


def row(result: dict[str, Any]) -> str:
    named = f"{result['case']:28}{result['engine']:15}"
    if result["seconds"] is None:
        return f"{named} failed: {result['failed']}"
    ratio = result["ratio_to_best_peer"]
    return (
        f"{named}{result['seconds']:9.3f}{result['wall_seconds']:9.3f}{result['events_per_second']:12,.0f}"
        f"{result['answers']:10}{result['peak_mb']:9}{'' if ratio is None else f'{ratio:.2f} x':>14}"
    )


def machine() -> dict[str, Any]:
    """Where and when, and with which versions."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((entry.split(":")[1].strip() for entry in lines if entry.startswith("model name")), "")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model or platform.processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "pyarrow", "duckdb", "polars")},
    }


if __name__ == "__main__":
    raise SystemExit(main())
