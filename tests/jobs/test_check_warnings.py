"""`hindsight check` warns of a window that is longer than the history of the table behind it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.commands import check
from jobs.declarations import load_declarations
from jobs.ranges import histories
from tests.jobs.shop import make_shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {
    "short": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 20 s",
    "long": "PATTERN SEQ(A a, B b) WHERE [source] WITHIN 1 hour",
}


def test_a_window_longer_than_the_table_s_history(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = make_shop(spark, tmp_path, events=20, span_s=90, queries=QUERIES)
    span = max(row[4] for row in shop.rows) - min(row[3] for row in shop.rows)
    declarations = load_declarations(shop.settings.path(shop.settings.events))
    assert histories(spark, shop.settings, declarations) == dict.fromkeys("ABC", span)

    @contextmanager
    def running(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(check, "running_spark", running)
    assert check.run(Namespace(no_tables=False), shop.settings) == 0
    shown = capsys.readouterr().out
    assert f"warning  long: WITHIN 1 hour is longer than the history of A, {span // 1_000_000} s" in shown
    assert "warning  short" not in shown


def test_an_empty_table_has_no_history(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(spark, tmp_path, events=1, queries=QUERIES)
    schema = spark.read.format("delta").load(str(tmp_path / "lake/raw")).schema
    spark.createDataFrame([], schema).write.format("delta").mode("overwrite").save(str(tmp_path / "lake/raw"))
    declarations = load_declarations(shop.settings.path(shop.settings.events))
    assert histories(spark, shop.settings, declarations) == {}
