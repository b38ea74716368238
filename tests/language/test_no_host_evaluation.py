"""Conditions are evaluated by our own nodes: no part of the engine hands a text to a host language."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "cep_core"
NAMES = {"eval", "exec", "compile", "__import__"}
METHODS = {"eval", "query", "expr", "sql"}  # pandas' and Spark's, which take expressions as texts
OWN = {"compile"}  # as a method it is ours (the assembler's) or re's; Python's own is a bare name, or builtins.compile


def calls(source: str) -> list[str]:
    """The calls in a module that could evaluate a text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in NAMES:
            found.append(called.id)
        if isinstance(called, ast.Attribute) and called.attr in METHODS | NAMES:
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            if called.attr not in OWN or owner == "builtins":
                found.append(called.attr)
    return found


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_no_text_is_evaluated(path: Path) -> None:
    assert calls(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(text)",
        "frame.query('x > 1')",
        "pd.eval(text)",
        "compile(text, '', 'eval')",
        "builtins.compile(text, '', 'eval')",
    ],
)
def test_it_would_be_noticed(source: str) -> None:
    assert calls(source)
