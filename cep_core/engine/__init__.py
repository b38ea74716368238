"""The engine: columnar evaluation of checked queries.

Compiled kernels are kept on disk, under a name made of all sources of this folder. Numba itself looks only at the file
that a kernel stands in; after a change elsewhere it would run an old kernel over arrays of a new layout.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from numba import config


def _kernels() -> None:
    here = Path(__file__).parent
    if not here.is_dir():
        return  # in an archive: Numba keeps its kernels by the archive's own stamp
    digest = hashlib.sha256()
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(given) if given else here / "__pycache__"
    if not given and not os.access(here, os.W_OK):
        base = Path.home() / ".cache" / "hindsight"
    config.CACHE_DIR = str(base / name)  # type: ignore[attr-defined]


_kernels()
