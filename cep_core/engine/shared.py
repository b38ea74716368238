"""The shared walk of all simple queries of a call.

Enters: simple queries (plan/simple.py), the stores and columns of the call. Leaves: `Answers`.
Always holds: queries of one key share one store; those of one kind share one network and one pass over it. An element
that means the same in two queries (classes and filter) is one symbol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cep_core.engine.evaluate import Evaluation, Range, elements
from cep_core.engine.network import SimpleQuery, networks
from cep_core.engine.output import Answers
from cep_core.engine.returns import Flat, field_texts, returned
from cep_core.engine.walk import Symbol, items, walk
from cep_core.language.checked import CheckedQuery
from cep_core.language.normal import push_down
from cep_core.plan.simple import Simple

_FAR = 1 << 62


def walked(
    queries: Sequence[tuple[int, CheckedQuery, Simple]],
    evaluation: Evaluation,
    within: Range,
    ids: Sequence[str],
    limit: Mapping[str, int],
) -> Iterator[Answers]:
    """Matches of all these queries; each is given with its number in `ids`."""
    low = -_FAR if within.start is None else within.start
    high = _FAR if within.end is None else within.end
    limits = np.asarray([limit[name] for name in ids], np.int64)
    by_key: dict[object, list[tuple[int, CheckedQuery, Simple]]] = {}
    for entry in queries:
        by_key.setdefault((entry[1].key, entry[1].key_values), []).append(entry)
    returning = {number: checked for number, checked, _ in queries if checked.query.returns}
    for group in by_key.values():
        keyed = evaluation.keyed(group[0][1])
        symbols: dict[tuple[tuple[str, ...], object], int] = {}
        wanted = []
        for number, checked, simple in group:
            own = tuple(symbols.setdefault((tuple(sorted(e.classes)), e.filter), len(symbols)) for e in simple.elements)
            query = checked.query
            recent, ordered = query.select == "recent", query.ties == "ordered"
            wanted.append(SimpleQuery(number, simple.kind, own, query.within_us, recent, ordered))
        code = {name: number for number, name in enumerate(evaluation.events.classes)}
        drawn = []
        for classes, condition in symbols:
            mask = None
            if condition is not None:
                mask = evaluation.columns.mask(push_down(condition))[keyed.store.row].astype("uint8")  # type: ignore[arg-type]
            drawn.append(Symbol(tuple(code[name] for name in classes if name in code), mask))
        held = items(keyed.store, drawn)
        for network in networks(wanted, len(drawn)):
            for answers in walk(held, network, low, high, ids, limits, names=keyed.names):
                yield from _with_fields(answers, returning, evaluation) if returning else (answers,)


def _with_fields(answers: Answers, returning: dict[int, CheckedQuery], evaluation: Evaluation) -> Iterator[Answers]:
    """The answers query by query, with RETURN where a query has it."""
    assert answers.rows is not None
    order = np.argsort(answers.query, kind="stable")
    numbers, firsts = np.unique(answers.query[order], return_index=True)
    plain = []
    for number, rows in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True):
        if number not in returning:
            plain.append(rows)
            continue
        checked = returning[number]
        own = answers.rows[rows]
        bound = own >= 0
        element = np.broadcast_to(np.arange(own.shape[1], dtype=np.int32), own.shape)[bound]
        offsets = np.cumsum([0, *bound.sum(axis=1)]).astype(np.int64)
        flat = Flat(offsets, element, own[bound], np.empty(0, np.int64), {})
        positions = {e.variable: e.position for e in elements(checked.query.pattern) if e.variable is not None}
        fields = returned(checked, positions, flat, evaluation.columns)
        yield Answers(answers.query[rows], own, fields=field_texts(checked, fields))
    if plain:
        kept = np.concatenate(plain)
        yield Answers(answers.query[kept], answers.rows[kept])
