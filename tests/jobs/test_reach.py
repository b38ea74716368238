"""How far back matches reach: the contract's times, as figures."""

from __future__ import annotations

import pytest

from cep_core.language import check
from jobs.reach import closure, consumes, delay_us, lookback_us, settle_us

pytestmark = pytest.mark.core

SCHEMA = {name: {"x": "int"} for name in "ABC"}
S = 1_000_000
QUERIES = check(
    {
        "pair": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s",
        "calm": "PATTERN SEQ(A a, B b, !C c) WHERE [source] WITHIN 15 s",
        "single": "PATTERN A a WHERE a.x > 1",
        "on_pair": "PATTERN SEQ(pair p, C c) WHERE [source] WITHIN 40 s",
        "on_calm": "PATTERN SEQ(calm p, C c) WITHIN 40 s",
        "eater": "PATTERN SEQ(A a, B b) WITHIN 5 s CONSUME used",
        "on_eater": "PATTERN SEQ(eater e, C c) WITHIN 7 s",
    },
    SCHEMA,
)


def test_a_plain_query_looks_back_one_window() -> None:
    assert lookback_us("pair", QUERIES) == 20 * S
    assert delay_us("pair", QUERIES) == 0


def test_a_single_event_needs_nothing_but_itself() -> None:
    assert lookback_us("single", QUERIES) == 0


def test_postponed_detection_looks_back_two_windows() -> None:
    assert delay_us("calm", QUERIES) == 15 * S
    assert lookback_us("calm", QUERIES) == 30 * S


def test_lookback_adds_up_along_references() -> None:
    assert lookback_us("on_pair", QUERIES) == 40 * S + 20 * S


def test_a_late_member_delays_the_match_and_lengthens_its_lookback() -> None:
    assert delay_us("on_calm", QUERIES) == 15 * S
    assert lookback_us("on_calm", QUERIES) == 15 * S + 40 * S + 30 * S


def test_consuming_is_inherited_by_referring_queries() -> None:
    assert closure(["on_eater"], QUERIES) == ("eater", "on_eater")
    assert consumes("on_eater", QUERIES)
    assert not consumes("on_pair", QUERIES)
    assert settle_us("eater", QUERIES) == 0
    assert settle_us("on_eater", QUERIES) == 12 * S
