"""What is allowed but probably not meant is warned of, and nothing else is."""

from __future__ import annotations

from random import Random

import pytest

from cep_core.language import check
from tests.harness import run_naive
from tests.language.shop import SHOP, checked

DAY_US = 86_400_000_000
KEYED = "PATTERN SEQ(A a, !B n, B b) WHERE [source] AND {} WITHIN 1 day"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("PATTERN AND(A a, B b) WITHIN 1 s", True),
        ("PATTERN A[2] a WITHIN 1 s", True),
        ("PATTERN AND(A a, B b, C c) WHERE a.id = b.id WITHIN 1 s", True),
        ("PATTERN AND(A a, B b) WHERE a.id = b.id WITHIN 1 s", False),
        ("PATTERN AND(A a, B b) WHERE [id] WITHIN 1 s", False),
        ("PATTERN A a", False),
        ("PATTERN OR(A a, B b)", False),
    ],
)
def test_a_query_without_a_key(text: str, warned: bool) -> None:
    assert any("no key" in warning for warning in checked(text).warnings) is warned


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("a.x = NULL", "a.x = NULL"),
        ("a.x != NULL", "a.x != NULL"),
        ("1 = 2", "1 = 2"),
        ("a.x IN (NULL)", "a.x IN (NULL)"),
        ("a.x NOT IN (1, NULL)", "a.x NOT IN (1, NULL)"),
        ("a.x BETWEEN 5 AND 3", "a.x BETWEEN 5 AND 3"),
        ("a.x = 1 AND a.x = 2", "a.x = 1 and a.x = 2"),
        ("a.x = 1 AND a.x != 1", "a.x = 1 and a.x != 1"),
        ("a.x > 5 AND a.x < 5", "a.x > 5 and a.x < 5"),
        ("a.x > 7 AND a.x > 5 AND a.x < 6", "a.x > 7 and a.x < 6"),
        ("a.x < 5 AND a.x < 7 AND a.x >= 5.0", "a.x < 5 and a.x >= 5.0"),
        ("a.x != 1 AND a.x != 2 AND a.x = 2", "a.x != 2 and a.x = 2"),
        ("a.x >= 3 AND a.x = 2", "a.x >= 3 and a.x = 2"),
        ("a.x = 2 AND a.x >= 3", "a.x = 2 and a.x >= 3"),
        ("a.s = '2026-01-01' AND a.s = '2026-01-01T00:00:00Z'", "a.s = '2026-01-01' and a.s ="),
        ("5 < a.x AND a.x <= 4.5", "a.x > 5 and a.x <= 4.5"),
        ("a.x BETWEEN 1 AND 3 AND a.x > 3", "a.x <= 3 and a.x > 3"),
        ("a.s = 'x' AND a.s = 'y'", "a.s = 'x' and a.s = 'y'"),
        ("a.at > '2026-01-02' AND a.at < '2026-01-01T23:00:00Z'", "a.at > '2026-01-02' and"),
        ("NOT (a.x > 1 OR a.x < 3)", "a.x <= 1 and a.x >= 3"),
    ],
)
def test_an_always_false_condition(condition: str, why: str) -> None:
    warnings = checked(KEYED.format(condition)).warnings
    assert warnings[0] == "never matches: its WHERE is always false"
    assert warnings[1].startswith("always false: " + why)


@pytest.mark.parametrize(
    "condition",
    [
        "a.x > 5 AND a.x < 7",
        "a.x >= 5 AND a.x <= 5",
        "a.x > 5 AND b.x < 5",
        "a.x = 1 AND a.y = 2",
        "a.x != 1 AND a.x != 2",
        "a.x NOT BETWEEN 5 AND 3",
        "a.x IS NULL AND a.y IS NOT NULL",
        "a.at = '2026-01-01' AND a.at = '2026-01-01T00:00:00Z'",
        "a.s > '2026-01-01T01:00:00Z' AND a.s < '2026-01-01T05:00:00+05:00'",  # a text, whatever it looks like
        "a.s BETWEEN '2026-01-01T01:00:00Z' AND '2026-01-01T05:00:00+05:00'",
        "a.x > 5 AND a.x > 6 AND a.x < 8 AND a.x < 9 AND a.x != 7",
    ],
)
def test_nothing_is_warned_of_that_can_hold(condition: str) -> None:
    assert checked(KEYED.format(condition)).warnings == ()


WHOLES = (-1, 0, 1, 2, 3, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1)
FRACTIONS = (-0.5, 0.0, 1.0, 1.5, 2.0, 3.0, 2.0**53, 2.0**53 + 2, 2.0**63)
SIGNS = ("=", "!=", "<", "<=", ">", ">=")


