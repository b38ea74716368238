"""What the checker hands on: a query that is known to be allowed, with everything that follows from its text.

Enters: nothing. Leaves: `CheckedQuery`, the only form of a query that plan/ and engine/ read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from cep_core.language.algebra import Atom, Constant, Query

Type = OneOf["int", "float", "string", "bool", "timestamp", "null"]

# Attributes that every event has, whatever its class declares. `source` may be declared with another type.
BUILTIN: dict[str, Type] = {
    "event_id": "string",
    "event_class": "string",
    "start_ts": "timestamp",
    "end_ts": "timestamp",
    "ts": "timestamp",
    "source": "string",
}

# class -> attribute -> type: what each class declares (without BUILTIN, except a `source` of another type)
Schema = dict[str, dict[str, Type]]


@dataclass(frozen=True, slots=True)
class Chain:
    """A set of elements whose attributes are all equal in every disjunct: `a.id = b.id AND b.id = c.ref`.

    `terms` are (variable, attribute) pairs, in pattern order. `whole` says that every element of the query takes part,
    negated and grouped ones too: then the query can be distributed by it.
    """

    terms: tuple[tuple[str, str], ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that the contract allows.

    key: the attributes of its equivalence tests, in the order written; key_values: the value each requires, or None.
    disjuncts: WHERE without its equivalence tests, in disjunctive normal form, NOT pushed down to the atoms (flipped
        comparisons and `negated` flags; no Not is left, inside FORALL bodies and element filters too). No WHERE: ((),).
    chains: equalities that hold over several elements in every disjunct.
    refers_to: ids of the queries whose matches it reads. postponed: its detection is (language contract, Matches).
    fields: RETURN names with their types. attributes: every (class, attribute) that it reads, BUILTIN ones left out.
    version: 16 hex digits over the canonical text of the query and of all that it refers to.
    """

    query: Query
    key: tuple[str, ...]
    key_values: tuple[Constant | None, ...]
    disjuncts: tuple[tuple[Atom, ...], ...]
    chains: tuple[Chain, ...]
    refers_to: tuple[str, ...]
    postponed: bool
    fields: tuple[tuple[str, Type], ...]
    attributes: frozenset[tuple[str, str]]
    version: str
    warnings: tuple[str, ...] = ()
