"""Declarations: which tables hold which primitive events, and how a row becomes an event.

Enters: the YAML files of conf/events. Leaves: `Declarations`, frozen values that jobs/primitives.py reads tables with.
Always holds: every class is declared once, an attribute has one type whatever the class, every table that is named is
declared. What needs a real table's columns is checked by `jobs.check.check_declarations`.
Paper: plan-based-ced, 2.1: primitive events are what the user maps the history to.

    tables:                                # names for tables; relative paths are under the lake
      readings: {path: raw/readings}       # Delta; or {path: .., format: parquet}, or {catalog: shop.readings}
    events:
      - table: readings                    # or sql: SELECT .. FROM {readings} .. (aggregated primitives)
        source: tag                        # a column, or any SQL expression, here and below
        time: read_at                      # or start: .. and end: ..; `unit: s | ms | us` where times are numbers
        tie: seq                           # optional
        event_id: reading_id               # or a list of columns: their hash
        attributes: {mid: int}             # of every class below; {name: type}, or
        classes:                           #   {name: {expression: .., type: ..}}
          Shelf: {where: "kind = 'shelf'"}
          Exit: {where: "kind = 'exit'", attributes: {gate: string}}

A wide table whose column names the class has `class: <column>` instead of a `where` for each class; then a class may
give the column's value that means it with `value:`, by default its own name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from cep_core.errors import DeclarationError
from cep_core.language.checked import BUILTIN, Schema, Type
from jobs.names import did_you_mean, or_list

Unit = Literal["s", "ms", "us"]
RESERVED = frozenset(BUILTIN) | {"tie"}
ATTRIBUTE_TYPES: tuple[str, ...] = tuple(t for t in get_args(Type) if t != "null")


@dataclass(frozen=True)
class DeclaredTable:
    """A table of the lakehouse. `location` is a path for delta and parquet, a name for catalog."""

    name: str
    kind: Literal["delta", "parquet", "catalog"]
    location: str
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class DeclaredAttribute:
    name: str
    expression: str
    type: Type


@dataclass(frozen=True)
class EventClass:
    """One class of events: the rows for which `where` holds (all rows where it is None)."""

    name: str
    where: str | None
    attributes: tuple[DeclaredAttribute, ...]

    def attribute(self, name: str) -> DeclaredAttribute | None:
        return next((a for a in self.attributes if a.name == name), None)


@dataclass(frozen=True)
class EventSource:
    """The classes that one table, or one select over tables, holds, and the columns that all of them share.

    `tables` are the declared tables that it reads; `sql` is None where it is a plain table. `start` equals `end` for
    point events. `event_id` is one expression, or several columns whose hash it is. `class_column` is None where each
    class has a filter of its own, otherwise `class_values` has the column's value for each class.
    """

    place: str
    tables: tuple[str, ...]
    sql: str | None
    source: str
    start: str
    end: str
    unit: Unit | None
    tie: str | None
    event_id: str | tuple[str, ...]
    where: str | None
    class_column: str | None
    class_values: tuple[str, ...]
    classes: tuple[EventClass, ...]

    @property
    def title(self) -> str:
        return self.tables[0] if self.sql is None else f"select over {', '.join(self.tables)}"


@dataclass(frozen=True)
class Declarations:
    """All that is declared: tables in the order of their names, event sources in the order of the files."""

    tables: tuple[DeclaredTable, ...]
    sources: tuple[EventSource, ...]

    def table(self, name: str) -> DeclaredTable:
        found = next((t for t in self.tables if t.name == name), None)
        if found is None:
            known = [t.name for t in self.tables]
            raise DeclarationError(f"no table {name!r} is declared{did_you_mean(name, known)}")
        return found

    def class_names(self) -> tuple[str, ...]:
        return tuple(sorted(c.name for s in self.sources for c in s.classes))

    def require_classes(self, names: Iterable[str]) -> None:
        known = self.class_names()
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or f"; declared are: {or_list(known) or 'none'}"
                raise DeclarationError(f"event class {name!r} is not declared{hint}")

    def schema(self) -> Schema:
        """Class -> attribute -> type, as cep_core reads it."""
        return {c.name: {a.name: a.type for a in c.attributes} for s in self.sources for c in s.classes}

    def attribute_types(self, pairs: Iterable[tuple[str, str]] | None = None) -> dict[str, Type]:
        """Attribute -> type, over all classes or over (class, attribute) pairs; sorted by name."""
        wanted = None if pairs is None else {name for _, name in pairs}
        found = {a.name: a.type for s in self.sources for c in s.classes for a in c.attributes}
        return {name: found[name] for name in sorted(found) if wanted is None or name in wanted}

    def tables_of(self, classes: Iterable[str] | None = None) -> tuple[DeclaredTable, ...]:
        """The tables that hold these classes (all where None), sorted by name."""
        names = None if classes is None else set(classes)
        read = {t for s in self.sources for c in s.classes if names is None or c.name in names for t in s.tables}
        return tuple(self.table(name) for name in sorted(read))


def load_declarations(path: str | Path) -> Declarations:
    """The declarations of a file, or of all *.yaml and *.yml files of a folder. All errors of the files at once."""
    from jobs.declaration_files import read_file, yaml_files  # it imports the values above

    errors: list[str] = []
    tables: dict[str, DeclaredTable] = {}
    sources: list[EventSource] = []
    for file in yaml_files(Path(path)):
        found = read_file(file, errors)
        for table in found.tables:
            if table.name in tables:
                errors.append(f"{table.place}: table {table.name!r} is declared before, in {tables[table.name].place}")
            tables.setdefault(table.name, table)
        sources.extend(found.sources)
    errors.extend(_across_files(tables, sources))
    if errors:
        raise DeclarationError("\n".join(errors))
    return Declarations(tuple(tables[name] for name in sorted(tables)), tuple(sources))


def _across_files(tables: dict[str, DeclaredTable], sources: list[EventSource]) -> list[str]:
    """What only shows over all files: unknown tables, a class declared twice, an attribute with two types."""
    errors = []
    first_place: dict[str, str] = {}
    types: dict[str, tuple[Type, str]] = {}
    for source in sources:
        for name in source.tables:
            if name not in tables:
                hint = did_you_mean(name, tables) or f"; declared are: {or_list(tables) or 'none'}"
                errors.append(f"{source.place}: no table {name!r} is declared under `tables:`{hint}")
        for event_class in source.classes:
            place = f"{source.place}.classes.{event_class.name}"
            if event_class.name in first_place:
                errors.append(
                    f"{place}: the class is declared before, in {first_place[event_class.name]}; a class over several "
                    "tables is one `sql:` with UNION ALL"
                )
            first_place.setdefault(event_class.name, place)
            for attribute in event_class.attributes:
                kind, before = types.setdefault(attribute.name, (attribute.type, place))
                if kind != attribute.type:
                    errors.append(
                        f"{place}.attributes.{attribute.name}: has type {attribute.type} here and {kind} in {before}; "
                        "an attribute has one type in all classes: cast it in its expression, or give it another name"
                    )
    return errors
