"""The keys of a query: equivalence tests, and equalities that chain over its elements."""

from __future__ import annotations

import pytest

from cep_core.language.algebra import Constant
from tests.language.shop import checked

WHOLE = True


def chains(pattern: str, where: str) -> list[tuple[str, bool]]:
    found = checked(f"PATTERN {pattern} WHERE {where} WITHIN 1 s").chains
    return [(" ".join(f"{variable}.{name}" for variable, name in chain.terms), chain.whole) for chain in found]


def test_the_key_is_the_attributes_of_all_equivalence_tests_in_order() -> None:
    query = checked("PATTERN AND(A a, B b) WHERE [source, x] AND [id = 'k'] AND [x = 3] AND a.x > 1 WITHIN 1 s")
    assert query.key == ("source", "x", "id")
    assert query.key_values == (None, Constant(3), Constant("k"))
    assert len(query.disjuncts[0]) == 1


def test_what_a_query_reads() -> None:
    query = checked(
        "PATTERN AND(A(s = 'v') a, ANY(B, C) b, TIMES_EQ(2, C c, only_c)) WHERE [id] AND b.only_c > 1 WITHIN 1 s "
        "RETURN a.y AS y, a.ts AS moment"
    )
    ids = {("A", "id"), ("B", "id"), ("C", "id")}
    assert query.attributes == ids | {("A", "s"), ("A", "y"), ("C", "only_c")}


@pytest.mark.parametrize(
    ("pattern", "where", "expected"),
    [
        ("AND(A a, B b)", "a.id = b.id", [("a.id b.id", WHOLE)]),
        ("SEQ(A a, B b, C c)", "b.id = a.id AND b.id = c.id", [("a.id b.id c.id", WHOLE)]),
        ("SEQ(A a, B b, C c)", "a.id = b.id", [("a.id b.id", False)]),
        ("SEQ(A a, B b, C)", "a.id = b.id", [("a.id b.id", False)]),
        ("SEQ(A a, B b)", "a.id = b.s AND a.x = b.x", [("a.id b.s", WHOLE), ("a.x b.x", WHOLE)]),
        ("SEQ(A a, EVERY(1 s) t, B b)", "a.id = b.id", [("a.id b.id", WHOLE)]),
        ("SEQ(A a, B[3] w)", "a.id = w.id", [("a.id w.id", WHOLE)]),
        ("SEQ(A a, B[3] w)", "a.id = w[1].id", []),
        # an equality must hold in every disjunct
        ("SEQ(A a, B b)", "a.id = b.id OR a.x = 1", []),
        ("SEQ(A a, B b)", "a.id = b.id AND (a.x = 1 OR a.x = 2)", [("a.id b.id", WHOLE)]),
        ("SEQ(A a, B b, C c)", "a.id = b.id AND (b.id = c.id OR a.id = c.id)", [("a.id b.id c.id", WHOLE)]),
        # a negated variable hangs on a chain and links nothing
        ("SEQ(A a, !B b, C c)", "a.id = c.id AND b.id = a.id", [("a.id b.id c.id", WHOLE)]),
        ("SEQ(A a, !B b, C c)", "a.id = b.id AND b.id = c.id", [("a.id b.id", False), ("b.id c.id", False)]),
        # a group that may be empty does so too; one that may not links
        ("SEQ(A a, B* b, C c)", "a.id = b.id AND b.id = c.id", [("a.id b.id", False), ("b.id c.id", False)]),
        ("SEQ(A a, B+ b, C c)", "a.id = b.id AND b.id = c.id", [("a.id b.id c.id", WHOLE)]),
        # a comparison that may be true for want of an attribute or a variable says nothing
        ("SEQ(A a, ANY(B, C) b)", "a.x = b.only_c", []),
        ("SEQ(A a, ANY(B, C) b)", "a.id = b.id", [("a.id b.id", WHOLE)]),
        ("SEQ(A a, OR(B b, C c))", "a.id = b.id AND a.id = c.id", []),
        # nor does one between values of different types, or with anything but a plain attribute
        ("SEQ(A a, B b)", "a.x = b.y", []),
        ("SEQ(A a, B b)", "a.x = b.x + 0", []),
        ("SEQ(A a, B b)", "a.x < b.x", []),
        ("SEQ(A a, EVERY(1 s) t)", "a.ts = t.ts", []),
    ],
)
def test_chains(pattern: str, where: str, expected: list[tuple[str, bool]]) -> None:
    assert chains(pattern, where) == expected
