"""The engine against the naive meaning, and the laws of runs, on random cases; those once found to differ are pinned.

`python -m tests.fuzz --cases 20000` does the same at length.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.fuzz import ALL_LAWS, ENDLESS, equals_naive, shrunk, tried
from tests.harness import run_naive
from tests.pinned import pinned
from tests.random_cases import RandomCase, random_case

pytestmark = pytest.mark.core

TESTS = Path(__file__).resolve().parents[1]
SEEDS = st.integers(min_value=0, max_value=2**40)


def _differs(law: str, case: RandomCase) -> str:
    """Empty if the law holds; else the smallest case that breaks it, and both results."""
    expected, problem = tried(ALL_LAWS[law], case)
    if expected == ENDLESS:
        reject()
    if problem is None:
        return ""
    small = shrunk(ALL_LAWS[law], case)
    both = tried(ALL_LAWS[law], small)[1] or ("", "")
    return f"seed {case.seed}\n{small.queries}\n{small.events}\nexpected {both[0]}\nfound    {both[1]}"


@pytest.mark.parametrize("law", [name for name in ALL_LAWS if name != "naive"])
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS)
def test_law(law: str, seed: int) -> None:
    assert not (problem := _differs(law, random_case(seed))), problem


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(seed=SEEDS)
def test_engine_equals_naive(seed: int) -> None:
    assert not (problem := _differs("naive", random_case(seed))), problem


@pytest.mark.parametrize("case", pinned(), ids=lambda case: str(case.seed))
def test_pinned_case(case: RandomCase) -> None:
    """The engine once answered it otherwise than the naive meaning."""
    assert not (problem := _differs("naive", case)), problem


def test_random_cases_match_something() -> None:
    """The harness is worth its time only if its queries find something: nearly half of them do, at the least."""
    cases = [random_case(seed) for seed in range(60)]
    found = [run_naive(case.events, case.queries, case.start, case.end, case.schema) for case in cases]
    assert sum(map(bool, found)) >= 27


PATTERNS = "seq and or nested nested_within window times group negation any filter timerat timerevery timerafter"
EDGES = "leading_negation middle_negation trailing_negation negation_in_and leading_group middle_group trailing_group"
OUTERMOST = "after_nested outermost_seq outermost_and outermost_or outermost_element outermost_timerafter"
CHOICES = [f"{one}_{other}" for one in ("all", "recent", "earliest", "merged") for other in ("none", "used", "older")]
CONDITIONS = """ties_ordered ties_apart key constant_key dnf not forall forall_to_count shifted_index not_forall
    between not_between in not_in like not_like isnull not_isnull duration minus arithmetic aggregate_in_where
    aggregate_in_return undeclared_in_where undeclared_in_return unbound_in_where unbound_in_return
    function_of_several_in_where function_of_several_in_return"""
CALLS = "abs ceil coalesce concat dayofweek distance floor greatest haversine hour least length lower round sqrt upper"
CASES = "reference late_reference field_in_where field_in_return several range interval undeclared"
NUMBERS = "large infinite signed_zero"


def test_random_cases_have_every_feature() -> None:
    """A remainder over two events once stood in so few cases that a wrong one was not noticed."""
    wanted = [*f"{PATTERNS} {EDGES} {OUTERMOST} {CONDITIONS} {CASES} {NUMBERS}".split(), *CHOICES]
    wanted += [f"call_{name}" for name in CALLS.split()]
    seen = Counter(feature for seed in range(500) for feature in random_case(seed).features)
    assert {name: seen[name] for name in wanted if seen[name] < 5} == {}


def test_the_naive_meaning_shares_the_parser_with_the_engine_and_nothing_else() -> None:
    """What both used could be wrong in both."""
    shared = {"cep_core.errors", "cep_core.language"}  # of the language only the parser and the nodes it gives
    names = set()
    for path in TESTS.glob("naive*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("cep_core") for name in node.names), path
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cep_core"):
                assert node.module in shared, path
                names |= {name.name for name in node.names}
    assert names == {"EventError", "QueryError", "algebra", "parse"}


def test_a_corrupted_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping one match from the engine's result makes the comparison fail: the harness can fail."""
    from tests import fuzz

    case = next(case for case in map(random_case, range(1000)) if equals_naive(case)[0])
    whole = fuzz.run_engine
    monkeypatch.setattr(fuzz, "run_engine", lambda *arguments: whole(*arguments)[1:])
    expected, found = equals_naive(case)
    assert expected != found
