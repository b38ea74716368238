"""The benchmark on few events: our engine and every peer find the same matches, and the run fails where they do not."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from bench import engine, measure, ours, targets
from bench.cases import CASES
from bench.peers import PEERS

pytestmark = pytest.mark.bench

# Cases that differ in size or order alone are the same when tiny; one of each is enough.
SAME = ("-5000", "-100", "-1000-sorted", "-1-sorted", "-100-sorted", "-sources", "-5M", "-10M", "w4-1200", "w4-120")
NO_MATCHES = ("x-never", "x-never-1000", "store-1", "store-10", "store-1000")
CHOSEN = [name for name in CASES if not name.endswith(SAME) or name in ("x-negation-100", "x-groups-100")]


def _found(name: str, runner: str) -> Counter[str]:
    workload = CASES[name].tiny_workload()
    return Counter(ours.rows(measure.runner(runner, workload.shape)(workload)).to_pylist())


@pytest.mark.parametrize("name", [name for name in CHOSEN if not name.startswith("cold")])
def test_all_find_the_same(name: str) -> None:
    case = CASES[name]
    first, *others = case.runners(case.tiny_workload().shape)
    expected = _found(name, first)
    assert bool(expected) == (name not in NO_MATCHES)
    assert not expected or max(expected.values()) == 1
    for other in others:
        assert _found(name, other) == expected, other


def test_a_new_process_finds_the_same() -> None:
    assert _found("cold-start", "cold") == _found("cold-start", "duckdb/coded") != Counter()


def test_the_command_measures_and_judges(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "figures.json"
    code = engine.main(["--tiny", "--repeat", "1", "--case", "w1-recent-10", "--json", str(path)])
    shown = capsys.readouterr().out
    run = json.loads(path.read_text())
    assert code == 0
    assert {r["engine"] for r in run["results"]} == {"hindsight", *PEERS["many seq"]}
    assert all(r["seconds"] > 0 and r["answers"] > 0 and r["peak_mb"] >= 0 for r in run["results"])
    assert run["targets"][0]["target"].startswith("w1-recent-10:")
    assert run["targets"][0]["measured"] == pytest.approx(run["results"][0]["ratio_to_best_peer"], abs=0.01)
    assert "target w1-recent-10" in shown


def test_a_disagreement_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    found = pa.table({"q": ["q", "q"], "i0": ["a", "b"]})
    other = pa.table({"q": ["q", "q"], "i0": ["a", "c"]})
    results = [
        {"engine": name, "seconds": 1.0, "answers": 2, "digest": measure.digest(table)}
        for name, table in (("hindsight", found), ("duckdb", other))
    ]
    assert not engine.agree("case", results)
    assert "disagree" in capsys.readouterr().out
    assert engine.agree("case", [results[0], results[0] | {"digest": measure.digest(found.take([1, 0]))}])
    assert not engine.agree("case", [results[0], {"engine": "duckdb", "seconds": None, "failed": "more than 1 s"}])


def test_a_digest_counts_repeated_matches() -> None:
    once, twice = pa.table({"q": ["q"], "i0": ["a"]}), pa.table({"q": ["q"] * 3, "i0": ["a"] * 3})
    assert measure.digest(once) != measure.digest(twice)


def test_targets_are_judged_by_their_bounds() -> None:
    def result(case: str, name: str, seconds: float | None) -> dict[str, Any]:
        return {"case": case, "engine": name, "seconds": seconds}

    fast = [
        result("w5-groups", "hindsight", 1.0),
        result("w5-groups", "duckdb/join", 3.0),
        result("w5-groups", "duckdb/ranks", 2.0),
    ]
    (judged,) = targets.judge(fast)
    assert (judged["measured"], judged["reached"]) == (2.0, True)
    (judged,) = targets.judge([result("w5-groups", "hindsight", 2.5), *fast[1:]])
    assert (judged["measured"], judged["reached"]) == (0.8, False)
    (judged,) = targets.judge([result("w5-groups", "hindsight", None), *fast[1:]])
    assert (judged["measured"], judged["reached"]) == (None, False)
    assert targets.line(judged).endswith("not measured missed")


def test_every_target_names_cases_that_exist() -> None:
    assert {case for target in targets.TARGETS for case in target.cases} <= CASES.keys()
