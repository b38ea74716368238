"""The checker: a set of queries in, the same queries known to be allowed out.

Enters: queries by id, as texts, as parsed queries or as catalogue entries, and the classes with their attributes.
Leaves: `CheckedQuery` values, those referred to before those that refer to them; or one QueryError with every problem
of every bad query. Always holds: a reference to a query that is itself refused causes no problem of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from cep_core.language.algebra import NOWHERE, Element, Group, Query
from cep_core.language.alike import Families, Like, made_like
from cep_core.language.catalogue import Entry
from cep_core.language.cautions import find_warnings
from cep_core.language.checked import BUILTIN, CheckedQuery, Schema, Type
from cep_core.language.format import format_query
from cep_core.language.keys import check_key, find_chains, refuse_in_filters
from cep_core.language.normal import disjuncts, with_pushed_filters
from cep_core.language.parser import parse_query
from cep_core.language.problems import Names, Problem, Refusal, Report, refuse
from cep_core.language.references import cycles, ordered, references
from cep_core.language.rules import check_names
from cep_core.language.scope import Declared, Scope, build_scope
from cep_core.language.shape import check_shape
from cep_core.language.types import check_condition, value_type

_LONGEST_CYCLE = 12  # ids that are shown of a cycle; a longer one is cut in its middle
_MATCH_HAS: dict[str, Type] = {name: kind for name, kind in BUILTIN.items() if name != "source"}


def check(
    queries: Mapping[str, str | Query | Entry],
    schema: Schema | None,
    history_us: Mapping[str, int] | None = None,
    to_mine: bool = False,
) -> dict[str, CheckedQuery]:
    """Every query checked, in an order where those referred to come first.

    Without a schema every class and attribute is accepted and types are not known. `history_us` gives, per class, how
    much time its table spans; a longer WITHIN is then warned of. `to_mine` leaves version and warnings empty: they are
    for people and tables, the engine reads neither, and they are a quarter of the time.
    """
    texts = {id: _text(query) for id, query in queries.items()}
    problems: dict[str, list[Problem]] = {id: [] for id in texts}
    parsed, alike = _parsed(texts, schema, problems, families=to_mine)
    graph = {id: references(query, texts) for id, query in parsed.items()}
    for id, cycle in cycles(graph).items():
        shown = cycle if len(cycle) <= _LONGEST_CYCLE else (*cycle[:8], f"{len(cycle) - 10} more", *cycle[-2:])
        message = "queries refer to each other in a cycle: " + " -> ".join(shown)
        problems[id].append(Problem(message, graph[id][cycle[1]].at))
    checked: dict[str, CheckedQuery] = {}
    late: set[str] = set()
    declared = _declared(schema)
    names = Names((*declared, *texts))
    for id in ordered(graph):
        refers = graph[id]
        one = _Check(parsed[id], declared, schema, refers, late, checked, history_us, names, to_mine)
        result = one.run()
        if isinstance(result, CheckedQuery) and not problems[id]:
            checked[id] = result
            declared[id] = _match_attributes(result, one.source_type())
            if result.postponed or any(name in late for name in refers):
                late.add(id)
        elif not isinstance(result, CheckedQuery):
            problems[id] += result
    for id, like in alike.items():
        if like.first in checked:
            checked[id] = made_like(checked[like.first], id, like)
            continue
        query = parse_query(texts[id], id)  # the first is refused: its own problems, at its own places
        result = _Check(query, declared, schema, {}, late, checked, history_us, names, to_mine).run()
        if isinstance(result, CheckedQuery):
            checked[id] = result
        else:
            problems[id] += result
    if any(problems.values()):
        locates = {id: query.locate if isinstance(query, Entry) else None for id, query in queries.items()}
        raise refuse((Report(id, texts[id], tuple(found), locates[id]) for id, found in problems.items()), len(texts))
    return checked


def _parsed(
    texts: Mapping[str, str], schema: Schema | None, problems: Mapping[str, list[Problem]], families: bool
) -> tuple[dict[str, Query], dict[str, Like]]:
    """The queries that are parsed, and those that are like one of them, which nobody refers to."""
    parsed: dict[str, Query] = {}
    alike: dict[str, Like] = {}
    known = Families(schema, texts)
    for id, text in texts.items():
        try:
            _check_id(id, schema)
            like = known.like(text) if families else None
            if like is not None:
                alike[id] = like
                continue
            parsed[id] = parse_query(text, id)
            known.add(text, parsed[id])
        except Refusal as refusal:
            problems[id].append(refusal.problem)
    for name in {name for query in parsed.values() for name in references(query, alike)}:
        parsed[name] = parse_query(texts[name], name)
        del alike[name]
    return parsed, alike


def _text(query: str | Query | Entry) -> str:
    """The text that problems are shown in; a parsed query is shown in its canonical text."""
    if isinstance(query, Entry):
        return query.query
    return format_query(query) if isinstance(query, Query) else query


def _check_id(id: str, schema: Schema | None) -> None:
    if not id or id != id.strip() or not id.isprintable():
        raise Refusal("a query's id is a text without control characters or spaces around it", NOWHERE)
    if schema is not None and id in schema:
        raise Refusal(f'the id "{id}" is also the name of an event class; choose another id', NOWHERE)


def _declared(schema: Schema | None) -> dict[str, Mapping[str, Type] | None]:
    return {} if schema is None else {name: {**BUILTIN, **attributes} for name, attributes in schema.items()}


def _match_attributes(query: CheckedQuery, source: Type) -> dict[str, Type]:
    """What a match of a query has as an event: its times and id, its RETURN fields, its source if it tests [source]."""
    found = {**_MATCH_HAS, **dict(query.fields)}
    if "source" in query.key:
        found["source"] = source
    return found


class _Check:
    """The check of one query: its parts in order, problems collected in the scope."""

    def __init__(
        self,
        query: Query,
        declared: Declared,
        schema: Schema | None,
        refers: Mapping[str, Element],
        late: set[str],
        checked: Mapping[str, CheckedQuery],
        history_us: Mapping[str, int] | None,
        names: Names,
        to_mine: bool,
    ) -> None:
        self.query, self.schema, self.refers, self.late = query, schema, refers, late
        self.checked, self.history_us, self.names, self.to_mine = checked, history_us, names, to_mine
        self.scope: Scope = build_scope(query.pattern, declared)

    def run(self) -> CheckedQuery | list[Problem]:
        query, scope = self.query, self.scope
        self._classes()
        postponed = check_shape(query, scope)
        self._late_references()
        for element in scope.elements:
            if element.filter is not None:
                check_condition(element.filter, scope, element)
        refuse_in_filters(scope)
        if query.where is not None:
            check_condition(query.where, scope)
        check_names(query, scope)
        key, key_values = check_key(query, scope)
        fields = self._fields(key)
        try:
            where = disjuncts(query.where)
        except Refusal as refusal:
            scope.problems.append(refusal.problem)
        if scope.problems:
            return sorted(scope.problems, key=lambda problem: (problem.at.line, problem.at.column))
        reads = frozenset((name, attribute) for name, attribute in scope.reads if attribute not in BUILTIN)
        chains = find_chains(where, scope)
        warnings: tuple[str, ...] = ()
        if not self.to_mine:
            own = dict(zip(key, key_values, strict=True))
            warnings = find_warnings(query, where, own, chains, scope, self.history_us)
        return CheckedQuery(
            query=with_pushed_filters(query),
            key=key,
            key_values=key_values,
            disjuncts=where,
            chains=chains,
            refers_to=tuple(self.refers),
            postponed=postponed,
            fields=fields,
            attributes=reads,
            version="" if self.to_mine else self._version(),
            warnings=warnings,
        )

    def source_type(self) -> Type:
        """The type of the `source` that all its elements share."""
        return self.scope.attribute(self.scope.elements[0], "source", NOWHERE)

    def _classes(self) -> None:
        if self.schema is None:
            return
        scope = self.scope
        for element in scope.elements:
            for name in element.classes:
                if name not in scope.declared and name not in self.refers:
                    tail = self.names.did_you_mean(name) or "; it is no declared event class and no query's id"
                    scope.refuse(f'unknown class "{name}"{tail}', element.at)

    def _late_references(self) -> None:
        """Matches of a postponed query are known late, so what reads them may not depend on having all of them."""
        scope = self.scope
        for element in scope.elements:
            late = next((name for name in element.classes if name in self.late), None)
            if late is None:
                continue
            if element.negated or isinstance(element.quantity, Group):
                what = "negated" if element.negated else "grouped"
                scope.refuse(
                    f'"{late}" is detected late (postponed), so a reference to it may not be {what}', element.at
                )
            if self.query.select != "all" or self.query.consume != "none":
                message = (
                    f'"{late}" is detected late (postponed); what refers to it may only SELECT all and CONSUME none'
                )
                scope.refuse(message, element.at)

    def _fields(self, key: tuple[str, ...]) -> tuple[tuple[str, Type], ...]:
        scope = self.scope
        found: dict[str, tuple[str, Type]] = {}
        for value, name in self.query.returns:
            kind = value_type(value, scope)
            if name.lower() in found:
                scope.refuse(
                    f'the RETURN name "{name}" stands twice (SQL does not tell upper from lower case)', value.at
                )
            if name.lower() in _MATCH_HAS:
                scope.refuse(f'every match has its own "{name}"; choose another RETURN name', value.at)
            if name.lower() == "source" and "source" in key:
                scope.refuse('[source] already gives every match its "source"; choose another RETURN name', value.at)
            found[name.lower()] = (name, kind)
        return tuple(found.values())

    def _version(self) -> str:
        digest = hashlib.sha256(format_query(self.query).encode())
        for name in sorted(self.refers):
            version = self.checked[name].version if name in self.checked else ""  # a refused one: nothing will run
            digest.update(f"\n{name}\n{version}".encode())
        return digest.hexdigest()[:16]
