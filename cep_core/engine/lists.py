"""The candidates of every element over one store, each list made once whatever the number of queries that share it.

Enters: the store of one key, the columns of its events. Leaves: lists of places (int32, ascending) by classes, filter
and pushed-down conditions, and indexes of such lists by an attribute's value.
Always holds: a list is the events of its classes (SCEMon 4: one queue per class for all queries and sources) that meet
all conditions which speak of the element alone (SASE 4: predicates pushed down; GenTrie 3: attribute filters).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.engine.conditions import EventColumns, anonymous_condition
from cep_core.engine.keys import key_codes
from cep_core.engine.order import Ordered
from cep_core.engine.steps import reach, symbol_lists
from cep_core.engine.values import align
from cep_core.language.algebra import Condition, Element, Window
from cep_core.language.normal import push_down

ListKey = tuple[tuple[str, ...], frozenset[Condition], str | None]
IndexKey = tuple[ListKey, str, str]


class Candidates:
    """Lists and indexes of one store."""

    def __init__(self, store: Ordered, columns: EventColumns) -> None:
        self.store = store
        self.columns = columns
        self._conditions: dict[frozenset[Condition], frozenset[Condition]] = {}  # one object each: quick to compare
        self._lists: dict[ListKey, np.ndarray] = {}
        self._indexes: dict[IndexKey, tuple[np.ndarray, np.ndarray]] = {}
        self._codes: dict[tuple[str, str], tuple[np.ndarray, np.ndarray, int]] = {}
        self._tables: dict[bool, dict[str, np.ndarray]] = {}
        self.forms: dict[object, list[Any]] = {}  # of the queries that are searched here (task.py)
        self._by_class: tuple[np.ndarray, np.ndarray] | None = None

    def table(self, ordered: bool) -> dict[str, np.ndarray]:
        """The store as kernels read it (tables.py). ordered: TIES ordered."""
        if ordered not in self._tables:
            own = self.store
            before = np.empty(own.count, np.int32)
            reach(own.offsets, own.row, own.start, own.end, 1 if ordered else 0, before)
            arrays = {"row": own.row, "start": own.start, "end": own.end, "before": before, "part": own.part}
            arrays["offsets"] = own.offsets
            self._tables[ordered] = {f"store_{name}": np.ascontiguousarray(array) for name, array in arrays.items()}
        return self._tables[ordered]

    def key(self, element: Element, pushed: Sequence[Condition]) -> ListKey:
        conditions = {anonymous_condition(condition) for condition in pushed}
        if element.filter is not None:
            conditions.add(anonymous_condition(push_down(element.filter)))
        needed = None
        if isinstance(element.quantity, Window):
            needed = element.quantity.same or element.quantity.different
        own = frozenset(conditions)
        return tuple(sorted(set(element.classes))), self._conditions.setdefault(own, own), needed

    def places(self, key: ListKey) -> np.ndarray:
        """int32[k], ascending."""
        if key not in self._lists:
            self._lists[key] = self._drawn(key)
        return self._lists[key]

    def _drawn(self, key: ListKey) -> np.ndarray:
        classes, conditions, needed = key
        columns = self.columns
        if self._by_class is None:
            held = np.empty(self.store.count, np.int32)
            self._by_class = held, symbol_lists(self.store.cls, len(columns.events.classes), held)
        held, first = self._by_class
        known = [code for code, name in enumerate(columns.events.classes) if name in classes]
        parts = [held[first[code] : first[code + 1]] for code in known]
        places = parts[0] if len(parts) == 1 else np.sort(np.concatenate([held[:0], *parts]))
        if not conditions and needed is None:
            return places
        rows = self.store.row[places]
        keep = np.ones(len(rows), bool)
        for condition in conditions:
            keep &= columns.mask(condition)[rows]
        if needed is not None:  # TIMES_EQ and TIMES_DF want a value
            keep &= columns.attribute(needed).valid[rows]
            declared = columns.declared(needed)
            if declared is not None:
                keep &= declared[rows]
        return places[keep]

    def index(self, key: IndexKey) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(held int32[k], first int64[codes+1], looked, own int64[n]): a list by the value of an attribute of its
        events; for every event the code to look for by another attribute's value, and the code that it is held by."""
        of_list, own, other = key
        looked, codes, count = self._joined(other, own)
        if key not in self._indexes:
            places = self.places(of_list)
            found = codes[self.store.row[places]]
            order = np.argsort(found, kind="stable")
            first = np.searchsorted(found[order], np.arange(count + 1)).astype(np.int64)
            self._indexes[key] = places[order], first
        return *self._indexes[key], looked, codes

    def _joined(self, one: str, other: str) -> tuple[np.ndarray, np.ndarray, int]:
        """int64[n] codes of two attributes by one list of values, -1 for null; and how many codes there are."""
        if (one, other) not in self._codes:
            vectors = [self.columns.attribute(one)] if one == other else align(
                [self.columns.attribute(one), self.columns.attribute(other)]
            )  # fmt: skip
            data = pa.array(np.concatenate([v.data for v in vectors]), mask=~np.concatenate([v.valid for v in vectors]))
            codes = key_codes([data]).astype(np.int64)
            count = len(vectors[0].data)
            own = codes[-count:] if count else codes
            self._codes[one, other] = codes[:count], own, int(codes.max(initial=-1)) + 1
        return self._codes[one, other]
