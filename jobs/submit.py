"""The entry script for spark-submit: the command line, run by Spark.

    spark-submit --master spark://host:7077 --py-files dist/hindsight.zip jobs/submit.py mine --from .. --to ..

Enters: the arguments of the `hindsight` command. Leaves: its exit code. Where the package is neither installed nor
shipped, the checkout that this file stands in is used.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]  # a script's folder would hide the package `jobs`
    if find_spec("jobs") is None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from jobs.cli import main

    sys.exit(main(sys.argv[1:]))
