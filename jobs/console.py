"""What a person sees while a command runs: log lines with counts, and a progress line on anything slow.

Enters: settings and labels. Leaves: lines on stderr; results alone go to stdout.
Always holds: a step shorter than `progress_after_s` shows nothing but what it logs. On a terminal the progress line is
redrawn in place and removed at the end; elsewhere (a file, a scheduler) it is a plain line, at growing intervals.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("hindsight")

_REDRAW_S = 0.5
_drawn = threading.Lock()


def configure_logging(level: str) -> None:
    """Log lines of Hindsight to stderr, with the time. Called once, by the command line."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    log.handlers[:] = [handler]
    log.propagate = False
    log.setLevel(level.upper())


@contextmanager
def progress(label: str, *, after_s: float = 2.0, spark: SparkSession | None = None) -> Iterator[Callable[[str], None]]:
    """While the block runs, and once it takes longer than `after_s`: a line with the label, what the block last said
    through the function it gets, the tasks of the running Spark jobs, and the seconds."""
    said = [""]
    done = threading.Event()
    started = time.monotonic()

    def say(text: str) -> None:
        said[0] = text

    def line() -> str:
        parts = [label, said[0], _tasks(spark), f"{time.monotonic() - started:.0f} s"]
        return "  ".join(part for part in parts if part)

    def watch() -> None:
        wait = after_s
        shown = False
        terminal = sys.stderr.isatty()
        while not done.wait(wait):
            with _drawn:
                sys.stderr.write(f"\r\x1b[K{line()}" if terminal else f"... {line()}\n")
                sys.stderr.flush()
            shown = True
            wait = _REDRAW_S if terminal else min(60.0, max(5.0, time.monotonic() - started))
        if shown and terminal:
            with _drawn:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    watcher = threading.Thread(target=watch, daemon=True, name=f"progress: {label}")
    watcher.start()
    try:
        yield say
    finally:
        done.set()
        watcher.join()


def _tasks(spark: SparkSession | None) -> str:
    """`12/64 tasks` of the stages that run now."""
    if spark is None:
        return ""
    tracker = spark.sparkContext.statusTracker()
    infos = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    total = sum(info.numTasks for info in infos)
    return f"{sum(info.numCompletedTasks for info in infos)}/{total} tasks" if total else ""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 match`, `12,345 matches`.

    >>> counted(1, "match", "matches"), counted(12345, "event")
    ('1 match', '12,345 events')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
