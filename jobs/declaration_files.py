"""The YAML of one declaration file, read into values.

Enters: a file of conf/events. Leaves: its tables and event sources, and messages for all that is wrong in it.
Always holds: a message names the file, the key's path (`events[2].classes.Shelf.where`) and the nearest valid key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from cep_core.errors import DeclarationError
from cep_core.language.checked import Type
from jobs.declarations import (
    ATTRIBUTE_TYPES,
    RESERVED,
    DeclaredAttribute,
    DeclaredTable,
    EventClass,
    EventSource,
    Unit,
)
from jobs.names import did_you_mean, or_list

FILE_KEYS = ("tables", "events")
TABLE_KEYS = ("path", "catalog", "format")
SOURCE_KEYS = (
    *("table", "sql", "source", "time", "start", "end", "unit", "tie", "event_id", "where", "class"),
    *("attributes", "classes", "description"),
)
CLASS_KEYS = ("where", "value", "attributes", "description")
ATTRIBUTE_KEYS = ("expression", "type", "description")
UNITS = ("s", "ms", "us")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class FileContent:
    tables: tuple[DeclaredTable, ...]
    sources: tuple[EventSource, ...]


class _Wrong(Exception):
    """One thing that is wrong at one place; it is collected, so that all of a file are shown together."""


def yaml_files(path: Path) -> list[Path]:
    """The file, or the folder's YAML files sorted by name."""
    if path.is_dir():
        return sorted(f for f in path.iterdir() if f.suffix in (".yaml", ".yml"))
    if not path.exists():
        raise DeclarationError(f"{path}: there is no such file or folder; the setting `events` says where it should be")
    return [path]


def read_file(file: Path, errors: list[str]) -> FileContent:
    """What a file declares; what is wrong in it is appended to `errors` and left out."""
    shown = f"{file.parent.name}/{file.name}"
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        errors.append(f"{shown}: cannot be read: {error}")
        return FileContent((), ())
    except yaml.YAMLError as error:
        errors.append(f"{shown}: is not YAML: {' '.join(str(error).split())}")
        return FileContent((), ())
    tables: list[DeclaredTable] = []
    sources: list[EventSource] = []
    try:
        top = _mapping({} if content is None else content, shown, FILE_KEYS)
        declared = _mapping(top.get("tables") or {}, f"{shown}: tables")
        listed = top.get("events") or []
        if not isinstance(listed, list):
            raise _Wrong(f"{shown}: events: must be a list (lines that start with `- `)")
    except _Wrong as wrong:
        errors.append(str(wrong))
        return FileContent((), ())
    for name, value in declared.items():
        try:
            tables.append(_table(name, value, f"{shown}: tables.{name}"))
        except _Wrong as wrong:
            errors.append(str(wrong))
    for number, value in enumerate(listed, start=1):
        try:
            sources.append(_source(value, f"{shown}: events[{number}]"))
        except _Wrong as wrong:
            errors.append(str(wrong))
    return FileContent(tuple(tables), tuple(sources))


def _table(name: str, value: Any, place: str) -> DeclaredTable:
    if not _NAME.fullmatch(name):
        raise _Wrong(f"{place}: a table's name is letters, digits and _, not {name!r}")
    given = _mapping(value, place, TABLE_KEYS)
    if ("path" in given) == ("catalog" in given):
        raise _Wrong(f"{place}: needs either `path` (a folder of Delta or Parquet) or `catalog` (a table's name)")
    if "catalog" in given:
        if "format" in given:
            raise _Wrong(f"{place}.format: a catalog table knows its own format; leave the key out")
        return DeclaredTable(name, "catalog", _text(given, "catalog", place), place)
    kind = given.get("format", "delta")
    if kind not in ("delta", "parquet"):
        raise _Wrong(f"{place}.format: is {kind!r}; valid are delta, parquet")
    return DeclaredTable(name, kind, _text(given, "path", place), place)


def _source(value: Any, place: str) -> EventSource:
    given = _mapping(value, place, SOURCE_KEYS)
    if ("table" in given) == ("sql" in given):
        raise _Wrong(f"{place}: needs either `table` (a name of `tables:`) or `sql` (a SELECT over {{names}} of them)")
    sql = _text(given, "sql", place) if "sql" in given else None
    tables = (_text(given, "table", place),) if sql is None else tuple(dict.fromkeys(_PLACEHOLDER.findall(sql)))
    if not tables:
        raise _Wrong(
            f"{place}.sql: names no table; write a declared table's name in braces: SELECT .. FROM {{readings}}"
        )
    start, end = _times(given, place)
    unit = given.get("unit")
    if unit is not None and unit not in UNITS:
        raise _Wrong(f"{place}.unit: is {unit!r}; valid are s, ms, us")
    class_column = _text(given, "class", place) if "class" in given else None
    shared = _attributes(given.get("attributes"), f"{place}.attributes")
    classes, values = _classes(given, class_column, shared, place)
    return EventSource(
        place=place,
        tables=tables,
        sql=sql,
        source=_text(given, "source", place),
        start=start,
        end=end,
        unit=cast("Unit | None", unit),
        tie=_text(given, "tie", place) if "tie" in given else None,
        event_id=_event_id(given, place),
        where=_text(given, "where", place) if "where" in given else None,
        class_column=class_column,
        class_values=values,
        classes=classes,
    )


