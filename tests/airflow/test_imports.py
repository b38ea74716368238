"""Each DAG file alone, in a process of its own: imports fast, touches nothing, and says what a person must know."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

DAGS = Path(__file__).resolve().parents[2] / "dags"
NAMES = ("hindsight_mine", "hindsight_backfill", "hindsight_maintain")
SECONDS = 2.0

# Airflow itself is loaded first, as it is where DAG files are parsed; the clock and the watch are for the file alone.
# CPU seconds: what it takes on an idle machine, however busy this one is.
LOOK = """
import json, sys, time
from pathlib import Path
import airflow.sdk
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import CronDataIntervalTimetable, CronTriggerTimetable, Param, dag, task

folder, name = sys.argv[1:]
sys.path.insert(0, folder)
touched, watching = [], [True]
def watch(event, arguments):
    if not watching[0]:
        return
    if event == "open":
        file = str(arguments[0])
        if not file.endswith((".py", ".pyc", ".so")) and "__pycache__" not in file:  # an import's own files
            touched.append(f"open {file}")
    elif event.startswith(("socket.", "subprocess.", "sqlite3.", "urllib.", "shutil.", "os.system", "os.exec",
                           "os.fork", "os.mkdir", "os.remove", "os.rename")):
        touched.append(f"{event} {arguments}")
sys.addaudithook(watch)
began = time.process_time()
module = __import__(name)
seconds = time.process_time() - began
watching[0] = False
import gc
from airflow.sdk import DAG
from airflow.sdk.definitions.mappedoperator import MappedOperator
dags = {d.dag_id: d for d in gc.get_objects() if type(d) is DAG}
d = dags[name]
def of(t, key):
    return t.partial_kwargs.get(key) if type(t) is MappedOperator else getattr(t, key, None)
tasks = {
    t.task_id: {"owner": t.owner, "retries": t.retries, "timeout_s": t.execution_timeout.total_seconds(),
                "doc": bool(of(t, "doc_md")), "down": sorted(t.downstream_task_ids), "conn": of(t, "_conn_id"),
                "outlets": [o.name for o in of(t, "outlets") or []]}
    for t in d.tasks
}
assets = getattr(getattr(d.timetable, "asset_condition", None), "objects", [])
print(json.dumps({
    "seconds": seconds, "touched": touched, "dags": sorted(dags), "tags": sorted(d.tags), "doc": d.doc_md,
    "file_doc": module.__doc__, "max_active_runs": d.max_active_runs, "catchup": d.catchup,
    "timetable": type(d.timetable).__name__, "params": sorted(d.params), "tasks": tasks,
    "assets": sorted(asset.name for asset in assets),
    "loaded": [m for m in ("pyspark", "great_expectations", "numba", "jobs", "cep_core") if m in sys.modules],
}))
"""


@cache
def look(name: str, home: Path, folder: Path = DAGS, variables: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    """One DAG file, imported in a fresh process."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "AIRFLOW_HOME": str(home), **dict(variables)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # the import system's own writing is not the file's
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(folder), name], env=environment, capture_output=True, text=True, cwd=home
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


@pytest.mark.parametrize("name", NAMES)
def test_a_dag_imports_alone_fast_and_touches_nothing(name: str, home: Path) -> None:
    seen = look(name, home)
    assert seen["dags"] == [name]
    assert seen["seconds"] < SECONDS
    assert seen["touched"] == []
    assert seen["loaded"] == []
    assert seen["doc"] == seen["file_doc"]
    assert seen["doc"].strip().startswith(f"### {name}")
    assert "hindsight" in seen["tags"]
    assert (seen["max_active_runs"], seen["catchup"]) == (1, False)
    for task in seen["tasks"].values():
        assert task["owner"] == "hindsight"
        assert task["retries"] > 0
        assert 0 < task["timeout_s"] <= 86_400
        assert task["doc"]


def test_a_file_that_reads_or_dawdles_is_seen(tmp_path: Path) -> None:
    """The two checks above can fail."""
    (tmp_path / "settings.txt").write_text("x")
    (tmp_path / "bad.py").write_text(
        "import time\nfrom pathlib import Path\nfrom airflow.sdk import dag\n"
        f"Path({str(tmp_path / 'settings.txt')!r}).read_text()\n"
        "until = time.process_time() + 2.1\nwhile time.process_time() < until: pass\n"
        "@dag(dag_id='bad')\ndef bad(): pass\nbad()\n"
    )
    seen = look("bad", tmp_path, tmp_path)
    assert seen["touched"] == [f"open {tmp_path / 'settings.txt'}"]
    assert seen["seconds"] > SECONDS


def test_mining_is_five_tasks_in_a_row_that_announce_their_table(home: Path) -> None:
    seen = look("hindsight_mine", home)
    assert {name: task["down"] for name, task in seen["tasks"].items()} == {
        "plan": ["prepare"], "prepare": ["mine"], "mine": ["validate"], "validate": ["publish"], "publish": [],
    }  # fmt: skip
    assert [name for name, task in seen["tasks"].items() if task["outlets"]] == ["publish"]
    assert seen["tasks"]["publish"]["outlets"] == ["hindsight_composite_events"]
    spark = [task for name, task in seen["tasks"].items() if name != "plan"]
    assert {task["conn"] for task in spark} == {"spark_default"}
    assert seen["timetable"] == "CronDataIntervalTimetable"
    assert seen["params"] == ["from", "lookback", "queries", "to"]


def test_mining_can_be_scheduled_by_the_update_of_its_input_tables(home: Path) -> None:
    given = {"SCHEDULE": "assets", "ASSETS": "readings, payments", "SPARK_CONN": "spark_cluster"}
    seen = look("hindsight_mine", home, variables=tuple((f"HINDSIGHT_{name}", value) for name, value in given.items()))
    assert seen["timetable"] == "AssetTriggeredTimetable"
    assert seen["assets"] == ["payments", "readings"]
    assert seen["tasks"]["mine"]["conn"] == "spark_cluster"


def test_a_backfill_is_mapped_over_its_chunks(home: Path) -> None:
    seen = look("hindsight_backfill", home)
    assert {name: task["down"] for name, task in seen["tasks"].items()} == {"plan": ["backfill"], "backfill": []}
    assert seen["tasks"]["backfill"]["outlets"] == ["hindsight_composite_events"]
    assert seen["params"] == ["again", "chunk", "from", "queries", "to"]


SUBMIT = """
import sys
sys.path.insert(0, sys.argv[1])
from hindsight_tasks import HindsightOperator
hook = HindsightOperator(task_id="mine", application_args=["mine"])._get_hook()
command = hook._build_spark_submit_command("submit.py")
print(command[command.index("--master") + 1])
"""


@pytest.mark.parametrize(
    ("connection", "master"),
    [({"host": "local[3]"}, "local[3]"), ({"host": "spark://master", "port": 7077}, "spark://master:7077")],
)
def test_another_cluster_is_another_connection_and_nothing_else(
    connection: dict[str, Any], master: str, home: Path
) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "AIRFLOW_HOME": str(home)}
    environment["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps({"conn_type": "spark", **connection})
    done = subprocess.run(
        [sys.executable, "-c", SUBMIT, str(DAGS)], env=environment, capture_output=True, text=True, cwd=home
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == master
