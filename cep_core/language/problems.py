"""What is wrong with a query, and how it is shown.

Enters: a message and a place in a query's text. Leaves: `Problem` values and one readable `QueryError` over all.
Always holds: a rendered problem names the query, line and column, shows the line with a caret, and, where the text came
from a file, that file's own line. `nearest` gives the "did you mean" of every unknown name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from cep_core.errors import QueryError
from cep_core.language.algebra import NOWHERE, At

Locate = Callable[[At], tuple[str, At]]
_WIDEST = 160
_NEAR_ENOUGH = 0.599  # a likeness of 0.6 is the least that counts


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `at` counts in the query's own text."""

    message: str
    at: At = NOWHERE


class Refusal(Exception):
    """Stops the parser of one query. It never leaves the language package: `refuse` turns it into a QueryError."""

    def __init__(self, message: str, at: At) -> None:
        super().__init__(message)
        self.problem = Problem(message, at)


@dataclass(frozen=True, slots=True)
class Report:
    """The problems of one query, with its text and, if it came from a file, the way from its lines to the file's."""

    query_id: str
    text: str
    problems: tuple[Problem, ...]
    locate: Locate | None = None


def refuse(reports: Iterable[Report], total: int) -> QueryError:
    """One error that shows every problem of every bad query."""
    bad = [report for report in reports if report.problems]
    shown = [render(report, problem) for report in bad for problem in report.problems]
    if total == 1 and len(shown) == 1:
        return QueryError(shown[0])
    queries = "query is" if total == 1 else "queries are"
    problems = "1 problem" if len(shown) == 1 else f"{len(shown)} problems"
    return QueryError(f"{len(bad)} of {total} {queries} refused, {problems}:\n\n" + "\n\n".join(shown))


def render(report: Report, problem: Problem) -> str:
    """The problem as a person reads it: where, what, the line and the caret."""
    at = problem.at
    if at.line < 1:
        return f"query {report.query_id}: {problem.message}"
    head = f"query {report.query_id}, line {at.line}, column {at.column}: {problem.message}"
    lines = report.text.split("\n")
    line = lines[at.line - 1].rstrip("\r") if at.line <= len(lines) else ""
    column = at.column - 1
    if len(line) > _WIDEST:  # a very long line is shown around the place
        start = max(0, min(column - _WIDEST // 2, len(line) - _WIDEST))
        line, column = line[start : start + _WIDEST], column - start
    before = "".join("\t" if character == "\t" else " " for character in line[:column])
    before += " " * (column - len(before))
    number = str(at.line)
    shown = [head, f"  {number} | {line}", f"  {' ' * len(number)} | {before}^"]
    if report.locate is not None:
        path, place = report.locate(at)
        shown.insert(1, f"  in {path}, line {place.line}, column {place.column}")
    return "\n".join(shown)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is most like the name, or None where none is near enough to be meant."""
    wanted = name.casefold()
    matcher = SequenceMatcher(None, "", wanted)
    best, found = _NEAR_ENOUGH, None
    for candidate in sorted(candidates):  # of those that are equally near the first in order
        folded = candidate.casefold()
        if abs(len(folded) - len(wanted)) > 3 or not (set(folded[:2]) & set(wanted[:2]) or folded[-2:] == wanted[-2:]):
            continue
        matcher.set_seq1(folded)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, found = ratio, candidate
            if ratio == 1.0:
                break
    return found


class Names:
    """The classes and ids of a whole set. A name that thousands of queries misspell is looked up once."""

    def __init__(self, candidates: Iterable[str]) -> None:
        self._candidates = tuple(candidates)
        self._known: dict[str, str] = {}

    def did_you_mean(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = did_you_mean(name, self._candidates)
        return self._known[name]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The tail of a message about an unknown name: the nearest one, or nothing."""
    near = nearest(name, candidates)
    return "" if near is None or near == name else f'; did you mean "{near}"?'


def unknown(what: str, name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """The message about an unknown name: the nearest one, or else a sentence that says what there is."""
    tail = did_you_mean(name, candidates)
    return f'unknown {what} "{name}"' + (tail or (f"; {otherwise}" if otherwise else ""))
