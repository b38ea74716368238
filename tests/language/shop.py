"""The classes that the language tests check against, and short ways to ask the checker."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cep_core.errors import QueryError
from cep_core.language import CheckedQuery, Schema, check

SHOP: Schema = {
    "A": {"x": "int", "y": "float", "s": "string", "ok": "bool", "at": "timestamp", "id": "string"},
    "B": {"x": "int", "y": "float", "s": "string", "id": "string"},
    "C": {"x": "int", "id": "string", "only_c": "int"},
    "D": {"x": "string", "id": "int"},
}


def checked(text: str, **others: str) -> CheckedQuery:
    """The query `text`, checked together with others that it may refer to."""
    return check({**others, "q": text}, SHOP)["q"]


def refused(text: str, **others: str) -> str:
    """The message with which the query is refused."""
    return refused_set({**others, "q": text})


def refused_set(queries: Mapping[str, str], schema: Schema | None = SHOP) -> str:
    with pytest.raises(QueryError) as caught:
        check(queries, schema)
    return str(caught.value)
