"""Our engine in the benchmark: `cep_core.mine` where the package has it, and the shared walk itself.

Enters: a workload. Leaves: the table of matches, or the same ids that the peers return.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

import cep_core
from bench.workloads import Workload
from cep_core.engine.keys import key_codes
from cep_core.engine.load import load
from cep_core.engine.network import SimpleQuery, networks
from cep_core.engine.order import order
from cep_core.engine.output import matches_table
from cep_core.engine.walk import Symbol, items, walk

EVER = (-(2**62), 2**62)


def mine(workload: Workload) -> pa.Table:
    """Through the front door: query texts to matches."""
    return cep_core.mine(workload.events, {pattern.id: pattern.text for pattern in workload.patterns})


def shared_walk(workload: Workload) -> pa.Table:
    """Rows to matches without the language: what the network and its walk cost."""
    classes = sorted({name for pattern in workload.patterns for name in pattern.classes})
    place = {name: code for code, name in enumerate(classes)}
    queries = [
        SimpleQuery(number, p.kind, tuple(place[name] for name in p.classes), p.window_us, p.select == "recent")
        for number, p in enumerate(workload.patterns)
    ]
    ids = [pattern.id for pattern in workload.patterns]
    events = load(workload.events, classes)
    store = order(events, key_codes([events.attribute("source")]))
    held = items(store, [Symbol((code,)) for code in range(len(classes))])
    found = [answers for network in networks(queries, len(classes)) for answers in walk(held, network, *EVER, ids)]
    return matches_table(events, found, ids, [tuple("abcdefgh"[: len(p.classes)]) for p in workload.patterns])


def one_by_one(workload: Workload) -> pa.Table:
    """The same with sharing off: each query alone."""
    return pa.concat_tables([shared_walk(replace(workload, patterns=(pattern,))) for pattern in workload.patterns])


def event_ids(matches: pa.Table, size: int) -> pa.Table:
    """q, i0, i1, ...: for patterns that bind `size` elements, or one of them (i0)."""
    joined = matches.column("members").combine_chunks()
    joined = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
    ids = joined.flatten().field("event_id")
    bound = len(ids) // max(len(matches), 1)
    columns = {f"i{place}": ids.take(pa.array(np.arange(place, len(ids), bound))) for place in range(min(bound, size))}
    return pa.table({"q": matches.column("query_id"), **columns})
