"""What a person sees when a catalogue is refused. `python -m tests.language.test_errors` makes the golden file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cep_core.errors import QueryError
from cep_core.language import check, load_catalogue
from cep_core.language.problems import nearest
from tests.language.shop import SHOP

HERE = Path(__file__).parent / "golden"


def shown() -> str:
    entries = load_catalogue(HERE / "bad.yaml")
    try:
        check({entry.id: entry for entry in entries}, SHOP)
    except QueryError as error:
        return str(error).replace(str(HERE) + os.sep, "") + "\n"
    return "nothing is refused\n"


def test_all_bad_queries_of_a_catalogue_are_shown_at_once_with_line_column_caret_and_nearest_name() -> None:
    assert shown() == (HERE / "errors.txt").read_text(encoding="utf-8")


def test_a_tab_keeps_the_caret_under_its_place() -> None:
    with pytest.raises(QueryError) as caught:
        check({"q": "PATTERN A a\n\tWHERE\ta.nope = 1"}, SHOP)
    assert str(caught.value).split("\n")[1:] == ["  2 | \tWHERE\ta.nope = 1", "    | \t     \t^"]


def test_a_very_long_line_is_shown_around_the_place() -> None:
    text = "PATTERN A a WHERE " + " AND ".join(f"a.x = {number}" for number in range(200)) + " AND a.nope = 1"
    with pytest.raises(QueryError) as caught:
        check({"q": text}, SHOP)
    head, line, caret = str(caught.value).split("\n")
    assert f"column {text.index('a.nope') + 1}: " in head
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("a.nope")


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("Shlef", ("Shelf", "Exit"), "Shelf"),
        ("shelf", ("Shelf", "Exit"), "Shelf"),
        ("amount_usd", ("amount", "currency"), None),
        ("zzz", ("Shelf", "Exit"), None),
        ("x", (), None),
    ],
)
def test_the_nearest_name(name: str, known: tuple[str, ...], expected: str | None) -> None:
    assert nearest(name, known) == expected


if __name__ == "__main__":
    (HERE / "errors.txt").write_text(shown(), encoding="utf-8")
