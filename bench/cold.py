"""A cold start: a new Python process that mines its first events.

`cold(workload)` starts such a process and returns its matches; the process imports nothing but the engine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from bench.workloads import Workload

_PROGRAM = """
import json, sys
import pyarrow as pa
import cep_core
events = pa.ipc.open_file(sys.argv[1]).read_all()
with open(sys.argv[2]) as file:
    queries = json.load(file)
matches = cep_core.mine(events, queries)
with pa.ipc.new_file(sys.argv[3], matches.schema) as writer:
    writer.write_table(matches)
"""


def cold(workload: Workload) -> pa.Table:
    with tempfile.TemporaryDirectory(prefix="hindsight-cold-") as folder:
        events, queries, matches = (Path(folder) / name for name in ("events", "queries", "matches"))
        with pa.ipc.new_file(str(events), workload.events.schema) as writer:
            writer.write_table(workload.events)
        queries.write_text(json.dumps(workload.queries))
        subprocess.run([sys.executable, "-c", _PROGRAM, str(events), str(queries), str(matches)], check=True)
        with pa.OSFile(str(matches), "rb") as file:
            return pa.ipc.open_file(file).read_all()
