"""5,000 queries are read, parsed and checked in under 5 seconds of one core; measured in CPU seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cep_core.errors import QueryError
from cep_core.language import Schema, check, load_catalogue

CLASSES: Schema = {f"C{number}": {"x": "int", "y": "float", "s": "string"} for number in range(50)}


def text(number: int) -> str:
    """Four kinds in turn, from a plain sequence to a reference to another query."""
    a, b, c = (f"C{number * step % 50}" for step in (1, 7, 13))
    return (
        f"PATTERN SEQ({a} a, {b} b, {c} c)\nWHERE [source]\nWITHIN {200 + number % 40} min",
        f"PATTERN SEQ({a}(x > {number} AND s = 'v') a, !{b} b, {c}+ c, {a} d)\nWHERE [source] AND a.x + 2 < d.x AND "
        "b.y > a.y AND count(c) > 3 AND (a.x = 1 OR a.x = 2 OR NOT (a.y < 3 AND d.y > 4))\nWITHIN 5 hours\n"
        "SELECT recent\nRETURN a.x AS x, sum(c.y) / count(c) AS mean, duration(a, d) AS seconds",
        f"PATTERN AND({a} a, {b}[5] r, OR({c} c, SEQ({a} e, {b} f) WITHIN 5 min))\nWHERE a.x = r.x AND "
        "FORALL i IN 1..4 (r[i+1].y > r[i].y) AND a.s LIKE 'a%'\nWITHIN 2 days\nRETURN avg(r.y) AS y",
        f"PATTERN SEQ(q{number - 3} m, {a} a)\nWHERE [source]\nWITHIN 1 day",
    )[number % 4]


def test_five_thousand_queries_load_and_check_in_five_seconds(tmp_path: Path) -> None:
    indented = {number: text(number).replace("\n", "\n    ") for number in range(5000)}
    file = tmp_path / "many.yaml"
    file.write_text("".join(f"- id: q{number}\n  query: |\n    {each}\n" for number, each in indented.items()))
    started = time.process_time()
    entries = load_catalogue(file)
    checked = check({entry.id: entry for entry in entries}, CLASSES)
    spent = time.process_time() - started
    assert len(checked) == 5000
    assert spent < 5, "reading the YAML, parsing and checking"


def test_five_thousand_bad_queries_are_refused_in_five_seconds() -> None:
    """An unknown class in each, and names that are alike: the nearest name is searched among thousands."""
    queries = {
        f"query_{number}": text(number * 4).replace(" a,", f" a, querz_{number % 100} z,") for number in range(5000)
    }
    started = time.process_time()
    with pytest.raises(QueryError, match="5000 of 5000 queries are refused, 5000 problems") as caught:
        check(queries, CLASSES)
    assert time.process_time() - started < 5
    assert 'unknown class "querz_7"; did you mean "query_7"?' in str(caught.value)