def _term(rng: Random) -> str:
    name = rng.choice(("a.x", "a.x", "a.y", str(rng.choice(WHOLES))))
    low, high = (rng.choice((*WHOLES, *FRACTIONS)) for _ in range(2))
    if rng.random() < 0.2:
        return f"{name} BETWEEN {low!r} AND {high!r}"
    return f"{name} {rng.choice(SIGNS)} {low!r}" if rng.random() < 0.8 else f"{low!r} {rng.choice(SIGNS)} {name}"


@pytest.mark.parametrize("seed", range(8))
def test_what_is_called_always_false_matches_nothing(seed: int) -> None:
    """Over every value that stands in a condition, and those around it; some of the conditions must be called so."""
    rng = Random(seed)
    values = [(x, y) for x in WHOLES for y in FRACTIONS]
    events = [
        {
            "event_id": f"{i}",
            "source": "s",
            "event_class": "A",
            "start_ts": i,
            "end_ts": i,
            "attributes": {"x": x, "y": y},
        }
        for i, (x, y) in enumerate(values)
    ]
    schema = {"A": {"x": "int", "y": "float"}}
    called = 0
    for _ in range(60):
        text = "PATTERN A a WHERE " + " AND ".join(_term(rng) for _ in range(rng.choice((1, 2, 2, 3))))
        if check({"q": text}, schema)["q"].warnings:  # type: ignore[dict-item]
            called += 1
            assert run_naive(events, {"q": text}, schema=schema) == [], text
    assert called >= 5


def test_one_alternative_that_is_always_false() -> None:
    assert checked(KEYED.format("(a.x = 1 OR a.y > 1 AND a.y < 1)")).warnings == ("always false: a.y > 1 and a.y < 1",)


def test_a_negation_that_excludes_nothing() -> None:
    warnings = checked(KEYED.format("n.x = 1 AND n.x = 2")).warnings
    assert warnings == ("the negation of n excludes nothing, its condition is always false: n.x = 1 and n.x = 2",)


def test_a_group_whose_condition_is_always_false_is_empty() -> None:
    text = "PATTERN SEQ(A a, B{} g, A c) WHERE [source] AND g.x = 1 AND g.x = 2 WITHIN 1 s"
    why = "the group g is always empty, its condition is always false: g.x = 1 and g.x = 2"
    assert checked(text.format("*")).warnings == (why,)
    assert checked(text.format("+")).warnings == ("never matches: its WHERE is always false", why)


def test_a_condition_that_contradicts_the_key_s_value() -> None:
    found = checked("PATTERN AND(A a, B b) WHERE [x = 1] AND b.x = 2 WITHIN 1 s").warnings
    assert found == ("never matches: its WHERE is always false", "always false: b.x = 1 and b.x = 2")
    assert checked("PATTERN AND(A a, B b) WHERE [x = 1] AND b.y = 2 WITHIN 1 s").warnings == ()


def test_a_filter_that_is_always_false() -> None:
    assert checked("PATTERN A(x = 1 AND x = 2) a").warnings == ("the filter of A is always false: x = 1 and x = 2",)


def test_what_may_be_true_for_want_of_an_attribute_or_a_variable_is_not_always_false() -> None:
    assert checked("PATTERN ANY(A, C) a WHERE a.only_c = 1 AND a.only_c = 2").warnings == ()
    assert checked("PATTERN ANY(A, C)(only_c = 1 AND only_c = 2) a").warnings == ()
    assert checked("PATTERN OR(A a, C c) WHERE a.x = 1 AND a.x = 2").warnings == ()
    assert checked("PATTERN ANY(A, C) a WHERE abs(a.only_c) = NULL").warnings == ()
    assert checked("PATTERN ANY(A, C)(abs(only_c) + 1 = NULL) a").warnings == ()
    text = "PATTERN SEQ(A a, B* g, A c) WHERE [source] AND abs(g[2].x) = NULL WITHIN 1 s"
    assert checked(text).warnings == ()
    assert checked("PATTERN A a WHERE abs(a.x) = NULL").warnings[0] == "never matches: its WHERE is always false"


def test_a_window_longer_than_the_tables_history() -> None:
    text = "PATTERN AND(A a, B b) WHERE [source] WITHIN 3 days"
    found = check({"q": text}, SHOP, history_us={"A": 2 * DAY_US, "B": 4 * DAY_US})["q"].warnings
    assert found == ("WITHIN 3 days is longer than the history of A, 2 days",)


def test_a_timer_later_than_the_window() -> None:
    found = checked("PATTERN SEQ(AFTER(A a, 2 days) t, B b) WHERE [source] WITHIN 1 day").warnings
    assert found == ("never matches: AFTER waits 2 days, longer than WITHIN 1 day",)


def test_an_index_beyond_the_window() -> None:
    found = checked("PATTERN A[2] r WHERE [source] AND r[3].x = 1 WITHIN 1 day").warnings
    assert found == ("r has 2 events, so a condition on r[3] is always true",)
