"""The shared network of simple queries: one trie over symbols for all of them.

Enters: `SimpleQuery` values of one kind: SEQ or AND of single-event elements, each element a symbol (a class, or
several, with an optional filter), no condition between elements beside the key.
Leaves: `Network`: flat arrays that the walk reads.
Always holds: a node stands for the symbols of the last elements of its queries (SEQ: read from the end; AND: a
multiset), so a neighbour is probed once for every query that shares it (SCEMon 5: R-CLT), under the largest of their
windows; each query's own window is tested where it ends. Nodes with children have the lower numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal as OneOf

import numpy as np

MAX_TABLE = 1 << 25  # entries of the dense child table; a larger network probes child by child
MAX_PAIRS = 1 << 22  # entries of the table of pairs
NO_WINDOW = 1 << 62
ALL_BITS = (1 << 64) - 1


@dataclass(frozen=True)
class SimpleQuery:
    """number: the query's index in the answers. symbols: one per element in pattern order. window_us: None for no
    limit."""

    number: int
    kind: OneOf["seq", "and", "or"]
    symbols: tuple[int, ...]
    window_us: int | None
    recent: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Network:
    """kind, recent, ordered: shared by its queries. slots: the most elements that one of them has.

    root int32[symbols]: the node of a completing symbol, or -1. inner: how many nodes have children.
    child int32[inner * symbols]: the node after a symbol, or -1; empty where it would be too large.
    kids int32[inner+1], kid_symbol int32[], kid_node int32[]: the same as lists.
    wants uint64[inner]: the bits (symbol modulo 64) of a node's children; all bits where a query ends at the node.
    onward uint64[symbols * symbols]: for a completing symbol and one before it, what the node after both wants: no bit
    where there is none, all bits where it needs no more; empty where it would be too large.
    window int64[nodes]: the largest window below. ends int32[nodes+1]: a node's range of endings.
    end_query int32[], end_window int64[], end_slot int32[endings, slots]: which query ends, its window, and the slot of
    the i-th event (SEQ: from the completing one back; AND: by symbol).
    """

    kind: str
    recent: bool
    ordered: bool
    slots: int
    queries: int
    root: np.ndarray
    inner: int
    child: np.ndarray
    kids: np.ndarray
    kid_symbol: np.ndarray
    kid_node: np.ndarray
    wants: np.ndarray
    onward: np.ndarray
    window: np.ndarray
    ends: np.ndarray
    end_query: np.ndarray
    end_window: np.ndarray
    end_slot: np.ndarray

    @property
    def nodes(self) -> int:
        return len(self.window)


def networks(queries: Sequence[SimpleQuery], symbols: int) -> tuple[Network, ...]:
    """One network for each (kind, recent, ordered) among the queries, in the order of first appearance."""
    groups: dict[tuple[str, bool, bool], list[SimpleQuery]] = {}
    for query in queries:
        kind = "seq" if len(query.symbols) == 1 and query.kind == "and" else query.kind
        alone = len(query.symbols) == 1 or kind == "or"
        groups.setdefault((kind, query.recent and not alone, query.ordered and kind == "seq" and not alone), []).append(
            query
        )
    return tuple(_network(kind, recent, ordered, group, symbols) for (kind, recent, ordered), group in groups.items())


def _network(kind: str, recent: bool, ordered: bool, queries: list[SimpleQuery], symbols: int) -> Network:
    nodes: list[tuple[int, ...]] = []
    number: dict[tuple[int, ...], int] = {}
    window: list[int] = []
    kids: list[dict[int, int]] = []
    endings: list[list[tuple[int, int, tuple[int, ...]]]] = []

    def node(path: tuple[int, ...], limit: int) -> int:
        found = number.get(path)
        if found is None:
            found = number[path] = len(nodes)
            nodes.append(path)
            window.append(limit)
            kids.append({})
            endings.append([])
        elif window[found] < limit:
            window[found] = limit
        return found

    for query in queries:
        limit = NO_WINDOW if query.window_us is None else query.window_us
        for path, slots in _paths(kind, query.symbols):
            parents = _parents(kind, path)
            target = node(path, limit)
            endings[target].append((query.number, limit, slots))
            for parent, symbol, after in parents:
                kids[node(parent, limit)][symbol] = node(after, limit)
    order = sorted(range(len(nodes)), key=lambda old: (not kids[old], old))
    new = np.empty(len(nodes), np.int32)
    new[order] = np.arange(len(nodes), dtype=np.int32)
    inner = sum(1 for children in kids if children)
    root = np.full(symbols, -1, np.int32)
    for old, path in enumerate(nodes):
        if len(path) == 1:
            root[path[0]] = new[old]
    child = np.full(inner * symbols if inner * symbols <= MAX_TABLE else 0, -1, np.int32)
    kid_symbol, kid_node, counts, wants = [], [], [0], []
    for place, old in enumerate(order[:inner]):
        for symbol, kid in sorted(kids[old].items()):
            kid_symbol.append(symbol)
            kid_node.append(int(new[kid]))
            if len(child):
                child[place * symbols + symbol] = new[kid]
        counts.append(len(kid_symbol))
        wants.append(ALL_BITS if endings[old] else sum({1 << (symbol & 63) for symbol in kids[old]}))
    width = max(len(query.symbols) for query in queries)
    ended = [ending for old in order for ending in endings[old]]
    end_slot = np.full((len(ended), width), -1, np.int32)
    for row, ending in enumerate(ended):
        end_slot[row, : len(ending[2])] = ending[2]
    return Network(
        kind,
        recent,
        ordered,
        width,
        max(query.number for query in queries) + 1,
        root,
        inner,
        child,
        np.array(counts, np.int32),
        np.array(kid_symbol, np.int32),
        np.array(kid_node, np.int32),
        np.array(wants, np.uint64),
        _onward(root, child, np.array(wants, np.uint64), symbols),
        np.array([window[old] for old in order], np.int64),
        np.cumsum([0, *(len(endings[old]) for old in order)]).astype(np.int32),
        np.array([ending[0] for ending in ended], np.int32),
        np.array([ending[1] for ending in ended], np.int64),
        end_slot,
    )


def _onward(root: np.ndarray, child: np.ndarray, wants: np.ndarray, symbols: int) -> np.ndarray:
    if symbols * symbols > MAX_PAIRS or not len(child):
        return np.empty(0, np.uint64)
    after = np.full((symbols, symbols), -1, np.int64)
    begun = np.flatnonzero((root >= 0) & (root < len(wants)))
    after[begun] = child.reshape(-1, symbols)[root[begun]]
    # behind the inner nodes: a leaf, and none at all
    needs = np.concatenate([wants, np.array([ALL_BITS, 0], np.uint64)])
    found: np.ndarray = needs[np.where(after < 0, len(wants) + 1, np.minimum(after, len(wants)))].ravel()
    return found


def _paths(kind: str, symbols: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(node path, slot of each event): one for SEQ; for AND one per way to give equal symbols to their slots; for OR
    one per element."""
    if kind == "seq":
        return [(symbols[::-1], tuple(range(len(symbols) - 1, -1, -1)))]
    if kind == "or":
        return [((symbol,), (slot,)) for slot, symbol in enumerate(symbols)]
    path = tuple(sorted(symbols))
    choices = [
        permutations([slot for slot, own in enumerate(symbols) if own == symbol]) for symbol in sorted(set(symbols))
    ]
    return [(path, tuple(slot for part in way for slot in part)) for way in product(*choices)]


def _parents(kind: str, path: tuple[int, ...]) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """(node, symbol, node after it) for every step that leads to the path: a line for SEQ, all sub-multisets for
    AND."""
    if kind != "and":
        return [(path[:size], path[size], path[: size + 1]) for size in range(1, len(path))]
    steps = []
    level = {path}
    while level and len(next(iter(level))) > 1:
        below = set()
        for whole in level:
            for place in range(len(whole)):
                part = whole[:place] + whole[place + 1 :]
                steps.append((part, whole[place], whole))
                below.add(part)
        level = below
    return steps
