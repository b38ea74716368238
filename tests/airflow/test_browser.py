"""`hindsight airflow`, as a person sees it: in the browser, the grid shows the demo's run green."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import psutil
import pytest

from jobs.local_airflow import LocalAirflow
from tests.airflow.conftest import TEST_JVM, free_port, rows

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.heavy]

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 3600.0
CHECK_MARK = '<path d="M20 6 9 17l-5-5">'  # what Airflow draws for success
# As root there is no sandbox to be had; the rest keeps the browser from calling its maker.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--window-size=1400,900",
    "--virtual-time-budget=30000",
)  # fmt: skip


def chromium() -> str:
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    assert found, "this test looks at Airflow in a browser; install one: apt-get install chromium"
    return found[0]


def test_the_grid_shows_the_demo_run_green(tmp_path: Path) -> None:
    browser = chromium()  # before the minutes that follow
    port, home = free_port(), tmp_path / "home"
    airflow = LocalAirflow(home, port, ROOT)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    with (tmp_path / "errors.txt").open("w") as errors:
        started = subprocess.Popen(
            [sys.executable, "-m", "jobs.cli", "airflow", "--project", str(ROOT), "--lake", str(tmp_path / "lake"),
             "--home", str(home), "--port", str(port), "--events", "5000", "--queries", "shoplifting"],
            cwd=ROOT, env={**environment, "SPARK_SUBMIT_OPTS": TEST_JVM}, text=True,
            stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    assert started.stdout is not None
    family = psutil.Process(started.pid)
    try:
        told = started.stdout.readline()
        assert told.startswith(f"Airflow is at http://127.0.0.1:{port}/dags/hindsight_mine"), (
            told + (tmp_path / "errors.txt").read_text()
        )
        wait_for_run(airflow, started)
        assert first_started(airflow) == "demo", "a run of the schedule came before the demo's"
        shown = page(browser, tmp_path, f"{airflow.address}/dags/hindsight_mine")
        picture = tmp_path / "grid.png"
        page(browser, tmp_path, f"{airflow.address}/dags/hindsight_mine", picture)
    finally:
        running = family.children(recursive=True)
        started.send_signal(signal.SIGTERM)
        started.wait(120)
        started.stdout.close()
        left = [p for p in running if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        for process in left:
            process.kill()
    assert started.returncode == 0
    assert left == [], "processes were left behind"
    assert_green(shown, picture)
    if keep := os.environ.get("KEEP_SCREENSHOT"):
        shutil.copy(picture, keep)


def assert_green(shown: str, picture: Path) -> None:
    """The grid's cells of the run have the mark of success, and there is that much green in the picture."""
    cells = re.findall(r'data-testid="grid-demo-(\w+)"(.*?)</a>', shown)
    assert [task for task, _ in cells] == ["plan", "prepare", "mine", "validate", "publish"]
    assert all(CHECK_MARK in cell for _, cell in cells), "a cell of the grid has no check mark"
    assert green_share(picture, width=320) > 0.005, "the grid has no green in it"


def wait_for_run(airflow: LocalAirflow, command: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while True:
        found = rows(airflow, "SELECT state FROM dag_run WHERE run_id = 'demo'")
        if found and found[0][0] in ("success", "failed"):
            break
        assert command.poll() is None, "hindsight airflow has ended"
        assert time.monotonic() < deadline, rows(airflow, "SELECT task_id, state FROM task_instance")
        time.sleep(1)
    states = rows(airflow, "SELECT task_id, state FROM task_instance WHERE run_id = 'demo'")
    assert found == [("success",)], states


def first_started(airflow: LocalAirflow) -> str:
    return str(rows(airflow, "SELECT run_id FROM dag_run WHERE start_date IS NOT NULL ORDER BY start_date")[0][0])


def page(browser: str, folder: Path, address: str, picture: Path | None = None) -> str:
    """The page as the browser has built it; or its picture."""
    wanted = ["--dump-dom"] if picture is None else [f"--screenshot={picture}"]
    for attempt in range(5):  # now and then a headless browser on a busy machine waits for ever
        command = [browser, *FLAGS, f"--user-data-dir={folder / f'browser{attempt}'}", *wanted, address]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            break
    else:
        pytest.fail(f"the browser did not finish with {address}")
    assert done.returncode == 0, done.stderr
    return re.sub(r"<(script|style)\b.*?</\1>", "", done.stdout, flags=re.DOTALL)


def green_share(picture: Path, width: int) -> float:
    """How much of the picture's left part, so many pixels wide, has the green of Airflow's success."""
    pixels = read_png(picture)[:, :width, :3].astype(int)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    return float(((green > 90) & (red < 70) & (blue < 70)).mean())


def read_png(picture: Path) -> np.ndarray:
    """Rows, columns and channels of a PNG as browsers write them: 8 bits a channel, not interlaced."""
    content = picture.read_bytes()
    at, parts, shape = 8, [], (0, 0, 0)
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        body = content[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            columns, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            shape = (height, columns, {2: 3, 6: 4}[color])
        elif kind == b"IDAT":
            parts.append(body)
        at += 12 + length
    height, columns, channels = shape
    rows_of_bytes = np.frombuffer(zlib.decompress(b"".join(parts)), np.uint8).reshape(height, 1 + columns * channels)
    image = np.zeros((height, columns * channels), np.uint8)
    above = np.zeros(columns * channels, np.uint8)
    for n, (how, *_) in enumerate(rows_of_bytes):
        image[n] = above = _unfiltered(int(how), rows_of_bytes[n, 1:], above, channels)
    return image.reshape(shape)


def _unfiltered(how: int, line: np.ndarray, above: np.ndarray, channels: int) -> np.ndarray:
    """One row of a PNG, from what it was written as (none, sub, up, average, Paeth) and the row above it."""
    if how == 0:
        return line
    if how == 2:
        return line + above
    out = [0] * len(line)
    values, ups = line.tolist(), above.tolist()
    for i, value in enumerate(values):
        left = out[i - channels] if i >= channels else 0
        up, corner = ups[i], ups[i - channels] if i >= channels else 0
        if how == 1:
            guess = left
        elif how == 3:
            guess = (left + up) // 2
        else:
            distances = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
            guess = (left, up, corner)[distances.index(min(distances))]
        out[i] = (value + guess) % 256
    return np.array(out, np.uint8)
