"""GenTrie, sections 2 and 3.2: the Volkswagen pattern, windows of five and conditions between them."""

import pytest

from tests.harness import EVALUATORS, case, check

pytestmark = [pytest.mark.core, pytest.mark.parametrize("evaluator", EVALUATORS)]

VOLKSWAGEN = (
    "PATTERN AND(VWRelease v, Review[5] r) WHERE v.model = 'Jetta' "
    "AND FORALL i IN 1..5 (r[i].rating > 3.5 AND r[i].model = v.model) WITHIN 1 hour"
)
REVIEWS = (
    "Review1{model=Jetta,rating=4.5} Review2{model=Golf,rating=5.0} Review3{model=Jetta,rating=3.5} "
    "VWRelease4{model=Jetta} "
    "VWRelease4.5{model=Golf} Review5{model=Jetta,rating=3.6} Review6{model=Jetta,rating=4.0} "
    "Review7{model=Jetta,rating=5.0} Review8{model=Jetta,rating=4.0}"
)


def test_volkswagen_jetta_with_five_good_reviews(evaluator: str) -> None:
    """Reviews before the release count too: nothing in the pattern orders them."""
    expected = "v=VWRelease4 r=Review1,Review5,Review6,Review7,Review8"
    check(evaluator, case("volkswagen", REVIEWS, VOLKSWAGEN, expected))
    check(evaluator, case("four are too few", REVIEWS.rsplit(" ", 1)[0], VOLKSWAGEN))
    bare = VOLKSWAGEN.replace(
        "FORALL i IN 1..5 (r[i].rating > 3.5 AND r[i].model = v.model)", "r.rating > 3.5 AND r.model = v.model"
    )
    check(evaluator, case("bare attributes hold for each", REVIEWS, bare, expected))


def test_volkswagen_any_five_of_six(evaluator: str) -> None:
    events = REVIEWS + " Review9{model=Jetta,rating=4.0}"
    good = ["Review1", "Review5", "Review6", "Review7", "Review8", "Review9"]
    expected = [f"v=VWRelease4 r={','.join(r for r in good if r != left)}" for left in good]
    check(evaluator, case("six choose five", events, VOLKSWAGEN, *expected))


def test_consumption_uses_each_review_once(evaluator: str) -> None:
    query = "PATTERN Review[2] r WHERE r.rating >= 4 WITHIN 1 hour SELECT earliest CONSUME used"
    check(evaluator, case("used", REVIEWS, query, "r=Review1,Review2", "r=Review6,Review7"))


def test_subsequent_events_by_a_condition(evaluator: str) -> None:
    """Section 2.2: an order within the window is a condition on neighbours."""
    query = "PATTERN Review[3] r WHERE FORALL i IN 1..2 (r[i].rating < r[i+1].rating) WITHIN 1 hour"
    events = "Review1{rating=1} Review2{rating=2} Review3{rating=2} Review4{rating=3}"
    check(evaluator, case("rising", events, query, "r=Review1,Review2,Review4", "r=Review1,Review3,Review4"))
