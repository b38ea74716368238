"""Queries that say the same of other classes: of such a family the first is parsed and checked, the others follow.

Enters: the texts of a set. Leaves: which of them are like an earlier one, and their `CheckedQuery` made from its own.
Always holds: two texts of a family are the same but for their classes and for the number in the outermost WITHIN. A
class that is replaced stands once in its text and names nothing else there; both classes declare the same, and neither
is the id of a query. So whatever the checker says of the one holds for the other, and a text that it would refuse is
like none that it allows. Places (`at`) are those of the first; they never take part in what a query means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cep_core.language.algebra import Element, Pattern, Query, TimerAfter, TimerAt, TimerEvery
from cep_core.language.checked import CheckedQuery, Schema
from cep_core.language.scope import leaves
from cep_core.language.times import duration_us
from cep_core.language.tokens import RESERVED

_WORD = re.compile(r"(\w+)")
_MOST_FORMS = 16  # of one arrangement of words; beyond, texts differ in more than classes


@dataclass(frozen=True)
class Like:
    """A text that is like that of `first`: its own class for each of the other's, and its WITHIN."""

    first: str
    classes: dict[str, str]
    within_us: int | None


@dataclass(frozen=True)
class _Form:
    """The words of a text, empty where its classes stand (`holes`) and the number of its WITHIN (`number`)."""

    first: str
    words: list[str]
    classes: tuple[str, ...]
    holes: tuple[int, ...]
    number: int | None
    within_us: int | None


class Families:
    """The families of one set of queries, while its texts are read in order."""

    def __init__(self, schema: Schema | None, ids: Mapping[str, object]) -> None:
        self.schema, self.ids = schema, ids
        self.forms: dict[tuple[str, ...], list[_Form]] = {}

    def like(self, text: str) -> Like | None:
        """Which earlier text this one is like."""
        pieces = _WORD.split(text)
        words = pieces[1::2]
        for form in self.forms.get(tuple(pieces[::2]), ()):
            found = self._fit(form, words)
            if found is not None:
                return found
        return None

    def add(self, text: str, query: Query) -> None:
        """A text that is like no earlier one."""
        pieces = _WORD.split(text)
        words = pieces[1::2]
        forms = self.forms.setdefault(tuple(pieces[::2]), [])
        classes = tuple(name for node, _ in leaves(query.pattern) if isinstance(node, Element) for name in node.classes)
        if len(forms) == _MOST_FORMS or any(not self._replaceable(name, words) for name in classes):
            return
        holes = tuple(words.index(name) for name in classes)
        number = None
        within = [place for place, word in enumerate(words) if word.upper() == "WITHIN"]
        if query.within_us is not None and len(within) == 1 and _is_number(words[within[0] + 1]):
            number = within[0] + 1
        forms.append(_Form(query.id, _blank(words, holes, number), classes, holes, number, query.within_us))

    def _fit(self, form: _Form, words: list[str]) -> Like | None:
        if form.words != _blank(words, form.holes, form.number):
            return None
        classes = dict(zip(form.classes, [words[place] for place in form.holes], strict=True))
        for theirs, own in classes.items():
            if not self._replaceable(own, words):
                return None
            if self.schema is not None:
                declared = self.schema.get(own)
                if declared is not self.schema[theirs] and declared != self.schema[theirs]:
                    return None
        within_us = form.within_us
        if form.number is not None:
            if not _is_number(words[form.number]):
                return None
            within_us = duration_us(words[form.number], words[form.number + 1])
            if within_us is None:
                return None
        return Like(form.first, classes, within_us)

    def _replaceable(self, name: str, words: list[str]) -> bool:
        """Whether the class is one word of the text that is nothing else."""
        plain = words.count(name) == 1 and not name[0].isdigit() and name.upper() not in RESERVED
        return plain and name not in self.ids and (self.schema is None or name in self.schema)


def made_like(first: CheckedQuery, id: str, like: Like) -> CheckedQuery:
    """The first query of a family with another's id, classes and WITHIN."""
    own = like.classes
    old = first.query
    query = Query(
        id, _with_classes(old.pattern, own), old.where, like.within_us, old.select, old.consume, old.ties, old.returns,
        old.at,
    )  # fmt: skip
    return CheckedQuery(
        query, first.key, first.key_values, first.disjuncts, first.chains, first.refers_to, first.postponed,
        first.fields, frozenset([(own[name], attribute) for name, attribute in first.attributes]), first.version,
        first.warnings,
    )  # fmt: skip


def _with_classes(pattern: Pattern, own: Mapping[str, str]) -> Pattern:
    match pattern:
        case Element():
            return Element(
                tuple([own[name] for name in pattern.classes]), pattern.variable, pattern.filter, pattern.quantity,
                pattern.negated, pattern.position, pattern.at,
            )  # fmt: skip
        case TimerAt() | TimerEvery():
            return pattern
        case TimerAfter():
            return replace(pattern, part=_with_classes(pattern.part, own))
        case _:
            parts = tuple([_with_classes(part, own) for part in pattern.parts])
            return type(pattern)(parts, pattern.within_us, pattern.at)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _blank(words: list[str], holes: tuple[int, ...], number: int | None) -> list[str]:
    blank = words.copy()
    for place in holes:
        blank[place] = ""
    if number is not None:
        blank[number] = ""
    return blank
