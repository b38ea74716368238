"""EPS (shared event trees), section 8, figure 6: one sequence of sends and receives in every context."""

import pytest

from tests.harness import EVALUATORS, case, check

pytestmark = [pytest.mark.core, pytest.mark.parametrize("evaluator", EVALUATORS)]

# [st, 1, 2]^1, [st, 2, 1]^2, [rt, 3, 1]^3, [rt, 2, 2]^4, [st, 3, 1]^5, [rt, 2, 1]^6
FIGURE_6 = "St1{proc=1,msg=2} St2{proc=2,msg=1} Rt3{proc=3,msg=1} Rt4{proc=2,msg=2} St5{proc=3,msg=1} Rt6{proc=2,msg=1}"
SEND_RECEIVE = "PATTERN SEQ(St s, Rt r) WITHIN 1 min SELECT "


def test_figure_6_all_combinations(evaluator: str) -> None:
    pairs = ("s=St1 r=Rt3", "s=St2 r=Rt3", "s=St1 r=Rt4", "s=St2 r=Rt4", "s=St1 r=Rt6", "s=St2 r=Rt6", "s=St5 r=Rt6")
    check(evaluator, case("all", FIGURE_6, SEND_RECEIVE + "all", *pairs))


def test_figure_6_recent(evaluator: str) -> None:
    check(evaluator, case("recent", FIGURE_6, SEND_RECEIVE + "recent CONSUME older", "s=St2 r=Rt3", "s=St5 r=Rt6"))


def test_figure_6_chronicle(evaluator: str) -> None:
    pairs = ("s=St1 r=Rt3", "s=St2 r=Rt4", "s=St5 r=Rt6")
    check(evaluator, case("chronicle", FIGURE_6, SEND_RECEIVE + "chronicle", *pairs))
    check(evaluator, case("the pair", FIGURE_6, SEND_RECEIVE + "earliest CONSUME used", *pairs))


def test_figure_6_continuous(evaluator: str) -> None:
    pairs = ("s=St1 r=Rt3", "s=St2 r=Rt3", "s=St5 r=Rt6")
    check(evaluator, case("continuous", FIGURE_6, SEND_RECEIVE + "continuous", *pairs))
    check(evaluator, case("the pair", FIGURE_6, SEND_RECEIVE + "all CONSUME used", *pairs))


def test_figure_6_cumulative(evaluator: str) -> None:
    sets = ("s=St1,St2 r=Rt3", "s=St5 r=Rt6")
    check(evaluator, case("cumulative", FIGURE_6, SEND_RECEIVE + "cumulative", *sets))
    check(evaluator, case("the pair", FIGURE_6, SEND_RECEIVE + "merged CONSUME used", *sets))


def test_send_receive_cycle_needs_all_combinations(evaluator: str) -> None:
    """A process receives a message that it has sent: only the second send with the last receive."""
    pattern = "PATTERN SEQ(St s, Rt r) WHERE s.proc = r.proc AND s.msg = r.msg WITHIN 1 min"
    check(evaluator, case("cycle", FIGURE_6, pattern, "s=St2 r=Rt6"))
    check(
        evaluator,
        case("cycle by key", FIGURE_6, "PATTERN SEQ(St s, Rt r) WHERE [proc, msg] WITHIN 1 min", "s=St2 r=Rt6"),
    )


def test_repetition_of_equal_and_of_different(evaluator: str) -> None:
    """Section 5: TimesEq and TimesDf over login failures."""
    events = "Fail1{user=ann} Fail2{user=bob} Fail3{user=ann} Fail4{user=null} Fail5{user=ann}"
    same = "PATTERN TIMES_EQ(3, Fail f, user) WITHIN 1 min"
    check(evaluator, case("TIMES_EQ", events, same, "f=Fail1,Fail3,Fail5"))
    different = "PATTERN TIMES_DF(2, Fail f, user) WITHIN 1 min"
    check(evaluator, case("TIMES_DF", events, different, "f=Fail1,Fail2", "f=Fail2,Fail3", "f=Fail2,Fail5"))
