"""The package as one archive for the executors of a cluster.

Enters: the installed sources. Leaves: a zip with cep_core, jobs and schemas, the same bytes for the same sources.
Run: `python -m jobs.package dist/hindsight.zip`, then give it to spark-submit with --py-files (docs/operations.md).
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PACKAGES = ("cep_core", "jobs", "schemas")
_WHEN = (2020, 1, 1, 0, 0, 0)


def build(target: Path) -> Path:
    """Writes the archive; files in the order of their names, with one fixed date."""
    root = Path(__file__).resolve().parents[1]
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((root / package).rglob("*.py")):
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), _WHEN)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())
    return target


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist/hindsight.zip")))
