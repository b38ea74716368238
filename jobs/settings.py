"""Settings: from the file, then the environment, then the command line; the later one wins.

Enters: conf/settings.yaml of the project's folder, the variables HINDSIGHT_<KEY>, and flags as a dict.
Leaves: `Settings`, a frozen value that also knows where each of its values came from.
Always holds: every key is one of the fields below and has its type; an unknown key is refused with the nearest valid
name. Relative paths are relative to the project's folder, never to a folder that happens to be current.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cep_core.errors import DeclarationError
from jobs.names import did_you_mean

SETTINGS_FILE = "conf/settings.yaml"
PREFIX = "HINDSIGHT_"
_NO_SETTINGS = ("PROJECT", "PROGRAM", "PYTHON")  # the folder; what the user typed; the interpreter for the set-up


def _setting(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Settings:
    """One value per key. Each field's doc is what `hindsight settings` shows."""

    # where things are
    lake: str = _setting(".hindsight/lake", "folder (or URI) of our tables and of declared tables with relative paths")
    catalog: str = _setting(
        "", "keep our tables in this catalog schema (such as shop.cep) instead of in the lake folder"
    )
    events: str = _setting("conf/events", "folder (or file) of the declarations of primitive events")
    queries: str = _setting("conf/queries", "folder (or file) of query catalogues")
    # Spark
    master: str = _setting("local[*]", "Spark master, where spark-submit gives none")
    driver_memory: str = _setting("2g", "memory of a local Spark process")
    shuffle_partitions: int = _setting(0, "partitions of a shuffle; 0 takes one per core of a local Spark")
    ivy_settings: str = _setting("", "an Ivy settings file that names a mirror, for Delta's jars at the first start")
    # mining
    rows_per_call: int = _setting(2_000_000, "most events that one engine call may get")
    packs: bool = _setting(False, "keep the events packed by source and time, which makes mining them again cheaper")
    answers_per_partition: int = _setting(10_000_000, "most answers of one query in one partition before it is stopped")
    checks: bool = _setting(True, "check the inputs and the matches of `mine` and `backfill` (conf/quality.yaml)")
    # what a person sees
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR")
    progress_after_s: float = _setting(2.0, "a progress line appears on steps that take longer than this")

    project: Path = field(default=Path("."), metadata={"internal": True})
    origins: tuple[tuple[str, str], ...] = field(default=(), metadata={"internal": True}, compare=False)

    def path(self, value: str) -> str:
        """`value` as an absolute path under the project's folder; URIs (`s3://...`) stay as they are."""
        if "://" in value or value.startswith("file:"):
            return value
        return str((self.project / value).resolve())

    @property
    def lake_path(self) -> str:
        return self.path(self.lake)

    @property
    def ivy_settings_path(self) -> str:
        return self.path(self.ivy_settings) if self.ivy_settings else ""

    def in_lake(self, location: str) -> str:
        """A location of a declaration: relative ones are under the lake."""
        if "://" in location or location.startswith(("file:", "/")):
            return location
        return f"{self.lake_path.rstrip('/')}/{location}"

    def origin(self, key: str) -> str:
        return dict(self.origins).get(key, "default")


def setting_fields() -> tuple[dataclasses.Field[Any], ...]:
    """The fields that a user may set, in order."""
    return tuple(f for f in dataclasses.fields(Settings) if "internal" not in f.metadata)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    project: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings of the project's folder. `flags` holds key -> value; None values are flags that were not given."""
    variables = os.environ if environment is None else environment
    folder = find_project(project, variables)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    file = folder / SETTINGS_FILE
    layers = [
        (SETTINGS_FILE, lambda key: f"{SETTINGS_FILE}: {key}", _from_file(file)),
        ("environment", lambda key: PREFIX + key.upper(), _from_environment(variables)),
        ("flag", lambda key: f"flag {key}", {k: v for k, v in (flags or {}).items() if v is not None}),
    ]
    known = {f.name: f for f in setting_fields()}
    for origin, place, layer in layers:
        for key, value in layer.items():
            if key not in known:
                raise DeclarationError(f"{place(key)}: there is no setting {key!r}{did_you_mean(key, known)}")
            values[key] = _typed(value, type(known[key].default), place(key))
            origins[key] = place(key) if origin == "environment" else origin
    return Settings(**values, project=folder, origins=tuple(sorted(origins.items())))


def find_project(given: str | Path | None = None, variables: Mapping[str, str] | None = None) -> Path:
    """The folder that holds conf/: as given, HINDSIGHT_PROJECT, the current folder, or the checkout of this code."""
    variables = os.environ if variables is None else variables
    chosen = given or variables.get(PREFIX + "PROJECT")
    if chosen:
        folder = Path(chosen).resolve()
        if not folder.is_dir():
            raise DeclarationError(f"the project's folder {folder} does not exist; give the folder that holds conf/")
        return folder
    checkout = Path(__file__).resolve().parents[1]
    for folder in (Path.cwd(), checkout):
        if (folder / SETTINGS_FILE).is_file():
            return folder
    return Path.cwd()


def _from_file(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DeclarationError(f"{file}: cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise DeclarationError(f"{file}: must hold `key: value` lines, but holds a {type(content).__name__}")
    return {str(key): value for key, value in content.items()}


def _from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """HINDSIGHT_<KEY> of known keys. Other variables with the prefix belong to other parts and are left alone, but a
    near miss of a key is refused: it would be ignored silently otherwise."""
    known = {f.name for f in setting_fields()}
    found = {}
    for name, value in variables.items():
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX) in _NO_SETTINGS:
            continue
        key = name.removeprefix(PREFIX).lower()
        if key in known:
            found[key] = value
        elif hint := did_you_mean(key, known):
            raise DeclarationError(f"environment variable {name}: there is no setting {key!r}{hint}")
    return found


def _typed(value: Any, kind: type, place: str) -> Any:
    """`value` as `kind`. Numbers may be written as text, as they are in the environment."""
    try:
        if kind is bool:
            text = str(value).strip().lower()
            if text not in ("true", "false", "1", "0", "yes", "no"):
                raise ValueError
            return text in ("true", "1", "yes")
        if kind is int:
            if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
                raise ValueError
            return int(str(value).replace("_", "")) if isinstance(value, str) else int(value)
        if kind is float:
            return float(value)
        if isinstance(value, (dict, list)) or value is None:
            raise ValueError
        return str(value)
    except (ValueError, TypeError):
        raise DeclarationError(f"{place}: expected a value of type {kind.__name__}, found {value!r}") from None
