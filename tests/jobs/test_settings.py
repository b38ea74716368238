"""Settings: file, then environment, then flag; every value knows its origin, and a wrong key is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cep_core.errors import DeclarationError
from jobs.commands.settings import shown
from jobs.settings import Settings, load_settings, setting_fields

pytestmark = pytest.mark.core


def project(folder: Path, text: str) -> Path:
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "conf/settings.yaml").write_text(text)
    return folder


def test_the_later_of_file_environment_and_flag_wins(tmp_path: Path) -> None:
    project(tmp_path, "lake: from-file\nmaster: local[1]\nrows_per_call: 10\n")
    variables = {"HINDSIGHT_MASTER": "local[2]", "HINDSIGHT_ROWS_PER_CALL": "20"}
    settings = load_settings({"rows_per_call": 30, "catalog": None}, project=tmp_path, environment=variables)
    assert (settings.lake, settings.master, settings.rows_per_call) == ("from-file", "local[2]", 30)
    assert settings.origin("lake") == "conf/settings.yaml"
    assert settings.origin("master") == "HINDSIGHT_MASTER"
    assert settings.origin("rows_per_call") == "flag"
    assert settings.origin("catalog") == "default"


@pytest.mark.parametrize(
    ("text", "variables", "flags", "message"),
    [
        ("lkae: x", {}, {}, "conf/settings.yaml: lkae: there is no setting 'lkae'; did you mean 'lake'?"),
        ("", {"HINDSIGHT_LAKES": "x"}, {}, "HINDSIGHT_LAKES: there is no setting 'lakes'; did you mean 'lake'?"),
        ("", {}, {"mastre": "x"}, "flag mastre: there is no setting 'mastre'; did you mean 'master'?"),
        ("rows_per_call: many", {}, {}, "rows_per_call: expected a value of type int, found 'many'"),
        ("rows_per_call: 1.5", {}, {}, "expected a value of type int, found 1.5"),
        ("lake: [a, b]", {}, {}, "expected a value of type str"),
        ("- a\n- b", {}, {}, "must hold `key: value` lines"),
        ("lake: [", {}, {}, "cannot be read"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    tmp_path: Path, text: str, variables: dict[str, str], flags: dict[str, str], message: str
) -> None:
    with pytest.raises(DeclarationError) as refused:
        load_settings(flags, project=project(tmp_path, text), environment=variables)
    assert message in str(refused.value)


def test_relative_paths_are_under_the_project_and_uris_stay(tmp_path: Path) -> None:
    settings = Settings(lake="lake", project=tmp_path)
    assert settings.in_lake("raw/x") == f"{tmp_path}/lake/raw/x"
    assert settings.in_lake("/data/x") == "/data/x"
    assert Settings(lake="s3://shop/lake", project=tmp_path).in_lake("raw/x") == "s3://shop/lake/raw/x"


def test_an_absent_project_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="does not exist"):
        load_settings(project=tmp_path / "nowhere")


def test_every_setting_is_shown_with_value_origin_and_meaning(tmp_path: Path) -> None:
    lines = shown(load_settings({"lake": "here"}, project=project(tmp_path, "master: local[1]"), environment={}))
    text = "\n".join(lines)
    for field in setting_fields():
        assert f"\n{field.name} " in text
        assert field.metadata["doc"] in text
    lake = next(line for line in lines if line.startswith("lake "))
    assert lake.split()[1:3] == ["here", "flag"]
