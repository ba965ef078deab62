"""A catalog of Iceberg tables in a Spark session of its own, with Iceberg's own runtime."""

from typing import TYPE_CHECKING, Any

from harness.errors import ProbeFailedError
from harness.sense.sources.iceberg.new_rows import need_runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoIcebergError(Exception):
    """Iceberg's runtime cannot be had here."""


class Lake:
    """What others write: tables of one catalog.

    Args:
        spark: Any session of the process.
        settings: Of the catalog, as Iceberg calls them.
        name: Of the catalog.
    """

    def __init__(
        self, spark: "SparkSession", settings: dict[str, str], *, name: str = "lake"
    ) -> None:
        try:
            need_runtime(spark)
        except ProbeFailedError as error:
            raise NoIcebergError(f"{error}.") from error
        self.session = spark.newSession()
        self.name = name
        setting = f"spark.sql.catalog.{name}"
        self.session.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {"cache-enabled": "false", **settings}.items():
            self.session.conf.set(f"{setting}.{key}", value)

    def sql(self, *statements: str) -> "Lake":
        """Run each statement."""
        for statement in statements:
            self.session.sql(statement).collect()
        return self

    def call(self, procedure: str) -> "Lake":
        """Run one of Iceberg's procedures."""
        return self.sql(f"call {self.name}.system.{procedure}")

    def table(self, name: str) -> Any:
        """Return Iceberg's own object for a table."""
        session: Any = self.session
        return session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session._jsparkSession, name
        )

    def head(self, name: str) -> int:
        """Return the id of a table's present snapshot."""
        return int(self.table(name).currentSnapshot().snapshotId())
