"""SCEMon (ECQ), section 3.1: the two CEM queries and both selection modes."""

import pytest

from tests.harness import EVALUATORS, SECOND, case, check

pytestmark = [pytest.mark.core, pytest.mark.parametrize("evaluator", EVALUATORS)]
HOUR = 3600 * SECOND

DATING = (
    "PATTERN SEQ(CNMA_A a, RSTR_B b, BAR_C c) WHERE [source] AND 20 < a.payment AND a.payment < 50 "
    "AND 80 < b.payment AND b.payment < 120 AND c.payment < 50 WITHIN 5 hours"
)
EVENINGS = (
    "CNMA_A1@ann{payment=30} RSTR_B2@ann{payment=100} RSTR_B3@ann{payment=90} BAR_C4@ann{payment=20} "
    "BAR_C7@ann{payment=20} "  # too late for the cinema at 1
    "CNMA_A1.5@bob{payment=30} RSTR_B2.5@bob{payment=130} BAR_C4.5@bob{payment=20} "  # dinner too expensive
    "CNMA_A2.2@cid{payment=50} RSTR_B3.2@cid{payment=100} BAR_C5@cid{payment=20}"  # 20 < 50 < 50 does not hold
)


def test_cem_query_1_dating_all(evaluator: str) -> None:
    expected = ("a=CNMA_A1 b=RSTR_B2 c=BAR_C4", "a=CNMA_A1 b=RSTR_B3 c=BAR_C4")
    check(evaluator, case("all", EVENINGS, DATING, *expected, unit=HOUR))


def test_cem_query_1_dating_recent(evaluator: str) -> None:
    expected = "a=CNMA_A1 b=RSTR_B3 c=BAR_C4"
    check(evaluator, case("recent", EVENINGS, DATING + " SELECT recent", expected, unit=HOUR))


def test_cem_query_2_outlet_mall(evaluator: str) -> None:
    query = (
        "PATTERN AND(BRND_A a, BRND_B b, BRND_C c) WHERE [source] AND a.payment + b.payment + c.payment < 200 "
        "WITHIN 1.5 hours"
    )
    events = (
        "BRND_C1@ann{payment=50} BRND_A1.2@ann{payment=60} BRND_B2.5@ann{payment=70} BRND_A2.6@ann{payment=90} "
        "BRND_B1.1@bob{payment=70} BRND_A1.2@bob{payment=70}"
    ).replace("BRND_A1.2@bob", "BRND_A1.2~bob@bob")
    expected = "a=BRND_A1.2 b=BRND_B2.5 c=BRND_C1 [1..2.5]"
    check(evaluator, case("conjunction", events, query, expected, unit=HOUR))


def test_disjunction_is_a_union_without_a_window(evaluator: str) -> None:
    query = "PATTERN OR(BRND_A a, BRND_B b)"
    check(evaluator, case("disjunction", "BRND_A1 BRND_B2 BRND_C3", query, "a=BRND_A1", "b=BRND_B2"))
