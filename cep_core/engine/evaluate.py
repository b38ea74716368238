"""One query over a table of events, whatever it says: from the store to matches.

Enters: checked queries, `Events` with their columns, the detection range and the state. Leaves: `Found` matches.
Always holds: every partition is answered alone; what a query finds does not depend on the queries beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.engine.conditions import EventColumns
from cep_core.engine.keys import key_codes
from cep_core.engine.matcher import Answer, Partition, Task, answers
from cep_core.engine.order import Ordered, order
from cep_core.engine.output import timer_id
from cep_core.engine.scope import Moment, Scope, is_plain, value, variables
from cep_core.engine.select import Consumed, Order, select
from cep_core.engine.values import Vector, compare, constant
from cep_core.errors import LimitError
from cep_core.language.algebra import Atom, Condition, Element, One, Window
from cep_core.language.checked import CheckedQuery
from cep_core.language.normal import push_down
from cep_core.plan.branches import Branch, branches

DETECTION = "__detection_us"  # a column of events that are matches: when they were detected
_TIMES = ("ts", "start_ts", "end_ts")


@dataclass(frozen=True)
class Found:
    """A match: elements as (name, events), an event a row of Events or, from events.count on, a timer's number."""

    elements: tuple[tuple[str, tuple[int, ...]], ...]
    start: int
    end: int
    detection: int
    fields: dict[str, Any]
    partition: str


@dataclass(frozen=True)
class Range:
    """Detection times [start, end); None is open."""

    start: int | None
    end: int | None

    def holds(self, moment: int) -> bool:
        return (self.start is None or moment >= self.start) and (self.end is None or moment < self.end)


