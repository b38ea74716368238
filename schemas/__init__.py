"""Table contracts: what each table of Hindsight holds. Importable without Spark."""

from schemas.composite_events import COMPOSITE_EVENTS
from schemas.contract import Column, Constraint, Contract
from schemas.event_stats import EVENT_STATS
from schemas.packs import PACKS
from schemas.quality_results import QUALITY_RESULTS
from schemas.quarantine import QUARANTINE
from schemas.runs import RUNS
from schemas.state import STATE

CONTRACTS: dict[str, Contract] = {
    contract.name: contract
    for contract in (COMPOSITE_EVENTS, RUNS, EVENT_STATS, STATE, QUALITY_RESULTS, QUARANTINE, PACKS)
}

__all__ = [
    "COMPOSITE_EVENTS",
    "CONTRACTS",
    "EVENT_STATS",
    "PACKS",
    "QUALITY_RESULTS",
    "QUARANTINE",
    "RUNS",
    "STATE",
    "Column",
    "Constraint",
    "Contract",
]
