"""What a table contract is.

Enters: nothing. Leaves: `Column` and `Contract`, frozen values; jobs/tables.py makes Delta tables of them, and
jobs/quality.py expectations. No Spark here: types are Spark SQL's names.
Always holds: a contract only grows. A column is added at the end and is nullable, so tables made before still fit;
nothing is renamed, retyped or dropped.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """`type` as Spark SQL writes it, in lower case. `required` is NOT NULL in the table."""

    name: str
    type: str
    doc: str
    required: bool = False


@dataclass(frozen=True)
class Constraint:
    """A Delta CHECK constraint: `condition` holds for every row."""

    name: str
    condition: str


@dataclass(frozen=True)
class Contract:
    """One table. `key` are the columns that identify a row; `partition_by` those that its files are cut by; `skip_by`
    those whose least and greatest value each file has, so that readers skip files (none: Delta's choice)."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    skip_by: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The columns as a schema that Spark reads: `a string, b bigint`."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")
