"""A command that holds the engine to the naive meaning on random cases: `python -m tests.fuzz --cases 20000 --seed 1`.

Enters: a number of cases, a first seed, features that each case must have, the laws to hold. Leaves: a count of what
passed, the share of cases that match something, and for each failure the smallest case found: query text, events, both
results. Always holds: a case is a function of its seed, so that a failure can be run again with `--cases 1 --seed N`;
one that the naive meaning would not end on is none of the cases asked for, and is counted apart.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cep_core.errors import QueryError
from cep_core.language import algebra as q
from cep_core.language import check, format_query, parse
from tests.harness import run_engine, run_naive
from tests.laws import LAWS, REFUSED, or_refused
from tests.naive_patterns import TooManyBindings
from tests.pinned import pin
from tests.random_cases import RandomCase, random_cases

Law = Callable[[RandomCase], tuple[Any, Any]]


def equals_naive(case: RandomCase) -> tuple[Any, Any]:
    """The engine's matches are those of the naive meaning; what the one refuses the other refuses too."""
    events = list(case.events)
    naive = or_refused(lambda: run_naive(events, case.queries, case.start, case.end, case.schema))
    return naive, or_refused(lambda: run_engine(events, case.queries, case.start, case.end, case.schema))


ALL_LAWS: dict[str, Law] = {"naive": equals_naive, **LAWS}
ENDLESS = "too many ways to bind"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then, though cases are left")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--size", type=int, default=12, help="most events of a case")
    parser.add_argument("--features", default="", help="names with commas between, such as window,select_recent")
    parser.add_argument("--laws", default="naive", help="names with commas between, of: " + ", ".join(ALL_LAWS))
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument("--out", default="", help="append the failures to this file too")
    parser.add_argument("--pin", action="store_true", help="keep the failures in tests/engine/pinned.json")
    options = parser.parse_args()
    wanted = frozenset(name for name in options.features.split(",") if name)
    failures = matching = done = queries = endless = 0
    last = options.seed
    seen: Counter[str] = Counter()
    refused: Counter[str] = Counter()  # by law
    meeting: Counter[str] = Counter()  # features of the cases that match something
    began = time.monotonic()
    for case in random_cases(options.seed, options.size, wanted):
        if done == options.cases or failures == options.failures or time.monotonic() - began > options.seconds:
            break
        last = case.seed
        results = _by_law(options.laws.split(","), case)
        if not results:
            endless += 1
            continue
        done += 1
        queries += len(case.queries)
        seen.update(case.features)
        first = next(iter(results.values()))[0]
        if first and first != REFUSED:
            matching += 1
            meeting.update(case.features)
        for name, (expected, problem) in results.items():
            if problem is not None:
                failures += 1
                smallest = shrunk(ALL_LAWS[name], case)
                report = _report(name, smallest)
                print(report, flush=True)
                if options.pin:
                    pin(smallest)
                if options.out:
                    with open(options.out, "a", encoding="utf-8") as file:
                        file.write(report + "\n")
                break
            if expected == REFUSED:
                refused.update([name])
        if done % 500 == 0:
            print(
                f"{done} cases, {failures} failures, {matching / done:.0%} match something", file=sys.stderr, flush=True
            )
    seconds = time.monotonic() - began
    share = f"{matching / max(done, 1):.0%} match something, {max(refused.values(), default=0)} are refused"
    share += f"; {endless} more have too many bindings for the naive meaning" if endless else ""
    print(
        f"{done} cases, {queries} queries, seeds {options.seed} to {last}, {seconds:.0f} s: {failures} failed, {share}"
    )
    print("features, in cases of which match something:")
    print(" ".join(f"{name}={count}/{meeting[name]}" for name, count in sorted(seen.items())))
    return 1 if failures else 0


def _by_law(laws: list[str], case: RandomCase) -> dict[str, tuple[Any, tuple[Any, Any] | None]]:
    """What each law gives; nothing where one of them would not end."""
    found = {}
    for name in laws:
        found[name] = tried(ALL_LAWS[name], case)
        if found[name][0] == ENDLESS:
            return {}
    return found


def tried(law: Law, case: RandomCase) -> tuple[Any, tuple[Any, Any] | None]:
    """The expected result, and the pair that differs, if one does."""
    try:
        expected, found = law(case)
    except TooManyBindings:
        return ENDLESS, None
    except QueryError as error:
        return [], ("accepted by the checker", f"QueryError: {error}")
    except Exception as error:  # a crash of the engine is a failure of the case, not of the run
        return [], ("no crash", f"{type(error).__name__}: {error}")
    return expected, None if expected == found else (expected, found)


