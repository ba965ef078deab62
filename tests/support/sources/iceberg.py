"""Iceberg tables that Spark writes, in a catalog that is a folder and in one that is a database."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.connections import Connections
from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from tests.support.services.databases import Writer
from tests.support.services.iceberg import Lake, NoIcebergError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _IcebergTable:
    """A table with rows."""

    source = "iceberg_table"
    sensor_id, missing_id = "lake.sales.orders", "lake.sales.missing"
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, spark: "SparkSession", known: dict[str, str], lake: Lake) -> None:
        self.options: dict[str, str] = {}
        self._spark = spark
        self._known = known
        self._lake = lake
        self._table = f"{lake.name}.sales.orders"
        self._rows = 0

    def probe(self) -> Probe:
        services = ProbeServices(
            session=lambda: self._spark,
            trigger_files_root="",
            connections=Connections.model_validate({"iceberg": {"lake": self._known}}),
        )
        return known_sources().probes(services)[self.source]

    def create(self) -> None:
        self._lake.sql(f"create table {self._table} (id bigint) using iceberg")

    def add(self) -> None:
        self._rows += 1
        self._lake.sql(f"insert into {self._table} values ({self._rows})")


class WarehouseTable(_IcebergTable):
    """One in a catalog of type hadoop."""

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        spark, settings = request.getfixturevalue("spark"), {"warehouse": str(root)}
        super().__init__(spark, settings, lake_of(spark, {**settings, "type": "hadoop"}, "lake"))
        self._folder = root / "sales" / "orders"
        self._elsewhere = root / "elsewhere"

    def take_away(self) -> None:
        self._folder.rename(self._elsewhere)

    def bring_back(self) -> None:
        self._elsewhere.rename(self._folder)


class CatalogTable(_IcebergTable):
    """One in a catalog of type jdbc, in PostgreSQL."""

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        spark = request.getfixturevalue("spark")
        url = request.getfixturevalue("postgres_of_spark").url
        # Iceberg reads Java's own list of drivers, in which Spark puts those that came later.
        drivers = spark._jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
        drivers.register("org.postgresql.Driver")
        # All catalogs of a database share one table.
        name = f"lake{time.monotonic_ns()}"
        written = {
            "type": "jdbc",
            "uri": url,
            "warehouse": str(root),
            "jdbc.schema-version": "V1",
        }
        super().__init__(spark, {"url": url, "catalog_name": name}, lake_of(spark, written, name))
        self._writer = Writer(url)

    def create(self) -> None:
        self._lake.sql(f"create namespace {self._lake.name}.sales")
        super().create()

    def take_away(self) -> None:
        self._rename("orders", "elsewhere")

    def bring_back(self) -> None:
        self._rename("elsewhere", "orders")

    def _rename(self, name: str, other: str) -> None:
        self._writer.run(
            f"update iceberg_tables set table_name = '{other}'"
            f" where table_name = '{name}' and catalog_name = '{self._lake.name}'"
        )


def lake_of(spark: "SparkSession", settings: dict[str, str], name: str) -> Lake:
    """Return a catalog, or skip the test that requests it."""
    try:
        return Lake(spark, settings, name=name)
    except NoIcebergError as error:
        pytest.skip(str(error))
