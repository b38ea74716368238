"""The keys of a query: its equivalence tests, and the equalities that chain over its elements.

Enters: a query, its disjuncts and its scope. Leaves: the key attributes with their values, and `Chain` values.
Always holds: a chain's terms are equal and not null in every answer. So an equality counts only where it cannot be true
for want of an attribute (ANY) or of a bound variable (OR), and only between values of one type. What is said about a
negated variable, or about a group that may be empty, says nothing of the other elements: such a term hangs on a chain
but never links two of its parts.
"""

from __future__ import annotations

from cep_core.language.algebra import (
    All,
    Atom,
    Attribute,
    Compare,
    Condition,
    Constant,
    Either,
    Element,
    Equivalence,
    Forall,
    Group,
    Not,
    Query,
)
from cep_core.language.checked import Chain, Type
from cep_core.language.scope import Binding, Scope, join
from cep_core.language.types import fits

Key = tuple[tuple[str, ...], tuple[Constant | None, ...]]
Term = tuple[str, str]


def check_key(query: Query, scope: Scope) -> Key:
    """The attributes of the equivalence tests in the order written, and the required value of each or None."""
    if query.where is None:
        return (), ()
    top = query.where.conditions if isinstance(query.where, All) else (query.where,)
    found: dict[str, Constant | None] = {}
    for condition in top:
        if not isinstance(condition, Equivalence):
            _refuse_inside(condition, scope)
            continue
        for name, value in condition.terms:
            kind = _key_type(name, condition, scope)
            if value is not None:
                why = "an equivalence test with NULL never holds" if value.value is None else fits(value, kind)
                if why is not None:
                    scope.refuse(why, value.at)
                earlier = found.get(name)
                if earlier is not None and earlier != value:
                    scope.refuse(f"[{name}] is required to have two different values", value.at)
            found[name] = value if value is not None else found.get(name)
    return tuple(found), tuple(found.values())


def _key_type(name: str, condition: Equivalence, scope: Scope) -> Type:
    kind: Type = "null"
    lacking = scope.lacking([each for element in scope.elements for each in element.classes], name)
    if lacking:
        scope.refuse_attribute(lacking, name, condition.at)
        return kind
    for element in scope.elements:
        found = scope.attribute(element, name, condition.at)
        joined = join(kind, found)
        if joined is None:
            message = f"[{name}] compares the {kind} of some classes with the {found} of {' or '.join(element.classes)}"
            scope.refuse(message, condition.at)
        kind = joined or "null"
    return kind


def _refuse_inside(condition: Condition, scope: Scope) -> None:
    match condition:
        case Equivalence():
            scope.refuse("an equivalence test [attribute] stands only as a top-level AND term of WHERE", condition.at)
        case All() | Either():
            for part in condition.conditions:
                _refuse_inside(part, scope)
        case Not():
            _refuse_inside(condition.condition, scope)
        case Forall():
            _refuse_inside(condition.body, scope)
        case _:
            pass


def refuse_in_filters(scope: Scope) -> None:
    """An element's own filter has no equivalence test."""
    for element in scope.elements:
        if element.filter is not None:
            _refuse_inside(element.filter, scope)


def find_chains(disjuncts: tuple[tuple[Atom, ...], ...], scope: Scope) -> tuple[Chain, ...]:
    """The equalities that hold in every disjunct, as sets of terms."""
    links = [_links(atoms, scope) for atoms in disjuncts]
    if not all(links):
        return ()
    order = {variable: number for number, variable in enumerate(scope.bindings)}
    parts = [_partition([link for link in each if not _hangs(link, scope)]) for each in links]
    # Terms are equal in every disjunct when they share their part in each.
    together: dict[tuple[Term, ...], set[Term]] = {}
    for term in parts[0]:
        if all(term in part for part in parts):
            together.setdefault(tuple(part[term] for part in parts), set()).add(term)
    classes = [terms for terms in together.values() if len(terms) > 1]
    common = set(links[0]).intersection(*links[1:])
    hanging = [_hung(link, scope) for link in common if _hangs(link, scope)]
    anchors = {anchor for _, anchor in hanging if not any(anchor in terms for terms in classes)}
    classes += [{anchor} for anchor in anchors]
    chains = []
    for terms in classes:
        whole = terms | {loose for loose, anchor in hanging if anchor in terms}
        if len({variable for variable, _ in whole}) > 1:
            chains.append(tuple(sorted(whole, key=lambda term: (order[term[0]], term[1]))))
    named = {element.variable for element in scope.elements}
    chains.sort(key=lambda terms: [(order[variable], name) for variable, name in terms])
    return tuple(Chain(terms, named == {variable for variable, _ in terms}) for terms in chains)


def _links(atoms: tuple[Atom, ...], scope: Scope) -> list[tuple[Term, Term]]:
    """The equalities between two elements' attributes, each with its terms in one fixed order."""
    found = []
    for atom in atoms:
        if not (isinstance(atom, Compare) and atom.operator == "="):
            continue
        left, right = _term(atom.left, scope), _term(atom.right, scope)
        if left is None or right is None or left[0] == right[0]:
            continue
        types = [scope.attribute(scope.bindings[variable].node, name, atom.at) for variable, name in (left, right)]
        if types[0] == types[1]:
            found.append((min(left, right), max(left, right)))
    return found


def _term(value: object, scope: Scope) -> Term | None:
    if not isinstance(value, Attribute) or value.variable is None or value.index is not None:
        return None
    binding = scope.bindings.get(value.variable)
    if binding is None or binding.kind == "timer" or not scope.everywhere(binding, value.name):
        return None
    return value.variable, value.name


def _loose(binding: Binding) -> bool:
    node = binding.node
    return isinstance(node, Element) and (node.negated or (isinstance(node.quantity, Group) and node.quantity.low == 0))


def _hangs(link: tuple[Term, Term], scope: Scope) -> bool:
    return any(_loose(scope.bindings[variable]) for variable, _ in link)


def _hung(link: tuple[Term, Term], scope: Scope) -> tuple[Term, Term]:
    """The loose term first, then the term it hangs on."""
    left, right = link
    return (left, right) if _loose(scope.bindings[left[0]]) else (right, left)


def _partition(links: list[tuple[Term, Term]]) -> dict[Term, Term]:
    """Each linked term with the first term of its part."""
    parent: dict[Term, Term] = {}

    def root(term: Term) -> Term:
        while parent.setdefault(term, term) != term:
            term = parent[term]
        return term

    for left, right in links:
        a, b = root(left), root(right)
        parent[max(a, b)] = min(a, b)
    return {term: root(term) for term in list(parent)}
