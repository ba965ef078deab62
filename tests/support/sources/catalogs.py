"""A Delta table of a workspace's catalog, on a Spark that has no such catalog.

The tables, the statements and the history are Spark's own; what stands in is the information
schema, a view in a schema of that name.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "spark_catalog"


def show_in_catalog(spark: "SparkSession", rows: Mapping[tuple[str, str], str]) -> None:
    """Let the information schema show tables, by schema and name, with the SQL of their time."""
    spark.sql("create database if not exists information_schema")
    shown = [
        f"select '{schema}' as table_schema, '{table}' as table_name, 'MANAGED' as table_type,"
        f" 'DELTA' as data_source_format, {altered} as last_altered"
        for (schema, table), altered in rows.items()
    ]
    spark.sql(f"create or replace view information_schema.tables as {' union all '.join(shown)}")


class DeltaTableOfCatalog:
    """A Delta table that is sensed by its name of three parts."""

    source = "delta_table"
    options: Mapping[str, str] = {}
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        self._spark: SparkSession = request.getfixturevalue("spark")
        home: Path = request.getfixturevalue("spark_home")
        self._surroundings = ProbeServices(
            session=lambda: self._spark, trigger_files_root=str(root), catalog=CATALOG
        )
        self._rows = 0
        self._schema, self._table = f"of_{uuid4().hex[:8]}", "orders"
        self._name = f"{self._schema}.{self._table}"
        self._folder = home / "warehouse" / f"{self._schema}.db" / self._table
        self.sensor_id = f"{CATALOG}.{self._name}"
        self.missing_id = f"{CATALOG}.{self._schema}.missing"
        request.addfinalizer(self._remove)

    def probe(self) -> Probe:
        return known_sources().probes(self._surroundings)[self.source]

    def create(self) -> None:
        self._spark.sql(f"create database {self._schema}")
        self._spark.sql(f"create table {self._name} (id bigint) using delta")
        self._alter()

    def add(self) -> None:
        self._rows += 1
        rows = pa.table({"id": pa.array([self._rows], pa.int64())})
        write_deltalake(self._folder, rows, mode="append")
        self._alter()

    def take_away(self) -> None:
        show_in_catalog(self._spark, {("no", "table"): "timestamp_millis(0)"})
        self._spark.sql(f"alter table {self._name} rename to {self._schema}.elsewhere")

    def bring_back(self) -> None:
        self._spark.sql(f"alter table {self._schema}.elsewhere rename to {self._name}")
        self._alter()

    def _alter(self) -> None:
        # A change of this very moment would be read once more.
        at = round(time.time() * 1000) - 3000
        show_in_catalog(self._spark, {(self._schema, self._table): f"timestamp_millis({at})"})

    def _remove(self) -> None:
        self._spark.sql(f"drop database if exists {self._schema} cascade")
        self._spark.sql("drop database if exists information_schema cascade")
