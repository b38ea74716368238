"""The README's examples run, and say what it says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml

from jobs.cli import build_parser
from jobs.declarations import load_declarations

pytestmark = pytest.mark.core

PROJECT = Path(__file__).resolve().parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")


def test_the_first_query_prints_what_the_readme_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```\n```\n(.*?)```", README, re.DOTALL)
    assert found is not None
    (tmp_path / "first.py").write_text(found[1], encoding="utf-8")
    runpy.run_path(str(tmp_path / "first.py"))
    assert capsys.readouterr().out == found[2]


def test_the_declaration_is_one(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    (tmp_path / "readme.yaml").write_text(yaml.safe_dump(yaml.safe_load(found[1])))
    assert load_declarations(tmp_path).class_names() == ("Exit", "Shelf")


def test_every_command_that_the_readme_names_exists() -> None:
    parser = build_parser()
    commands = next(action.choices for action in parser._actions if action.dest == "command")
    named = set(re.findall(r"(?:\./)?hindsight ([a-z]+)", README)) - {"test", "setup"}
    assert named
    assert named <= set(commands or ())


def test_the_folders_of_the_layout_exist() -> None:
    for folder in re.findall(r"`(\w+)/`", README.split("## Layout")[1]):
        assert (PROJECT / folder).is_dir(), folder


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "./hindsight test" in (PROJECT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1]
    assert "./hindsight test " in README


def test_links_and_paths_of_the_pages_lead_somewhere() -> None:
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
        for path in re.findall(r"\b((?:bench|cep_core|conf|dags|jobs|schemas|tests)/[\w/]+\.(?:py|yaml|md))\b", text):
            assert (PROJECT / path).exists(), f"{page.name} names {path}"
