"""Hindsight's engine: finds composite events in a table of events. Needs no Spark."""

from cep_core.engine.identity import match_id
from cep_core.mine import Prepared, mine, mine_chunks, mine_with_state, prepare
from cep_core.plan.explain import explain

__all__ = ["Prepared", "explain", "match_id", "mine", "mine_chunks", "mine_with_state", "prepare"]
