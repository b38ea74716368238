"""What Spark throws, and the one line of it that a person can use.

Enters: an error of Spark or of its JVM. Leaves: a reason of one line, without class names, codes and traces.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

# Most failures come as PySparkException; those that Spark does not translate as py4j's.
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)

_NO_SPACE = "No space left on device"
_DENIED = ("Permission denied", "Read-only file system", "mkdir of file", "Mkdirs failed", "Parent path is not a dir")


def reason(error: BaseException) -> str:
    """The reason in one line.

    >>> reason(Exception("[SOME_CODE.SUB] The thing is wrong. SQLSTATE: 42K03;\\n'Project ..."))
    'The thing is wrong.'
    >>> reason(Exception("Python worker:\\nTraceback (most recent call last):\\n  File x\\nMemoryError: full\\n"))
    'a Python worker failed: MemoryError: full'
    """
    text = str(error)
    if _NO_SPACE in text:
        return "no space is left on the device"
    if any(mark in text for mark in _DENIED):
        return "the folder cannot be written (permissions, a read-only disk, or a file in its way)"
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    if raised:
        return f"a Python worker failed: {raised[-1]}"
    # Of a JVM trace the last cause says most.
    causes = re.findall(r"Caused by: (?:[\w$]+\.)+[\w$]+: (.+)", text)
    lines = [line.strip() for line in (causes[-1:] or text.splitlines()) if line.strip()]
    if isinstance(error, Py4JError) and not causes:
        lines = [line.split(": ", 2)[-1] for line in lines if line.startswith(": ")] or lines
    first = lines[0] if lines else type(error).__name__
    return re.sub(r"^(\[[A-Z0-9_.]+\]\s*)+", "", first).split(" SQLSTATE")[0].strip()
