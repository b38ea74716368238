"""Catalogues: files of queries.

Enters: a file, or a folder of files: `.yaml`/`.yml` (a list of entries) and `.cep` (queries, each behind a line
`QUERY id`). Leaves: `Entry` values in the order of the files' names and of their lines.
Always holds: ids are unique over all files; every problem of every file is reported at once; an entry knows the way
from a place in its query's text to the line and column of its file. The query texts themselves are judged by `check`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from cep_core.errors import QueryError
from cep_core.language.algebra import At
from cep_core.language.problems import did_you_mean

SEVERITIES = ("info", "low", "medium", "high", "critical")
_HEADER = re.compile(r"^QUERY[ \t]+(?:`((?:[^`\n]|``)+)`|([^\s`]+))[ \t]*(?:--.*)?$", re.IGNORECASE | re.MULTILINE)
_WHOLE = re.compile(r"[1-9][0-9_]{0,17}", re.ASCII)
_NOISE = re.compile(r"(?:\s+|--[^\n]*)*")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Entry:
    """One query of a catalogue. `limit` is the most answers that one partition may have before the run is refused, None
    where the setting for all queries holds. `path` is the file as it was named; `line` where the query's text starts in
    it."""

    id: str
    query: str
    title: str = ""
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    severity: str = "info"
    enabled: bool = True
    limit: int | None = None
    path: str = ""
    line: int = 1
    raw: str = field(default="", repr=False, compare=False)
    column: int = field(default=1, repr=False, compare=False)

    def locate(self, at: At) -> tuple[str, At]:
        """The place in the file of a place in the query's text.

        YAML indents, folds and quotes a text but keeps the order of its visible characters, so those are counted.
        """
        lines = self.query.split("\n")
        before = "\n".join([*lines[: at.line - 1], lines[at.line - 1][: at.column - 1]])
        visible = sum(1 for character in before if not character.isspace())
        positions = [number for number, character in enumerate(self.raw) if not character.isspace()]
        offset = positions[visible] if visible < len(positions) else len(self.raw.rstrip())
        ahead = self.raw[:offset].split("\n")
        column = len(ahead[-1]) + (self.column if len(ahead) == 1 else 1)
        return self.path, At(self.line + len(ahead) - 1, column)


_KEYS = tuple(each.name for each in fields(Entry) if each.name not in ("path", "line", "raw", "column"))


def load_catalogue(path: str | Path) -> tuple[Entry, ...]:
    """The entries of a file, or of all catalogue files in a folder and its subfolders."""
    top = Path(path)
    if not top.exists():
        raise QueryError(f"no catalogue at {top}: there is no such file or folder")
    suffixes = (".yaml", ".yml", ".cep")
    files = (
        sorted(each for each in top.rglob("*") if each.suffix in suffixes and each.is_file()) if top.is_dir() else [top]
    )
    if not files:
        raise QueryError(f"no catalogue in {top}: it has no .yaml, .yml or .cep file")
    entries: list[Entry] = []
    problems: list[str] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}")
            continue
        entries += (
            _read_cep(str(file), text, problems) if file.suffix == ".cep" else _read_yaml(str(file), text, problems)
        )
    first: dict[str, Entry] = {}
    for entry in entries:
        earlier = first.setdefault(entry.id, entry)
        if earlier is not entry:
            place = f"{earlier.path}, line {earlier.line}"
            problems.append(f'{entry.path}, line {entry.line}: the id "{entry.id}" is already taken in {place}')
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise QueryError(f"the catalogue {top} is refused, {count}:\n" + "\n".join(problems))
    return tuple(entries)


def _read_cep(path: str, text: str, problems: list[str]) -> list[Entry]:
    starts = [0] + [found.end() for found in re.finditer("\n", text)]
    headers = list(_HEADER.finditer(text))
    noise = _NOISE.match(text)
    if noise is not None and noise.end() < (headers[0].start() if headers else len(text)):
        line = bisect_right(starts, noise.end())
        problems.append(f'{path}, line {line}: expected a line "QUERY id" before the first query')
    entries = []
    for number, header in enumerate(headers):
        end = headers[number + 1].start() if number + 1 < len(headers) else len(text)
        body = text[header.end() + 1 : end].rstrip()
        line = bisect_right(starts, header.end()) + 1
        id = header.group(2) or header.group(1).replace("``", "`")
        if not body[_NOISE.match(body).end() :]:  # type: ignore[union-attr]
            problems.append(f'{path}, line {line - 1}: query "{id}" has no text')
        entries.append(Entry(id, body, path=path, line=line, raw=body))
    return entries


def _read_yaml(path: str, text: str, problems: list[str]) -> list[Entry]:
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        problems.append(f"{path}{where}: this is no YAML: {error.problem}")
        return []
    except yaml.YAMLError as error:
        problems.append(f"{path}: this is no YAML: {error}")
        return []
    if root is None:
        return []
    if not isinstance(root, yaml.SequenceNode):
        problems.append(
            f"{path}, line {root.start_mark.line + 1}: expected a list of queries, each starting with - id:"
        )
        return []
    lines = text.split("\n")
    entries = (_entry(path, lines, node, problems) for node in root.value)
    return [entry for entry in entries if entry is not None]


def _entry(path: str, lines: list[str], node: yaml.Node, problems: list[str]) -> Entry | None:
    place = f"{path}, line {node.start_mark.line + 1}"
    if not isinstance(node, yaml.MappingNode):
        problems.append(f"{place}: expected a query with keys such as id and query")
        return None
    values: dict[str, yaml.Node] = {}
    before = len(problems)
    for key, value in node.value:
        name = str(key.value)
        here = f"{path}, line {key.start_mark.line + 1}"
        if name not in _KEYS:
            tail = did_you_mean(name, _KEYS) or f"; the keys are {', '.join(_KEYS)}"
            problems.append(f'{here}: unknown key "{name}"{tail}')
        elif name in values:
            problems.append(f'{here}: the key "{name}" stands twice')
        values[name] = value
    for name in ("id", "query"):
        if name not in values:
            problems.append(f'{place}: this query has no "{name}"')
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in _KEYS:
            found[name] = _value(name, value, f"{path}, line {value.start_mark.line + 1}", problems)
    if len(problems) > before:
        return None
    text = values["query"]
    assert isinstance(text, yaml.ScalarNode)  # `_value` has refused anything else
    line, column, raw = _raw(text, lines)
    return Entry(**found, path=path, line=line, raw=raw, column=column)


def _value(name: str, node: yaml.Node, place: str, problems: list[str]) -> Any:
    if name == "tags":
        if isinstance(node, yaml.SequenceNode) and all(isinstance(each, yaml.ScalarNode) for each in node.value):
            return tuple(str(each.value) for each in node.value)
        problems.append(f'{place}: "tags" is a list of texts, such as [fraud, cards]')
        return None
    if not isinstance(node, yaml.ScalarNode) or (name in ("id", "query") and not str(node.value).strip()):
        problems.append(f'{place}: "{name}" is a text')
        return None
    text = str(node.value)
    if name == "enabled":
        if node.tag == "tag:yaml.org,2002:bool":
            return text.lower() in ("true", "yes", "on")
        problems.append(f'{place}: "enabled" is true or false, not "{text}"')
    elif name == "limit":
        if node.tag == "tag:yaml.org,2002:int" and _WHOLE.fullmatch(text):
            return int(text.replace("_", ""))
        problems.append(f'{place}: "limit" is a whole number of answers from 1 on, such as 1000000, not "{text}"')
    elif name == "severity" and text not in SEVERITIES:
        tail = did_you_mean(text, SEVERITIES) or f"; it is one of {', '.join(SEVERITIES)}"
        problems.append(f'{place}: unknown severity "{text}"{tail}')
    return text.rstrip("\n") if name in ("query", "description") else text


def _raw(node: Any, lines: list[str]) -> tuple[int, int, str]:
    """Where a scalar's own characters start in the file (line and column from 1), and the file's text from there on."""
    start, end = node.start_mark, node.end_mark
    if node.style in ("|", ">"):
        return start.line + 2, 1, "\n".join(lines[start.line + 1 : end.line + 1])
    skip = 1 if node.style in ("'", '"') else 0
    last = lines[end.line][: max(end.column - skip, 0)] if end.line < len(lines) else ""
    piece = [*lines[start.line : end.line], last]
    piece[0] = piece[0][start.column + skip :]
    text = "\n".join(piece)
    # YAML doubles a quote inside single quotes; one of each pair is blank here, so that the rest keeps its place.
    return start.line + 1, start.column + skip + 1, text.replace("''", "' ") if node.style == "'" else text
