"""Declarations: what files may say, and what every mistake in them is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cep_core.errors import DeclarationError
from jobs.declarations import Declarations, load_declarations

pytestmark = pytest.mark.core

RFID = """
tables:
  readings: {path: raw/readings}
  shelves: {path: raw/shelves, format: parquet}
  cards: {catalog: shop.cards}
events:
  - table: readings
    source: tag
    time: read_at
    tie: seq
    event_id: reading_id
    attributes: {mid: int}
    classes:
      Shelf: {where: kind = 'shelf'}
      Exit: {where: kind = 'exit', attributes: {gate: string}}
  - sql: SELECT tag, min(at) AS a, max(at) AS b FROM {shelves} JOIN {cards} USING (tag) GROUP BY tag
    source: tag
    start: a
    end: b
    event_id: [tag, a]
    classes: [Stay]
  - table: cards
    source: card
    time: at
    unit: ms
    event_id: id
    class: kind
    classes:
      Food: {}
      Fun: {value: leisure}
    attributes: {amount: {expression: cents / 100.0, type: float}}
"""


def load(folder: Path, text: str) -> Declarations:
    (folder / "rfid.yaml").write_text(text)
    return load_declarations(folder)


def test_everything_that_a_file_can_declare(tmp_path: Path) -> None:
    declared = load(tmp_path, RFID)
    assert declared.class_names() == ("Exit", "Food", "Fun", "Shelf", "Stay")
    assert declared.schema() == {
        "Shelf": {"mid": "int"},
        "Exit": {"gate": "string", "mid": "int"},
        "Stay": {},
        "Food": {"amount": "float"},
        "Fun": {"amount": "float"},
    }
    assert [(t.name, t.kind) for t in declared.tables] == [
        ("cards", "catalog"),
        ("readings", "delta"),
        ("shelves", "parquet"),
    ]
    readings, stays, cards = declared.sources
    assert (readings.start, readings.end, readings.tie) == ("read_at", "read_at", "seq")
    assert (stays.tables, stays.start, stays.end, stays.event_id) == (("shelves", "cards"), "a", "b", ("tag", "a"))
    assert (cards.class_column, cards.class_values, cards.unit) == ("kind", ("Food", "leisure"), "ms")
    assert [t.name for t in declared.tables_of(["Stay"])] == ["cards", "shelves"]


BASE = """
tables:
  readings: {path: raw/readings}
events:
  - table: readings
    source: tag
    time: read_at
    event_id: id
    attributes: {mid: int}
    classes: {Shelf: {}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sourc", "sorc", "rfid.yaml: events[1]: there is no key 'sorce'; did you mean 'source'?"),
        ("    source: tag\n", "", "events[1]: needs `source`"),
        ("table: readings", "table: reading", "no table 'reading' is declared under `tables:`; did you mean"),
        ("time: read_at", "start: read_at", "needs `time` (point events), or `start` and `end` (intervals)"),
        ("mid: int", "mid: integer", "events[1].attributes.mid.type: there is no type 'integer'"),
        ("mid: int", "mid: strin", "there is no type 'strin'; did you mean 'string'?"),
        ("mid: int", "event_id: string", "every event has 'event_id' already"),
        ("mid: int", "mid: {typ: int}", "events[1].attributes.mid: there is no key 'typ'; did you mean 'type'?"),
        ("mid: int", '"m id": int', "an attribute's name is letters, digits and _"),
        ("event_id: id", "event_id: []", "events[1].event_id: a hash needs a list of columns"),
        ("time: read_at", "time: read_at\n    unit: h", "events[1].unit: is 'h'; valid are s, ms, us"),
        ("{Shelf: {}}", "{Shelf: {}, Exit: {}}", "classes.Shelf: several classes in one table each need a `where`"),
        ("{Shelf: {}}", "{}", "events[1].classes: needs at least one class"),
        ("{Shelf: {}}", "{Shelf: {value: x}}", "events[1].classes.Shelf.value: needs `class: <column>`"),
        ("{path: raw/readings}", "{paht: x}", "tables.readings: there is no key 'paht'; did you mean 'path'?"),
        ("{path: raw/readings}", "{path: x, format: csv}", "readings.format: is 'csv'; valid are delta, parquet"),
        ("{path: raw/readings}", "{path: x, catalog: y}", "needs either `path`"),
        ("table: readings", "sql: SELECT 1", "events[1].sql: names no table"),
        ("events:", "event:", "rfid.yaml: there is no key 'event'; did you mean 'events'?"),
        ("tables:", "tables: [", "rfid.yaml: is not YAML"),
    ],
)
def test_a_mistake_names_its_file_its_key_and_the_nearest_name(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in BASE
    with pytest.raises(DeclarationError) as refused:
        load(tmp_path, BASE.replace(old, new))
    assert message in str(refused.value)


def test_all_mistakes_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BASE.replace("source: tag", "sourc: tag"))
    (tmp_path / "b.yaml").write_text(BASE.replace("mid: int", "mid: intt").replace("readings:", "others:"))
    with pytest.raises(DeclarationError) as refused:
        load_declarations(tmp_path)
    assert "a.yaml: events[1]" in str(refused.value)
    assert "b.yaml: events[1].attributes.mid.type" in str(refused.value)


def test_a_class_is_declared_once_and_an_attribute_has_one_type(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BASE)
    (tmp_path / "b.yaml").write_text(
        BASE.replace("readings", "others").replace("mid: int", "mid: string").replace("Shelf: {}", "Shelf: {}")
    )
    with pytest.raises(DeclarationError) as refused:
        load_declarations(tmp_path)
    assert "b.yaml: events[1].classes.Shelf: the class is declared before, in" in str(refused.value)
    assert "attributes.mid: has type string here and int in" in str(refused.value)


def test_an_unknown_class_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="event class 'Shelv' is not declared; did you mean 'Shelf'"):
        load(tmp_path, BASE).require_classes(["Shelv"])


def test_an_absent_folder_and_an_unreadable_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="there is no such file or folder"):
        load_declarations(tmp_path / "nowhere")
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(DeclarationError, match=r"bad\.yaml: cannot be read"):
        load_declarations(tmp_path)


def test_an_empty_folder_declares_nothing(tmp_path: Path) -> None:
    assert load_declarations(tmp_path) == Declarations((), ())
