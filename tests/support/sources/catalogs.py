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
_SCHEMA = "of_catalog"


def show_in_catalog(spark: "SparkSession", home: Path, rows: Mapping[tuple[str, str], int]) -> None:
    """Let the information schema show Delta tables.

    It is a view of a file, as the metastore takes longer to replace a view than to read one.

    Args:
        spark: The session.
        home: Where the file is; the same for each call.
        rows: When each table was altered, in milliseconds, by schema and name.
    """
    file = home / "information_schema.txt"
    lines = [f"{altered}\t{schema}\t{table}\n" for (schema, table), altered in rows.items()]
    file.write_text("".join(lines))
    if not spark.catalog.databaseExists("information_schema"):
        spark.sql("create database information_schema")
        spark.sql(
            "create view information_schema.tables as select columns[1] as table_schema,"
            " columns[2] as table_name, 'MANAGED' as table_type, 'DELTA' as data_source_format,"
            " timestamp_millis(cast(columns[0] as bigint)) as last_altered"
            f" from (select split(value, '\t') as columns from text.`{file}`)"
        )


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
        self._home: Path = request.getfixturevalue("spark_home")
        self._surroundings = ProbeServices(
            session=lambda: self._spark, trigger_files_root=str(root), catalog=CATALOG
        )
        self._rows = 0
        self._table = f"orders_{uuid4().hex[:8]}"
        self._name = f"{_SCHEMA}.{self._table}"
        self._folder = self._home / "warehouse" / f"{_SCHEMA}.db" / self._table
        self.sensor_id = f"{CATALOG}.{self._name}"
        self.missing_id = f"{CATALOG}.{_SCHEMA}.missing"

    def probe(self) -> Probe:
        return known_sources().probes(self._surroundings)[self.source]

    def create(self) -> None:
        self._spark.sql(f"create database if not exists {_SCHEMA}")
        self._spark.sql(f"create table {self._name} (id bigint) using delta")
        self._alter()

    def add(self) -> None:
        self._rows += 1
        rows = pa.table({"id": pa.array([self._rows], pa.int64())})
        write_deltalake(self._folder, rows, mode="append")
        self._alter()

    def take_away(self) -> None:
        show_in_catalog(self._spark, self._home, {})
        self._spark.sql(f"alter table {self._name} rename to {self._name}_elsewhere")

    def bring_back(self) -> None:
        self._spark.sql(f"alter table {self._name}_elsewhere rename to {self._name}")
        self._alter()

    def _alter(self) -> None:
        # A change of this very moment would be read once more.
        at = round(time.time() * 1000) - 3000
        show_in_catalog(self._spark, self._home, {(_SCHEMA, self._table): at})
