"""The statements for tables of a catalog, by a real Spark."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ProbeFailedError
from harness.platform.sql.session import SessionSql
from harness.sense.catalog_tables import SqlCatalogTables, name_in
from tests.support.sources.catalogs import CATALOG, show_in_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def tables(spark: "SparkSession", spark_home: Path) -> SqlCatalogTables:
    show_in_catalog(spark, spark_home, {("it's", "a`b.c"): 1234, ("shop", "orders"): 5})
    return SqlCatalogTables(SessionSql(lambda: spark))


def test_one_statement_finds_tables_whatever_their_names_contain(
    tables: SqlCatalogTables,
) -> None:
    names = {name_in(CATALOG, "`it's`.`a``b.c`"), name_in(CATALOG, "Shop.Orders")}

    found = tables.described(CATALOG, names | {name_in(CATALOG, "shop.missing")})

    assert set(found) == names
    assert sorted(table.altered_ms for table in found.values()) == [5, 1234]
    assert all(table.asked_ms > 1_700_000_000_000 for table in found.values())


def test_a_catalog_without_an_information_schema_shows_no_table(spark: "SparkSession") -> None:
    spark.sql("drop database if exists information_schema cascade")
    name = name_in(CATALOG, "shop.orders")

    assert SqlCatalogTables(SessionSql(lambda: spark)).described(CATALOG, {name}) == {}


def test_a_catalog_that_is_not_there_is_a_failure_in_one_sentence(spark: "SparkSession") -> None:
    with pytest.raises(
        ProbeFailedError,
        match=r"^the catalog prod-eu does not exist in the workspace; correct sensor_id$",
    ):
        SqlCatalogTables(SessionSql(lambda: spark)).described(
            "prod-eu", {name_in("prod-eu", "s.t")}
        )
