"""Who can answer which shape of workload: DuckDB, Polars, and plain Python where SQL cannot say it.

Always holds: every formulation of a peer stands here under `peer` or `peer/formulation`; the fastest of all counts as
the best peer.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from bench import peers_duckdb, peers_duckdb_one_source, peers_polars, peers_python
from bench.workloads import Workload

PEERS: dict[str, dict[str, Callable[[Workload], pa.Table]]] = {
    "seq": {"duckdb": peers_duckdb.seq, "polars": peers_polars.seq},
    "many seq": {
        "duckdb": peers_duckdb.seq,
        "duckdb/coded": peers_duckdb.seq_coded,
        "polars": peers_polars.seq,
    },
    "and": {"duckdb": peers_duckdb.and_},
    "or": {"duckdb": peers_duckdb.or_, "polars": peers_polars.or_},
    "negation": {
        "duckdb/anti": peers_duckdb.negation_anti,
        "duckdb/asof": peers_duckdb.negation_asof,
        "polars": peers_polars.negation,
    },
    "groups": {
        "duckdb/join": peers_duckdb_one_source.groups_join,
        "duckdb/ranks": peers_duckdb_one_source.groups_ranks,
        "polars": peers_polars.groups,
    },
    "many groups": {"duckdb": peers_duckdb_one_source.groups_join, "polars": peers_polars.many_groups},
    "nested": {
        "duckdb/bucket": peers_duckdb_one_source.nested_bucket,
        "duckdb/pairs": peers_duckdb_one_source.nested_pairs,
        "duckdb/range": peers_duckdb_one_source.nested_range,
        "polars": peers_polars.nested,
    },
    "trie": {"python": peers_python.trie},
    "explosive": {"python": peers_python.explosive},
}
