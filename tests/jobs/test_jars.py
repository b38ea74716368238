"""Delta's jars: fetched once, by the real Ivy, from a mirror that is a folder here; kept only whole."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from jobs import jars
from jobs.jars import Jar, RuntimeMissing, fetch_jars, jars_folder, missing_jars
from jobs.runtime import ensure_java, java_program

pytestmark = pytest.mark.spark  # without a session, but with Java

PROJECT = Path(__file__).resolve().parents[2]
CONTENT = b"content"


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY", raising=False)
    ensure_java()
    return java_program()


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that serves one jar as a Maven repository does, and an empty Spark to put it into."""
    served = tmp_path / "mirror"
    place = served / "org/shop/till/1.0"
    place.mkdir(parents=True)
    (place / "till-1.0.jar").write_bytes(CONTENT)
    (place / "till-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.shop</groupId><artifactId>till</artifactId>"
        "<version>1.0</version><dependencies><dependency><groupId>org.shop</groupId><artifactId>absent</artifactId>"
        "<version>9</version></dependency></dependencies></project>"
    )
    (tmp_path / "spark/jars").mkdir(parents=True)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(jars, "DELTA_JARS", (Jar("org.shop", "till", "1.0", hashlib.sha256(CONTENT).hexdigest()),))
    return served


def ivy_settings(folder: Path, served: Path) -> str:
    file = folder / "ivysettings.xml"
    file.write_text(
        '<ivysettings><settings defaultResolver="ours"/><resolvers><filesystem name="ours" m2compatible="true">'
        f'<ivy pattern="{served}/[organisation]/[module]/[revision]/[artifact]-[revision].pom"/>'
        f'<artifact pattern="{served}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    return str(file)


def test_a_jar_is_fetched_once_and_without_what_it_depends_on(java: Path, mirror: Path, tmp_path: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        fetch_jars(java, ivy_settings(tmp_path, mirror), said.append)
        assert [file.name for file in jars_folder().iterdir()] == ["till-1.0.jar"]
    assert said == ["fetching till-1.0.jar"]
    assert missing_jars() == []


def test_a_failure_that_passes_is_no_failure(java: Path, mirror: Path, tmp_path: Path) -> None:
    seen, stumbling = tmp_path / "seen", tmp_path / "java"
    stumbling.write_text(f'#!/bin/sh\n[ -e "{seen}" ] && exec "{java}" "$@"\n: > "{seen}"\nexit 1\n')
    stumbling.chmod(0o755)
    fetch_jars(stumbling, ivy_settings(tmp_path, mirror))
    assert missing_jars() == []


def test_the_mirror_that_spark_takes_from_the_environment_serves_too(
    java: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", mirror.as_uri())
    fetch_jars(java)
    assert (jars_folder() / "till-1.0.jar").read_bytes() == CONTENT


def test_a_jar_that_is_not_the_right_one_is_refused_and_not_kept(java: Path, mirror: Path, tmp_path: Path) -> None:
    (mirror / "org/shop/till/1.0/till-1.0.jar").write_bytes(b"something else")
    with pytest.raises(RuntimeMissing, match="SHA-256 differs"):
        fetch_jars(java, ivy_settings(tmp_path, mirror))
    assert list(jars_folder().iterdir()) == []


def test_a_jar_that_cannot_be_had_is_said_with_what_to_do(
    java: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(RuntimeMissing, match=r"cannot fetch till-1.0.jar: .*or put the file into .*/jars yourself"):
        fetch_jars(java)
    assert list(jars_folder().iterdir()) == []


@pytest.mark.core
def test_proxies_of_the_environment_reach_java(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.local:3128")
    monkeypatch.setenv("no_proxy", "localhost,.shop.local")
    assert jars._proxies() == [
        "-Dhttps.proxyHost=proxy.local",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.shop.local",
    ]


def test_java_can_read_the_store_of_what_python_trusts(java: Path, tmp_path: Path) -> None:
    options = jars._trusted_by_python(tmp_path)
    if not options:
        pytest.skip("this machine trusts no certificate")
    held = {option.split("=")[0]: option.split("=")[1] for option in options}
    keytool = java.resolve().with_name("keytool")
    if not keytool.is_file():
        pytest.skip("this Java has no keytool")
    listed = subprocess.run(
        [str(keytool), "-list", "-keystore", held["-Djavax.net.ssl.trustStore"], "-storepass", "trusted"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert listed.count("trustedCertEntry") >= 1


@pytest.mark.core
def test_no_file_of_the_project_names_a_repository() -> None:
    named = subprocess.run(
        ["git", "grep", "-nIE", r"https?://[a-z0-9-]+(\.[a-z0-9-]+)*\.(org|com|net|io|dev)\b"],
        cwd=PROJECT, capture_output=True, text=True,
    )  # fmt: skip
    assert (named.stdout, named.returncode) == ("", 1)  # 1: git found nothing