def _times(given: dict[str, Any], place: str) -> tuple[str, str]:
    if "time" in given and not ("start" in given or "end" in given):
        time = _text(given, "time", place)
        return time, time
    if "start" in given and "end" in given and "time" not in given:
        return _text(given, "start", place), _text(given, "end", place)
    raise _Wrong(f"{place}: needs `time` (point events), or `start` and `end` (intervals)")


def _event_id(given: dict[str, Any], place: str) -> str | tuple[str, ...]:
    value = given.get("event_id")
    if isinstance(value, list):
        if not value or not all(isinstance(column, str) and column.strip() for column in value):
            raise _Wrong(f"{place}.event_id: a hash needs a list of columns, such as [tag, read_at]")
        return tuple(value)
    return _text(given, "event_id", place)


def _classes(
    given: dict[str, Any], class_column: str | None, shared: tuple[DeclaredAttribute, ...], place: str
) -> tuple[tuple[EventClass, ...], tuple[str, ...]]:
    listed = given.get("classes")
    if isinstance(listed, list):  # a plain list of names, for a table with a class column, or of one class
        listed = dict.fromkeys(listed)
    members = _mapping(listed or {}, f"{place}.classes")
    if not members:
        raise _Wrong(f"{place}.classes: needs at least one class")
    classes, values = [], []
    for name, value in members.items():
        inside = f"{place}.classes.{name}"
        own = _mapping({} if value is None else value, inside, CLASS_KEYS)
        if class_column is None and "value" in own:
            raise _Wrong(f"{inside}.value: needs `class: <column>` beside `classes:`; or use `where` here")
        where = _text(own, "where", inside) if "where" in own else None
        if class_column is None and where is None and len(members) > 1:
            raise _Wrong(f"{inside}: several classes in one table each need a `where`, or the table a `class` column")
        attributes = {a.name: a for a in shared} | {
            a.name: a for a in _attributes(own.get("attributes"), f"{inside}.attributes")
        }
        classes.append(EventClass(name, where, tuple(attributes[key] for key in sorted(attributes))))
        values.append(str(own.get("value", name)) if class_column is not None else "")
    if class_column is not None and len(set(values)) < len(values):
        raise _Wrong(f"{place}.classes: two classes have the same `value` of {class_column}")
    return tuple(classes), tuple(values) if class_column is not None else ()


def _attributes(value: Any, place: str) -> tuple[DeclaredAttribute, ...]:
    found = []
    for name, given in _mapping(value or {}, place).items():
        inside = f"{place}.{name}"
        if not _NAME.fullmatch(name):
            raise _Wrong(f"{inside}: an attribute's name is letters, digits and _; give other columns an `expression`")
        if name.lower() in RESERVED:
            raise _Wrong(f"{inside}: every event has {name!r} already; choose another name for the attribute")
        if isinstance(given, str):
            given = {"type": given}
        own = _mapping(given, inside, ATTRIBUTE_KEYS)
        kind = _text(own, "type", inside)
        if kind not in ATTRIBUTE_TYPES:
            hint = did_you_mean(kind, ATTRIBUTE_TYPES) or f"; valid are {or_list(ATTRIBUTE_TYPES)}"
            raise _Wrong(f"{inside}.type: there is no type {kind!r}{hint}")
        expression = _text(own, "expression", inside) if "expression" in own else f"`{name}`"
        found.append(DeclaredAttribute(name, expression, cast("Type", kind)))
    return tuple(found)


def _mapping(value: Any, place: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{place}: must hold `key: value` lines, but holds {value!r}")
    for key in value:
        if not isinstance(key, str):
            raise _Wrong(f"{place}: the key {key!r} is not text; put it in quotes")
        if keys is not None and key not in keys:
            raise _Wrong(f"{place}: there is no key {key!r}{did_you_mean(key, keys) or f'; valid are {or_list(keys)}'}")
    return value


def _text(given: dict[str, Any], key: str, place: str) -> str:
    if key not in given:
        raise _Wrong(f"{place}: needs `{key}`")
    value = given[key]
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f"{place}.{key}: must be text, but is {value!r}")
    return value.strip()
