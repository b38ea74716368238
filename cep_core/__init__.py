"""Hindsight's engine: finds composite events in a table of events. Needs no Spark.

The names below are loaded when first used: a command line that only shows its help should not wait for the kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cep_core.engine.identity import match_id
    from cep_core.plan.explain import explain
    from cep_core.run import Prepared, mine, mine_chunks, mine_with_state, prepare

__all__ = ["Prepared", "explain", "match_id", "mine", "mine_chunks", "mine_with_state", "prepare"]

_HOME = {"match_id": "cep_core.engine.identity", "explain": "cep_core.plan.explain"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cep_core' has no attribute {name!r}")
    found = getattr(import_module(_HOME.get(name, "cep_core.run")), name)
    globals()[name] = found
    return found
