"""conf/quality.yaml: how strict the checks are, per table and per query.

Enters: the file, which may be absent. Leaves: `QualitySettings`.
Always holds: every key is known and has its type; an unknown key, check or level is refused, with the nearest valid
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import yaml

from cep_core.errors import DeclarationError
from jobs.names import did_you_mean, or_list
from jobs.ranges import parse_duration, parse_us
from jobs.settings import Settings
from schemas.expectations import UNUSABLE, InputRules, Level

FILE = "conf/quality.yaml"
INPUT_CHECKS = (*UNUSABLE, "no_future_events", "freshness", "volume", "duplicate_rate")
OUTPUT_CHECKS = (
    "schema", "match_id_unique", "match_times", "match_window", "members_in_order", "detection_in_run",
    "query_version_known", "members_exist", "matches_per_query",
)  # fmt: skip
_TABLE_KEYS = ("levels", "duplicate_share", "fresh_within", "clock_skew", "earliest", "latest", "volume", "quarantine")
_VOLUME_KEYS = ("low", "high", "runs")
_OUTPUT_KEYS = ("levels", "matches", "queries")
_MATCHES_KEYS = ("low", "high", "runs", "slack")
_DEFAULT_INPUT = InputRules(levels={}, duplicate_share=0.01, fresh_within_us=2 * 86_400_000_000)


@dataclass(frozen=True)
class OutputRules:
    """Matches per query: between low and high times the mean of the recent runs, give or take `slack`; or as given."""

    levels: Mapping[str, Level] = field(default_factory=dict)
    low: float = 0.2
    high: float = 5.0
    runs: int = 7
    slack: int = 20
    given: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class QualitySettings:
    """sample_rows: the duplicate and member checks look at about so many rows where there are more; 0: at all."""

    data_docs: str = ".hindsight/data_docs"
    sample_rows: int = 50_000
    defaults: InputRules = _DEFAULT_INPUT
    tables: Mapping[str, InputRules] = field(default_factory=dict)
    outputs: OutputRules = field(default_factory=OutputRules)

    def rules(self, table: str) -> InputRules:
        return self.tables.get(table, self.defaults)


def load_quality(
    settings: Settings, tables: Iterable[str] | None = None, queries: Iterable[str] | None = None
) -> QualitySettings:
    """The file's settings; `tables` and `queries` are the valid names, where they are known."""
    file = settings.project / FILE
    if not file.exists():
        return QualitySettings()
    return parse_quality(_content(file), tables, queries)


def parse_quality(
    content: Any, tables: Iterable[str] | None = None, queries: Iterable[str] | None = None
) -> QualitySettings:
    """The settings of a file's content.

    >>> parse_quality({"tables": {"readings": {"quarantine": True}}}).rules("readings").quarantine
    True
    """
    top = _mapping(content or {}, FILE, ("data_docs", "sample_rows", "defaults", "tables", "outputs"))
    defaults = _input_rules(top.get("defaults"), f"{FILE}: defaults", _DEFAULT_INPUT)
    per_table = _mapping(top.get("tables") or {}, f"{FILE}: tables", None if tables is None else tuple(tables))
    rules = {name: _input_rules(value, f"{FILE}: tables.{name}", defaults) for name, value in per_table.items()}
    plain = QualitySettings()
    docs = str(top.get("data_docs", plain.data_docs))
    if "://" in docs:
        raise DeclarationError(f"{FILE}: data_docs: {docs!r} is no folder of this machine, where its pages are written")
    sample_rows = int(_number(top.get("sample_rows", plain.sample_rows), f"{FILE}: sample_rows"))
    return QualitySettings(docs, sample_rows, defaults, rules, _output_rules(top.get("outputs"), queries))


