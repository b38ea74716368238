"""The queries of a run: loaded, checked against the declarations, and chosen.

Enters: settings, and the ids asked for. Leaves: `Workload`: declarations, checked queries and the targets' versions.
Always holds: every query of the catalogue is checked, also those that are not asked for: references may lead to any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cep_core.errors import QueryError
from cep_core.language import check, load_catalogue
from cep_core.language.checked import CheckedQuery, Schema
from jobs.declarations import Declarations, load_declarations
from jobs.keys import classes
from jobs.names import did_you_mean
from jobs.reach import closure
from jobs.settings import Settings


@dataclass(frozen=True)
class Workload:
    """versions: id -> version of the queries to mine (the targets); checked and texts hold all of the catalogue.
    limits: id -> most answers per partition, of the queries that have a limit of their own."""

    declarations: Declarations
    schema: Schema
    texts: dict[str, str]
    checked: dict[str, CheckedQuery]
    versions: dict[str, str]
    limits: dict[str, int] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        """The declared classes that the targets and all they refer to read."""
        read = {c for name in closure(self.versions, self.checked) for c in classes(self.checked[name])}
        return tuple(sorted(read - self.checked.keys()))

    def shape(self, names: Iterable[str]) -> tuple[bool, bool]:
        """(all events of these classes are points, some have a tie column)."""
        wanted = set(names)
        sources = [s for s in self.declarations.sources if wanted & {c.name for c in s.classes}]
        return all(s.start == s.end for s in sources), any(s.tie is not None for s in sources)


def load_workload(settings: Settings, asked: Iterable[str] | None = None) -> Workload:
    """All enabled queries of the catalogue as targets, or those asked for."""
    declarations = load_declarations(settings.path(settings.events))
    entries = load_catalogue(settings.path(settings.queries))
    texts = {entry.id: entry.query for entry in entries}
    schema = declarations.schema()
    checked = check({entry.id: entry for entry in entries}, schema)
    if asked is None:
        targets = [entry.id for entry in entries if entry.enabled]
    else:
        targets = list(asked)
        for name in targets:
            if name not in checked:
                raise QueryError(f"there is no query {name!r} in {settings.queries}{did_you_mean(name, checked)}")
    versions = {name: checked[name].version for name in sorted(targets)}
    limits = {entry.id: entry.limit for entry in entries if entry.limit is not None}
    return Workload(declarations, schema, texts, checked, versions, limits)
