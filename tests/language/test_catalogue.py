"""Catalogues of queries in YAML and in plain .cep files."""

from __future__ import annotations

from pathlib import Path

import pytest

from cep_core.errors import QueryError
from cep_core.language import Entry, check, load_catalogue
from cep_core.language.algebra import At
from tests.language.shop import SHOP

ONE = """
- id: one
  title: The first
  description: >
    Long words
    over two lines.
  owner: me
  tags: [x, y]
  severity: high
  enabled: false
  limit: 5_000
  query: |
    PATTERN A a
    WHERE a.x = 1
- id: two
  query: PATTERN B b
"""
CEP = """-- a comment before all

QUERY three
PATTERN SEQ(A a, B b) -- QUERY here starts no line
WITHIN 1 min

query `number four` -- another
PATTERN C c
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        stem, suffix = name.rsplit("_", 1)
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    return folder


def problems(path: Path) -> str:
    with pytest.raises(QueryError) as caught:
        load_catalogue(path)
    return str(caught.value)


def test_a_yaml_entry_has_all_its_keys(tmp_path: Path) -> None:
    path = write(tmp_path, one_yaml=ONE) / "one.yaml"
    first, second = load_catalogue(path)
    assert first == Entry(
        id="one",
        query="PATTERN A a\nWHERE a.x = 1",
        title="The first",
        description="Long words over two lines.",
        owner="me",
        tags=("x", "y"),
        severity="high",
        enabled=False,
        limit=5000,
        path=str(path),
        line=13,
    )
    assert (second.id, second.title, second.tags, second.severity, second.enabled) == ("two", "", (), "info", True)
    assert second.limit is None


@pytest.mark.parametrize("written", ["0", "-1", "1.5", "many", "true", "[1]", "0x10", "''", "99999999999999999999"])
def test_a_limit_is_a_whole_number_from_one_on(written: str, tmp_path: Path) -> None:
    path = write(tmp_path, a_yaml=f"- id: one\n  query: PATTERN A a\n  limit: {written}\n")
    assert 'a.yaml, line 3: "limit" is' in problems(path)


def test_a_cep_file_holds_queries_behind_their_ids(tmp_path: Path) -> None:
    entries = load_catalogue(write(tmp_path, more_cep=CEP))
    assert [(entry.id, entry.line) for entry in entries] == [("three", 4), ("number four", 8)]
    assert entries[0].query.endswith("WITHIN 1 min")
    assert list(check({entry.id: entry for entry in entries}, SHOP)) == ["three", "number four"]


def test_a_folder_is_read_with_its_subfolders_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", b_cep=CEP)
    write(tmp_path, a_yml=ONE, z_txt="no catalogue")
    assert [entry.id for entry in load_catalogue(str(tmp_path))] == ["one", "two", "three", "number four"]


def test_an_id_taken_in_another_file_names_both_places(tmp_path: Path) -> None:
    write(tmp_path, a_yaml=ONE, b_cep="QUERY two\nPATTERN A a\n")
    message = problems(tmp_path)
    assert f'{tmp_path / "b.cep"}, line 2: the id "two" is already taken in {tmp_path / "a.yaml"}, line 16' in message


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_yaml="- id: one\n  titel: x\n  query: PATTERN A a\n- query: PATTERN A a\n- just text\n",
        b_yaml="- id: two\n  severity: hihg\n  enabled: maybe\n  tags: one\n  query: ''\n",
        c_yaml="- id: [\n",
        d_yaml="id: one\n",
        e_cep="PATTERN A a\n",
        f_cep="QUERY empty\n-- nothing\nQUERY full\nPATTERN A a\n",
        g_yaml="- id: twice\n  id: again\n  query: PATTERN A a\n",
    )
    message = problems(tmp_path)
    for expected in (
        'a.yaml, line 2: unknown key "titel"; did you mean "title"?',
        'a.yaml, line 4: this query has no "id"',
        "a.yaml, line 5: expected a query with keys such as id and query",
        'b.yaml, line 2: unknown severity "hihg"; did you mean "high"?',
        'b.yaml, line 3: "enabled" is true or false, not "maybe"',
        'b.yaml, line 4: "tags" is a list of texts',
        'b.yaml, line 5: "query" is a text',
        "c.yaml, line 2, column 1: this is no YAML",
        "d.yaml, line 1: expected a list of queries",
        'e.cep, line 1: expected a line "QUERY id" before the first query',
        'f.cep, line 1: query "empty" has no text',
        'g.yaml, line 2: the key "id" stands twice',
    ):
        assert expected in message
    assert "12 problems" in message


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert "there is no such file or folder" in problems(tmp_path / "nowhere")
    assert "it has no .yaml, .yml or .cep file" in problems(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"- id: \xff\xfe")
    assert "it is no UTF-8 text" in problems(tmp_path)


def test_an_empty_file_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert load_catalogue(write(tmp_path, a_yaml="", b_cep="-- nothing yet\n")) == ()


@pytest.mark.parametrize(
    "written",
    [
        "|\n    PATTERN A a\n    WHERE a.x = 1 AND HERE = 1",
        "|\n\n    PATTERN A a\n\n    -- it's\n    WHERE a.x = 1 AND HERE = 1",
        ">-\n    PATTERN A a\n    WHERE a.x = 1\n    AND HERE = 1",
        "PATTERN A a WHERE a.x = 1 AND HERE = 1",
        "PATTERN A a\n    WHERE a.x = 1\n    AND HERE = 1",
        "'PATTERN A a WHERE a.s = ''it'' AND HERE = 1'",
        "'PATTERN A a\n    WHERE a.s = ''it''\n    AND HERE = 1'",
        '"PATTERN A a\n    WHERE a.x = 1 AND HERE = 1"',
    ],
)
def test_a_place_in_a_query_leads_to_its_line_and_column_in_the_file(written: str, tmp_path: Path) -> None:
    text = f"# comment\n- id: one\n  query: {written}\n  title: x\n"
    entry = load_catalogue(write(tmp_path, a_yaml=text))[0]
    lines = entry.query.split("\n")
    line = next(number for number, each in enumerate(lines, 1) if "HERE" in each)
    path, place = entry.locate(At(line, lines[line - 1].index("HERE") + 1))
    assert path == str(tmp_path / "a.yaml")
    assert text.split("\n")[place.line - 1][place.column - 1 :].startswith("HERE")


def test_a_problem_in_a_cep_file_names_its_line(tmp_path: Path) -> None:
    entries = load_catalogue(write(tmp_path, a_cep=CEP.replace("PATTERN C c", "PATTERN C c\nWHERE c.nope = 1")))
    with pytest.raises(QueryError) as caught:
        check({entry.id: entry for entry in entries}, SHOP)
    assert "query number four, line 2, column 7" in str(caught.value)
    assert f"in {tmp_path / 'a.cep'}, line 9, column 7" in str(caught.value)


def test_the_catalogues_of_the_project_load() -> None:
    folder = Path(__file__).resolve().parents[2] / "conf" / "queries"
    entries = load_catalogue(folder)
    assert len({entry.id for entry in entries}) == len(entries) > 10
    assert set(check({entry.id: entry for entry in entries}, None)) == {entry.id for entry in entries}
