"""What Spark throws, and the one line of it that a person can use.

Enters: an error of Spark or of its JVM. Leaves: a reason of one line, without class names, codes and traces.
Always holds: an error that a worker raised on purpose comes out as that error, without Spark's wrapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cep_core import errors
from cep_core.errors import HindsightError, TableError

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


@contextmanager
def engine_errors() -> Iterator[None]:
    """What a worker refused on purpose, as the error that it is, without Spark's wrapping; and what Spark itself could
    not do (a file that cannot be read, a full disk) in one sentence."""
    try:
        yield
    except SPARK_ERRORS as error:
        found = re.findall(r"cep_core\.errors\.(\w+): (.*?)(?:\n\n|\Z)", str(error), re.DOTALL)
        if not found:
            raise TableError(f"the run could not go on: {reason(error)}") from error
        name, message = found[0]
        raise getattr(errors, name, HindsightError)(message.strip()) from None
