"""The command line: help to learn from, errors without traces, codes that a scheduler can use."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cep_core import errors
from jobs.cli import build_parser, main
from jobs.commands.mine import MOST_LINES, found_lines
from jobs.console import configure_logging, log, progress
from jobs.exit_codes import MEANING, exit_code
from jobs.runs import Manifest

pytestmark = pytest.mark.core


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from jobs.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("conf/events", "conf/queries"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "conf/settings.yaml").write_text("lake: lake\nmaster: local[1]\n")
    (tmp_path / "conf/events/shop.yaml").write_text(
        "tables: {readings: {path: raw/readings}}\n"
        "events: [{table: readings, source: tag, time: at, event_id: id, classes: [Shelf]}]\n"
    )
    (tmp_path / "conf/queries/q.cep").write_text("QUERY alone\nPATTERN Shelf s\n")
    return tmp_path


def test_help_comes_at_once_and_names_every_command_and_exit_code(tmp_path: Path) -> None:
    began = time.monotonic()
    shown = run("--help", cwd=tmp_path)
    assert time.monotonic() - began < 3
    assert shown.returncode == 0
    for name in ("check", "settings", "sql"):
        assert f"\n    {name} " in shown.stdout
    for code, meaning in MEANING.items():
        assert f"{code}  {meaning}" in shown.stdout


def test_no_command_imports_spark_before_it_runs(tmp_path: Path) -> None:
    code = "import jobs.cli, sys; jobs.cli.build_parser(); print('pyspark' in sys.modules, 'numba' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert shown.stdout == "False False\n", shown.stderr


def test_every_command_has_help_with_the_common_flags(capsys: pytest.CaptureFixture[str]) -> None:
    parser: Any = build_parser()
    names = next(action.choices for action in parser._actions if action.dest == "command")
    for name in names:
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert left.value.code == 0
        shown = capsys.readouterr().out
        assert "--set KEY=VALUE" in shown
        assert "--lake" in shown


@pytest.mark.parametrize("arguments", [["frobnicate"], [], ["sql", "--limit", "many"]])
def test_wrong_usage_is_code_2(arguments: list[str], tmp_path: Path) -> None:
    refused = run(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def test_a_wrong_setting_is_refused_in_one_line(project: Path) -> None:
    refused = run("settings", "--set", "laek=x", cwd=project)
    assert refused.returncode == 2
    assert refused.stderr == "hindsight settings: flag laek: there is no setting 'laek'; did you mean 'lake'?\n"
    assert run("settings", "--set", "lake", cwd=project).returncode == 2


def test_a_wrong_declaration_is_refused_before_spark_starts(project: Path) -> None:
    file = project / "conf/events/shop.yaml"
    file.write_text(file.read_text().replace("source: tag", "sorce: tag"))
    refused = run("check", cwd=project)
    assert refused.returncode == 2
    assert "events/shop.yaml: events[1]: there is no key 'sorce'; did you mean 'source'?" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_check_of_the_files_alone_needs_no_spark(project: Path) -> None:
    done = run("check", "--no-tables", cwd=project)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ok  1 event class in 1 table, 1 query"), done.stderr
    (project / "conf/queries/q.cep").write_text("QUERY alone\nPATTERN Shelv s\n")
    refused = run("check", "--no-tables", cwd=project)
    assert refused.returncode == 2
    assert "Shelf" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.spark
def test_check_of_an_absent_table_is_a_failure_that_says_where(project: Path) -> None:
    failed = run("check", cwd=project)
    assert failed.returncode == 1
    assert "events/shop.yaml: tables.readings: there is no Delta table at" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_errors_have_the_codes_of_the_table() -> None:
    assert exit_code(errors.QueryError("")) == exit_code(errors.DeclarationError("")) == 2
    assert exit_code(errors.QualityError("")) == 3
    assert exit_code(errors.PublishError("")) == 4
    assert exit_code(errors.StateError("")) == 5
    assert exit_code(errors.TableError("")) == exit_code(errors.LimitError("")) == exit_code(ValueError()) == 1


def test_slow_steps_show_progress_and_fast_ones_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("quick", after_s=5):
        pass
    with progress("slow", after_s=0.05) as say:
        say("3 of 7")
        time.sleep(0.3)
    shown = capsys.readouterr().err
    assert "quick" not in shown
    assert shown.startswith("... slow  3 of 7  0 s\n")


def test_log_lines_carry_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    try:
        log.info("read %d events", 7)
        log.debug("hidden")
        shown = capsys.readouterr()
    finally:
        log.handlers.clear()
    assert shown.out == ""
    assert shown.err.endswith(" INFO read 7 events\n")
    assert "hidden" not in shown.err


@pytest.mark.core
def test_a_large_catalogue_does_not_flood_the_screen() -> None:
    few = Manifest("r1", 0, 1, {}, {}, 0, 0, matches={"b": 2, "a": 2, "c": 1234, "d": 0})
    assert found_lines(few) == ["       1,234  c", "           2  a", "           2  b", "           0  d"]
    many = Manifest("r1", 0, 1, {}, {}, 0, 0, matches={f"q{n:03}": n for n in range(1000)})
    lines = found_lines(many)
    assert len(lines) == MOST_LINES + 1
    assert lines[0].split() == ["999", "q999"]
    assert "980 more queries; 1 of all found nothing" in lines[-1]
    assert "run_id = 'r1'" in lines[-1]
