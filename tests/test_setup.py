"""The set-up script: says what is missing, and does nothing twice."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh checkout of which only the script and the package list are there."""
    for name in ("hindsight", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    return tmp_path


def tools(folder: Path, *names: str) -> Path:
    """A PATH with only these programs."""
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def start(checkout: Path, path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(checkout / "hindsight"), *arguments], capture_output=True, text=True, env={"PATH": str(path), **variables}
    )


def test_a_machine_without_python_is_told_what_it_needs(checkout: Path) -> None:
    refused = start(checkout, tools(checkout / "tools", "sh", "dirname", "cat"), "demo")
    assert refused.returncode == 1
    assert "Python 3.11 or newer is needed and none was found on PATH" in refused.stderr
    assert "HINDSIGHT_PYTHON=" in refused.stderr


def test_an_old_python_is_not_taken(checkout: Path) -> None:
    path = tools(checkout / "tools", "sh", "dirname", "cat")
    (path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (path / "python3").chmod(0o755)
    refused = start(checkout, path, "setup")
    assert refused.returncode == 1
    assert "Python 3.11 or newer is needed" in refused.stderr


def test_a_finished_environment_is_not_touched(checkout: Path) -> None:
    """With the stamp of this pyproject.toml in place the script goes straight to the command line."""
    binaries = checkout / ".venv/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "hindsight").write_text('#!/bin/sh\necho "ran $*"\n')
    (binaries / "hindsight").chmod(0o755)
    text = (checkout / "pyproject.toml").read_bytes() + repr((str(checkout), sys.version_info[:2])).encode()
    (checkout / ".venv/.hindsight-stamp").write_text(hashlib.sha256(text).hexdigest() + "\n")
    path = tools(checkout / "tools", "sh", "dirname", "cat", "rm")
    done = start(checkout, path, "mine", "--from", "x y")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran mine --from x y\n", "")
    (checkout / "pyproject.toml").write_text("changed")
    again = start(checkout, path, "setup")
    assert again.returncode == 1  # it starts the set-up, and finds no Python on this PATH
    assert "Python 3.11 or newer is needed" in again.stderr


def test_a_python_without_venv_is_told_which_package_brings_it(checkout: Path) -> None:
    path = tools(checkout / "tools", "sh", "dirname", "cat")
    (path / "python3").write_text(f'#!/bin/sh\n[ "$2" != venv ] || exit 1\nexec {sys.executable} "$@"\n')
    (path / "python3").chmod(0o755)
    refused = start(checkout, path, "setup")
    assert refused.returncode == 1
    assert "apt install python3-venv" in refused.stderr
    assert not (checkout / ".venv/.hindsight-stamp").exists()


def test_a_file_in_the_way_of_the_environment_is_told(checkout: Path) -> None:
    (checkout / ".venv").write_text("a file")
    path = tools(checkout / "tools", "sh", "dirname", "cat")
    (path / "python3").symlink_to(sys.executable)
    refused = start(checkout, path, "setup")
    assert refused.returncode == 1
    assert f"cannot make {checkout}/.venv" in refused.stderr
    assert "see that the folder is writable and the disk not full" in refused.stderr


def test_a_machine_that_reaches_no_package_index_is_told_so(checkout: Path) -> None:
    path = tools(checkout / "tools", "sh", "dirname", "cat", "rm", "sleep")
    (path / "python3").symlink_to(sys.executable)
    refused = start(checkout, path, "setup", PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null")
    assert refused.returncode == 1
    assert "[2/5] packages" in refused.stderr
    assert "The first time a package index must be reachable" in refused.stderr
    assert not (checkout / ".venv/.hindsight-stamp").exists()


def test_the_program_is_called_as_the_user_called_it(checkout: Path) -> None:
    binaries = checkout / ".venv/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "hindsight").write_text('#!/bin/sh\necho "$HINDSIGHT_PROGRAM"\n')
    (binaries / "hindsight").chmod(0o755)
    text = (checkout / "pyproject.toml").read_bytes() + repr((str(checkout), sys.version_info[:2])).encode()
    (checkout / ".venv/.hindsight-stamp").write_text(hashlib.sha256(text).hexdigest() + "\n")
    path = tools(checkout / "tools", "sh", "dirname", "cat")
    ran = subprocess.run(["./hindsight", "demo"], capture_output=True, text=True, cwd=checkout, env={"PATH": str(path)})
    assert ran.stdout == "./hindsight\n"
