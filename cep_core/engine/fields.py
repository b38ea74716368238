"""Where RETURN fields stand among the columns of events: matches below events, and the queries that read both.

Enters: the table of events, matches as events (refer.py), and the queries that refer to them. Leaves: one table, and
those queries with the names of its columns in their attributes' places.
Always holds: an attribute has the type and the value that its class gives it. A column has one type, so a field that is
named like a column of another type gets a column of its own, such as `x:int`. Where one element may be of both classes,
the two are joined in a third, as floats: the checker allows only whole numbers beside fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cep_core.engine.conditions import LARGE
from cep_core.engine.load import column, microseconds, text_ids
from cep_core.engine.values import type_of
from cep_core.errors import EvaluationError
from cep_core.language.algebra import Aggregate, Attribute, Element, Window
from cep_core.language.checked import Chain, CheckedQuery
from cep_core.language.scope import leaves

Places = Mapping[str, Mapping[str, str]]  # class -> attribute -> its column, where that is not the attribute's name

PLAIN = {
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "null": pa.string(),
}
_IDS = ("event_id", "event_class")
_TIMES = ("start_ts", "end_ts")


# ---------------------------------------------------------------- matches below events


def with_matches(table: pa.Table, matches: pa.Table) -> tuple[pa.Table, dict[str, str]]:
    """The events with the matches below them, and the fields that got a column of their own."""
    if "ts" in table.column_names:
        times = table.column("ts")
        table = table.drop_columns("ts").append_column("start_ts", times).append_column("end_ts", times)
    places: dict[str, str] = {}
    for name in matches.column_names:
        if name in table.column_names and name not in (*_IDS, *_TIMES):
            held, own = table.schema.field(name).type, matches.schema.field(name).type
            if type_of(held) != type_of(own) or pa.types.is_null(held) or pa.types.is_uint64(held):
                places[name] = f"{name}:{type_of(own)}"
    columns: dict[str, list[pa.ChunkedArray]] = {}
    for name in table.column_names:
        columns[name] = [_plain(table, name) if name in matches.column_names else table.column(name)]
    for name in matches.column_names:
        base = name.removeprefix(LARGE)
        own = matches.column(name)
        stands = name.removesuffix(base) + places.get(base, base)
        before = columns.setdefault(stands, [pa.chunked_array([pa.nulls(len(table), own.type)])])
        before.append(_decoded(own).cast(before[0].type))
    joined = {}
    for name, (above, *below) in columns.items():
        under = below[0] if below else pa.chunked_array([pa.nulls(len(matches), above.type)])
        if pa.types.is_dictionary(above.type):  # of both parts the words may differ
            above, under = _decoded(above), _decoded(under)
        joined[name] = pa.chunked_array([*above.chunks, *under.chunks], above.type)
    return pa.table(joined), places


def _plain(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column in the one form that matches have it in; texts stay as they are."""
    held = _decoded(table.column(name))
    if name in _TIMES:
        as_it_is = held.type == pa.int64()
        return held if as_it_is else pa.chunked_array([microseconds(column(table, name, None), name)])
    if name in _IDS:
        return held if type_of(held.type) == "string" else pa.chunked_array([text_ids(column(table, name, None), name)])
    kind = type_of(held.type)
    if kind in (None, "string") or pa.types.is_uint64(held.type):
        return held
    if kind == "timestamp":
        return held.cast(pa.timestamp("us"), safe=False).cast(PLAIN[kind])
    return held.cast(PLAIN[str(kind)])


def _decoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


# ---------------------------------------------------------------- queries that read them


def read_from(
    checked: CheckedQuery, table: pa.Table, places: Places, declares: dict[str, frozenset[str]]
) -> tuple[CheckedQuery, pa.Table]:
    """The query by the columns' names, and the table with the columns that it needs joined. What the classes declare
    follows in `declares`."""
    if not any(places.get(name) for name in checked.refers_to):
        return checked, table
    reader = _Reader(table, places, declares)
    elements = [node for node, _ in leaves(checked.query.pattern) if isinstance(node, Element)]
    classes = {element.variable: element.classes for element in elements if element.variable is not None}
    every = tuple(dict.fromkeys(name for element in elements for name in element.classes))
    found = replace(
        checked,
        query=replace(
            checked.query,
            pattern=reader.renamed(checked.query.pattern, classes, ()),
            returns=reader.renamed(checked.query.returns, classes, ()),
        ),
        key=tuple(reader.column(name, every) for name in checked.key),
        disjuncts=reader.renamed(checked.disjuncts, classes, ()),
        chains=tuple(
            Chain(
                tuple((variable, reader.column(name, classes[variable])) for variable, name in chain.terms), chain.whole
            )
            for chain in checked.chains
        ),
    )
    return found, reader.table


class _Reader:
    """Which column each attribute of a query stands in; `table` grows by those that are joined."""

    def __init__(self, table: pa.Table, places: Places, declares: dict[str, frozenset[str]]) -> None:
        self.table, self._places, self._declares = table, places, declares

    def renamed(self, node: Any, classes: Mapping[str, tuple[str, ...]], own: tuple[str, ...]) -> Any:
        """A node of the algebra, or a tuple of them; `own` are the classes of the element whose filter this is."""
        match node:
            case Attribute(variable=variable, name=name):
                return replace(node, name=self.column(name, own if variable is None else classes.get(variable, ())))
            case Aggregate(variable=variable, attribute=str(name)):
                return replace(node, attribute=self.column(name, classes.get(variable, ())))
            case Element():
                own = node.classes
            case Window(same=same, different=different):
                same, different = (each and self.column(each, own) for each in (same, different))
                return replace(node, same=same, different=different)
            case tuple():
                return tuple(self.renamed(each, classes, own) for each in node)
        if not is_dataclass(node) or isinstance(node, type):
            return node
        old = {each.name: getattr(node, each.name) for each in fields(node)}
        new = {name: self.renamed(value, classes, own) for name, value in old.items()}
        return replace(node, **new) if any(new[name] is not old[name] for name in old) else node

    def column(self, name: str, classes: Iterable[str]) -> str:
        """The column of an attribute of an element of these classes."""
        classes = [each for each in classes if self._has(each, name)]
        stands = sorted({self._places.get(each, {}).get(name, name) for each in classes})
        if stands in ([], [name]):
            return name
        found = stands[0] if len(stands) == 1 else self._joined(name, stands, classes)
        for each in classes:
            if each in self._declares:
                self._declares[each] |= {found}
        return found

    def _has(self, event_class: str, name: str) -> bool:
        declared = self._declares.get(event_class)
        return name in self.table.column_names if declared is None else name in declared

    def _joined(self, name: str, stands: list[str], classes: Iterable[str]) -> str:
        whole = "|".join(stands)
        kinds = sorted({str(type_of(self.table.schema.field(each).type)) for each in stands})
        if not set(kinds) <= {"int", "float"}:
            who = ", ".join(classes)
            raise EvaluationError(
                f"{name} is {kinds[-1]} in some and {kinds[0]} in other events of ANY({who}); rename the RETURN field"
            )
        if whole not in self.table.column_names:
            parts = [self._as_float(each) for each in stands]
            self.table = self.table.append_column(whole, pc.coalesce(*parts))
        return whole

    def _as_float(self, name: str) -> pa.ChunkedArray:
        plain = _decoded(self.table.column(name)).cast(pa.float64(), safe=False)
        if LARGE + name in self.table.column_names:
            return pc.coalesce(plain, self.table.column(LARGE + name).cast(pa.float64()))
        return plain
