"""One SQL view per query: its matches with the RETURN fields as typed columns.

Enters: checked queries, the table composite_events. Leaves: views named as the queries.
Always holds: a view reads the published table and nothing else. With the lake folder they are temporary views of the
session (a folder has no catalog to keep them) and `hindsight sql` makes them anew; with the setting `catalog` they are
real views of that schema, made by the run that publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cep_core.language.checked import CheckedQuery, Type
from jobs.tables import read, table_exists, table_name
from schemas import COMPOSITE_EVENTS, CONTRACTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.settings import Settings

_SQL_TYPES: dict[Type, str] = {
    "int": "bigint",
    "float": "double",
    "string": "string",
    "bool": "boolean",
    "timestamp": "timestamp",
    "null": "string",
}
_FIXED = ("match_id", "start_ts", "end_ts", "detection_ts", "detection_date", "source")
_TAIL = ("members", "run_id", "query_version")


def make_views(spark: SparkSession, settings: Settings, queries: Mapping[str, CheckedQuery]) -> tuple[str, ...]:
    """A view for each query; their names."""
    if settings.catalog:
        for query_id, query in queries.items():
            source = table_name(settings, COMPOSITE_EVENTS.name)
            spark.sql(f"CREATE OR REPLACE VIEW {settings.catalog}.{_name(query_id)} AS {view_sql(query, source)}")
        return tuple(f"{settings.catalog}.{_name(query_id)}" for query_id in queries)
    make_table_views(spark, settings)
    for query_id, query in queries.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {_name(query_id)} AS {view_sql(query, COMPOSITE_EVENTS.name)}")
    return tuple(queries)


def make_table_views(spark: SparkSession, settings: Settings) -> tuple[str, ...]:
    """Our own tables under their plain names, for SQL over a lake folder; those that exist, and composite_events."""
    names = [n for n in CONTRACTS if n == COMPOSITE_EVENTS.name or table_exists(spark, settings, n)]
    for name in names:
        read(spark, settings, name).createOrReplaceTempView(name)
    return tuple(names)


def view_sql(query: CheckedQuery, source: str) -> str:
    """The SELECT of a query's view.

    A RETURN field that has the name of one of the fixed columns is found as `return_<name>`.
    """
    taken = {*_FIXED, *_TAIL}
    fields = [
        f"{_typed(name, kind)} AS {_name(f'return_{name}' if name in taken else name)}" for name, kind in query.fields
    ]
    columns = ", ".join([*_FIXED, *fields, *_TAIL])
    return f"SELECT {columns} FROM {source} WHERE query_id = {_text(query.query.id)}"


def _typed(name: str, kind: Type) -> str:
    field = f"fields[{_text(name)}]"
    return field if kind in ("string", "null") else f"TRY_CAST({field} AS {_SQL_TYPES[kind]})"


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