def _input_rules(value: Any, place: str, base: InputRules) -> InputRules:
    given = _mapping(value or {}, place, _TABLE_KEYS)
    rules = replace(base, levels={**base.levels, **_levels(given.get("levels"), f"{place}.levels", INPUT_CHECKS)})
    if "duplicate_share" in given:
        rules = replace(rules, duplicate_share=_number(given["duplicate_share"], f"{place}.duplicate_share"))
    if "fresh_within" in given:
        text = given["fresh_within"]
        fresh_within_us = None if text is None else _read(parse_duration, text, f"{place}.fresh_within")
        rules = replace(rules, fresh_within_us=fresh_within_us)
    if "clock_skew" in given:
        rules = replace(rules, clock_skew_us=_read(parse_duration, given["clock_skew"], f"{place}.clock_skew"))
    if "earliest" in given:
        rules = replace(rules, earliest_us=_read(parse_us, given["earliest"], f"{place}.earliest"))
    if given.get("latest") is not None:
        rules = replace(rules, latest_us=_read(parse_us, given["latest"], f"{place}.latest"))
    if "volume" in given:
        volume = _mapping(given["volume"], f"{place}.volume", _VOLUME_KEYS)
        read = {key: _number(number, f"{place}.volume.{key}") for key, number in volume.items()}
        rules = replace(
            rules, volume_low=read.get("low", rules.volume_low), volume_high=read.get("high", rules.volume_high),
            volume_runs=int(read.get("runs", rules.volume_runs)),
        )  # fmt: skip
    if "quarantine" in given:
        if not isinstance(given["quarantine"], bool):
            raise DeclarationError(f"{place}.quarantine: expected true or false, found {given['quarantine']!r}")
        rules = replace(rules, quarantine=given["quarantine"])
    return rules


def _output_rules(value: Any, queries: Iterable[str] | None) -> OutputRules:
    place = f"{FILE}: outputs"
    given = _mapping(value or {}, place, _OUTPUT_KEYS)
    matches = _mapping(given.get("matches") or {}, f"{place}.matches", _MATCHES_KEYS)
    read = {key: _number(number, f"{place}.matches.{key}") for key, number in matches.items()}
    named = _mapping(given.get("queries") or {}, f"{place}.queries", None if queries is None else tuple(queries))
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name, entry in named.items():
        ends = _mapping(entry or {}, f"{place}.queries.{name}", ("least", "most"))
        read_ends = {key: _number(number, f"{place}.queries.{name}.{key}") for key, number in ends.items()}
        bounds[name] = (read_ends.get("least"), read_ends.get("most"))
    plain = OutputRules()
    return OutputRules(
        _levels(given.get("levels"), f"{place}.levels", OUTPUT_CHECKS), read.get("low", plain.low),
        read.get("high", plain.high), int(read.get("runs", plain.runs)), int(read.get("slack", plain.slack)), bounds,
    )  # fmt: skip


def _levels(value: Any, place: str, checks: tuple[str, ...]) -> dict[str, Level]:
    levels: dict[str, Level] = {}
    for name, level in _mapping(value or {}, place, checks).items():
        text = "off" if level is False else str(level)  # YAML reads a bare `off` as false
        if text not in get_args(Level):
            raise DeclarationError(f"{place}.{name}: is {level!r}; valid are error, warning, off")
        levels[name] = text  # type: ignore[assignment]
    return levels


def _content(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DeclarationError(f"{FILE}: cannot be read: {' '.join(str(error).split())}") from error


def _read(parse: Callable[[str], int], value: Any, place: str) -> int:
    """A time or a duration; an error names its place."""
    try:
        return parse(str(value))
    except DeclarationError as error:
        raise DeclarationError(f"{place}: {error}") from None


def _mapping(value: Any, place: str, keys: tuple[str, ...] | None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DeclarationError(f"{place}: must hold `key: value` lines, but holds {value!r}")
    for key in value:
        if keys is not None and key not in keys:
            hint = did_you_mean(str(key), keys) or f"; valid are: {or_list(keys)}"
            raise DeclarationError(f"{place}: there is no {key!r}{hint}")
    return {str(key): entry for key, entry in value.items()}


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise DeclarationError(f"{place}: expected a number that is not negative, found {value!r}")
    return float(value)
