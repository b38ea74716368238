"""Random queries as values of the algebra, for the property parse(format(q)) == q.

They need not be allowed by the checker, only be such as the parser can produce: flat All and Either, elements numbered
in reading order, no sign in front of a plain number.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from cep_core.language import algebra as q

names = st.one_of(
    st.sampled_from(("a", "b", "Shelf", "x1", "größe", "count", "i")),
    st.sampled_from(("select", "AND", "my name", "2x", "tick`ed", "a.b", "-- no", "it's", "PATTERN")),
    st.text(st.characters(codec="utf-8", exclude_categories=("C",)), min_size=1, max_size=6),
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=8)
durations = st.one_of(st.sampled_from((0, 1, 1_000, 90_000_000, 5_400_000_000)), st.integers(0, 10**15))
counts = st.integers(1, 10**6)
constants = st.builds(
    q.Constant,
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
)
indices = st.one_of(
    st.builds(q.Index, st.none(), counts),
    st.builds(q.Index, names, st.integers(-9, 9)),
)
maybe_index = st.one_of(st.none(), indices)


def values(own: bool) -> st.SearchStrategy[q.Expression]:
    """Values; in an element's own filter (`own`) attributes have no variable and there are no aggregates."""
    leaves: list[st.SearchStrategy[q.Expression]] = [constants]
    if own:
        leaves.append(st.builds(q.Attribute, st.none(), names))
    else:
        leaves += [
            st.builds(q.Attribute, names, names, maybe_index),
            st.builds(q.Aggregate, st.just("count"), names, st.none()),
            st.builds(q.Aggregate, st.sampled_from(("sum", "avg", "min", "max", "first", "last")), names, names),
            st.builds(q.Duration, names, maybe_index, names, maybe_index),
        ]
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            st.builds(q.Arithmetic, st.sampled_from("+-*/%"), inner, inner),
            st.builds(q.Minus, inner),
            st.builds(q.Call, st.sampled_from(("abs", "coalesce", "concat", "hour")), st.tuples(inner, inner)),
        ),
        max_leaves=6,
    )


def conditions(own: bool) -> st.SearchStrategy[q.Condition]:
    value = values(own)
    leaves: list[st.SearchStrategy[q.Condition]] = [
        st.builds(q.Compare, st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), value, value),
        st.builds(q.In, value, st.lists(constants, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(q.Between, value, value, value, st.booleans()),
        st.builds(q.Like, value, texts, st.booleans()),
        st.builds(q.IsNull, value, st.booleans()),
        st.builds(
            q.Equivalence,
            st.lists(st.tuples(names, st.one_of(st.none(), constants)), min_size=1, max_size=3).map(tuple),
        ),
    ]

    def deeper(inner: st.SearchStrategy[q.Condition]) -> st.SearchStrategy[q.Condition]:
        parts = st.lists(inner, min_size=2, max_size=3)
        found = [parts.map(lambda each: flat(q.All, each)), parts.map(lambda each: flat(q.Either, each))]
        if not own:
            high = st.one_of(counts, st.builds(q.Aggregate, st.just("count"), names, st.none()))
            found.append(st.builds(q.Forall, names, counts, high, inner))
        return st.one_of(*found, st.builds(q.Not, inner))

    return st.recursive(st.one_of(leaves), deeper, max_leaves=5)


def flat(kind: type, parts: list[q.Condition]) -> q.Condition:
    found: list[q.Condition] = []
    for part in parts:
        found.extend(part.conditions if isinstance(part, kind) else (part,))  # type: ignore[attr-defined]
    return kind(tuple(found))  # type: ignore[no-any-return]


quantities = st.one_of(
    st.just(q.One()),
    st.builds(q.Group, st.integers(0, 3), st.one_of(st.none(), st.integers(3, 9))),
    st.builds(q.Window, counts),
    st.builds(q.Window, counts, same=names),
    st.builds(q.Window, counts, different=names),
)
variables = st.one_of(st.none(), names)
elements = st.builds(
    q.Element,
    st.lists(names, min_size=1, max_size=3).map(tuple),
    variables,
    st.one_of(st.none(), conditions(own=True)),
    quantities,
    st.booleans(),
    st.just(0),
)
timers = st.one_of(
    st.builds(q.TimerAt, st.integers(-(10**15), 10**17), variables, st.just(0)),
    st.builds(q.TimerEvery, st.integers(1, 10**15), variables, st.just(0)),
)
patterns = st.recursive(
    st.one_of(elements, timers),
    lambda inner: st.one_of(
        *(
            st.builds(kind, st.lists(inner, min_size=1, max_size=3).map(tuple), st.one_of(st.none(), durations))
            for kind in (q.Seq, q.And, q.Or)
        ),
        st.builds(q.TimerAfter, inner, durations, variables, st.just(0)),
    ),
    max_leaves=5,
)


def numbered(pattern: q.Pattern, count: int = 0) -> tuple[q.Pattern, int]:
    """The pattern with its elements numbered in reading order, and how many there are."""
    if isinstance(pattern, q.Seq | q.And | q.Or):
        parts = []
        for part in pattern.parts:
            done, count = numbered(part, count)
            parts.append(done)
        return replace(pattern, parts=tuple(parts)), count
    if isinstance(pattern, q.TimerAfter):
        part, count = numbered(pattern.part, count)
        pattern = replace(pattern, part=part)
    return replace(pattern, position=count + 1), count + 1


def _outermost(pattern: q.Pattern) -> q.Pattern:
    done = numbered(pattern)[0]
    return replace(done, within_us=None) if isinstance(done, q.Seq | q.And | q.Or) else done


queries = st.builds(
    q.Query,
    st.just("q"),
    patterns.map(_outermost),
    st.one_of(st.none(), conditions(own=False)),
    st.one_of(st.none(), durations),
    st.sampled_from(("all", "recent", "earliest", "merged")),
    st.sampled_from(("none", "used", "older")),
    st.sampled_from(("apart", "ordered")),
    st.lists(st.tuples(values(own=False), names), max_size=3).map(tuple),
)
