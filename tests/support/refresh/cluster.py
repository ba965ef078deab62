"""A cluster of Databricks as dbt-databricks sees it through its SQL connector, played by the local Spark session.

The adapter, its macros and its SQL are the real ones; Spark and Delta are those of the open source, so that
this tells nothing of what Databricks itself makes of a statement.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

PROFILE = """
shop:
  target: dev
  outputs:
    dev:
      type: databricks
      host: workspace.invalid
      http_path: sql/protocolv1/o/1/cluster
      token: nobody
      catalog: hive_metastore
      schema: shop
      threads: 1
"""
#: The catalog of the session has another name, and Spark another word for going there.
_OTHERWISE = {"`hive_metastore`": "`spark_catalog`", "USE CATALOG": "SET CATALOG"}
#: Asked for a version, it is an old one: the adapter has statements for newer ones that Spark does not know.
_VERSION = "SET spark.databricks.clusterUsageTags.sparkVersion"


@contextmanager
def cluster(spark: "SparkSession") -> Iterator[None]:
    """Let every connection of dbt-databricks end in a session."""
    metadata = "dbt.adapters.databricks.spog.probe.probe_host"
    with (
        patch("databricks.sql.connect", lambda **_: _Connection(spark)),
        # It asks the host what it is, over the network.
        patch(metadata, lambda host: _HostMetadata()),
    ):
        yield


class _HostMetadata:
    host_type = None
    account_id = None


class _Connection:
    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def cursor(self) -> "_Cursor":
        return _Cursor(self._spark, self)

    def get_session_id_hex(self) -> str:
        return "0"

    def close(self) -> None:
        """Leave the session to the tests that come."""

    def __enter__(self) -> "_Connection":
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Cursor:
    query_id = "0"

    def __init__(self, spark: "SparkSession", connection: _Connection) -> None:
        self._spark = spark
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self._rows: list[Row] = []

    def execute(self, sql: str, parameters: object = None) -> "_Cursor":
        assert not parameters
        if sql.strip() == _VERSION:
            return self._give("select 'version' as key, '15.4.x-scala2.12' as value")
        for theirs, ours in _OTHERWISE.items():
            sql = sql.replace(theirs, ours)
        return self._give(sql)

    def schemas(self, catalog: str, schema: str | None = None) -> "_Cursor":
        like = f" like '{schema}'" if schema else ""
        found = self._spark.sql(f"show schemas{like}").collect()
        return self._list(
            "TABLE_SCHEM string, TABLE_CATALOG string", [(row[0], catalog) for row in found]
        )

    def tables(self, catalog: str, schema: str) -> "_Cursor":
        views = {row.viewName for row in self._spark.sql(f"show views in {schema}").collect()}
        names = [row.tableName for row in self._spark.sql(f"show tables in {schema}").collect()]
        kinds = [(name, "VIEW" if name in views else "TABLE") for name in names]
        return self._list("TABLE_NAME string, TABLE_TYPE string", kinds)

    def fetchall(self) -> "list[Row]":
        rows, self._rows = self._rows, []
        return rows

    def fetchone(self) -> "Row | None":
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int) -> "list[Row]":
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def cancel(self) -> None:
        raise AssertionError("Nothing is to be cancelled.")

    def close(self) -> None:
        self._rows = []

    def __enter__(self) -> "_Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def _list(self, columns: str, rows: list[tuple[str, str]]) -> "_Cursor":
        return self._take(self._spark.createDataFrame(rows, columns))

    def _give(self, sql: str) -> "_Cursor":
        return self._take(self._spark.sql(sql))

    def _take(self, frame: "DataFrame") -> "_Cursor":
        self._rows = frame.collect()
        nothing = (None,) * 5
        self.description = [(name, kind, *nothing) for name, kind in frame.dtypes]
        return self
