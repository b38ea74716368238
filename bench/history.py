"""W1 as a lakehouse has it: a Delta table of events, its declaration, and a catalogue of 1,000 patterns.

Enters: a folder, a number of events and of queries, and the share of one hot source. Leaves: a project that the jobs
run on as on any other.
Always holds: 50 classes; a source has an event every 30 minutes on average, 2,000 of them, so more events are more
sources; the table's files follow one another in time, as they do where events are appended as they come.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.workloads import MINUTE_US, w1

if TYPE_CHECKING:
    from jobs.settings import Settings

EVENTS_OF_A_SOURCE = 2_000
SPAN_US = EVENTS_OF_A_SOURCE * 30 * MINUTE_US
FIRST_US = 1_767_225_600_000_000  # 2026-01-01
EVENTS_OF_A_FILE = 500_000

DECLARATION = """
tables: {events: {path: events}}
events:
  - table: events
    source: source
    time: ts
    event_id: event_id
    class: event_class
    classes: {CLASSES}
"""


def project_settings(folder: Path, events: int, queries: int, hot: float = 0.0, **flags: object) -> Settings:
    """The settings of a project with so many events, which is made once under `folder`."""
    from jobs.settings import load_settings

    project = folder / f"w1-{events}-{queries}-{hot:g}"
    if not project.exists():
        making = project.with_suffix(".part")
        shutil.rmtree(making, ignore_errors=True)
        make_project(making, events, queries, hot)
        making.rename(project)
    return load_settings(dict(flags), project=project, environment={})


def make_project(folder: Path, events: int, queries: int, hot: float = 0.0) -> None:
    """The project's folder; `hot` is the share of all events that one source has."""
    patterns = w1(1, queries, sources=1).patterns
    (folder / "conf/events").mkdir(parents=True)
    (folder / "conf/queries").mkdir()
    classes = ", ".join(f"C{code:02d}: {{}}" for code in range(50))
    (folder / "conf/events/w1.yaml").write_text(DECLARATION.replace("CLASSES", classes), encoding="utf-8")
    texts = "\n\n".join(f"QUERY {pattern.id}\n{pattern.text}" for pattern in patterns)
    (folder / "conf/queries/w1.cep").write_text(texts + "\n", encoding="utf-8")
    (folder / "conf/settings.yaml").write_text("lake: lake\n", encoding="utf-8")
    write_table(folder / "lake/events", _parts(events, hot))


def _parts(events: int, hot: float, seed: int = 11) -> Iterator[pa.Table]:
    """The history, stretch by stretch of time."""
    random = np.random.default_rng(seed)
    sources = max(events // EVENTS_OF_A_SOURCE, 1)
    names = pa.array([f"s{number:06d}" for number in range(sources)])
    classes = pa.array([f"C{code:02d}" for code in range(50)])
    parts = max(events // EVENTS_OF_A_FILE, 1)
    numbers = np.linspace(0, events, parts + 1).astype(np.int64)
    for part in range(parts):
        count = int(numbers[part + 1] - numbers[part])
        low, high = SPAN_US * part // parts, SPAN_US * (part + 1) // parts
        source = random.integers(0, sources, count)
        if hot:
            source[random.random(count) < hot] = 0
        ids = np.char.add("e", np.char.zfill((numbers[part] + random.permutation(count)).astype("U9"), 9))
        yield pa.table({
            "event_id": pa.array(ids), "source": names.take(pa.array(source)),
            "event_class": classes.take(pa.array(random.integers(0, 50, count))),
            "ts": pa.array(FIRST_US + random.integers(low, high, count), pa.timestamp("us", "UTC")),
        })  # fmt: skip


def write_table(path: Path, parts: Iterator[pa.Table]) -> None:
    """A Delta table of one commit, written without Spark: the figures are about reading it."""
    (path / "_delta_log").mkdir(parents=True)
    kinds = {"event_id": "string", "source": "string", "event_class": "string", "ts": "timestamp"}
    schema = {"type": "struct", "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]}  # fmt: skip
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "w1", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
                      "partitionColumns": [], "configuration": {}, "createdTime": 0}},
    ]  # fmt: skip
    for number, part in enumerate(parts):
        name = f"part-{number:05d}.parquet"
        pq.write_table(part, path / name, compression="snappy")
        size = (path / name).stat().st_size
        actions.append({"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0,
                                "dataChange": True, "stats": json.dumps({"numRecords": len(part)})}})  # fmt: skip
    text = "\n".join(json.dumps(action) for action in actions)
    (path / "_delta_log" / f"{0:020d}.json").write_text(text + "\n", encoding="utf-8")
