"""Valid queries with something broken, swapped, nested or blown up: what comes out is an answer or a QueryError.

A mutation is drawn from a seed, so a failure names the text that caused it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from cep_core.errors import QueryError
from cep_core.language import check, format_query, load_catalogue, parse
from tests.language.shop import SHOP
from tests.language.test_rules import ALLOWED, REFUSED

CONF = Path(__file__).resolve().parents[2] / "conf" / "queries"
TEXTS = [*ALLOWED, *(text for text, _ in REFUSED), *(entry.query for entry in load_catalogue(CONF))]
TOKEN = re.compile(r"'[^']*'|`[^`]*`|\w+|[^\w\s]|\s+")
STRANGE = (
    "\0",
    "\ufeff",
    "\u202e",
    "é",
    "e\u0301",
    "𝒳",
    "٣",
    "①",
    "\u2028",
    "\x85",
    "\r",
    "\t",
    "“",
    "--",
    "/*",
    "\\",
    "\ud800",
)
NUMBERS = ("0", "-1", "1e400", "1e-400", "9" * 30, "0.1" + "0" * 400, "9223372036854775808", "1.5", "٣", "999999999")


def _truncated(rng: Random, text: str) -> str:
    return text[: rng.randrange(len(text))]


def _beheaded(rng: Random, text: str) -> str:
    return text[rng.randrange(len(text)) :]


def _on_tokens(change: Callable[[Random, list[str]], None]) -> Callable[[Random, str], str]:
    def mutate(rng: Random, text: str) -> str:
        tokens = TOKEN.findall(text)
        change(rng, tokens)
        return "".join(tokens)

    return mutate


def _swap(rng: Random, tokens: list[str]) -> None:
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[i], tokens[j] = tokens[j], tokens[i]


def _drop(rng: Random, tokens: list[str]) -> None:
    del tokens[rng.randrange(len(tokens))]


def _double(rng: Random, tokens: list[str]) -> None:
    i = rng.randrange(len(tokens))
    tokens.insert(i, tokens[i])


def _insert(rng: Random, tokens: list[str]) -> None:
    tokens.insert(rng.randrange(len(tokens)), rng.choice(STRANGE))


def _number(rng: Random, tokens: list[str]) -> None:
    places = [i for i, token in enumerate(tokens) if token.isdigit()] or [0]
    tokens[rng.choice(places)] = rng.choice(NUMBERS)


def _graft(rng: Random, tokens: list[str]) -> None:
    other = TOKEN.findall(rng.choice(TEXTS))
    start = rng.randrange(len(other))
    at = rng.randrange(len(tokens))
    tokens[at : at + rng.randint(0, 3)] = other[start : start + rng.randint(1, 8)]


def _nest(rng: Random, tokens: list[str]) -> None:
    opened, closed = rng.choice((("(", ")"), ("NOT (", ")"), ("SEQ(", ")"), ("-(", ")"), ("abs(", ")"), ("OR(", ")")))
    depth, at = rng.choice((1, 2, 70, 3000)), rng.randrange(len(tokens))
    tokens[at] = opened * depth + tokens[at] + closed * depth


MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    _truncated,
    _beheaded,
    *(_on_tokens(change) for change in (_swap, _swap, _drop, _double, _insert, _number, _graft, _graft, _nest)),
)


def judged(text: str) -> str:
    """The message that refuses a text, or nothing; anything but a QueryError passes through and fails the test."""
    try:
        check({"q": text}, SHOP)
    except QueryError as error:
        return str(error)
    check({"q": text}, None)
    assert parse(format_query(parse(text, "q")), "q") == parse(text, "q")
    return ""


@pytest.mark.parametrize("seed", range(24))
def test_a_mutated_query_is_an_answer_or_a_query_error(seed: int) -> None:
    rng = Random(seed)
    for _ in range(50):
        text = rng.choice(TEXTS)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(MUTATIONS)(rng, text) or "PATTERN"
        try:
            message = judged(text)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error
        assert message == "" or re.search(r"^query q(, line \d+, column \d+)?: ", message, re.MULTILINE), text


DEEP = 10_000
EXTREMES = {
    "parentheses": "PATTERN A a WHERE " + "(" * DEEP + "a.x = 1" + ")" * DEEP,
    "NOT": "PATTERN A a WHERE " + "NOT " * DEEP + "a.x = 1",
    "signs": "PATTERN A a WHERE a.x = " + "- " * DEEP + "a.x",
    "patterns": "PATTERN " + "SEQ(" * DEEP + "A a" + ")" * DEEP + " WITHIN 1 s",
    "timers": "PATTERN " + "AFTER(" * DEEP + "A a" + ", 1 s)" * DEEP + " WITHIN 1 s",
    "functions": "PATTERN A a WHERE " + "abs(" * DEEP + "a.x" + ")" * DEEP + " = 1",
    "FORALL": "PATTERN A[2] r WHERE " + "FORALL i IN 1..2 (" * DEEP + "r[i].x = 1" + ")" * DEEP + " WITHIN 1 s",
    "filters": "PATTERN A(" + "(" * DEEP + "x = 1" + ")" * DEEP + ") a",
    "a sum": "PATTERN A a WHERE a.x = 1" + " + 1" * DEEP,
    "a product": "PATTERN A a WHERE a.x = 1" + " * a.x" * DEEP,
    "disjuncts": "PATTERN A a WHERE " + " OR ".join(f"a.x = {i}" for i in range(DEEP)),
    "a product of disjuncts": "PATTERN A a WHERE " + " AND ".join(f"(a.x = {i} OR a.y = {i})" for i in range(DEEP)),
    "a number": f"PATTERN A a WHERE a.x = {'9' * 100_000}",
    "a decimal": f"PATTERN A a WHERE a.x = 1.{'9' * 100_000}e{'9' * 100}",
    "a duration": f"PATTERN AND(A a, B b) WITHIN {'9' * 100_000} s",
    "a fraction of time": f"PATTERN AND(A a, B b) WITHIN 0.{'0' * 100_000}1 s",
    "a window": f"PATTERN A[{'9' * 40}] a WITHIN 1 s",
    "a range": f"PATTERN A[2] r WHERE FORALL i IN 1..{'9' * 40} (r[i].x = 1) WITHIN 1 s",
    "an index": f"PATTERN A[2] r WHERE r[{'9' * 40}].x = 1 WITHIN 1 s",
    "a text without an end": "PATTERN A a WHERE a.s = '" + "x" * 1_000_000,
    "a moment": "PATTERN SEQ(A a, AT('99999-01-01T00:00:00Z') t) WITHIN 1 s",
    "nothing": "",
    "spaces": " \n\t" * DEEP,
    "a comment": "-- " + "x" * DEEP,
    "bytes": "PATTERN A a WHERE a.s = '\ud800",
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_are_refused_with_a_place(name: str) -> None:
    message = judged(EXTREMES[name])
    assert message.startswith("query q, line 1, column ") or name in ("spaces", "nothing", "a comment"), message[:300]
    assert message.startswith("query q, line ")
    assert len(message) < 1500
    assert message.endswith("^")


MANY = 2_000
LARGE = {
    "terms of AND": "PATTERN A a WHERE " + " AND ".join(f"a.x != {i}" for i in range(MANY)),
    "values of IN": f"PATTERN A a WHERE a.x IN ({', '.join(map(str, range(MANY)))})",
    "terms of a filter's OR": "PATTERN A(" + " OR ".join(f"x = {i}" for i in range(MANY)) + ") a",
    "arguments": f"PATTERN A a WHERE least({', '.join(['a.x'] * MANY)}) = 1",
    "RETURN fields": "PATTERN A a RETURN " + ", ".join(f"a.x AS f{i}" for i in range(MANY)),
    "alternatives": "PATTERN OR(" + ", ".join(f"A a{i}" for i in range(MANY)) + ")",
    "levels": "PATTERN A a WHERE " + "(" * 50 + "a.x = 1" + ")" * 50,
    "a name": "PATTERN A `" + "n" * 100_000 + "`",
}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_only_large_is_allowed(name: str) -> None:
    assert judged(LARGE[name]) == ""
