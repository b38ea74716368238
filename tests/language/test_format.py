"""parse(format(q)) == q, and neither parser nor checker ever ends in anything but an answer or a QueryError."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cep_core.errors import QueryError
from cep_core.language import algebra as q
from cep_core.language import check, format_query, parse
from tests.language.shop import SHOP
from tests.language.strategies import queries

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PIECES = re.findall(
    r"\S+",
    """PATTERN WHERE WITHIN SELECT CONSUME TIES RETURN SEQ( AND( OR( ANY( AT( EVERY( AFTER( TIMES_EQ( AND OR NOT IN
    BETWEEN LIKE IS NULL FORALL AS ( ) [ ] { } , . .. + - * / = != < ! A a B b x 1 2.5 'x' ` count( min""",
)


def outcome(attempt: Callable[[], object]) -> str:
    """The message of a QueryError, or nothing; any other error is a failure."""
    try:
        attempt()
    except QueryError as error:
        return str(error)
    return ""


@SLOW
@given(queries)
def test_the_canonical_text_of_a_query_is_that_query(query: q.Query) -> None:
    text = format_query(query)
    again = parse(text, "q")
    assert again == query
    assert repr(again) == repr(query)  # 1, 1.0 and true are equal in Python; here they must not become each other
    assert format_query(again) == text


@SLOW
@given(queries)
def test_the_checker_accepts_or_refuses_any_query(query: q.Query) -> None:
    for schema in (SHOP, None):
        message = outcome(partial(check, {"q": query}, schema))
        assert message == "" or "query" in message


@SLOW
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(lambda pieces: "PATTERN " + " ".join(pieces)))
def test_any_text_is_a_query_or_refused_with_a_place(text: str) -> None:
    message = outcome(partial(parse, text, "q"))
    assert message == "" or message.startswith("query q, line 1, column ")


@SLOW
@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    message = outcome(partial(parse, text, "q"))
    assert message.startswith("query q, line ")
