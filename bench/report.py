"""The page of measured figures: `python -m bench.report FILE ... > docs/benchmarks.md`

Enters: what `bench.engine --json` and `bench.jobs --json` wrote, one file or several. Leaves: Markdown on standard
output, the engine's runs first.
Always holds: every number on the page is from those files; a ratio is between figures of one file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.targets import OURS

_HEAD = """# Benchmarks

Measured by `python -m bench.engine` (cases in bench/cases.py, peers in bench/peers.py), and written here by
`python -m bench.report`. Each figure is of a process of its own with one thread, from an Arrow table in memory to a
table of matches, query texts included; seconds are CPU seconds, the best of the repeats; the peak is what the process
held above its input. All engines of a case that finished found the same matches. A peer's row is that of its fastest
formulation of those in bench/peers.py. A run may carry a note on how it was made.
"""


_JOBS = """# The Spark jobs

Measured by `python -m bench.jobs`: `hindsight mine` over the whole history, from declared Delta tables to the published
table, with local Spark on all cores; W1 with 1,000 queries by source. Seconds are by the clock; CPU seconds are of the
JVM and all Python workers, and decide. A worker's memory is the most that one Python process held at once. Without its
engine, a job reads, cuts, moves and publishes the same, and finds nothing.
"""


def page(runs: list[dict[str, Any]]) -> str:
    engine = [part for run in runs if "results" in run for part in _run(run)]
    jobs = [part for run in runs if "figures" in run for part in _jobs_run(run)]
    return "\n".join([_HEAD, *engine, *([_JOBS, *jobs] if jobs else [])]).rstrip() + "\n"


def _heading(run: dict[str, Any]) -> list[str]:
    machine = dict(run["machine"])
    date, processor, cores, load = (machine.pop(name) for name in ("date", "processor", "cores", "load"))
    versions = ", ".join(f"{name} {number}" for name, number in machine.items())
    lines = [f"## {date}", "", f"{processor}, {cores} cores, load {load}; {versions}.", ""]
    if "note" in run:
        lines += [run["note"], ""]
    return lines


def _jobs_run(run: dict[str, Any]) -> list[str]:
    lines = [*_heading(run), "| target | bound | by CPU seconds | by the clock | |", "|---|---:|---:|---:|---|"]
    for target in run["targets"]:
        sign, reached = ("at least" if target["at_least"] else "at most"), "reached" if target["met"] else "**missed**"
        figures = f"{target['ratio']:.2f} | {target['by_wall']:.2f}"
        lines.append(f"| {target['what']} | {sign} {target['bound']:g} | {figures} | {reached} |")
    lines += ["", "| what | events | seconds | CPU seconds | matches | MB a worker |", "|---|---:|---:|---:|---:|---:|"]
    for figure in run["figures"]:
        taken = f"{figure['seconds']:.1f} | {figure['cpu']:.1f}"
        found = f"{figure['matches']:,} | {figure['worker_mb']:,}"
        lines.append(f"| {figure['what']} | {figure['events']:,} | {taken} | {found} |")
    return [*lines, ""]


def _run(run: dict[str, Any]) -> list[str]:
    lines = _heading(run)
    if run["targets"]:
        lines += ["| target | bound | measured | |", "|---|---:|---:|---|"]
        lines += [_target(target) for target in run["targets"]]
        lines.append("")
    lines += ["| case | events | engine | seconds | events/s | answers | peak MB | times the best peer |"]
    lines += ["|---|---:|---|---:|---:|---:|---:|---:|"]
    for case in dict.fromkeys(result["case"] for result in run["results"]):
        own = [r for r in run["results"] if r["case"] == case]
        lines += [_result(r) for r in own if r["engine"] in OURS]
        peers: dict[str, list[dict[str, Any]]] = {}
        for result in own:
            if result["engine"] not in OURS:
                peers.setdefault(result["engine"].split("/")[0], []).append(result)
        lines += [_result(min(tried, key=lambda r: r["seconds"] or float("inf"))) for tried in peers.values()]
    return [*lines, ""]


def _target(target: dict[str, Any]) -> str:
    measured = "-" if target["measured"] is None else f"{target['measured']:.2f}"
    reached = "reached" if target["reached"] else "**missed**"
    return f"| {target['target']} | {target['bound']:g} | {measured} | {reached} |"


def _result(result: dict[str, Any]) -> str:
    if result["seconds"] is None:
        return f"| {result['case']} | | {result['engine']} | failed: {result['failed']} | | | | |"
    ratio = result.get("ratio_to_best_peer")
    return (
        f"| {result['case']} | {result['events']:,} | {result['engine']} | {result['seconds']:.3f}"
        f" | {result['events_per_second']:,} | {result['answers']:,} | {result['peak_mb']:,}"
        f" | {'' if ratio is None else f'{ratio:.2f}'} |"
    )


if __name__ == "__main__":
    sys.stdout.write(page([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]))
