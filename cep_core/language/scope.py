"""What the names of one query stand for.

Enters: a query's pattern and what each class declares. Leaves: a `Scope`: its elements, variables and attributes.
Always holds: `declared` maps a class to all attributes of its events, BUILTIN ones too, or to None where they are not
known (no schema, or a reference to a query that is itself refused): then any attribute is accepted, its type unknown,
which the type "null" stands for. Problems are collected, never raised, so that one look finds all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from cep_core.language.algebra import (
    At,
    Element,
    Group,
    Or,
    Pattern,
    Timer,
    TimerAfter,
    TimerAt,
    TimerEvery,
    Window,
)
from cep_core.language.checked import Type
from cep_core.language.problems import Problem, did_you_mean

Declared = Mapping[str, Mapping[str, Type] | None]
Kind = OneOf["one", "window", "group", "negated", "timer"]

# A timer is a member like an event, but no row of any table: it has an id and a moment.
TIMER: dict[str, Type] = {"event_id": "string", "start_ts": "timestamp", "end_ts": "timestamp", "ts": "timestamp"}


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable: the element or timer it names. `optional` says that some choice of an OR leaves it unbound."""

    name: str
    kind: Kind
    node: Element | Timer
    optional: bool


@dataclass(slots=True)
class Scope:
    """The names of one query, and the problems found with it so far."""

    declared: Declared
    elements: list[Element] = field(default_factory=list)
    bindings: dict[str, Binding] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    reads: set[tuple[str, str]] = field(default_factory=set)

    def refuse(self, message: str, at: At) -> None:
        problem = Problem(message, at)
        if problem not in self.problems:
            self.problems.append(problem)

    def binding(self, variable: str, at: At) -> Binding | None:
        """The variable's binding; an unknown one is a problem."""
        found = self.bindings.get(variable)
        if found is None:
            known = ", ".join(self.bindings) or "none; give the elements names, such as A a"
            tail = did_you_mean(variable, self.bindings) or f"; the variables are: {known}"
            self.refuse(f'unknown variable "{variable}"{tail}', at)
        return found

    def attribute(self, node: Element | Timer, name: str, at: At, everywhere: bool = False) -> Type:
        """The type of an attribute of an element: one of its classes must declare it (with `everywhere`, each)."""
        if not isinstance(node, Element):
            if name not in TIMER:
                self.refuse(f'a timer has no attribute "{name}"; it has {", ".join(TIMER)}', at)
            return TIMER.get(name, "null")
        result: Type | None = None
        missing: list[str] = []
        for each in node.classes:
            declared = self.declared.get(each)
            if declared is not None and name not in declared:
                missing.append(each)
                continue
            self.reads.add((each, name))
            found = "null" if declared is None else declared[name]
            joined = found if result is None else join(result, found)
            if joined is None:
                self.refuse(f'attribute "{name}" is {result} in some and {found} in other classes of this element', at)
                return "null"
            result = joined
        if missing and (everywhere or result is None):
            self.refuse_attribute(missing, name, at)
        return "null" if result is None else result

    def refuse_attribute(self, classes: list[str], name: str, at: At) -> None:
        known = sorted({known for each in classes for known in self.declared.get(each) or ()})
        tail = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        who = f"class {classes[0]} has" if len(classes) == 1 else f"the classes {', '.join(classes)} have"
        self.refuse(f'{who} no attribute "{name}"{tail}', at)

    def lacking(self, classes: Iterable[str], name: str) -> list[str]:
        """The classes that are known not to have an attribute, each once."""
        known = ((each, self.declared.get(each)) for each in dict.fromkeys(classes))
        return [each for each, declared in known if declared is not None and name not in declared]

    def everywhere(self, binding: Binding, name: str) -> bool:
        """True where every event that the variable can be bound to has the attribute, and it is always bound."""
        node = binding.node
        if binding.optional or not isinstance(node, Element):
            return not binding.optional
        return not self.lacking(node.classes, name)


def join(left: Type, right: Type) -> Type | None:
    """The type that holds both, or None. "null" (NULL, or not known) goes with every type."""
    if left == right or right == "null":
        return left
    if left == "null":
        return right
    return "float" if {left, right} == {"int", "float"} else None


def build_scope(pattern: Pattern, declared: Declared) -> Scope:
    """The names of a pattern; a variable that stands twice, or that could be taken for a position, is a problem."""
    scope = Scope(declared)
    for node, optional in leaves(pattern, False):
        if isinstance(node, Element):
            scope.elements.append(node)
        variable = node.variable
        if variable is None:
            continue
        if variable in scope.bindings:
            scope.refuse(f'the variable "{variable}" stands twice; every element needs a name of its own', node.at)
        elif variable.isdigit():
            scope.refuse("a variable may not be a number: elements without one are called by their position", node.at)
        else:
            scope.bindings[variable] = Binding(variable, _kind(node), node, optional)
    return scope


def _kind(node: Element | Timer) -> Kind:
    if not isinstance(node, Element):
        return "timer"
    if node.negated:
        return "negated"
    return "group" if isinstance(node.quantity, Group) else "window" if isinstance(node.quantity, Window) else "one"


def leaves(pattern: Pattern, optional: bool = False) -> Iterator[tuple[Element | Timer, bool]]:
    """The elements and timers in reading order, each with whether it stands under an OR."""
    match pattern:
        case Element() | TimerAt() | TimerEvery():
            yield pattern, optional
        case TimerAfter():
            yield from leaves(pattern.part, optional)
            yield pattern, optional
        case _:
            inside = optional or (isinstance(pattern, Or) and len(pattern.parts) > 1)
            for part in pattern.parts:
                yield from leaves(part, inside)