# ---------------------------------------------------------------- the smallest case


def shrunk(law: Law, case: RandomCase) -> RandomCase:
    """A case that fails in the same way with fewer queries, events and clauses."""

    def fails(other: RandomCase) -> bool:
        return tried(law, other)[1] is not None

    for name in case.queries:
        smaller = case.only(name)
        if len(smaller.queries) < len(case.queries) and fails(smaller):
            case = smaller
            break
    smaller_found = True
    while smaller_found:
        smaller_found = False
        for other in _smaller(case):
            if fails(other):
                case, smaller_found = other, True
                break
    return case


def _smaller(case: RandomCase) -> Iterator[RandomCase]:
    for name in case.queries if len(case.queries) > 1 else ():
        rest = {other: text for other, text in case.queries.items() if other != name}
        if not any(re.search(rf"\b{name}\b", text) for text in rest.values()):
            yield replace(case, queries=rest)
    for i in range(len(case.events)):
        yield case.with_events(case.events[:i] + case.events[i + 1 :])
    if case.start is not None or case.end is not None:
        yield replace(case, start=None, end=None)
    for name, text in case.queries.items():
        for query in _simpler(parse(text, name)):
            queries = {**case.queries, name: format_query(query)}
            try:
                check(queries, case.schema)  # type: ignore[arg-type]
            except QueryError:
                continue
            yield replace(case, queries=queries)
    for i, event in enumerate(case.events):
        for name in event["attributes"]:
            if event["attributes"][name] is not None:
                less = {**event, "attributes": {**event["attributes"], name: None}}
                yield case.with_events((*case.events[:i], less, *case.events[i + 1 :]))


def _simpler(query: q.Query) -> Iterator[q.Query]:
    """The query without one of its clauses, terms or parts."""
    if query.returns:
        yield replace(query, returns=())
    if query.consume != "none":
        yield replace(query, consume="none")
    if query.select != "all":
        yield replace(query, select="all")
    if query.ties != "apart":
        yield replace(query, ties="apart")
    if query.where is not None:
        yield replace(query, where=None)
        if isinstance(query.where, q.All | q.Either):
            for term in query.where.conditions:
                yield replace(query, where=term)
            for i in range(len(query.where.conditions)) if len(query.where.conditions) > 2 else ():
                rest = query.where.conditions[:i] + query.where.conditions[i + 1 :]
                yield replace(query, where=type(query.where)(rest))
        if isinstance(query.where, q.Not):
            yield replace(query, where=query.where.condition)
    pattern = query.pattern
    if isinstance(pattern, q.Seq | q.And | q.Or):
        for i, part in enumerate(pattern.parts):
            if len(pattern.parts) > 2:
                yield replace(query, pattern=replace(pattern, parts=pattern.parts[:i] + pattern.parts[i + 1 :]))
            if isinstance(part, q.Element) and part.filter is not None:
                plain = replace(part, filter=None)
                yield replace(
                    query, pattern=replace(pattern, parts=(*pattern.parts[:i], plain, *pattern.parts[i + 1 :]))
                )


def _report(name: str, case: RandomCase) -> str:
    _, problem = tried(ALL_LAWS[name], case)
    expected, found = problem or ((), ())
    lines = [f"## law {name}, seed {case.seed}, range [{case.start}, {case.end})"]
    lines += [f"{id_}: {text}" for id_, text in case.queries.items()]
    lines += ["events (class start-end id source tie attributes):"]
    for e in sorted(case.events, key=lambda e: (e["end_ts"], e["start_ts"])):
        known = {k: v for k, v in e["attributes"].items() if v is not None}
        times = f"{e['start_ts'] / 1e6:g}-{e['end_ts'] / 1e6:g}"
        lines.append(f"  {e['event_class']} {times} {e['event_id']} {e['source']} {e['tie']} {known}")
    lines.append(f"schema: { {name: sorted(attributes) for name, attributes in case.schema.items()} }")
    if isinstance(expected, list) and isinstance(found, list):
        lines += ["expected and not found:"] + [f"  {row}" for row in expected if row not in found]
        lines += ["found and not expected:"] + [f"  {row}" for row in found if row not in expected]
    else:
        lines += [f"expected: {expected}", f"found: {found}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