class Evaluation:
    """Evaluates queries over one table of events. timers: the moments of all timers that matches bind."""

    def __init__(self, columns: EventColumns, limit: int) -> None:
        self.columns = columns
        self.events = columns.events
        self.limit = limit
        self.timers: list[int] = []
        self._timer_numbers: dict[int, int] = {}
        self._cells: dict[str, list[Any]] = {}
        self._stores: dict[Any, tuple[Ordered, list[str]]] = {}

    def matches(self, checked: CheckedQuery, within: Range, consumed: dict[str, Consumed]) -> Iterator[Found]:
        store, names = self.store(checked)
        task, places = self._task(checked, store)
        ids = self.events.event_id
        tie = self.events.tie
        starts, ends = store.start.tolist(), store.end.tolist()
        rows = store.row
        for number, name in enumerate(names[: len(store.offsets) - 1]):
            low, high = int(store.offsets[number]), int(store.offsets[number + 1])
            own = [
                {
                    position: found[np.searchsorted(found, low) : np.searchsorted(found, high)].tolist()
                    for position, found in branch.items()
                }
                for branch in places
            ]
            part = Partition(own, starts, ends, Scope(None, None))
            part.scope = self._scope(part, rows)

            def lasting(event: int, part: Partition = part) -> tuple[int, int, int, int, str]:
                end, start, timer, position = part.key(event)
                if timer:
                    return end, start, 1, position, ""
                row = int(rows[event])
                return end, start, 0, -(2**63) if tie is None else int(tie[row]), ids[row].as_py()

            order_of = Order(part.key, lasting, lambda event: ids[int(rows[event])].as_py(), lambda event: ends[event])
            taken = None if checked.query.consume == "none" else consumed.setdefault(name, Consumed())
            found = self._answers(checked, task, part, name, within if taken is not None else Range(None, None))
            for chosen in select(checked.query, found, order_of, taken):
                match = self._match(checked, task, part, rows, chosen, name)
                if within.holds(match.detection):
                    yield match

    def _answers(self, checked: CheckedQuery, task: Task, part: Partition, name: str, within: Range) -> list[Answer]:
        """All answers of the partition; a CONSUME query's only inside the range, since only those consume."""
        found: list[Answer] = []
        for answer in answers(task, part):
            if within.holds(answer.end):
                found.append(answer)
                if len(found) > self.limit:
                    raise LimitError(
                        f"query {checked.query.id}: more than {self.limit} answers in partition {name or '(all)'}; "
                        f"narrow its conditions or its WITHIN, or raise the limit on answers per partition"
                    )
        return found

    def store(self, checked: CheckedQuery) -> tuple[Ordered, list[str]]:
        """The events in partition and event order, and the partitions' names."""
        mark = (checked.key, checked.key_values)
        if mark not in self._stores:
            self._stores[mark] = self._ordered(checked)
        return self._stores[mark]

    def _ordered(self, checked: CheckedQuery) -> tuple[Ordered, list[str]]:
        if not checked.key:
            return order(self.events), [""]
        vectors = [self.columns.attribute(name) for name in checked.key]
        codes = key_codes([_plain(vector) for vector in vectors])
        for vector, wanted in zip(vectors, checked.key_values, strict=True):
            if wanted is not None:
                same, valid = compare("=", vector, constant(wanted, len(codes)))
                codes = np.where(same & valid, codes, -1).astype(np.int32)
        kept = np.unique(codes[codes >= 0])
        codes = np.where(codes >= 0, np.searchsorted(kept, np.maximum(codes, 0)), -1).astype(np.int32)
        store = order(self.events, codes)
        firsts = store.row[store.offsets[:-1]] if len(store.row) else np.zeros(0, np.int32)
        texts = [vector.take(firsts).texts() for vector in vectors]
        named = zip(*texts, strict=True)
        return store, [", ".join(f"{k}={t}" for k, t in zip(checked.key, own, strict=True)) for own in named]

    def _task(self, checked: CheckedQuery, store: Ordered) -> tuple[Task, list[dict[int, np.ndarray]]]:
        """Pushes what names one element alone into its candidates."""
        flat = branches(checked)
        left: list[tuple[Atom, ...]] = []
        places: list[dict[int, np.ndarray]] = []
        masks: dict[Any, np.ndarray] = {}
        for branch in flat:
            elements = _elements(branch)
            owner = {element.variable: element for element in elements if element.variable is not None}
            pushed: dict[int, list[Condition]] = {element.position: [] for element in elements}
            rest: list[Atom] = []
            for atom in branch.atoms:
                names = variables(atom)
                if len(names) == 1 and is_plain(atom) and (only := owner.get(next(iter(names)))) is not None:
                    pushed[only.position].append(atom)
                else:
                    rest.append(atom)
            left.append(tuple(rest))
            places.append({e.position: self._candidates(e, pushed[e.position], store, masks) for e in elements})
        return Task(checked, flat, tuple(left)), places

    def _candidates(
        self, element: Element, pushed: list[Condition], store: Ordered, masks: dict[Any, np.ndarray]
    ) -> np.ndarray:
        known = [code for code, name in enumerate(self.events.classes) if name in element.classes]
        keep = np.isin(self.events.cls, known)
        if element.filter is not None:
            keep = keep & self.columns.mask(push_down(element.filter))
        for condition in pushed:
            keep = keep & self.columns.mask(condition)
        if isinstance(element.quantity, Window):
            for name in (element.quantity.same, element.quantity.different):
                if name is not None:
                    declared = self.columns.declared(name)
                    keep = keep & self.columns.attribute(name).valid & (True if declared is None else declared)
        return np.flatnonzero(keep[store.row])

    def _scope(self, part: Partition, rows: np.ndarray) -> Scope:
        declared: dict[str, np.ndarray | None] = {}

        def read(event: int, name: str) -> Any:
            if event < 0:
                moment = part.timers[-1 - event][0]
                return Moment(moment) if name in _TIMES else timer_id(moment) if name == "event_id" else None
            return self._cell(name)[rows[event]]

        def declares(event: int, name: str) -> bool:
            if event < 0:
                return name in _TIMES or name == "event_id"
            if name not in declared:
                declared[name] = self.columns.declared(name)
            mask = declared[name]
            return mask is None or bool(mask[rows[event]])

        return Scope(read, declares)

    def _cell(self, name: str) -> list[Any]:
        if name not in self._cells:
            self._cells[name] = _python(self.columns.attribute(name))
        return self._cells[name]

    def _match(
        self, checked: CheckedQuery, task: Task, part: Partition, rows: np.ndarray, chosen: list[Answer], name: str
    ) -> Found:
        query = checked.query
        bound: dict[int, tuple[int, ...]] = {}
        for answer in chosen:
            for position, events in answer.events.items():
                bound[position] = tuple(sorted({*bound.get(position, ()), *events}, key=part.key))
        start, end = min(a.start for a in chosen), max(a.end for a in chosen)
        if not checked.postponed:
            detection = end
        elif query.select == "all":
            detection = start + (query.within_us or 0)
        else:
            detection = end + (query.within_us or 0)
        names = {e.position: e.name for b in task.branches for e in _all_elements(b)}
        variable = {e.position: e.variable for b in task.branches for e in _all_elements(b)}
        many = {e.position for b in task.branches for e in _all_elements(b) if not _single(e)}
        detection = max([detection, *self._detected(bound, rows)])
        scope = Scope(
            part.scope.read,
            part.scope.declares,
            {variable[p]: events for p, events in bound.items() if variable[p] is not None},
            frozenset(variable[p] for p in many if variable[p] is not None),
            lenient=True,
        )
        fields = {}
        for (expression, field), (_, kind) in zip(query.returns, checked.fields, strict=True):
            fields[field] = _returned(value(expression, scope), kind)
        elements = tuple((names[p], tuple(self._number(part, rows, e) for e in bound[p])) for p in sorted(bound))
        return Found(elements, start, end, detection, fields, name)

    def _detected(self, bound: Mapping[int, Sequence[int]], rows: np.ndarray) -> list[int]:
        """When those members were detected that are themselves matches."""
        if DETECTION not in self.columns.names:
            return []
        cells = self._cell(DETECTION)
        times = [cells[rows[event]] for events in bound.values() for event in events if event >= 0]
        return [time for time in times if time is not None]

    def _number(self, part: Partition, rows: np.ndarray, event: int) -> int:
        if event >= 0:
            return int(rows[event])
        moment = part.timers[-1 - event][0]
        if moment not in self._timer_numbers:
            self._timer_numbers[moment] = len(self.timers)
            self.timers.append(moment)
        return self.events.count + self._timer_numbers[moment]


