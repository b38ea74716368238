"""The rules of names in conditions and in RETURN: what may be compared with what.

Enters: a query and its scope. Leaves: problems in the scope.
Always holds: each rule is a sentence of the language contract (Conditions; Matches: merged). An atom is judged as a
whole: a FORALL with all that its body names is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from cep_core.language.algebra import (
    Aggregate,
    All,
    Arithmetic,
    At,
    Atom,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Duration,
    Either,
    Equivalence,
    Expression,
    Forall,
    In,
    Index,
    IsNull,
    Like,
    Minus,
    Not,
    Query,
)
from cep_core.language.problems import did_you_mean
from cep_core.language.scope import Binding, Scope


@dataclass(frozen=True, slots=True)
class Mention:
    """One use of a variable: bare (`a.x`), by index (`r[1].x`), in an aggregate, or in duration(a, b). `attribute` is
    what a bare or an indexed one is asked for."""

    variable: str
    form: OneOf["bare", "index", "aggregate", "duration"]
    index: Index | None
    at: At
    attribute: str | None = None


def check_names(query: Query, scope: Scope) -> None:
    """All problems of names in WHERE and RETURN."""
    if query.where is not None:
        for atom in atoms(query.where):
            _check_atom(atom, scope)
    merged = query.select == "merged"
    for value, _ in query.returns:
        for mention in value_mentions(value):
            binding = scope.bindings.get(mention.variable)
            if binding is None:
                continue  # an unknown variable is a problem of its own, found with the types
            if merged and mention.form != "aggregate":
                scope.refuse(
                    "under SELECT merged RETURN uses aggregates only, such as first(a).x or count(a)", mention.at
                )
            elif binding.kind == "negated":
                scope.refuse(f'"{binding.name}" is negated: there is no such event to return', mention.at)
            elif not merged or mention.form != "aggregate":
                _check_form(mention, binding, (), scope)
                if mention.form == "bare" and binding.kind in ("window", "group"):
                    name = binding.name
                    examples = f"{name}[1].x, first({name}).x, max({name}.x)"
                    message = f'"{name}" stands for several events; RETURN needs one value: {examples}'
                    scope.refuse(message, mention.at)


def atoms(condition: Condition) -> Iterator[Atom]:
    """The atoms of a condition as written, in reading order; a FORALL is one."""
    match condition:
        case All() | Either():
            for part in condition.conditions:
                yield from atoms(part)
        case Not():
            yield from atoms(condition.condition)
        case Equivalence():
            return
        case _:
            yield condition


def mentions(condition: Condition) -> Iterator[Mention]:
    """Every use of a variable in a condition, in the bodies of FORALL too."""
    match condition:
        case All() | Either():
            for part in condition.conditions:
                yield from mentions(part)
        case Not():
            yield from mentions(condition.condition)
        case Compare():
            yield from value_mentions(condition.left)
            yield from value_mentions(condition.right)
        case Between():
            for value in (condition.operand, condition.low, condition.high):
                yield from value_mentions(value)
        case In() | Like() | IsNull():
            yield from value_mentions(condition.operand)
        case Forall():
            if isinstance(condition.high, Aggregate):
                yield from value_mentions(condition.high)
            yield from mentions(condition.body)
        case _:
            return


def value_mentions(value: Expression) -> Iterator[Mention]:
    """Every use of a variable in a value."""
    match value:
        case Attribute():
            if value.variable is not None:
                form: OneOf["bare", "index"] = "bare" if value.index is None else "index"
                yield Mention(value.variable, form, value.index, value.at, value.name)
        case Aggregate():
            yield Mention(value.variable, "aggregate", None, value.at)
        case Duration():
            for variable, index in ((value.first, value.first_index), (value.second, value.second_index)):
                yield Mention(variable, "duration" if index is None else "index", index, value.at)
        case Call():
            for argument in value.arguments:
                yield from value_mentions(argument)
        case Arithmetic():
            yield from value_mentions(value.left)
            yield from value_mentions(value.right)
        case Minus():
            yield from value_mentions(value.operand)
        case _:
            return


def _check_atom(atom: Atom, scope: Scope) -> None:
    if isinstance(atom, Forall):
        _check_forall(atom, (), scope)
        found = list(mentions(atom))
    else:
        found = list(mentions(atom))
        for mention in found:
            binding = scope.bindings.get(mention.variable)
            if binding is not None:
                _check_form(mention, binding, (), scope)
    _check_company([(each, scope.bindings[each.variable]) for each in found if each.variable in scope.bindings], scope)


def _check_forall(forall: Forall, outer: tuple[str, ...], scope: Scope) -> None:
    if forall.name in scope.bindings or forall.name in outer:
        scope.refuse(f'the index "{forall.name}" is already the name of something else; choose another', forall.at)
    if forall.low < 1:
        scope.refuse("events are counted from 1; the range of FORALL starts at 1 or later", forall.at)
    if isinstance(forall.high, Aggregate):
        binding = scope.binding(forall.high.variable, forall.high.at)
        if binding is not None:
            _check_form(next(value_mentions(forall.high)), binding, (), scope)
    elif forall.high < forall.low:
        scope.refuse(f"the range {forall.low}..{forall.high} is empty", forall.at)
    indices = (*outer, forall.name)
    for atom in atoms(forall.body):
        if isinstance(atom, Forall):
            _check_forall(atom, indices, scope)
            continue
        for mention in mentions(atom):
            binding = scope.bindings.get(mention.variable)
            if binding is not None:
                _check_form(mention, binding, indices, scope)


def _check_form(mention: Mention, binding: Binding, indices: tuple[str, ...], scope: Scope) -> None:
    """Whether a variable of this kind can be used in this form."""
    several = binding.kind in ("window", "group")
    name = binding.name
    if mention.form == "aggregate" and not several:
        message = f'"{name}" is no k-size window and no group, so it has no aggregate; write {name}.attribute'
        scope.refuse(message, mention.at)
    elif mention.form == "duration" and several:
        message = f'"{name}" stands for several events; duration needs one of them, such as {name}[1]'
        scope.refuse(message, mention.at)
    elif mention.form == "index":
        index = mention.index
        if not several:
            scope.refuse(f'"{name}" is no k-size window and no group, so it has no index', mention.at)
        elif index is not None and index.name is None and index.offset < 1:
            scope.refuse(f'the events of "{name}" are counted from 1', mention.at)
        elif index is not None and index.name is not None and index.name not in indices:
            tail = did_you_mean(index.name, indices) or "; only FORALL gives an index a name"
            scope.refuse(f'unknown index "{index.name}"{tail}', mention.at)


def _check_company(found: list[tuple[Mention, Binding]], scope: Scope) -> None:
    """A bare group goes with no other group, no negated variable and no aggregate of itself; a negated variable goes
    with constants, single events and aggregates."""
    bare = next((binding for mention, binding in found if binding.kind == "group" and mention.form == "bare"), None)
    negated = next((binding for _, binding in found if binding.kind == "negated"), None)
    for mention, binding in found:
        if bare is not None and binding.kind == "group" and binding is not bare:
            message = (
                f'a condition that names the group "{bare.name}" bare may not name another group, here "{binding.name}"'
            )
            scope.refuse(message, mention.at)
        if bare is not None and binding is bare and mention.form != "bare":
            what = "an aggregate" if mention.form == "aggregate" else "single events"
            message = f'a condition that names the group "{bare.name}" bare may not name {what} of the same group'
            scope.refuse(message, mention.at)
        if negated is None or binding is negated:
            continue
        if binding.kind == "negated":
            message = f'a condition may name one negated variable only, here both "{negated.name}" and "{binding.name}"'
            scope.refuse(message, mention.at)
        elif binding.kind in ("window", "group") and mention.form != "aggregate":
            message = (
                f'the negated variable "{negated.name}" is compared only with constants, single-event elements and '
                f'aggregates; for "{binding.name}" use first({binding.name}).x, max({binding.name}.x), ...'
            )
            scope.refuse(message, mention.at)
