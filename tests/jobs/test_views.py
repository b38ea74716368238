"""Views: a query's RETURN fields as typed columns; and SQL statements as the command line runs them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cep_core.errors import QueryError
from cep_core.language import check, parse
from cep_core.language.checked import CheckedQuery
from jobs import tables
from jobs.commands.sql import execute, statements
from jobs.settings import Settings
from jobs.views import make_views, view_sql
from schemas import COMPOSITE_EVENTS

TEXT = """
PATTERN SEQ(Shelf s, Exit e) WHERE [source] WITHIN 1 hour
RETURN s.mid AS mid, e.weight AS weight, s.name AS run_id
"""


@pytest.fixture(scope="module")
def queries() -> dict[str, CheckedQuery]:
    schema: Any = {
        "Shelf": {"mid": "int", "name": "string", "weight": "float"},
        "Exit": {"mid": "int", "name": "string", "weight": "float"},
    }
    return check({name: parse(TEXT, name) for name in ("it's", "other")}, schema)


def publish(spark: Any, settings: Settings, query_id: str, fields: str, number: int) -> None:
    member = "named_struct('element','s','event_class','Shelf','event_id','1','start_ts',t,'end_ts',t)"
    row = spark.sql(
        f"""SELECT "{query_id}" AS query_id, lpad('{number}', 32, '0') AS match_id, t AS start_ts, t AS end_ts,
        t AS detection_ts, CAST(t AS date) AS detection_date, array({member}) AS members, {fields} AS fields,
        'tag' AS source, 'run' AS run_id, 'v' AS query_version, map('readings', 1L) AS input_versions
        FROM (SELECT timestamp'2026-01-01 10:00:00' AS t)"""
    )
    tables.append(spark, settings, COMPOSITE_EVENTS, row)


def test_a_view_has_its_own_matches_with_typed_fields(
    spark: Any, lake: Settings, queries: dict[str, CheckedQuery]
) -> None:
    publish(spark, lake, "it's", "map('mid','7','weight','2.5','run_id','bread')", 1)
    publish(spark, lake, "it's", "map('mid','8')", 2)
    publish(spark, lake, "other", "map('mid','9')", 3)
    assert make_views(spark, lake, queries) == ("it's", "other")
    view = spark.sql("SELECT * FROM `it's`")
    types = {field.name: field.dataType.simpleString() for field in view.schema}
    assert (types["mid"], types["weight"], types["return_run_id"]) == ("bigint", "double", "string")
    assert types["detection_ts"] == "timestamp"
    found = view.orderBy("mid").selectExpr("mid", "weight", "return_run_id", "source").collect()
    assert [tuple(row) for row in found] == [(7, 2.5, "bread", "tag"), (8, None, None, "tag")]


def test_views_of_a_lake_without_matches_are_empty(
    spark: Any, lake: Settings, queries: dict[str, CheckedQuery]
) -> None:
    make_views(spark, lake, queries)
    assert spark.sql("SELECT mid FROM other").collect() == []


def test_views_are_kept_by_a_catalog(spark: Any, lake: Settings, queries: dict[str, CheckedQuery]) -> None:
    named = replace(lake, catalog="cep_views")
    try:
        publish(spark, named, "other", "map('mid','9')", 3)
        make_views(spark, named, {"other": queries["other"]})
        assert spark.sql("SHOW VIEWS IN cep_views").collect()[0].isTemporary is False
        assert [row.mid for row in spark.sql("SELECT mid FROM cep_views.other").collect()] == [9]
    finally:
        spark.sql("DROP SCHEMA IF EXISTS cep_views CASCADE")


@pytest.mark.core
def test_the_text_of_a_view(queries: dict[str, CheckedQuery]) -> None:
    assert view_sql(queries["it's"], "t") == (
        "SELECT match_id, start_ts, end_ts, detection_ts, detection_date, source, "
        "TRY_CAST(fields['mid'] AS bigint) AS `mid`, TRY_CAST(fields['weight'] AS double) AS `weight`, "
        "fields['run_id'] AS `return_run_id`, members, run_id, query_version FROM t WHERE query_id = 'it\\'s'"
    )


@pytest.mark.core
def test_statements_are_cut_outside_quotes_and_comments() -> None:
    assert statements("SELECT ';' ; SELECT `a;b` /* ; */; -- ; \nSELECT 'it\\';s';;") == [
        "SELECT ';'",
        "SELECT `a;b` /* ; */",
        "-- ; \nSELECT 'it\\';s'",
    ]


def test_results_as_table_csv_and_json(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT 1 AS n, 'x' AS text, array(1, 2) AS list, map('k', null) AS m"
    execute(spark, sql, "table", 10)
    assert capsys.readouterr().out == "n  text  list    m\n-  ----  ------  ---------\n1  x     [1, 2]  {k: NULL}\n"
    execute(spark, sql, "csv", 10)
    assert capsys.readouterr().out == 'n,text,list,m\n1,x,"[1, 2]",{k: NULL}\n'
    execute(spark, "SELECT 1 AS n", "json", 10)
    assert capsys.readouterr().out == '{"n":1}\n'


def test_a_cut_result_says_so(spark: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="hindsight"):
        execute(spark, "SELECT id FROM range(5)", "table", 2)
    assert capsys.readouterr().out.splitlines()[2:] == ["0", "1"]
    assert "2 rows; more were left out" in caplog.text


def test_what_spark_refuses_is_one_message(spark: Any) -> None:
    with pytest.raises(QueryError, match=r"Spark refuses the statement: .*nowhere"):
        execute(spark, "SELECT * FROM nowhere", "table", 10)
