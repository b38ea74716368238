"""A local Airflow with our DAGs: for a look in the browser, and for the tests.

Enters: a folder for Airflow's home, a port, the project that its tasks work on. Leaves: a migrated database with the
connection `spark_default`, and running services: API server with the web pages, scheduler, DAG processor.
Always holds: it listens on this machine alone, as its pages ask for no login; everything it writes is under its home;
no secret is written to a file (the key that signs its tokens is drawn at each start and lives in the environment).
When it is left, every process that it started has ended, Spark's too.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from cep_core.errors import HindsightError

DAGS = Path(__file__).resolve().parents[1] / "dags"
# The API server reads the tasks' logs from the disk: a log server, open to other machines, is not needed.
SERVICES: dict[str, tuple[str, ...]] = {"api-server": (), "scheduler": ("--skip-serve-logs",), "dag-processor": ()}
PARTS = ("metadatabase", "scheduler", "dag_processor")  # what is healthy once the service of the same place is up
START_S = 300.0
_GRACE_S = 10.0
_LONG_AGO = "2000-01-01T00:00:00Z"
_CONFIGURATION = """\
# A local Airflow of `hindsight airflow`. Its settings are in the environment of its processes, its keys are drawn at
# each start; connections are stored without encryption, so keep passwords out of it.
"""
Services = list[subprocess.Popen[bytes]]  # in the order of SERVICES


class AirflowError(HindsightError):
    """A local Airflow that cannot be made or does not come up."""


@dataclass(frozen=True)
class LocalAirflow:
    """Where it is, and what it works on. `master` is that of the connection `spark_default`."""

    home: Path
    port: int
    project: Path
    master: str = "local[*]"
    extra: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """For every process of it. What the caller's environment says about Airflow does not count."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        bin_folder = str(Path(sys.executable).parent)  # airflow and spark-submit of this environment
        return kept | {
            "PATH": os.pathsep.join([bin_folder, kept.get("PATH", os.defpath)]),
            "PYSPARK_PYTHON": sys.executable,
            "HINDSIGHT_PROJECT": str(self.project),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home / 'airflow.db'}",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.address,
            "AIRFLOW__API__WORKERS": "1",
            # The default, half a minute, is for DAGs that change: each round loads Airflow anew for every file.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
            "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
            "AIRFLOW__API__SECRET_KEY": self.secret,
            "AIRFLOW__API_AUTH__JWT_SECRET": self.secret,
            "NO_PROXY": "127.0.0.1,localhost",
            **self.extra,
        }

    def command(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One `airflow ...`; its output is in an error's message."""
        done = subprocess.run(
            [_airflow(), *arguments], env=self.environment(), cwd=self.home, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if check and done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-20:])
            raise AirflowError(f"airflow {' '.join(arguments[:2])} failed with code {done.returncode}:\n{tail}")
        return done

    def prepare(self) -> bool:
        """The home, its database and the connection; whether they were made now. What is there stays as it is."""
        fresh = not (self.home / "airflow.db").exists()
        self.home.mkdir(parents=True, exist_ok=True)
        if fresh:  # else Airflow writes a file of its own here, with keys in it
            (self.home / "airflow.cfg").write_text(_CONFIGURATION, encoding="utf-8")
        self.command("db", "migrate")
        if fresh:
            # As JSON: in the form of a URI `local[2]` cannot be read, and Airflow would take yarn instead.
            connection = json.dumps({"conn_type": "spark", "host": self.master})
            self.command("connections", "add", "spark_default", "--conn-json", connection)
        return fresh

    def start_run(self, dag_id: str, run_id: str, params: Mapping[str, Any]) -> None:
        """Start one run of a DAG and then switch it on, while the services run. The run comes before those of the
        schedule, although they are due since midnight: what has been due for longer goes first."""
        self.command("dags", "reserialize")  # not to wait for the DAG processor's next round
        dag, token = f"{self.address}/api/v2/dags/{dag_id}", fetch(f"{self.address}/auth/token")["access_token"]
        run = {"dag_run_id": run_id, "logical_date": None, "run_after": _LONG_AGO, "conf": dict(params)}
        fetch(f"{dag}/dagRuns", run, "POST", token)
        fetch(dag, {"is_paused": False}, "PATCH", token)

    @contextlib.contextmanager
    def running(self) -> Iterator[Services]:
        """The services, up and healthy while the block runs."""
        self._require_port()
        logs = self.home / "logs"
        logs.mkdir(exist_ok=True)
        started: Services = []
        try:
            for service, flags in SERVICES.items():
                with (logs / f"{service}.log").open("ab") as output:
                    started.append(subprocess.Popen(
                        [_airflow(), service, *flags], env=self.environment(), cwd=self.home, stdin=subprocess.DEVNULL,
                        stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                    ))  # fmt: skip
                # The first task would fail if the scheduler were up before the API that its tasks report to.
                self._wait_until_healthy(started, PARTS[: len(started)])
            yield started
        finally:
            end_processes([process.pid for process in started])

    def _require_port(self) -> None:
        with contextlib.closing(socket.socket()) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise AirflowError(f"port {self.port} cannot be had ({error.strerror}); choose another") from error

    def watch(self, started: Services) -> None:
        """Returns never: raises when a service has ended."""
        while True:
            self._require_alive(started)
            time.sleep(1.0)

    def _require_alive(self, started: Services) -> None:
        for service, process in zip(SERVICES, started, strict=False):
            if process.poll() is not None:
                tail = "\n".join((self.home / "logs" / f"{service}.log").read_text().splitlines()[-15:])
                raise AirflowError(f"Airflow's {service} ended with code {process.returncode}:\n{tail}")

    def _wait_until_healthy(self, started: Services, parts: tuple[str, ...]) -> None:
        deadline = time.monotonic() + START_S
        while True:
            self._require_alive(started)
            with contextlib.suppress(OSError, ValueError):
                health = fetch(f"{self.address}/api/v2/monitor/health")
                if all(health[part]["status"] == "healthy" for part in parts):
                    return
            if time.monotonic() > deadline:
                raise AirflowError(f"Airflow is not healthy after {START_S:.0f} s; see {self.home / 'logs'}")
            time.sleep(0.5)


def fetch(address: str, given: Any = None, method: str = "GET", token: str = "") -> Any:
    """The JSON that a page of this machine answers with; proxies are not asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    content = None if given is None else json.dumps(given).encode()
    with opener.open(urllib.request.Request(address, content, headers, method=method), timeout=60) as answer:
        return json.load(answer)


def end_processes(roots: list[int]) -> None:
    """End these processes and all that they have started; what does not go in time is killed."""
    found: dict[int, psutil.Process] = {}
    for pid in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found |= {p.pid: p for p in (process, *process.children(recursive=True))}
    for process in found.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(found.values(), timeout=_GRACE_S)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            for p in (*process.children(recursive=True), process):
                p.kill()
    psutil.wait_procs(left, timeout=_GRACE_S)


def _airflow() -> str:
    return str(Path(sys.executable).parent / "airflow")
