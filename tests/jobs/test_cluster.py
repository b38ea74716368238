"""A standalone cluster: the jobs run unchanged by spark-submit, and killing a worker in mid-job loses nothing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.package import build
from tests.jobs.shop import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.heavy]

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s RETURN a.x AS x",
    "anywhere": "PATTERN SEQ(A a, C c) WHERE a.x > c.x WITHIN 6 s",
    "used": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 30 s SELECT earliest CONSUME used",
}


def test_jobs_run_on_a_cluster_and_survive_a_killed_worker(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path / "shop", events=400, span_s=400, queries=QUERIES)
    package = build(tmp_path / "hindsight.zip")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HINDSIGHT_")}
    with cluster(tmp_path, environment) as (master, workers):
        job = subprocess.Popen(
            [str(BIN / "spark-submit"), "--master", master, "--py-files", str(package),
             "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1",
             "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2",
             "--conf", "spark.executor.memory=700m", "--conf", "spark.driver.memory=700m",
             str(ROOT / "jobs/submit.py"), "mine", "--project", str(tmp_path / "shop"),
             "--from", "2026-01-01", "--to", "2026-01-02", "--set", "rows_per_call=60"],
            env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        results = tmp_path / "shop/lake/composite_events/_delta_log"
        deadline = time.monotonic() + 120
        while not results.exists() and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)  # mining begins when the table of results has been made
        assert job.poll() is None, job.communicate()[0]
        os.killpg(workers[0].pid, signal.SIGKILL)
        output, _ = job.communicate(timeout=240)
    assert job.returncode == 0, output
    assert "published" in output
    assert shop.published(spark) == shop.expected()


@contextmanager
def cluster(folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A master and two workers from the installed pyspark, each in a process group of its own."""
    spark_class = shutil.which("spark-class", path=str(BIN)) or str(BIN / "spark-class")
    port, web = _free_port(), _free_port()
    master = f"spark://127.0.0.1:{port}"
    prefix = "org.apache.spark.deploy"
    commands = [[f"{prefix}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]]
    for number in range(2):
        commands.append([f"{prefix}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                         "--webui-port", "0", "--work-dir", str(folder / f"worker{number}"), master])  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            started.append(subprocess.Popen(
                [spark_class, *command], env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"}, cwd=folder,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            ))  # fmt: skip
            if len(started) == 1:
                _wait(lambda: _alive(web) is not None)
        _wait(lambda: _alive(web) == 2)
        yield master, started[1:]
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _alive(web: int) -> int | None:
    """Workers that the master knows to be alive; None while the master does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=2) as answer:
            import json

            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return None


def _wait(condition, seconds: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the cluster did not come up"
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