def _returned(result: Any, kind: str) -> Any:
    return float(result) if kind == "float" and isinstance(result, int) and not isinstance(result, bool) else result


def _single(element: Any) -> bool:
    return not isinstance(element, Element) or isinstance(element.quantity, One)


def _elements(branch: Branch) -> list[Element]:
    """Every element of a branch that reads events: slots once each, groups and negated ones."""
    own = {slot.element.position: slot.element for slot in branch.slots if isinstance(slot.element, Element)}
    return [*own.values(), *(g.element for g in branch.groups), *(n.element for n in branch.negations)]


def _all_elements(branch: Branch) -> list[Any]:
    return [*(slot.element for slot in branch.slots), *(place.element for place in branch.groups)]


def _plain(vector: Vector) -> pa.Array:
    """The vector's values as an Arrow array to be coded: equal values, equal codes."""
    return pa.array(vector.data, mask=~vector.valid)


def _python(vector: Vector) -> list[Any]:
    valid = vector.valid.tolist()
    data: list[Any] = vector.data.tolist()
    if vector.type == "string":
        data = [vector.words[code] if ok else None for code, ok in zip(data, valid, strict=True)]
    elif vector.type == "timestamp":
        data = [Moment(us) for us in data]
    return [x if ok else None for x, ok in zip(data, valid, strict=True)]
