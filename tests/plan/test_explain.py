"""The plan as text: golden, and the same whatever the order of the queries.

`python -m tests.plan.test_explain` writes the golden file anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import cep_core

GOLDEN = Path(__file__).parent / "golden" / "explain.txt"
STATS = {"A": 10, "B": 1000, "C": 5}
QUERIES = {
    "theft": "PATTERN SEQ(Shelf s, !Counter c, Exit e) WHERE [source] WITHIN 12 hours",
    "walk1": "PATTERN SEQ(A a, B b, C c) WHERE [source] WITHIN 1 hour",
    "walk2": "PATTERN SEQ(D a, B b, C c) WHERE [source] WITHIN 2 hours",
    "both": "PATTERN AND(A a, B(x = 1) b) WHERE [source] WITHIN 1 hour",
    "either": "PATTERN OR(A a, C c) WHERE [source]",
    "join": "PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND b.x > 3 AND a.y < c.y WITHIN 1 hour "
    "SELECT recent CONSUME used",
    "join2": "PATTERN SEQ(D a, B b, A c) WHERE a.id = b.id AND b.x > 3 AND a.y < c.y WITHIN 3 hour "
    "SELECT recent CONSUME used",
    "sums": "PATTERN SEQ(A a, B+ b, C c) WHERE sum(b.x) > 10 WITHIN 1 hour",
    "ways": "PATTERN SEQ(OR(A a, B b), C c) WHERE c.x = 1 OR c.y = 2 WITHIN 1 hour SELECT earliest",
    "timed": "PATTERN SEQ(AFTER(A a, 2 min) t, B[2] b) WITHIN 1 hour",
    "above": "PATTERN SEQ(join j, A a) WITHIN 1 hour",
}


@pytest.mark.core
def test_the_plan_is_the_golden_one():
    assert cep_core.explain(QUERIES, STATS) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.core
def test_the_order_of_the_queries_does_not_show():
    backwards = dict(reversed(QUERIES.items()))
    assert cep_core.explain(backwards, STATS) == cep_core.explain(QUERIES, STATS)


@pytest.mark.core
def test_counts_decide_the_order_of_evaluation():
    query = {"q": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 1 hour"}
    assert "then: a, b (" in cep_core.explain(query, {"A": 1, "B": 9})
    assert "then: b, a (" in cep_core.explain(query, {"A": 9, "B": 1})


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(cep_core.explain(QUERIES, STATS), encoding="utf-8")
