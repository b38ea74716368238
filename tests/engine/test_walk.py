"""The shared walk finds what the contract says, by trying every combination of events."""

from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

from cep_core.engine.keys import key_codes
from cep_core.engine.load import load
from cep_core.engine.network import SimpleQuery, networks
from cep_core.engine.order import order
from cep_core.engine.walk import Symbol, items, walk
from cep_core.errors import LimitError

pytestmark = pytest.mark.core
CLASSES = ["A", "B", "C", "D"]
EVER = (-(2**62), 2**62)


def table(random, count, points, span, sources=2):
    start = random.integers(0, span, count)
    end = start if points else start + random.integers(0, max(span // 8, 1), count)
    return pa.table(
        {
            "event_id": [f"e{i}" for i in random.permutation(count)],
            "source": [f"s{i}" for i in random.integers(0, sources, count)],
            "event_class": [CLASSES[i] for i in random.integers(0, len(CLASSES), count)],
            "start_ts": start,
            "end_ts": end,
        }
    )


def naive(store, symbols, query):
    """Every binding of the query, place by place, then SELECT; places in the store stand for event order."""
    found = set()
    part = store.part
    takes = [
        [
            p
            for p in range(store.count)
            if store.cls[p] in symbols[s].classes and (symbols[s].mask is None or symbols[s].mask[p])
        ]
        for s in query.symbols
    ]
    if query.kind == "or":
        choices = [
            tuple(p if i == slot else -1 for i in range(len(takes))) for slot, own in enumerate(takes) for p in own
        ]
    else:
        choices = list(product(*takes))
    for binding in choices:
        bound = [p for p in binding if p >= 0]
        if len(set(bound)) < len(bound) or len({part[p] for p in bound}) > 1:
            continue
        if (
            query.window_us is not None
            and max(store.end[p] for p in bound) - min(store.start[p] for p in bound) > query.window_us
        ):
            continue
        if query.kind == "seq" and not all(precedes(store, x, y, query.ordered) for x, y in pairwise(bound)):
            continue
        found.add(binding)
    if query.recent:
        best = {}
        for binding in found:
            completing = max(binding)
            if completing not in best or binding[::-1] > best[completing][::-1]:
                best[completing] = binding
        found = set(best.values())
    return {(query.number, tuple(int(store.row[p]) if p >= 0 else -1 for p in binding)) for binding in found}


def precedes(store, x, y, ordered):
    return (store.end[x] <= store.start[y] and x < y) if ordered else store.end[x] < store.start[y]


def walked(store, symbols, queries, chunk=1 << 12, span=EVER, limit=None):
    found = []
    ids = [f"q{query.number}" for query in queries]
    for network in networks(queries, len(symbols)):
        for answers in walk(items(store, symbols), network, *span, ids, limit, chunk):
            assert len(answers.query) <= chunk
            for number, rows in zip(answers.query.tolist(), answers.rows.tolist(), strict=True):
                found.append((number, tuple(rows[: len(queries[number].symbols)])))
    assert len(found) == len(set(found))
    return set(found)


def random_queries(random, symbols, count):
    queries = []
    for number in range(count):
        kind = ("seq", "seq", "and", "or")[random.integers(4)]
        size = int(random.integers(1, 5 if kind == "seq" else 4))
        queries.append(
            SimpleQuery(
                number,
                kind,
                tuple(int(s) for s in random.integers(0, symbols, size)),
                int(random.integers(1, 60)),
                bool(random.integers(2)) and kind == "seq",
                bool(random.integers(2)) and kind == "seq",
            )
        )
    return queries


@pytest.mark.parametrize("seed", range(40))
def test_the_walk_equals_the_naive_meaning(seed):
    random = np.random.default_rng(seed)
    points = bool(seed % 2)
    events = load(table(random, int(random.integers(0, 26)), points, (12, 100)[seed % 3 == 0]), CLASSES)
    store = order(events, key_codes([events.attribute("source")]))
    plain = seed % 4 < 2
    symbols = (
        [Symbol((code,)) for code in (1, 0, 2, 3)]
        if plain
        else [
            Symbol((0,), random.integers(0, 2, store.count).astype(np.uint8)),
            Symbol((0, 1)),
            Symbol((2,)),
            Symbol((1, 3), random.integers(0, 2, store.count).astype(np.uint8)),
        ]
    )
    queries = random_queries(random, len(symbols), 12)
    expected = set().union(*(naive(store, symbols, query) for query in queries))
    assert walked(store, symbols, queries) == expected
    assert walked(store, symbols, queries, chunk=3) == expected
    alone = [
        walked(store, symbols, [query if query.number == 0 else query.__class__(0, *list(vars(query).values())[1:])])
        for query in queries
    ]
    assert {(number, rows) for number, part in enumerate(alone) for _, rows in part} == expected


@pytest.mark.parametrize("seed", range(6))
def test_wide_windows_are_probed_by_symbol(seed, monkeypatch):
    """With no dense table every node goes through the symbols' lists."""
    monkeypatch.setattr("cep_core.engine.network.MAX_TABLE", 0)
    random = np.random.default_rng(seed)
    events = load(table(random, 24, bool(seed % 2), 60), CLASSES)
    store = order(events, key_codes([events.attribute("source")]))
    symbols = [Symbol((code,)) for code in range(4)]
    queries = random_queries(random, 4, 12)
    assert walked(store, symbols, queries, chunk=5) == set().union(*(naive(store, symbols, query) for query in queries))


def test_only_completing_events_in_the_range_count():
    random = np.random.default_rng(5)
    events = load(table(random, 40, False, 60), CLASSES)
    store = order(events, key_codes([events.attribute("source")]))
    symbols = [Symbol((code,)) for code in range(4)]
    queries = [SimpleQuery(0, "seq", (0, 1), 30), SimpleQuery(1, "and", (2, 1), 30), SimpleQuery(2, "or", (2, 3), None)]
    whole = walked(store, symbols, queries)
    parts = [walked(store, symbols, queries, span=span) for span in ((-(2**62), 20), (20, 41), (41, 2**62))]
    assert set().union(*parts) == whole
    assert sum(map(len, parts)) == len(whole)
    assert all(parts)


def test_a_query_over_its_limit_is_named():
    events = load(
        pa.table(
            {"event_id": list("abcdef"), "source": ["s"] * 6, "event_class": list("AAABBB"), "ts": [1, 2, 3, 4, 5, 6]}
        ),
        CLASSES,
    )
    store = order(events)
    queries = [SimpleQuery(0, "seq", (0, 1), 100)]
    symbols = [Symbol((0,)), Symbol((1,))]
    assert len(walked(store, symbols, queries, limit=np.array([9]))) == 9
    with pytest.raises(LimitError, match=r"query q0: more than 8 answers in partition 0"):
        walked(store, symbols, queries, limit=np.array([8]), chunk=2)


def test_recent_does_not_enumerate_what_it_discards():
    """3,000 As and Bs before each C: all combinations would be 10^9 steps; recent takes one."""
    count = 6000
    events = load(
        pa.table(
            {
                "event_id": [str(i) for i in range(count)],
                "source": ["s"] * count,
                "event_class": ["D" if i == 0 else "AB"[i % 2] if i % 100 else "C" for i in range(count)],
                "ts": list(range(count)),
            }
        ),
        CLASSES,
    )
    store = order(events)
    symbols = [Symbol((code,)) for code in range(4)]
    found = walked(store, symbols, [SimpleQuery(0, "seq", (3, 0, 1, 2), count, True)])
    assert len(found) == 59
    assert (0, (0, 5898, 5899, 5900)) in found
