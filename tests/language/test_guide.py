"""docs/language.md: every example in it is run by the naive meaning and by the engine, every query in it is checked.

The page's fences say what they hold: `events` (and their unit of time), `classes`, `query` (with an id where another
query refers to it), `matches`, `refused`, `warned`, `catalogue`. The notation of events and matches is the harness's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cep_core.errors import QueryError
from cep_core.language import check as check_queries
from cep_core.language import load_catalogue
from tests.harness import EVALUATORS, SECOND, Case, check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
UNITS = {"": SECOND, "in minutes": 60 * SECOND, "in hours": 3600 * SECOND}


@dataclass(frozen=True)
class Example:
    """A query of the page with what stands before it, and what the page says comes out of it."""

    line: int
    case: Case
    kind: str = ""
    expected: str = ""


def examples(text: str) -> Iterator[Example]:
    events, unit, schema, others = "", SECOND, None, dict[str, str]()
    waiting: Example | None = None
    for found in FENCE.finditer(text):
        kind, rest, body = found[1], found[2].strip(), found[3]
        line = text.count("\n", 0, found.start()) + 1
        if kind == "events":
            events, unit, schema, others = body, UNITS[rest], None, {}
        elif kind == "classes":
            schema = _classes(body)
        elif kind == "query" and rest:
            others[rest] = body
        elif kind == "query":
            assert waiting is None, f"line {line}: the query before has no result"
            waiting = Example(line, Case(f"line {line}", events, body, (), schema, unit, dict(others)))
        elif kind in ("matches", "refused", "warned"):
            assert waiting is not None, f"line {line}: no query stands before this"
            yield replace(waiting, kind=kind, expected=body)
            waiting = None
    assert waiting is None, "the last query has no result"


def _classes(body: str) -> dict[str, dict[str, str]]:
    """`Shelf: id int, price float`"""
    rows = (line.split(":") for line in body.splitlines())
    return {
        name.strip(): {pair.split()[0]: pair.split()[1] for pair in pairs.split(",") if pair.strip()}
        for name, pairs in rows
    }


PAGE_TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = list(examples(PAGE_TEXT))
MATCHED = [each for each in EXAMPLES if each.kind == "matches"]


def _matches(example: Example) -> Case:
    lines = [line for line in example.expected.splitlines() if line and line != "(none)"]
    return replace(example.case, matches=tuple(lines))


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("example", MATCHED, ids=lambda each: each.case.name)
def test_an_example_finds_what_the_page_says(evaluator: str, example: Example) -> None:
    check(evaluator, _matches(example))


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "refused"], ids=lambda each: each.case.name)
def test_a_refused_query_is_refused_in_these_words(example: Example) -> None:
    with pytest.raises(QueryError) as caught:
        check_queries({**example.case.others, "q": example.case.query}, example.case.schema)  # type: ignore[arg-type]
    assert str(caught.value) == example.expected.rstrip("\n")


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "warned"], ids=lambda each: each.case.name)
def test_a_warning_has_these_words(example: Example) -> None:
    checked = check_queries({**example.case.others, "q": example.case.query}, example.case.schema)  # type: ignore[arg-type]
    assert "\n".join(checked["q"].warnings) == example.expected.rstrip("\n")


def test_the_page_has_many_examples_and_most_find_something() -> None:
    assert len(MATCHED) >= 45
    assert sum("(none)" not in each.expected for each in MATCHED) >= 40


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_wrong_example_is_noticed(evaluator: str) -> None:
    """The page's first example with another result fails: this test can fail."""
    wrong = replace(_matches(MATCHED[0]), matches=("s=Shelf1 e=Exit9",))
    with pytest.raises(AssertionError):
        check(evaluator, wrong)


def _inline() -> list[str]:
    """The queries in the last column of the tables: code that starts with PATTERN. A bar in a cell is written `\\|`."""
    cells = [re.split(r"(?<!\\)\|", line)[-2] for line in PAGE_TEXT.splitlines() if line.startswith("|")]
    return [code.replace("\\|", "|") for cell in cells for code in re.findall(r"`(PATTERN [^`]+)`", cell)]


def test_every_query_in_the_tables_is_one() -> None:
    queries = _inline()
    assert len(queries) >= 25
    for number, text in enumerate(queries):
        check_queries({f"q{number}": text}, None)


def test_the_catalogues_of_the_page_load(tmp_path: Path) -> None:
    found = [(rest.strip(), body) for kind, rest, body in FENCE.findall(PAGE_TEXT) if kind == "catalogue"]
    assert {name.split(".")[-1] for name, _ in found} == {"yaml", "cep"}
    for name, body in found:
        (tmp_path / name).write_text(body, encoding="utf-8")
    entries = load_catalogue(tmp_path)
    assert len(check_queries({entry.id: entry for entry in entries}, None)) == len(entries) >= 4
