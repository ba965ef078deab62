"""The examples of the page of extracts, run one after the other."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PROJECT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = PROJECT / "docs" / "how-to" / "extract_to_bronze.md"


def test_the_examples_of_the_page_extract_each_row(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    for schema in ("shop", "bronze"):
        # Other tests of the process may have left one.
        spark.sql(f"drop schema if exists {schema} cascade")
        spark.sql(f"create schema {schema}")
    spark.sql(
        "create table shop.orders using delta as select id, id * 10 as amount,"
        " timestamp'2026-03-01T06:00:00Z' + make_dt_interval(id) as updated_at from range(3)"
    )
    spark.sql("create table shop.prices using delta as select 1 as id, date'2026-03-01' as day")
    names: dict[str, object] = {"spark": spark}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(example, names)
    reported = capsys.readouterr().out
    found = spark.table("bronze.orders").groupBy("id").count().collect()
    prices = spark.table("bronze.prices").count()
    for schema in ("shop", "bronze"):
        spark.sql(f"drop schema {schema} cascade")

    assert "3 rows since None" in reported
    assert "1 extracts, 1 rows" in reported
    assert f"so far {datetime(2026, 3, 3, 6, tzinfo=UTC)}" in reported
    # The largest value is taken again by each extract; silver of the page drops it.
    assert sorted(tuple(row) for row in found) == [(0, 1), (1, 1), (2, 3)]
    assert prices == 1
