"""Our engine in the benchmark, by its front door: query texts and a table in, a table of matches out.

Enters: a workload. Leaves: the table of matches (`mine`, `alone`), or what was counted while they went by (`chunks`).
`rows` then says each match as one text, as it does for a peer's table, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cep_core
from bench.workloads import Workload

NO_LIMIT = 10**15


def mine(workload: Workload) -> pa.Table:
    return cep_core.mine(workload.events, workload.queries, limit=NO_LIMIT)


def alone(workload: Workload) -> pa.Table:
    """Sharing off: each query in a call of its own."""
    return pa.concat_tables(
        cep_core.mine(workload.events, {name: text}, limit=NO_LIMIT) for name, text in workload.queries.items()
    )


def prepared(workload: Workload) -> Callable[[], pa.Table]:
    """The query set checked beforehand: what is left is the mining alone."""
    queries = cep_core.prepare(workload.queries, None)
    return lambda: cep_core.mine(workload.events, queries, limit=NO_LIMIT)


def chunks(workload: Workload) -> pa.Table:
    """Streamed: no more than a part of the matches is held at a time. How many answers each event completes."""
    counted: list[pa.Table] = []
    for part in cep_core.mine_chunks(workload.events, workload.queries, limit=NO_LIMIT):
        members = part["members"].combine_chunks()
        ids = members.values.field("event_id").take(pc.subtract(members.offsets[1:], 1))
        last = pa.table({"q": part["query_id"], "i0": ids})
        counted.append(last.group_by(["q", "i0"]).aggregate([([], "count_all")]))
    whole = pa.concat_tables(counted).group_by(["q", "i0"]).aggregate([("count_all", "sum")])
    return whole.rename_columns(["q", "i0", "answers"])


ENGINES: dict[str, Callable[[Workload], pa.Table]] = {"hindsight": mine, "alone": alone, "chunks": chunks}


def rows(found: pa.Table) -> pa.ChunkedArray:
    """One text a match: the query, the ids of its events in pattern order, and what it returns."""
    if "members" in found.column_names:
        members = found["members"].combine_chunks()
        ids = pa.ListArray.from_arrays(members.offsets, members.values.field("event_id"))
        columns = [found["query_id"], pa.chunked_array([ids])]
        if len(found) and len(found["fields"].combine_chunks().keys):
            columns.append(pc.map_lookup(found["fields"], pa.scalar("x"), "first"))
    else:
        columns = list(found.columns)
    return pc.binary_join_element_wise(*[_text(column) for column in columns], pa.scalar("|", pa.large_string()))


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pc.binary_join(column.cast(pa.list_(pa.string())), "|").cast(pa.large_string())
    return column.cast(pa.large_string())


def answers(found: pa.Table) -> int:
    """How many matches: the rows, or the sum of what was counted."""
    return int(np.sum(found["answers"].to_numpy())) if "answers" in found.column_names else len(found)
